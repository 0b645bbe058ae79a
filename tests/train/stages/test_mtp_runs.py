"""MTP layers through the stages: added to a model, trained alone, copied, tuned behind the first, kept in RL."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

import pytest
import torch
from tiny_world import rl_recipe, sft_recipe, tiny_shape
from torch import Tensor
from typer.testing import CliRunner

from foresail.cli import app
from foresail.model.hf import build_model, load_model
from foresail.recipe.estimates.memory import trained_body, trained_parameters
from foresail.recipe.reading.preflight import preflight
from foresail.recipe.stages.sft import Sft
from foresail.recipe.tables.parts import Checkpoints, Model, Mtp, Optimizer, Run
from foresail.runlog.directory import RunDirectory
from foresail.train.auxiliary.mtp import choose_trained
from foresail.train.checkpoints.extend_mtp import add, extend
from foresail.train.stages.rl import run_rl
from foresail.train.stages.sft import run_sft

STEPS = 12


def weights(checkpoint: Path) -> dict[str, Tensor]:
    return dict(load_model(checkpoint, dtype=torch.float32, device="cpu").named_parameters())


def changed(before: Path, after: Path) -> set[str]:
    """Parts of the model that are no longer as they were: "main", "mtp.0", …"""
    old, new = weights(before), weights(after)
    assert old.keys() == new.keys()
    names = {name for name, weight in new.items() if not torch.equal(weight, old[name])}
    return {".".join(name.split(".")[:2]) if name.startswith("mtp.") else "main" for name in names}


def tune(
    start: Path, data: Path, tokenizer: Path, root: Path, mtp: Mtp, *, resume: bool = False, **changes: object
) -> Path:
    recipe = sft_recipe(
        tokenizer,
        data,
        root,
        model=Model(path=str(start), dtype="float32"),
        mtp=mtp,
        **{"steps": STEPS, "optimizer": Optimizer(lr=1e-2)} | changes,
    )
    return run_sft(recipe, resume=resume).run


@pytest.fixture(scope="module")
def one_layer(
    tiny_checkpoint: Path,
    tiny_conversations: Path,
    tiny_tokenizer: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[Path, Path]:
    """A model with a fresh layer, and the run that trained it alone."""
    folder = tmp_path_factory.mktemp("mtp")
    add(tiny_checkpoint, folder / "fresh", layers=1, seed=1)
    run = tune(folder / "fresh", tiny_conversations, tiny_tokenizer, folder, Mtp(train="mtp"))
    return folder / "fresh", run


def test_a_fresh_layer_learns_beside_a_frozen_model(
    tiny_checkpoint: Path, one_layer: tuple[Path, Path]
) -> None:
    fresh, run = one_layer
    trunk = weights(tiny_checkpoint)
    assert all(torch.equal(weights(fresh)[name], weight) for name, weight in trunk.items())
    assert changed(fresh, run / f"checkpoints/step_{STEPS}") == {"mtp.0"}
    metrics = RunDirectory(run).read_metrics()
    assert metrics[-1]["mtp/loss_1"] < 0.5 * metrics[0]["mtp/loss_1"]
    assert metrics[-1]["mtp/top1_1"] > 0.6  # of the answer's tokens three of four are always the same


def test_copies_of_the_first_layer_are_tuned_behind_it_and_a_stopped_run_goes_on(
    one_layer: tuple[Path, Path], tiny_conversations: Path, tiny_tokenizer: Path, tmp_path: Path
) -> None:
    _, run = one_layer
    told = CliRunner().invoke(
        app, ["mtp", "extend", str(run), "--layers", "3", "--out", str(tmp_path / "three")]
    )
    assert "3 MTP layers" in told.stdout
    copied = weights(tmp_path / "three")
    for name in (name for name in copied if name.startswith("mtp.0.")):
        assert torch.equal(copied[name], copied[name.replace("mtp.0.", "mtp.2.")])
    common = {"checkpoints": Checkpoints(every=2, keep=9), "steps": 4}
    tuned = partial(
        tune, tmp_path / "three", tiny_conversations, tiny_tokenizer, tmp_path, Mtp(train="added"), **common
    )
    last = tuned() / "checkpoints/step_4"
    assert changed(tmp_path / "three", last) == {"mtp.1", "mtp.2"}
    last.rename(tmp_path / "once")
    tuned(resume=True)
    assert changed(tmp_path / "once", last) == set()


def test_rl_trains_the_layers_on_its_own_samples_or_leaves_them(
    one_layer: tuple[Path, Path], tmp_path: Path
) -> None:
    start = one_layer[1] / f"checkpoints/step_{STEPS}"
    ends = []
    for name, mtp in (("without", None), ("with", Mtp(weight=0.1, detach=True))):
        recipe = rl_recipe(
            start, tmp_path, steps=1, mtp=mtp, run=Run(name=name, root=str(tmp_path), device="cpu")
        )
        run = run_rl(recipe).run
        ends.append(run / "checkpoints/step_1")
        assert ("mtp/loss_1" in RunDirectory(run).read_metrics()[-1]) == (mtp is not None)
    assert changed(start, ends[0]) == {"main"}
    assert changed(start, ends[1]) == {"main", "mtp.0"}


def test_what_cannot_be_grown_is_refused(
    tiny_checkpoint: Path, one_layer: tuple[Path, Path], tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match="has no MTP layer to copy; see foresail mtp add"):
        extend(tiny_checkpoint, tmp_path / "a", layers=2)
    with pytest.raises(ValueError, match="has 1 MTP layers; --layers takes more than that"):
        extend(one_layer[0], tmp_path / "b", layers=1)
    with pytest.raises(ValueError, match="has 1 MTP layers already; see foresail mtp extend"):
        add(one_layer[0], tmp_path / "c", layers=2, seed=0)
    with pytest.raises(FileExistsError, match="is already there"):
        add(tiny_checkpoint, tmp_path, layers=1, seed=0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model.mtp_layers": 1}, "model.mtp_layers is for a checkpoint"),
        ({"lora": {}}, r"\[mtp\] does not go with \[lora\]"),
        ({"cluster": {"ranks": 2, "context": 2}}, r"\[mtp\] needs whole sequences"),
        ({}, "the model has none; set model.shape.mtp = 1"),
        ({"mtp": {"train": "mtp", "weight": 0.0}}, r"mtp.weight = 0 leaves nothing to train, .* above 0"),
        ({"mtp": {"train": "added", "final_weight": 0.0}}, "mtp.final_weight = 0 leaves nothing to train"),
        (
            {"mtp": {"train": "mtp"}, "router": {}},
            r"with mtp.train = \"mtp\" they are frozen; remove \[router\]",
        ),
    ],
)
def test_recipes_that_cannot_train_mtp_layers_are_refused(
    changes: dict, message: str, tiny_tokenizer: Path, tmp_path: Path
) -> None:
    recipe = sft_recipe(tiny_tokenizer, tmp_path / "none.jsonl", tmp_path).model_dump()
    recipe["mtp"] = {"weight": 0.3}
    if "model.mtp_layers" in changes:
        recipe["model"]["mtp_layers"] = changes.pop("model.mtp_layers")
    with pytest.raises(ValueError, match=message):
        Sft(**recipe | changes)


@pytest.mark.parametrize(
    ("mtp", "message"),
    [
        ({"train": "added"}, "trains the MTP layers after the first, and the model has one"),
        ({"train": "none"}, None),
        (
            {"train": "none", "layers": 0},
            r"\[mtp\] trains MTP layers, and the model has none; .* model.mtp_layers",
        ),
    ],
)
def test_layers_that_a_checkpoint_lacks_are_found_before_the_run(
    mtp: dict, message: str | None, one_layer: tuple[Path, Path], tmp_path: Path
) -> None:
    model = Model(path=str(one_layer[0]), dtype="float32", mtp_layers=mtp.pop("layers", None))
    told = preflight(rl_recipe(one_layer[0], tmp_path, model=model, mtp=Mtp(**mtp))).refusals
    assert not told if message is None else len(told) == 1 and re.search(message, told[0])


def test_stages_that_sample_refuse_them_as_well(tmp_path: Path) -> None:
    for changes, message in (
        ({"lora": {}}, r"\[mtp\] does not go with \[lora\]"),
        ({"cluster": {"ranks": 2, "context": 2}}, r"\[mtp\] needs whole sequences"),
    ):
        with pytest.raises(ValueError, match=message):
            rl_recipe(tmp_path / "none", tmp_path, mtp={"weight": 0.3}, **changes)


@pytest.mark.parametrize("train", ["all", "mtp", "added", "none"])
def test_memory_counts_what_mtp_train_leaves_to_learn(train: str) -> None:
    shape = tiny_shape(40).model_copy(update={"mtp": 3})
    model = build_model(shape, seed=0)
    settings = Mtp(train=train)
    choose_trained(model, settings)
    learns = {name: p.numel() for name, p in model.named_parameters() if p.requires_grad}
    assert trained_parameters(shape, settings) == sum(learns.values())
    body = sum(size for name, size in learns.items() if not name.startswith(("embed", "head")))
    assert trained_body(shape, settings) == body
