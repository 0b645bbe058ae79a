"""Preference optimisation, in this process: what it learns, what it keeps of the reference, how it goes on."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file
from small_pairs import dpo_recipe, write_pairs
from small_runs import curve, losses, weights
from tiny_world import write_lines

import foresail
from foresail.check.inspection import inspect_sources
from foresail.data.preferences.pairs import load_pairs
from foresail.recipe.reading.load import RecipeError
from foresail.recipe.reading.preflight import preflight
from foresail.recipe.stages.dpo import Dpo
from foresail.recipe.tables.cluster import Cluster
from foresail.recipe.tables.parts import Checkpoints, Lora, Model, Optimizer
from foresail.recipe.tables.preferences import PreferenceLoss, Reference
from foresail.runlog.directory import RunDirectory
from foresail.train.checkpoints.resume import extend
from foresail.train.session import Outcome
from foresail.train.stages.dpo import run_dpo

Make = Callable[..., Dpo]


@pytest.fixture(scope="module")
def pair_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_pairs(tmp_path_factory.mktemp("pairs") / "pairs.jsonl")


@pytest.fixture(scope="module")
def held_out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_pairs(tmp_path_factory.mktemp("pairs") / "held-out.jsonl", count=10, seed=9)


@pytest.fixture
def make(tiny_checkpoint: Path, pair_file: Path, tmp_path: Path) -> Make:
    def recipe(name: str, data: Any = pair_file, **changes: Any) -> Dpo:
        return dpo_recipe(tiny_checkpoint, data, tmp_path, name, **changes)

    return recipe


@pytest.fixture(scope="module")
def kept_run(
    tiny_checkpoint: Path, pair_file: Path, held_out: Path, tmp_path_factory: pytest.TempPathFactory
) -> Outcome:
    """Four steps, with measurements on other pairs. Read it, never write into it."""
    root = tmp_path_factory.mktemp("runs")
    return run_dpo(dpo_recipe(tiny_checkpoint, pair_file, root, "kept", eval=str(held_out), eval_every=2))


def test_it_begins_at_log_2_and_names_metrics_as_others_do(kept_run: Outcome) -> None:
    before, first, second, *_ = curve(kept_run)
    assert before["val/loss/held-out"] == pytest.approx(0.6931472, abs=1e-5)
    assert first["train/loss"] == pytest.approx(0.6931472, abs=1e-5)
    assert first["rewards/chosen"] == pytest.approx(0, abs=1e-5)
    for record in (first, second):
        assert record["rewards/margins"] == pytest.approx(
            record["rewards/chosen"] - record["rewards/rejected"], abs=1e-6
        )
        assert -12 < record["logps/chosen"] < 0 and 0 <= record["rewards/accuracies"] <= 1
    assert second.keys() >= {
        "val/loss/held-out",
        "val-core/held-out/acc/pairs",
        "val/rewards/margins/held-out",
    }
    assert "val/loss/held-out" not in first


def test_it_learns_six_pairs_by_heart(make: Make, pair_file: Path) -> None:
    six, optimizer = [{"source": str(pair_file), "limit": 6}], Optimizer(lr=5e-3)
    outcome = run_dpo(make("learns", six, steps=16, optimizer=optimizer, checkpoints=Checkpoints(every=100)))
    last = curve(outcome)[-1]
    assert last["rewards/accuracies"] == 1 and last["train/loss"] < 0.4
    assert last["rewards/chosen"] > last["rewards/rejected"]


@pytest.mark.parametrize(
    "changes",
    [
        {"reference": Reference(kept=False)},
        {"micro_batch_tokens": 4096},
        {"reference": "its own path"},
    ],
    ids=["asked at every step", "one micro-batch", "named"],
)
def test_the_same_is_learned_however_the_reference_is_asked(
    kept_run: Outcome, make: Make, tiny_checkpoint: Path, changes: dict[str, Any]
) -> None:
    if changes.get("reference") == "its own path":
        changes = {"reference": Reference(path=str(tiny_checkpoint))}
    assert losses(run_dpo(make("other", **changes))) == pytest.approx(losses(kept_run), rel=1e-4)


def test_another_reference_gives_another_loss(kept_run: Outcome, make: Make) -> None:
    other = make("other", reference=Reference(path=str(kept_run.checkpoint)), steps=1)
    assert losses(run_dpo(other))[0] != pytest.approx(0.6931472, abs=1e-4)


@pytest.mark.parametrize("kept", [True, False])
def test_with_lora_the_base_is_the_reference(make: Make, kept: bool) -> None:
    lora = {"lora": Lora(rank=4), "optimizer": Optimizer(lr=2e-2), "reference": Reference(kept=kept)}
    outcome = run_dpo(make("lora", steps=3, **lora))
    first, *_, last = losses(outcome)
    assert first == pytest.approx(0.6931472, abs=1e-5) and last != pytest.approx(first, abs=1e-3)


def test_simpo_keeps_and_asks_no_reference(make: Make) -> None:
    outcome = run_dpo(make("simpo", loss=PreferenceLoss(kind="simpo", beta=2.0), steps=2))
    assert not (outcome.run / "reference.safetensors").exists()
    assert losses(outcome)[0] != pytest.approx(0.6931472, abs=1e-2)


def test_only_pairs_that_the_run_draws_are_scored(make: Make, pair_file: Path) -> None:
    short = run_dpo(make("short", steps=2))
    assert len(load_file(short.run / "reference.safetensors")["keys"]) == 12
    assert len(load_pairs(pair_file).entries) == 24


@pytest.mark.parametrize(
    "changes",
    [{}, {"reference": Reference(kept=False)}, {"lora": Lora(rank=2)}, {"data": "two"}],
    ids=["kept", "asked", "lora", "two sources"],
)
def test_a_run_that_was_stopped_goes_on_exactly(
    make: Make, pair_file: Path, held_out: Path, tmp_path: Path, changes: dict[str, Any]
) -> None:
    if changes.get("data") == "two":
        tables = [
            {"source": str(pair_file), "weight": 2.0},
            {"source": str(held_out), "weight": 1.0, "epochs": 2},
        ]
        changes = {"data": tables}
    whole = run_dpo(make("whole", **changes))
    half = make("half", **changes)
    shutil.copytree(whole.run, tmp_path / "half")
    shutil.rmtree(tmp_path / "half/checkpoints/step_4")
    resumed = run_dpo(half, resume=True)
    assert curve(resumed) == curve(whole)
    assert weights(resumed.checkpoint).equal(weights(whole.checkpoint))
    if "data" in changes:
        assert {"train/pairs/pairs", "train/pairs/held-out"} <= curve(whole)[-1].keys()


def test_a_longer_run_scores_what_is_missing_and_notices_another_reference(
    make: Make, tiny_checkpoint: Path, tmp_path: Path, kept_run: Outcome
) -> None:
    start = tmp_path / "start"
    shutil.copytree(tiny_checkpoint, start)
    short = run_dpo(make("short", steps=2, model=Model(path=str(start), dtype="float32")))
    longer = extend(RunDirectory.open(short.run), ["steps=3"])
    shutil.rmtree(start)
    shutil.copytree(kept_run.checkpoint, start)
    with pytest.raises(ValueError, match="is not the model that this run compares with"):
        run_dpo(longer, resume=True)  # type: ignore[arg-type]
    shutil.rmtree(start)
    shutil.copytree(tiny_checkpoint, start)
    outcome = run_dpo(longer, resume=True)  # type: ignore[arg-type]
    assert losses(outcome)[:3] == pytest.approx(losses(kept_run)[:3], rel=1e-4)


def test_two_ranks_learn_what_one_process_learns(make: Make, kept_run: Outcome, forked_workers: None) -> None:
    outcome = run_dpo(make("ranks", cluster=Cluster(ranks=2)))
    assert losses(outcome) == pytest.approx(losses(kept_run), rel=1e-4)
    kept = load_file(kept_run.run / "reference.safetensors")["logprobs"]
    assert len(kept) == len(load_file(outcome.run / "reference.safetensors")["logprobs"]) + 10, (
        "held-out pairs"
    )


def test_what_teaches_nothing_is_counted(make: Make, pair_file: Path, tmp_path: Path) -> None:
    rows = pair_file.read_text().splitlines()
    file = write_lines(tmp_path / "more.jsonl", [{"prompt": "1", "chosen": "2", "rejected": "2"}])
    file.write_text("\n".join(rows) + "\n" + file.read_text())
    assert curve(run_dpo(make("counted", data=file, steps=1)))[-1]["data/unusable"] == 1


def test_pairs_are_looked_at_before_a_run(make: Make, held_out: Path) -> None:
    seen = inspect_sources(make("looked", eval=str(held_out)))
    assert not seen.refusals and any(note.startswith("data: 24 pairs of pairs") for note in seen.notes)
    (refused,) = inspect_sources(make("short", max_length=8)).refusals
    assert "data: 24 of 24 pairs are longer than max_length 8" in refused
    found = preflight(make("held", reference=Reference(kept=False)))
    assert found.memory is not None and found.memory.reference == found.memory.weights
    assert preflight(make("kept")).memory.reference == 0  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"micro_batch_tokens": 40}, "both answers of a pair are computed together"),
        ({"loss": PreferenceLoss(kind="ipo", label_smoothing=0.1)}, "label_smoothing does not go with"),
        ({"loss": PreferenceLoss(kind="robust")}, "set loss.label_smoothing"),
        (
            {"loss": PreferenceLoss(kind="simpo", beta=2.0), "reference": Reference(path="x")},
            "has no reference",
        ),
    ],
)
def test_settings_that_contradict_each_other_are_refused(
    make: Make, changes: dict[str, Any], told: str
) -> None:
    with pytest.raises(ValueError, match=told):
        make("refused", **changes)


def test_python_trains_on_rows(tiny_checkpoint: Path, tmp_path: Path, pair_file: Path) -> None:
    rows = [json.loads(line) for line in pair_file.read_text().splitlines()]
    result = foresail.dpo(
        model={"path": str(tiny_checkpoint), "dtype": "float32"},
        data=rows,
        steps=1,
        batch_size=4,
        max_length=24,
        micro_batch_tokens=64,
        run={"name": "python", "root": str(tmp_path), "device": "cpu"},
    )
    assert curve(result.run)[-1]["train/loss"] == pytest.approx(0.6931472, abs=1e-5)
    with pytest.raises(RecipeError, match="is a recipe for dpo"):
        foresail.sft(recipe=result.run / "recipe.toml")
