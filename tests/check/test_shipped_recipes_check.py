"""Shipped recipes pass the check once the files they name are there: a model in small, data by `data get`.

Recipes of generated problems need no files. For pretraining see `tests/train/stages/test_pretrain_recipes.py`.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from safetensors.numpy import save_file
from tiny_world import write_lines

from foresail.check.inspection import inspect_sources
from foresail.data.get import get
from foresail.data.made.word_problems import make_problems
from foresail.recipe.reading.load import load_recipe
from foresail.recipe.reading.preflight import preflight
from foresail.recipe.shape.hf_config import config_from_shape
from foresail.recipe.shape.model_shape import ModelShape
from foresail.recipe.stages.rl import Rl
from foresail.tokenizer.train import train_bpe

ROOT = Path(__file__).parents[2]
ALL = sorted([*ROOT.glob("recipes/*.toml"), *ROOT.glob("recipes/flagship/*.toml")])
FOLDERS = ("data/gsm8k/", "data/mimo/", "data/compass/", "data/conversations.jsonl", "data/pairs.jsonl")
CONTEXT = 40_000


def reads_files(file: Path) -> bool:
    recipe = load_recipe(file)
    sources = recipe.sources().values() if recipe.stage != "pretrain" else ()
    return bool(sources) and all(source.startswith(FOLDERS) for source in sources)


FILES = [*filter(reads_files, ALL)]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all that these recipes name: what docs/rl.md says to fetch or to make first."""
    folder = tmp_path_factory.mktemp("world")
    problems = make_problems(300, seed=1)
    gsm8k = [
        {
            "question": problem.prompt[-1].content,
            "answer": f"{problem.extra['solution']}\n#### {problem.answer}",
        }
        for problem in problems
    ]
    write_lines(folder / "train.jsonl", gsm8k)
    write_lines(folder / "test.jsonl", gsm8k[:20])
    get("gsm8k", folder / "data", folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "benchmarks/proofs")
        from gsm8k_conversations import write_conversations
    data = folder / "data"
    write_conversations(data / "gsm8k/train.jsonl", data / "gsm8k/conversations.jsonl")
    write_conversations(data / "gsm8k/train.jsonl", data / "conversations.jsonl")
    write_lines(data / "pairs.jsonl", [{"prompt": "2 + 2?", "chosen": "4", "rejected": "5"}] * 100)
    for name in ("compass", "mimo"):  # problems of one's own
        (data / name).mkdir()
        rows = [{"question": f"1 + {n}?", "answer": str(1 + n), "level": 1 + n % 5} for n in range(512)]
        write_lines(data / name / "train.jsonl", rows)
    tokenizer = train_bpe(["one two"], vocab_size=300, alphabet="bytes")
    shape = ModelShape(
        vocab_size=tokenizer.vocab_size, hidden_size=32, intermediate_size=64, num_layers=1, num_heads=2,
        num_kv_heads=1, head_dim=16, max_context=CONTEXT,
    )  # fmt: skip
    tokenizer.save(folder / "model")
    (folder / "model/config.json").write_text(json.dumps(config_from_shape(shape, dtype="float32")))
    save_file({}, folder / "model/model.safetensors")  # a check reads no weights
    return folder


def test_there_are_recipes() -> None:
    assert len(FILES) >= 16


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_shipped_recipe_is_ready_to_run(file: Path, world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(world)
    shipped = load_recipe(file)
    assert shipped.model.path is not None and shipped.model.path.startswith("checkpoints/")
    # bytes are its tokens, about four to one of a real tokenizer
    longer = "max_prompt_tokens" if hasattr(shipped, "max_prompt_tokens") else "max_length"
    changes = [f"{longer}={4 * getattr(shipped, longer)}", "micro_batch_tokens=200000", "run.device=cpu"]
    changes += ["model.path=model"] + (["teacher.path=model"] if hasattr(shipped, "teacher") else [])
    found = preflight(load_recipe(file, changes))
    seen = inspect_sources(found.recipe, max_context=CONTEXT)
    assert (*found.refusals, *seen.refusals) == ()
    assert any(f"{kind} of" in line for line in seen.notes for kind in ("problems", "conversations", "pairs"))
    if isinstance(shipped, Rl):
        assert any("gold answers right" in line for line in seen.notes)
