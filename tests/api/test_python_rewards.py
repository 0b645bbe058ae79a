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
from foresail.recipe.function_source import fingerprint
from foresail.recipe.reading.load import RecipeError
from foresail.recipe.reward_function import fingerprint_of_named
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


def weights(run: Path, step: int) -> torch.Tensor:
    tensors = load_file(run / "checkpoints" / f"step_{step}" / "model.safetensors")
    return torch.cat([tensor.flatten() for _, tensor in sorted(tensors.items())])


def test_the_source_is_what_a_function_is_known_by(tmp_path: Path) -> None:
    (tmp_path / "rewards.py").write_text(
        "import math\n" + CELL.replace("  # a count", " # another remark, a count")
    )
    known = fingerprint(run_cell())
    assert (
        fingerprint(run_cell(CELL + "\n")) == known == fingerprint_of_named(f"{tmp_path}/rewards.py:reward")
    )
    assert fingerprint(run_cell(CELL.replace("7", "5"))) != known
    assert fingerprint_of_named(f"{tmp_path}/rewards.py:other") is None
    assert fingerprint_of_named("math") is None
    typed: dict[str, Any] = {}
    exec("reward = lambda response, answer: 1.0", typed)  # its source cannot be had
    assert len(fingerprint(typed["reward"])) == 16


def test_a_lambda_is_the_same_wherever_it_stands_and_a_partial_has_what_it_fixes(tmp_path: Path) -> None:
    def first(call: str, number: int = 0) -> str:
        text = f"def take(*given, **named): return [*given, *named.values()][{number}]\nreward = {call}\n"
        return fingerprint(
            run_cell("from functools import partial\ndef f(response, answer, k): return k\n" + text)
        )

    known = first("take(lambda response, answer: 1.0, 5)")
    assert known == first("take(3, steps=2, reward=lambda response,answer:\n   1.0 )", 2)
    two = "take(lambda response, answer: 1.0, lambda response, answer: 2.0, lambda: (lambda a: 1.0))"
    assert known == first(two) != first(two, 1) != first(two, 2)
    assert first("partial(f, k=2)") == first("partial(f,  k=2)") != first("partial(f, k=3)")
    assert first("partial(f, k=2)") != first("f")
    (tmp_path / "rewards.py").write_text("score = lambda response, answer: 1.0\n")
    assert fingerprint_of_named(f"{tmp_path}/rewards.py:score") == known
    spoken = CELL.replace("\n    return", '\n    """Of letters."""\n    return')
    assert fingerprint(run_cell(spoken)) == fingerprint(run_cell())
    assert len(fingerprint(len)) == 16, "nobody has its source"


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


