"""Reward functions that a script or a notebook gives: first run, the cell again, resume, extend, evaluate, kill."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch
from safetensors.torch import load_file

import foresail as package
from foresail.recipe.load import RecipeError
from foresail.recipe.reward_function import fingerprint, fingerprint_in_file
from foresail.runlog.directory import RunDirectory

if TYPE_CHECKING:
    from command_line import CommandLine

ROWS = [{"prompt": f"1 +{number}", "answer": str(number + 1)} for number in range(8)]
CELL = """
def reward(response, answer):
    return float(sum(map(ord, response)) % 7)  # a count of something, not right or wrong
"""
PASS_IT_AGAIN = "was given by a Python program; in Python pass it again, as reward=reward"


def run_cell(text: str = CELL) -> Callable[..., Any]:
    """The function of a cell of a notebook, whose source IPython keeps where `inspect` finds it."""
    import linecache

    name = f"<cell {len(linecache.cache)}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    cell: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(text, name, "exec"), cell)
    return cell["reward"]


def settings(checkpoint: Path, folder: Path) -> dict[str, Any]:
    return {
        "model": str(checkpoint),
        "data": ROWS,
        "steps": 2,
        "prompts_per_step": 4,
        "samples_per_prompt": 4,
        "max_prompt_tokens": 12,
        "micro_batch_tokens": 256,
        "sampling": {"max_new_tokens": 8},
        "run": {"root": str(folder), "name": "rr", "device": "cpu"},
        "checkpoints": {"every": 1, "keep": 9},
    }


@pytest.fixture(scope="module")
def begun(tiny_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    return package.rl(reward=run_cell(), **settings(tiny_checkpoint, folder)).run


def weights(run: Path) -> torch.Tensor:
    step = RunDirectory(run).checkpoint_steps()[-1]
    tensors = load_file(run / "checkpoints" / f"step_{step}" / "model.safetensors")
    return torch.cat([tensor.flatten() for _, tensor in sorted(tensors.items())])


def test_the_source_is_what_a_function_is_known_by(tmp_path: Path) -> None:
    (tmp_path / "rewards.py").write_text(
        "import math\n" + CELL.replace("  # a count", " # another remark, a count")
    )
    known = fingerprint(run_cell())
    assert fingerprint(run_cell(CELL + "\n")) == known == fingerprint_in_file(f"{tmp_path}/rewards.py:reward")
    assert fingerprint(run_cell(CELL.replace("7", "5"))) != known
    assert fingerprint_in_file(f"{tmp_path}/rewards.py:other") is None
    typed: dict[str, Any] = {}
    exec("reward = lambda response, answer: 1.0", typed)  # its source cannot be had
    assert len(fingerprint(typed["reward"])) == 16


def test_the_same_cell_again_is_the_same_run(begun: Path, tiny_checkpoint: Path) -> None:
    with pytest.raises(RecipeError, match="already holds this run; go on with it"):
        package.rl(reward=run_cell(), **settings(tiny_checkpoint, begun.parent))
    table = {"grader": run_cell(), "threshold": 3.0}
    with pytest.raises(RecipeError, match=r"another recipe \(other reward.threshold\)"):
        package.rl(reward=table, **settings(tiny_checkpoint, begun.parent))


def test_a_run_goes_on_with_the_function_and_without_it_says_what_to_pass(
    begun: Path, tmp_path: Path
) -> None:
    run = shutil.copytree(begun, tmp_path / "rr")
    with pytest.raises(ValueError, match=PASS_IT_AGAIN):
        package.resume(run)
    assert package.resume(run, reward=run_cell()).metrics[-1]["step"] == 2, "it is finished"
    assert package.resume(run, reward=run_cell(), steps=3).metrics[-1]["step"] == 3
    with pytest.raises(ValueError, match=r"python:reward changed since the run began.*changed_reward=True"):
        package.resume(run, reward=run_cell(CELL.replace("7", "5")), steps=4)
    other = package.resume(run, reward=run_cell(CELL.replace("7", "5")), steps=4, changed_reward=True)
    assert other.metrics[-1]["step"] == 4
    with pytest.raises(RecipeError, match=r"optimizer\.lr cannot change"):
        package.resume(run, reward=run_cell(), optimizer={"lr": 1.0})


def test_after_a_kill_it_ends_with_the_same_weights(begun: Path, tmp_path: Path) -> None:
    run = shutil.copytree(begun, tmp_path / "rr")
    shutil.rmtree(run / "checkpoints" / "step_2")
    package.resume(run, reward=run_cell())
    assert weights(run).equal(weights(begun))


def test_from_the_command_line_a_file_takes_its_place(
    begun: Path, tmp_path: Path, foresail: CommandLine
) -> None:
    run = shutil.copytree(begun, tmp_path / "rr")
    (tmp_path / "rewards.py").write_text(CELL)
    refused = foresail.run("resume", run, "steps=3")
    assert refused.code == 1 and PASS_IT_AGAIN in refused.err and "Traceback" not in refused.err
    assert foresail.run("resume", run, "steps=3", "reward.grader=rewards.py:reward").code == 0
    (tmp_path / "rewards.py").write_text(CELL.replace("7", "5"))
    shutil.rmtree(run)
    shutil.copytree(begun, run)
    refused = foresail.run("resume", run, "steps=3", "reward.grader=rewards.py:reward")
    assert refused.code == 1 and "reward.grader cannot change" in refused.err


def test_evaluation_takes_the_function_too(begun: Path) -> None:
    with pytest.raises(ValueError, match=PASS_IT_AGAIN):
        package.evaluate(begun, ROWS, samples=1)
    figures = package.evaluate(begun, ROWS, samples=1, reward=run_cell()).figures
    assert "greedy reward" in figures and "greedy" not in figures and not figures["samples"]["failures"]
    assert "greedy" in package.evaluate(begun, ROWS, samples=0, reward="math").figures
    both = package.evaluate(begun, ROWS, samples=1, reward=["math", run_cell()]).figures
    assert "mean@1 reward" in both


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda run: package.generate(run, "1 +1", temprature=0.5), "temprature: unknown keyword; the nearest is"),
        (lambda run: package.evaluate(run, ROWS, sufix="x"), "sufix: unknown keyword; the nearest is suffix"),
        (lambda run: package.evaluate(run, ROWS, sampling={"top_p": 7.0}), "top_p must be at most 1, not 7.0"),
    ],
)  # fmt: skip
def test_mistakes_end_in_one_line(begun: Path, call: Callable[[Path], Any], message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        call(begun)


@pytest.mark.parametrize("returned", ["[1.0]", "1.0"])
def test_one_value_for_several_responses_is_refused_before_the_model_loads(
    tiny_checkpoint: Path, tmp_path: Path, returned: str
) -> None:
    cell = f"def reward(prompts, completions, **kwargs): return {returned}"
    with pytest.raises(RecipeError, match=r"fails on the answer .* for 2 responses"):
        package.rl(reward=run_cell(cell), **settings(tiny_checkpoint, tmp_path))
    assert not (tmp_path / "rr" / "recipe.toml").exists()
