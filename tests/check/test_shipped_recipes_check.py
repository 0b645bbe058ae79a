"""Every shipped recipe passes the check once what the docs name is there: models in small, data by `data get`."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
from tiny_world import write_lines

from foresail.check.look import look
from foresail.data.get import get
from foresail.data.problems import load_problems
from foresail.data.word_problems import make_problems
from foresail.recipe.load import load_recipe
from foresail.recipe.parts import Problems
from foresail.recipe.preflight import preflight
from foresail.recipe.rl import Rl

ROOT = Path(__file__).parents[2]
FILES = sorted([*ROOT.glob("recipes/*.toml"), *ROOT.glob("recipes/flagship/*.toml")])


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all that recipes name: what docs/rl.md says to fetch or to make first."""
    torch = pytest.importorskip("torch")
    from foresail.model.hf import build_model, save_model
    from foresail.recipe.shape import ModelShape
    from foresail.tokenizer.train import train_bpe

    folder = tmp_path_factory.mktemp("world")
    shutil.copytree(ROOT / "recipes", folder / "recipes")
    problems = make_problems(600, seed=1)
    gsm8k = [
        {
            "question": problem.prompt[-1].content,
            "answer": f"{problem.extra['solution']}\n#### {problem.answer}",
        }
        for problem in problems
    ]
    for split in ("train", "test"):
        write_lines(folder / f"{split}.jsonl", gsm8k)
    get("gsm8k", folder / "data", folder)
    sys.path.insert(0, str(ROOT / "benchmarks"))
    from gsm8k_conversations import write_conversations

    write_conversations(folder / "data/gsm8k/train.jsonl", folder / "data/gsm8k/conversations.jsonl")
    shutil.copy(folder / "data/gsm8k/conversations.jsonl", folder / "data/conversations.jsonl")
    for name in ("compass", "mimo"):  # problems of one's own
        (folder / "data" / name).mkdir()
        rows = [row | {"level": 1 + n % 5} for n, row in enumerate(gsm8k)]
        write_lines(folder / "data" / name / "train.jsonl", rows)
    arithmetic = load_problems(Problems(source="arithmetic:count=4000,seed=1,steps=2-6"))
    (folder / "data/arithmetic-levels").mkdir()
    levels = [{"id": problem.id, "level": 1 + n % 5} for n, problem in enumerate(arithmetic)]
    write_lines(folder / "data/arithmetic-levels/difficulty.jsonl", levels)
    tokenizer = train_bpe(["one two"], vocab_size=300, alphabet="bytes")
    shape = ModelShape(
        vocab_size=tokenizer.vocab_size, hidden_size=32, intermediate_size=64, num_layers=1, num_heads=2,
        num_kv_heads=1, head_dim=16, max_context=40_000,
    )  # fmt: skip
    model = build_model(shape, seed=0, dtype=torch.float32, device=torch.device("cpu"))
    save_model(model, folder / "model")
    tokenizer.save(folder / "model")
    return folder


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_shipped_recipe_is_ready_to_run(file: Path, world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(world)
    recipe = load_recipe(file.relative_to(ROOT))
    assert recipe.model.path is not None and recipe.model.path.startswith("checkpoints/")
    # bytes are its tokens, about four to one of a real tokenizer
    longer = "max_length" if not isinstance(recipe, Rl) else "max_prompt_tokens"
    room = [f"{longer}={4 * getattr(recipe, longer)}", "micro_batch_tokens=200000"]
    found = preflight(load_recipe(file.relative_to(ROOT), ["model.path=model", "run.device=cpu", *room]))
    seen = look(found.recipe, max_context=40_000)
    assert (*found.refusals, *seen.refusals) == ()
    assert sum("problems of" in line or "conversations of" in line for line in seen.notes) >= 1
    if isinstance(recipe, Rl):
        assert any("gold answers right" in line for line in seen.notes)
