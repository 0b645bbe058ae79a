"""KTO, in this process and as a command: what it learns, its reference, how it goes on, what it refuses."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_line import CommandLine
from safetensors.torch import load_file
from small_pairs import kto_recipe, write_judged, write_pairs
from small_runs import curve, losses, weights
from tiny_world import write_lines

import foresail
from foresail.check.inspection import inspect_sources
from foresail.recipe.reading.dump import to_toml
from foresail.recipe.stages.kto import Kto
from foresail.recipe.tables.cluster import Cluster
from foresail.recipe.tables.parts import Checkpoints, Lora, Optimizer
from foresail.recipe.tables.preferences import Reference, UnpairedLoss
from foresail.records import TrainAnswer, TrainSequence
from foresail.train.callbacks import StepReport
from foresail.train.session import Outcome
from foresail.train.stages.kto import mismatch_answers, run_kto

Make = Callable[..., Kto]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_judged(tmp_path_factory.mktemp("judged") / "judged.jsonl")


@pytest.fixture(scope="module")
def held_out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_judged(tmp_path_factory.mktemp("judged") / "held-out.jsonl", count=10, seed=9)


@pytest.fixture
def make(tiny_checkpoint: Path, file: Path, tmp_path: Path) -> Make:
    def recipe(name: str, data: Any = file, **changes: Any) -> Kto:
        return kto_recipe(tiny_checkpoint, data, tmp_path, name, **changes)

    return recipe


@pytest.fixture(scope="module")
def kept_run(
    tiny_checkpoint: Path, file: Path, held_out: Path, tmp_path_factory: pytest.TempPathFactory
) -> Outcome:
    """Four steps, with measurements on other answers. Read it, never write into it."""
    root = tmp_path_factory.mktemp("runs")
    return run_kto(kto_recipe(tiny_checkpoint, file, root, "kept", eval=str(held_out), eval_every=2))


def test_it_begins_at_one_half_and_names_metrics_as_others_do(kept_run: Outcome) -> None:
    before, first, second, *_ = curve(kept_run)
    assert before["val/loss/held-out"] == first["train/loss"] == pytest.approx(0.5, abs=1e-5)
    assert first["kl"] == pytest.approx(0, abs=1e-5) and first["rewards/chosen"] == pytest.approx(0, abs=1e-5)
    assert second["rewards/margins"] == pytest.approx(second["rewards/chosen"] - second["rewards/rejected"])
    assert -12 < second["logps/chosen"] < 0 and second.keys() >= {"logps/rejected", "actor/entropy"}
    measured = {name for name in second if name.startswith("val/")}
    names = ("loss", "kl", "rewards/chosen", "rewards/rejected", "rewards/margins")
    assert measured == {f"val/{name}/held-out" for name in names}


def test_it_learns_which_answers_are_good(make: Make) -> None:
    learns = {"steps": 16, "batch_size": 12, "optimizer": Optimizer(lr=5e-3)}
    last = curve(run_kto(make("learns", **learns, checkpoints=Checkpoints(every=100))))[-1]
    assert last["rewards/margins"] > 0.3 and last["train/loss"] < 0.45


@pytest.mark.parametrize(
    "changes",
    [{"reference": Reference(kept=False)}, {"micro_batch_tokens": 4096}],
    ids=["asked at every step", "one micro-batch"],
)
def test_the_same_is_learned_however_the_reference_is_asked(
    kept_run: Outcome, make: Make, changes: dict[str, Any]
) -> None:
    other = run_kto(make("other", **changes))
    assert losses(other) == pytest.approx(losses(kept_run), rel=1e-4)
    ours, theirs = ([record["kl"] for record in curve(run) if record["step"]] for run in (other, kept_run))
    assert ours == pytest.approx(theirs, abs=1e-4)


def test_two_ranks_learn_what_one_process_learns(make: Make, kept_run: Outcome, forked_workers: None) -> None:
    outcome = run_kto(make("ranks", cluster=Cluster(ranks=2)))
    assert losses(outcome) == pytest.approx(losses(kept_run), rel=1e-4)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"reference": Reference(kept=False)},
        {"lora": Lora(rank=2), "loss": UnpairedLoss(kind="apo_zero_unpaired")},
    ],
    ids=["kept", "asked", "lora, apo"],
)
def test_a_run_that_was_stopped_goes_on_exactly(make: Make, tmp_path: Path, changes: dict[str, Any]) -> None:
    whole = run_kto(make("whole", **changes))
    half = make("half", **changes)
    shutil.copytree(whole.run, tmp_path / "half")
    shutil.rmtree(tmp_path / "half/checkpoints/step_4")
    resumed = run_kto(half, resume=True)
    assert curve(resumed) == curve(whole)
    assert weights(resumed.checkpoint).equal(weights(whole.checkpoint))


def test_what_is_kept_is_about_answers_and_their_neighbours(make: Make) -> None:
    kept = load_file(run_kto(make("short", steps=2)).run / "reference.safetensors")
    assert kept["logprobs"].shape == (12, 2)
    alone = make("alone", steps=2, loss=UnpairedLoss(kind="apo_zero_unpaired"))
    assert load_file(run_kto(alone).run / "reference.safetensors")["logprobs"].shape == (12, 1)


def test_answers_stand_behind_the_next_prompt_and_are_cut_at_the_limit() -> None:
    def answer(prompt: list[int], said: list[int]) -> TrainAnswer:
        sequence = TrainSequence(ids=[*prompt, *said], loss_mask=[0] * len(prompt) + [1] * len(said))
        return TrainAnswer(answer=sequence, desirable=True)

    found = mismatch_answers([answer([1, 2], [3]), answer([4], [5, 6, 7]), answer([8], [9])], limit=4)
    assert [one.mismatched.ids for one in found if one.mismatched] == [[1, 2, 9], [4, 3], [8, 5, 6, 7]]
    (cut,) = mismatch_answers([answer([1, 2, 3], [5, 6])], limit=4)
    assert cut.mismatched is not None and cut.mismatched.loss_mask == [0, 0, 0, 1]


# What is looked at, and what is refused.


def test_labels_are_looked_at_before_a_run(make: Make, file: Path, tmp_path: Path) -> None:
    seen = inspect_sources(make("looked"))
    assert not seen.refusals and not seen.warnings
    assert any(
        note.startswith("data: 24 answers of judged, 12 good and 12 bad, up to") for note in seen.notes
    )
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    good = write_lines(tmp_path / "good.jsonl", [row for row in rows if row["label"]])
    (refused,) = inspect_sources(make("good", data=good)).refusals
    assert "every answer is labelled good, and KTO learns what tells good from bad; add bad ones" in refused
    with pytest.raises(ValueError, match="every answer is labelled good"):
        run_kto(make("good", data=good))
    uneven = write_lines(tmp_path / "uneven.jsonl", [row for row in rows if row["label"]] + rows[1:6:2])
    (warned,) = inspect_sources(make("uneven", data=uneven)).warnings
    assert (
        "12 answers are good and 3 bad" in warned and "loss.undesirable_weight between 3.01 and 4" in warned
    )
    weighed = make("weighed", data=uneven, loss=UnpairedLoss(undesirable_weight=3.5))
    assert not inspect_sources(weighed).warnings
    (refused,) = inspect_sources(make("short", max_length=8)).refusals
    assert "data: 24 of 24 answers are longer than max_length 8" in refused


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"batch_size": 1}, "answers to other prompts of the batch; set batch_size = 2"),
        ({"loss": UnpairedLoss(desirable_weight=0, undesirable_weight=0)}, "are both 0"),
        ({"data": ()}, "data names no answers"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(
    make: Make, changes: dict[str, Any], told: str
) -> None:
    with pytest.raises(ValueError, match=told):
        make("refused", **changes)


# As its user runs it.


def test_the_command_trains_and_goes_on(make: Make, tmp_path: Path) -> None:
    (tmp_path / "kto.toml").write_text(to_toml(make("command", steps=2)))
    command = CommandLine(tmp_path)
    done = command.run("kto", "kto.toml")
    assert done.code == 0 and "checkpoint: " in done.out, done.err
    longer = command.run("resume", "command", "steps=3")
    assert longer.code == 0, longer.err
    assert [record["step"] for record in curve(tmp_path / "command")] == [1, 2, 3]


def test_callbacks_hear_of_what_was_measured_first_and_may_end_the_run_there(
    tiny_checkpoint: Path, tmp_path: Path, file: Path, held_out: Path
) -> None:
    """It goes on from there, and from where a callback failed."""
    heard: list[tuple[int, float]] = []

    def note(report: StepReport) -> None:
        heard.append((report.step, report.metrics["val/loss/held-out"]))
        report.stop()

    def fail(report: StepReport) -> None:
        raise KeyError("a mistake of the script")

    result = foresail.kto(
        model={"path": str(tiny_checkpoint), "dtype": "float32"},
        data=str(file),
        eval=str(held_out),
        eval_every=2,
        steps=3,
        batch_size=4,
        max_length=24,
        run={"root": str(tmp_path), "name": "kto", "device": "cpu"},
        on_evaluation=note,
    )
    assert heard == [(0, pytest.approx(0.5))]
    with pytest.raises(KeyError, match="a mistake of the script"):
        foresail.resume(result, on_step=fail)
    assert [record["step"] for record in result.metrics] == [0, 1]
    foresail.resume(result, on_evaluation=note)
    assert [step for step, _ in heard] == [0, 2]
    foresail.resume(result)
    assert [record["step"] for record in result.metrics] == [0, 1, 2, 3]


def test_python_trains_on_rows_and_on_pairs(tiny_checkpoint: Path, tmp_path: Path, file: Path) -> None:
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    common: dict[str, Any] = {
        "model": {"path": str(tiny_checkpoint), "dtype": "float32"},
        "steps": 1,
        "batch_size": 4,
        "max_length": 24,
        "micro_batch_tokens": 64,
    }
    for name, data in (("rows", rows), ("pairs", str(write_pairs(tmp_path / "pairs.jsonl", count=6)))):
        run = {"name": name, "root": str(tmp_path), "device": "cpu"}
        result = foresail.kto(data=data, run=run, **common)
        assert curve(result.run)[-1]["train/loss"] == pytest.approx(0.5, abs=1e-5)
