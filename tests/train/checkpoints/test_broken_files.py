"""Whatever is wrong with a file that a user brings, the answer is an error in words, never a traceback.

A few hundred mutated files, the same ones in every run; FORESAIL_FUZZ=10 tries ten times as many.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from broken_files import mutations
from tiny_world import rl_recipe, sft_recipe

from foresail.data.chats.conversations import load_conversations
from foresail.data.problems.problems import load_problems
from foresail.model.device import choose_device
from foresail.model.hf_names import weight_parts
from foresail.recipe.reading.dump import to_toml
from foresail.recipe.reading.load import load_recipe
from foresail.recipe.reading.preflight import preflight
from foresail.recipe.shape.hf_config import read_shape
from foresail.recipe.tables import parts
from foresail.records import Message, RunStopped
from foresail.rollout.checkpoint import open_checkpoint
from foresail.tokenizer.tokenizer import Tokenizer
from foresail.train.checkpoints.checkpoint import read_progress
from foresail.train.learner import open_policy

TIMES = int(os.environ.get("FORESAIL_FUZZ", "1"))
CASES = {
    "config.json": 120,
    "generation_config.json": 60,
    "tokenizer_config.json": 90,
    "tokenizer.json": 60,
    "chat_template.jinja": 30,
    "special_tokens_map.json": 10,
    "model.safetensors": 30,
    "trainer/progress.json": 40,
    "trainer/optimizer.safetensors": 15,
}
PROBLEM = {"prompt": "1 + 2", "answer": "3", "id": 7, "extra_info": {"index": 1}}


def failures(cases: Iterator[bytes], file: Path, use: Callable[[], object]) -> list[str]:
    """What came out other than success or an error in words."""
    found = []
    for content in cases:
        file.write_bytes(content)
        try:
            use()
        except (ValueError, OSError, RunStopped) as error:
            if not str(error).strip():
                found.append(f"{type(error).__name__} without a word for {content[:300]!r}")
        except BaseException as error:
            found.append(f"{type(error).__name__}: {error} for {content[:300]!r}")
    return found


@pytest.fixture
def folder(tiny_checkpoint: Path, tmp_path: Path) -> Path:
    """The tiny checkpoint once more, by links, so that a mutated file costs only itself."""
    copy = tmp_path / "checkpoint"
    (copy / "trainer").mkdir(parents=True)
    for path in tiny_checkpoint.rglob("*"):
        if path.is_file():
            (copy / path.relative_to(tiny_checkpoint)).symlink_to(path)
    return copy


def use_checkpoint(folder: Path) -> None:
    """All that reads a checkpoint's folder: the preflight, a model and tokenizer at work, and a resumed run."""
    recipe = rl_recipe(folder, folder.parent)
    refusals = preflight(recipe).refusals
    assert all(isinstance(line, str) and line.strip() for line in refusals)
    progress = read_progress(folder)
    assert progress.step >= 0 or progress
    model, tokenizer = open_checkpoint(folder, device="cpu", max_length=8)
    tokenizer.encode_conversation(
        [Message(role="user", content="1+2"), Message(role="assistant", content="3")]
    )
    tokenizer.save(folder.parent / "saved")
    assert model.shape.vocab_size >= tokenizer.vocab_size


@pytest.mark.parametrize("name", CASES)
def test_mutated_checkpoints(name: str, folder: Path) -> None:
    file = folder / name
    if name == "chat_template.jinja":
        content = Tokenizer.load(folder).files.chat_template.encode()  # type: ignore[union-attr]
    elif name == "special_tokens_map.json":
        content = json.dumps({"eos_token": {"content": "<|im_end|>"}, "pad_token": "x"}).encode()
    else:
        content = file.read_bytes()
        file.unlink()
    cases = mutations(content, seed=name, count=CASES[name] * TIMES)
    use = use_checkpoint
    if name == "trainer/optimizer.safetensors":
        recipe = sft_recipe(folder, Path("unused"), folder.parent)

        def use(folder: Path) -> None:
            open_policy(recipe, folder, choose_device("cpu"))

    assert failures(cases, file, lambda: use(folder)) == []


def test_a_mutated_index_of_shards(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "model-00001-of-00001.safetensors")
    names = [part.hf_name for part in weight_parts(read_shape(folder))]
    index = {
        "metadata": {"total_size": 1},
        "weight_map": dict.fromkeys(names, "model-00001-of-00001.safetensors"),
    }
    file = folder / "model.safetensors.index.json"
    file.write_text(json.dumps(index))
    use_checkpoint(folder)
    cases = mutations(json.dumps(index).encode(), seed="index", count=60 * TIMES)
    assert failures(cases, file, lambda: use_checkpoint(folder)) == []


@pytest.mark.parametrize("form", ["lines", "list"])
def test_mutated_problems_and_conversations(form: str, tmp_path: Path) -> None:
    file = tmp_path / "data.jsonl"
    messages = [{"role": "user", "content": "1 + 2"}, {"role": "assistant", "content": "3"}]
    row = {**PROBLEM, "messages": messages, "difficulty": 2}
    content = json.dumps(row if form == "lines" else [row, row]).encode()
    settings = parts.Problems(source=str(file), difficulty_key="difficulty")

    def use() -> None:
        try:
            load_conversations(file)
        finally:
            load_problems(settings)

    assert failures(mutations(content, seed=form, count=150 * TIMES), file, use) == []


def test_mutated_recipes(tiny_checkpoint: Path, tmp_path: Path) -> None:
    file = tmp_path / "recipe.toml"
    text = to_toml(rl_recipe(tiny_checkpoint, tmp_path))
    assert failures(mutations(text.encode(), "toml", 100 * TIMES), file, lambda: load_recipe(file)) == []


VALUES = (
    "",
    "none",
    "[]",
    "{}",
    "{a=1}",
    "nan",
    "-1",
    "1e400",
    "'x",
    '"\\ud800"',
    "[[1]]",
    "true",
    "9" * 5000,
)


def test_mutated_overrides(tiny_checkpoint: Path, tmp_path: Path) -> None:
    file, chance = tmp_path / "recipe.toml", random.Random("overrides")
    text = to_toml(rl_recipe(tiny_checkpoint, tmp_path))
    keys = [line.split(" =")[0] for line in text.splitlines() if " = " in line and not line.startswith("#")]
    keys += ["run", "loss.kind", "sampling.top_p", "curriculum", "eval.source", "a.b.c", "."]
    for _ in range(100 * TIMES):
        override = f"{chance.choice(keys)}={chance.choice(VALUES)}"
        cases = iter([text.encode()])
        assert failures(cases, file, lambda override=override: load_recipe(file, [override])) == []