def test_a_notebook_that_was_killed_goes_on_in_another(
    begun: Path, tiny_checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel dies by SIGKILL in the second step; a new one defines the function anew, and resumes."""
    monkeypatch.setenv("PYTHONPATH", str(Path(package.__file__).parents[1]))
    start = f"import os, signal, foresail\nsettings = {settings(tiny_checkpoint, tmp_path)!r}"
    kill = "def kill(report):\n    if report.step == 2: os.kill(os.getpid(), signal.SIGKILL)"
    with pytest.raises(RuntimeError, match="Kernel died"):
        run_notebook(tmp_path, start, CELL, kill, "foresail.rl(reward=reward, on_step=kill, **settings)")
    run = tmp_path / "rr"
    said = run_notebook(
        tmp_path,
        start,
        CELL,
        "try: foresail.rl(reward=reward, **settings)\nexcept ValueError as error: print(error)",
        f"run = foresail.resume({str(run)!r}, reward=reward)",
        "run = foresail.resume(run, reward=reward, steps=3)",
        f"print(foresail.evaluate(run, {ROWS!r}, samples=1, reward=reward).figures.keys())",
    )
    assert "already holds this run; go on with it" in said and "greedy reward" in said
    assert RunDirectory(run).checkpoint_steps()[-1] == 3
    assert weights(run, 2).equal(weights(begun, 2))


def run_notebook(folder: Path, *cells: str) -> str:
    """All that these cells print, in a kernel of their own."""
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(folder)}}).execute()
    return "".join(output.get("text", "") for cell in notebook.cells for output in cell.outputs)


def test_another_reward_is_refused_or_accepted(begun: Path, tmp_path: Path, foresail: CommandLine) -> None:
    run = shutil.copytree(begun, tmp_path / "rr")
    for other in (
        "math",
        run_cell(CELL.replace("reward", "other") + "reward = other"),
        lambda response, answer: 1.0,
    ):
        with pytest.raises(RecipeError, match=r"reward.grader is .*was 'python:reward'.*changed_reward=True"):
            package.resume(run, reward=other, steps=3)
    (tmp_path / "rewards.py").write_text(CELL.replace("7", "5"))
    there = "reward.grader=rewards.py:reward"
    assert foresail.run("resume", run, "steps=3", there, "--changed-reward").code == 0
    assert package.resume(run, reward=run_cell(), steps=4, changed_reward=True).metrics[-1]["step"] == 4
    assert package.resume(run, reward=run_cell(), steps=5).metrics[-1]["step"] == 5


def test_a_list_of_rewards_is_given_again_as_a_list(
    tiny_checkpoint: Path, tmp_path: Path, foresail: CommandLine
) -> None:
    def length(completions: list[str], **columns: Any) -> list[float]:
        return [len(text) / 10 for text in completions]

    several: Any = [run_cell(), {"grader": length, "weight": 0.5}]
    run = package.rl(reward=several, **settings(tiny_checkpoint, tmp_path)).run
    with pytest.raises(ValueError, match=r"the rewards reward, length were given .* as reward=\[…\]; on the"):
        package.resume(run)
    with pytest.raises(RecipeError, match=r"Pass the reward that the run began with, or"):
        package.resume(run, reward=run_cell(), steps=3)
    assert package.resume(run, reward=several, steps=3).metrics[-1]["step"] == 3
    (tmp_path / "own.py").write_text(CELL + "def length(completions: list[str], **columns: Any) -> list[float]:\n"
                                     "    return [len(text) / 10 for text in completions]\n")  # fmt: skip
    words = [f"reward.terms#{number}.grader=own.py:{name}" for number, name in ((1, "reward"), (2, "length"))]
    text = (tmp_path / "own.py").read_text().replace("Any", "object")
    (tmp_path / "own.py").write_text(text)
    assert "other reward.terms" in foresail.run("resume", run, "steps=4", *words).err, (
        "annotations are source"
    )
    (tmp_path / "own.py").write_text("from typing import Any\n" + text.replace("object", "Any"))
    assert foresail.run("resume", run, "steps=4", *words).code == 0


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
    assert refused.code == 1 and "reward.grader is 'rewards.py:reward', was 'python:reward'" in refused.err


def test_evaluation_takes_the_function_too(begun: Path) -> None:
    with pytest.raises(ValueError, match=PASS_IT_AGAIN):
        package.evaluate(begun, ROWS, samples=1)
    figures = package.evaluate(begun, ROWS, samples=1, reward=run_cell()).figures
    assert "greedy reward" in figures and "greedy" not in figures and not figures["samples"]["failures"]
    assert "greedy" in package.evaluate(begun, ROWS, samples=0, reward="math").figures
    with pytest.raises(ValueError, match=r"python:lambda fails on the answer .*division by zero"):
        package.evaluate(begun, ROWS, samples=1, reward=lambda response, answer: 1 / 0)
    both = package.evaluate(begun, ROWS, samples=1, reward=["math", run_cell()]).figures
    assert "mean@1 reward" in both


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda run: package.generate(run, "1 +1", temprature=0.5), "temprature: unknown keyword; the nearest is"),
        (lambda run: package.evaluate(run, ROWS, sufix="x"), "sufix: unknown keyword; the nearest is suffix"),
        (lambda run: package.evaluate(run, ROWS, sampling={"top_p": 7.0}), "top_p must be at most 1, not 7.0"),
        (lambda run: package.evaluate(run, ROWS, reward="mth"), 'reward: unknown grader "mth"; did you mean math'),
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
