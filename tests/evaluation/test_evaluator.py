"""An opened evaluator: one model for many sets, each with the results it has alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from tiny_world import HELD_OUT, MAX_NEW, PROBLEMS, rl_recipe
from typer.testing import CliRunner

from foresail import evaluate
from foresail.cli import app
from foresail.evaluation.evaluator import Evaluator, evaluate_checkpoint
from foresail.recipe.reading.dump import to_toml
from foresail.recipe.tables.parts import Problems, Sampling
from foresail.recipe.tables.sources import HeldOut
from foresail.rollout import checkpoint as checkpoints

SAMPLING = Sampling(max_new_tokens=MAX_NEW)
SETS = [Problems(source=HELD_OUT, limit=3), Problems(source=PROBLEMS, limit=5)]


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The checkpoints that were loaded, one entry a load."""
    loaded: list[Path] = []
    load = checkpoints.load_model

    def counted(path: Path, **options: object) -> object:
        loaded.append(path)
        return load(path, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(checkpoints, "load_model", counted)
    return loaded


def test_sets_of_one_load_are_what_they_are_alone(
    tiny_checkpoint: Path, tmp_path: Path, loads: list[Path]
) -> None:
    with Evaluator(tiny_checkpoint, max_new_tokens=MAX_NEW, device="cpu") as evaluator:
        together = [
            evaluator.evaluate(problems, SAMPLING, num_samples=2, output=tmp_path / f"{number}", seed=number)
            for number, problems in enumerate((*SETS, *SETS))
        ]
    assert loads == [tiny_checkpoint]
    assert not hasattr(evaluator, "model"), "closed, it holds no weights"
    for number, (problems, results) in enumerate(zip((*SETS, *SETS), together, strict=True)):
        out = tmp_path / f"alone-{number}"
        alone = evaluate_checkpoint(
            tiny_checkpoint, problems, SAMPLING, num_samples=2, output=out, seed=number, device="cpu"
        )
        assert alone == results
        for file in ("records.jsonl", "summary.json"):
            assert (out / file).read_bytes() == (tmp_path / f"{number}" / file).read_bytes()
    assert together[0] != together[2], "another seed"


def test_the_command_and_python_load_once_for_all_sets(
    tiny_checkpoint: Path, tmp_path: Path, loads: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "rl"
    sets = [HeldOut(source=HELD_OUT, limit=5), HeldOut(source=HELD_OUT, name="other", limit=3)]
    (run / "checkpoints").mkdir(parents=True)
    (run / "checkpoints" / "step_2").symlink_to(tiny_checkpoint)
    (run / "recipe.toml").write_text(to_toml(rl_recipe(tiny_checkpoint, tmp_path, eval=sets)))
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["eval", str(run), "--samples", "0", "--device", "cpu"])
    assert done.exit_code == 0, done.output
    assert done.output.count("records: ") == 2 and len(loads) == 1
    assert len(evaluate(run, samples=0, device="cpu").results) == 8 and len(loads) == 2


def test_a_wrong_grader_is_told_before_the_model_is_loaded(
    tiny_checkpoint: Path, tmp_path: Path, loads: list[Path]
) -> None:
    with pytest.raises(ValueError, match="unknown grader"):
        evaluate_checkpoint(
            tiny_checkpoint, SETS[0], SAMPLING, num_samples=0, output=tmp_path / "out", grader="maths"
        )
    assert loads == []
