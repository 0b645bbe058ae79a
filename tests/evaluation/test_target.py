"""A run as what is evaluated and talked to: its recipe says how, and whoever asks may say otherwise."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tiny_world import HELD_OUT, MAX_NEW, rl_recipe

from foresail.api.generate import generate
from foresail.api.result import Result
from foresail.evaluation.target import NUM_SAMPLES, find_target, in_modes
from foresail.recipe.reading.dump import to_toml
from foresail.recipe.tables.parts import Model
from foresail.recipe.tables.reward import Reward
from foresail.recipe.tables.sources import HeldOut, ProblemSource

if TYPE_CHECKING:
    from command_line import CommandLine


@pytest.fixture
def run(tiny_checkpoint: Path, tmp_path: Path) -> Path:
    """A run with a recipe and the tiny checkpoint as its step 2."""
    recipe = rl_recipe(
        tiny_checkpoint,
        tmp_path,
        model=Model(path=str(tiny_checkpoint), dtype="float32", template_options=("deep=true",)),
        data=ProblemSource(source="arithmetic:count=200,steps=2", system=None, suffix=" +1"),
        eval=[HeldOut(source=HELD_OUT, limit=5, samples=2), HeldOut(source=HELD_OUT, name="other", limit=3)],
    )
    folder = tmp_path / "rl"
    (folder / "checkpoints").mkdir(parents=True)
    (folder / "checkpoints" / "step_2").symlink_to(tiny_checkpoint)
    (folder / "recipe.toml").write_text(to_toml(recipe), encoding="utf-8")
    return folder


def test_what_the_recipe_says(run: Path) -> None:
    target = find_target(run, ["sampling.temperature=0.5"])
    assert target.checkpoint == run / "checkpoints" / "step_2"
    first, second = target.problem_sets(None, {"limit": None})
    assert (first.limit, second.limit, second.name) == (5, 3, "other")
    assert (target.num_samples(first, None), target.num_samples(second, None)) == (2, NUM_SAMPLES)
    sampling = target.sampling({"top_p": None})
    assert (sampling.temperature, sampling.max_new_tokens) == (0.5, MAX_NEW)
    assert (target.suffix, target.template_options) == (" +1", {"deep": True})


def test_the_best_step_is_taken_where_one_is_kept(run: Path) -> None:
    (run / "checkpoints/step_1").mkdir()
    (run / "checkpoints/best").symlink_to("step_1")
    assert find_target(run).checkpoint == Result(run).checkpoint == run / "checkpoints/step_1"
    shutil.rmtree(run / "checkpoints")
    with pytest.raises(FileNotFoundError, match=r"no checkpoint yet; let it finish a step"):
        find_target(run)


def test_what_is_asked_counts_more(run: Path) -> None:
    target = find_target(run)
    assert [entry.limit for entry in target.problem_sets(None, {"limit": 1})] == [1, 1]
    (other,) = target.problem_sets("own.jsonl", {"prompt_key": "q"})
    assert (other.source, other.prompt_key, other.limit, other.name) == ("own.jsonl", "q", None, None)
    assert target.reward(other, "exact") == Reward(grader="exact")
    assert target.num_samples(other, 0) == 0


def test_a_set_that_stands_there_once_a_mode_is_measured_once_a_mode() -> None:
    deep, fast = (HeldOut(source=HELD_OUT, name=str(mode), thinking=mode) for mode in (True, False))
    other = HeldOut(source=HELD_OUT, name="other", limit=3)
    found = in_modes([deep, fast, other], "both")
    assert [(problems.limit, mode) for problems, mode in found] == [
        (None, "thinking on"),
        (None, "thinking off"),
        (3, "thinking on"),
        (3, "thinking off"),
    ]
    assert len(in_modes([deep, fast], None)) == 2


def test_a_checkpoint_alone(tiny_checkpoint: Path) -> None:
    target = find_target(tiny_checkpoint)
    assert (target.checkpoint, target.recipe, target.reward(HeldOut(source="x"), None)) == (
        tiny_checkpoint,
        None,
        Reward(grader="math"),
    )
    with pytest.raises(ValueError, match="name some with --data"):
        target.problem_sets(None, {})
    with pytest.raises(ValueError, match=r"no run, so there is no recipe for steps=3 to change"):
        find_target(tiny_checkpoint, ["steps=3"])


def test_eval_and_generate_take_a_run(run: Path, foresail: CommandLine) -> None:
    finished = foresail.run("eval", run, "eval#2.limit=2", "--samples", 1)
    assert "5 problems" in finished.out
    assert "2 problems, other" in finished.out
    assert "(replaced)" not in finished.out, "sets of one source have a folder each"
    said = foresail.run("generate", run, "1 +2")
    assert said.out.strip()
    assert said.out.strip() == generate(run, "1 +2") == generate(str(run), ["1 +2"])[0]
    assert said.out.strip() != generate(run / "checkpoints" / "step_2", "1 +2")  # which knows no suffix


def test_stop_strings(run: Path, foresail: CommandLine, tmp_path: Path) -> None:
    assert generate(run, "1 +2").startswith(r"\boxed{")
    assert generate(run, "1 +2", stop="oxe") == r"\boxed{"  # the whole of the token that completes it
    said = foresail.run("generate", run, "1 +2", "--stop", "oxe", "--stop", "never")
    assert said.out.strip() == r"\boxed{"
    foresail.run(
        "eval", run, "sampling.stop=}", "--data", HELD_OUT, "--samples", 2, "--output", tmp_path / "a"
    )
    foresail.run("eval", run, "--stop", "}", "--data", HELD_OUT, "--samples", 2, "--output", tmp_path / "b")
    records = [(tmp_path / name / "records.jsonl").read_text() for name in "ab"]
    assert records[0] == records[1] and r"\\boxed{" in records[0]
    texts = [attempt["text"] for line in records[0].splitlines() for attempt in json.loads(line)["samples"]]
    assert all("}" not in text[:-1] for text in texts) and any(text.endswith("}") for text in texts)
