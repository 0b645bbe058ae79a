"""Lengthening: short and long documents by their share, another rotary base, and needles asked while it trains."""

from __future__ import annotations

import json
import shutil
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from foresail.check.inspection import inspect_sources
from foresail.data.corpus.corpus import Corpus
from foresail.data.corpus.length_view import CorpusSource, LengthView, split_by_length
from foresail.data.corpus.tokenize import tokenize
from foresail.data.long_context.filler import made_filler
from foresail.model.hf import build_model, save_model
from foresail.recipe.shape.hf_config import read_shape
from foresail.recipe.shape.model_shape import ModelShape
from foresail.recipe.stages.pretrain import Pretrain
from foresail.recipe.tables.long_context import LongContext
from foresail.tokenizer.tokenizer import Tokenizer
from foresail.tokenizer.train import train_bpe
from foresail.train.stages.pretrain import run_pretrain

SHAPE: dict[str, Any] = {
    "hidden_size": 16,
    "intermediate_size": 16,
    "num_layers": 1,
    "num_heads": 1,
    "num_kv_heads": 1,
    "head_dim": 16,
    "max_context": 64,
}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tokenizer, a corpus "mixed" of documents of 8 to 600 tokens, and "brief" of short ones only."""
    folder = tmp_path_factory.mktemp("lengthening")
    sentences = islice(made_filler(Random(0)), 4000)
    train_bpe([" ".join(islice(made_filler(Random(1)), 100))], vocab_size=320).save(folder / "tokenizer")
    for name, sizes in (("mixed", [1, 2, 40] * 12), ("brief", [1] * 30)):
        rows = [{"text": " ".join(islice(sentences, size))} for size in sizes]
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        tokenize(
            [str(folder / f"{name}.jsonl")],
            tokenizer=str(folder / "tokenizer"),
            out=folder / name,
            workers=1,
        )
    return folder


def recipe(world: Path, root: Path, **changes: Any) -> Pretrain:
    vocab_size = Tokenizer.load(world / "tokenizer").vocab_size
    data = [{"source": str(world / name), "weight": 1.0} for name in ("mixed", "brief")]
    first = {"data": data, "tokens": 256, "length": 64, "batch_tokens": 128}
    second = first | {"tokens": 4096, "length": 512, "batch_tokens": 1024, "rope_theta": 80000.0}
    given: dict[str, Any] = {
        "run": {"name": "long", "root": str(root), "device": "cpu"},
        "model": {"shape": {"vocab_size": vocab_size, **SHAPE}, "tokenizer": str(world / "tokenizer")},
        "stages": [first, second | {"long_share": 0.6}],
        "micro_batch_tokens": 1024,
    }
    return Pretrain(**given | changes)


@settings(max_examples=30)
@given(st.integers(0, 700), st.integers(0, 700))
def test_a_view_has_exactly_the_documents_of_its_lengths(world: Path, low: int, high: int) -> None:
    corpus = Corpus(world / "mixed")
    view = LengthView(corpus, longer_than=low, up_to=high)
    every = [(number, int(corpus.lengths(np.array([number]))[0])) for number in range(corpus.num_documents)]
    wanted = [(number, length) for number, length in every if low < length <= high]
    assert view.num_documents == len(wanted) and view.num_tokens == sum(length for _, length in wanted)
    assert view.lengths(np.arange(len(wanted))).tolist() == [length for _, length in wanted]
    for place, (number, length) in enumerate(wanted):
        assert view.read(place, 1, length).tolist() == corpus.read(number, 1, length).tolist()


@settings(max_examples=30)
@given(st.floats(0.01, 0.99), st.floats(0.1, 9), st.floats(0.1, 9))
def test_long_documents_have_their_share_whatever_the_weights(
    world: Path, share: float, mixed: float, brief: float
) -> None:
    sources = [
        CorpusSource(label="mixed", documents=Corpus(world / "mixed"), weight=mixed),
        CorpusSource(label="brief", documents=Corpus(world / "brief"), weight=brief, epochs=2),
    ]
    found = {source.label: source for source in split_by_length(sources, boundary=64, long_share=share)}
    assert [*found] == ["mixed-short", "brief-short", "mixed-long"]  # brief has no long documents
    assert found["mixed-long"].weight == pytest.approx(share)
    assert found["mixed-short"].weight == pytest.approx((1 - share) * mixed / (mixed + brief))
    assert found["brief-short"].epochs == 2


def test_a_corpus_without_long_documents_is_refused(world: Path) -> None:
    brief = CorpusSource(label="brief", documents=Corpus(world / "brief"), weight=1)
    with pytest.raises(ValueError, match="no document of brief has more than 64 tokens"):
        split_by_length([brief], boundary=64, long_share=0.6)


def test_a_lengthening_stage_learns_from_its_shares_and_asks_for_needles(world: Path, tmp_path: Path) -> None:
    asked = {"lengths": [256, 512], "depths": 1, "per_cell": 1, "every": 2}
    outcome = run_pretrain(recipe(world, tmp_path, long_context=asked))
    lines = [json.loads(line) for line in (outcome.run / "metrics.jsonl").read_text().splitlines()]
    steps = [line for line in lines if "train/loss" in line]
    lengthening = [line for line in steps if line["train/stage"] == 2]
    tokens = {
        name: sum(line.get(f"train/tokens/{name}", 0) for line in lengthening)
        for name in ("mixed-short", "brief-short", "mixed-long")
    }
    assert tokens["mixed-long"] / sum(tokens.values()) == pytest.approx(0.6, abs=0.15)
    metrics = [{name for name in line if name.startswith("long_context/")} for line in steps]
    both = {"long_context/niah_single/256", "long_context/niah_single/512"}
    # in the first stage, whose context is 64, nothing fits
    assert metrics == [
        both if n > 2 and (n % 2 == 0 or n == len(steps)) else set() for n in range(1, len(steps) + 1)
    ]
    config = json.loads((outcome.checkpoint / "config.json").read_text())
    assert config["rope_theta"] == 80000 and config["max_position_embeddings"] == 512


@pytest.mark.parametrize("kind", ["yarn", "linear", "dynamic"])
def test_a_checkpoint_keeps_its_rotary_scaling(
    kind: str, world: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Dynamic positions, which follow the length, have one base afterwards."""
    scaling = {"type": kind, "factor": 2.0, **({"original_context": 32} if kind == "yarn" else {})}
    size = {"vocab_size": Tokenizer.load(world / "tokenizer").vocab_size}
    shape = ModelShape(**{**SHAPE, **size, "rope_scaling": scaling})
    save_model(build_model(shape, seed=0), tmp_path / "start")
    Tokenizer.load(world / "tokenizer").save(tmp_path / "start")
    stage = {"data": str(world / "mixed"), "tokens": 256, "length": 256, "batch_tokens": 256}
    model = {"path": str(tmp_path / "start"), "shape": None, "tokenizer": None}
    outcome = run_pretrain(recipe(world, tmp_path, model=model, stages=[stage]))
    config = json.loads((outcome.checkpoint / "config.json").read_text())
    told = f"the checkpoint's rotary scaling, {kind} with factor 2, stays; the base is 10000"
    assert (told in " ".join(capsys.readouterr().out.split())) == (kind != "dynamic")
    if kind == "dynamic":
        base = 10_000.0 * (2.0 * 256 / 64 - 1.0) ** (16 / 14)
        assert config["rope_scaling"] is None and config["rope_theta"] == pytest.approx(base)
    else:
        before = json.loads((tmp_path / "start/config.json").read_text())
        assert config["rope_scaling"] == before["rope_scaling"] and config["rope_theta"] == 10_000.0
    assert read_shape(outcome.checkpoint).max_context == 256


def test_shares_need_a_length_and_needles_one_rank(world: Path, tmp_path: Path) -> None:
    stages = [stage.model_dump() for stage in recipe(world, tmp_path).stages]
    assert recipe(world, tmp_path).long_from(1) == 64
    with pytest.raises(ValidationError, match="no stage before says from which length"):
        recipe(world, tmp_path, stages=stages[1:])
    assert recipe(world, tmp_path, stages=[stages[1] | {"long_from": 9}]).long_from(0) == 9
    with pytest.raises(ValidationError, match="set long_share as well"):
        recipe(world, tmp_path, stages=[stages[0] | {"long_from": 9}])
    with pytest.raises(ValidationError, match="on a single rank only"):
        recipe(world, tmp_path, long_context={"lengths": [64]}, cluster={"ranks": 2})


def test_epochs_are_not_counted_anew_in_silence(world: Path, tmp_path: Path) -> None:
    stages = [stage.model_dump() for stage in recipe(world, tmp_path).stages]
    once = [{"source": str(world / "mixed"), "epochs": 1}]
    with pytest.raises(ValidationError, match="counted anew here; give it another name"):
        recipe(world, tmp_path, stages=[stages[0] | {"data": once}, stages[1] | {"data": once}])
    renamed = [{**once[0], "name": "again"}]
    recipe(world, tmp_path, stages=[stages[0] | {"data": once}, stages[1] | {"data": renamed}])


def test_another_bound_of_long_documents_leaves_the_window(world: Path, tmp_path: Path) -> None:
    """Rows of the window before are none of the one behind, which has fewer."""
    stage = recipe(world, tmp_path).stages[1].model_dump() | {"length": 64, "batch_tokens": 256}
    stages = [stage | {"tokens": 1024, "long_from": 300}, stage | {"tokens": 512, "long_from": 26}]
    outcome = run_pretrain(recipe(world, tmp_path, stages=stages))
    assert outcome.finished


def test_needles_that_cannot_be_asked_are_told_before_the_first_step(world: Path, tmp_path: Path) -> None:
    for lengths, told in (([40, 512], "long_context: length 40.* needs at least"), ([4096], "exceed every")):
        with pytest.raises(ValueError, match=told):
            run_pretrain(recipe(world, tmp_path, long_context={"lengths": lengths, "every": 100}))
        metrics = tmp_path / "long" / "metrics.jsonl"
        assert not metrics.exists() or not metrics.read_text()
        shutil.rmtree(tmp_path / "long", ignore_errors=True)


def test_a_look_tells_what_the_start_would_refuse(world: Path, tmp_path: Path) -> None:
    sound = recipe(world, tmp_path)
    asked = {"lengths": [256], "tasks": ["niah_single"], "depths": 1, "per_cell": 1}
    assert inspect_sources(sound.model_copy(update={"long_context": LongContext(**asked)})).refusals == ()
    stages = (sound.stages[0], sound.stages[1].model_copy(update={"long_from": 5000}))
    far = LongContext(**asked | {"lengths": [2048]})
    found = inspect_sources(sound.model_copy(update={"stages": stages, "long_context": far})).refusals
    assert [told.split(" tokens")[0] for told in found] == [
        "stages#2: no document of mixed, brief has more than 5000",
        "long_context.lengths [2048] exceed every context of the run, the longest of 512",
    ]
