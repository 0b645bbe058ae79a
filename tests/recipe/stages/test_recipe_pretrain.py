"""The recipe of pretraining: what its stages come to, and what is wrong with it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from foresail.recipe.reading.dump import to_toml
from foresail.recipe.reading.load import RecipeError, build_recipe, load_recipe
from foresail.recipe.reading.preflight import preflight
from foresail.recipe.stages.pretrain import Pretrain
from foresail.recipe.stages.pretrain_stage import PretrainStage, locate, rows_per_update, span

SHAPE = {
    "vocab_size": 64, "hidden_size": 8, "intermediate_size": 8, "num_layers": 1, "num_heads": 1,
    "num_kv_heads": 1, "head_dim": 8, "max_context": 64,
}  # fmt: skip


def stage(**changes: Any) -> dict[str, Any]:
    return {"data": "corpora/web", "tokens": 1000, "length": 8, "batch_tokens": 32, **changes}


def recipe(*stages: dict[str, Any], **changes: Any) -> Pretrain:
    given = {"stage": "pretrain", "model": {"shape": SHAPE, "tokenizer": "tokenizer"}, "stages": list(stages)}
    found = build_recipe(given | changes)
    assert isinstance(found, Pretrain)
    return found


@given(
    tokens=some.integers(1, 3000),
    length=some.integers(2, 50),
    rows=some.integers(1, 20),
    warmup=some.integers(0, 3000),
    first=some.integers(1, 20),
)
def test_a_span_is_what_the_updates_add_up_to(
    tokens: int, length: int, rows: int, warmup: int, first: int
) -> None:
    given = PretrainStage(
        data="corpora/web",  # type: ignore[arg-type]
        tokens=tokens,
        length=length,
        batch_tokens=rows * length,
        batch_warmup_tokens=warmup,
        batch_start_tokens=min(first, rows) * length if warmup else None,
    )
    done, sizes = 0, []
    while done < tokens:
        sizes.append(rows_per_update(given, done))
        done += sizes[-1] * length
    assert span(given) == (len(sizes), done)
    assert sizes == sorted(sizes) and sizes[0] >= 1 and sizes[-1] <= rows
    assert not warmup or sizes[0] == min(first, rows)
    assert done <= warmup or sizes[-1] == rows or len(sizes) == 1 or done - sizes[-1] * length < warmup


def test_a_position_tells_the_stage() -> None:
    stages = recipe(stage(tokens=100), stage(tokens=64, length=16)).stages
    assert [span(each) for each in stages] == [(4, 128), (2, 64)]
    assert [locate(stages, position) for position in (0, 96, 128, 160, 192)] == [
        (0, 0), (0, 96), (1, 0), (1, 32), (2, 0),
    ]  # fmt: skip
    assert recipe(stage(tokens=100), stage(tokens=64, length=16)).steps == 6


def test_a_recipe_is_written_and_read_again(tmp_path: Path) -> None:
    mixture = [
        {"source": "corpora/web", "weight": 3.0},
        {"source": "corpora/code", "weight": 1.0, "epochs": 2},
    ]
    before = recipe(
        stage(data=mixture, tokens=8e12, batch_tokens=2e6, lr=1e-3, warmup_tokens=1e9, decay="cosine"),
        stage(name="long", length=16, rope_theta=1e6),
        held_out=[{"source": "corpora/test", "tokens": 500}, {"source": "corpora/other"}],
        eval_every=5,
    )
    assert before.stages[0].tokens == 8_000_000_000_000
    (tmp_path / "recipe.toml").write_text(to_toml(before))
    assert load_recipe(tmp_path / "recipe.toml") == before
    changed = load_recipe(tmp_path / "recipe.toml", ["stages#2.tokens=77", "optimizer.lr=1e-4"])
    assert isinstance(changed, Pretrain) and changed.stages[1].tokens == 77


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"stages": []}, r"add a table \[\[stages\]\]"),
        ({"stages": [stage(data=[])]}, "stages: data names no corpus"),
        ({"stages": [stage(), stage(batch_tokens=7)]}, "stages#2: batch_tokens 7 holds no row of 8"),
        ({"stages": [stage(batch_start_tokens=8)]}, "set batch_warmup_tokens as well"),
        ({"stages": [stage(batch_start_tokens=64, batch_warmup_tokens=9)]}, "batch_start_tokens 64 exceeds"),
        ({"stages": [stage(final_lr=1e-5)]}, "are for a learning rate that decays"),
        ({"stages": [stage(decay="linear", final_lr=1.0)]}, r"final_lr 1 is above its lr 0.0003"),
        ({"stages": [stage(decay="linear", warmup_tokens=600, decay_tokens=500)]}, "1,100 together"),
        ({"stages": [stage(data=[{"source": "a"}, {"source": "b/a"}])]}, 'has the name "a", and so has another'),
        ({"stages": [stage(data=[{"source": "a", "weight": 1.0}, {"source": "b"}])]}, "data#2 has no weight"),
        (
            {"stages": [stage(data=[{"source": "a", "epochs": 1}]), stage(data=[{"source": "a"}])]},
            "stages#2: a has another source or other epochs",
        ),
        ({"optimizer": {"warmup": 5}}, r"has stages.warmup_tokens, in tokens"),
        ({"optimizer": {"schedule": "cosine"}}, r"has stages.decay, in tokens"),
        ({"eval_every": 5}, r"there are none; add \[\[held_out\]\]"),
        ({"stages": [stage(length=20_000, batch_tokens=20_000)]}, "max_length 20000 does not fit a micro-batch"),
        ({"cluster": {"ranks": 8}}, "cluster.ranks 8 exceeds the 4 samples"),
        ({"stages": [stage(rope=1)]}, "rope"),
    ],
)  # fmt: skip
def test_mistakes_are_told(changes: dict[str, Any], told: str) -> None:
    with pytest.raises(RecipeError, match=told):
        recipe(**{"stages": [stage()], **changes})  # type: ignore[arg-type]


def write_manifest(folder: Path, tokens: int) -> None:
    folder.mkdir()
    shard = {
        "name": "shard-00000", "documents": 2, "tokens": tokens, "tokens_checksum": "", "ends_checksum": "",
    }  # fmt: skip
    manifest = {
        "format": 1, "tokenizer": "t", "vocab_size": 9, "id_type": "uint16", "request": "", "sources": [],
        "documents": 2, "tokens": tokens, "longest": 5, "shards": [shard],
    }  # fmt: skip
    (folder / "manifest.json").write_text(json.dumps(manifest))


def test_corpora_that_run_out_are_told_before(tmp_path: Path) -> None:
    for name, tokens in (("web", 10_000), ("code", 200)):
        write_manifest(tmp_path / name, tokens)
    given = recipe(
        stage(
            data=[
                {"source": str(tmp_path / "web"), "weight": 3.0, "epochs": 1},
                {"source": str(tmp_path / "code"), "weight": 1.0, "epochs": 1},
            ]
        )
    )
    [warning] = given.warnings()
    assert warning.startswith("stages: code has 200 tokens left in its epochs, and its share is 250")
    refused = [*given.refusals(None)]
    assert len(refused) == 4 and all("shard-00000." in line and "is missing" in line for line in refused)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"tokens": 10**400}, "stages.* must fit 64 bits"),
        ({"tokens": 1e30}, "tokens must be a whole number, not 1e.30"),
        (
            {"tokens": 10**15, "batch_warmup_tokens": 10**15},
            "batch_warmup_tokens .* are more than 100,000 updates of 32 tokens",
        ),
    ],
)
def test_numbers_that_could_never_be_counted_are_refused(changes: dict[str, Any], told: str) -> None:
    with pytest.raises(RecipeError, match=told):
        recipe(stage(**changes))


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"run": {"seed": 2**64}}, "run.seed must fit 64 bits"),
        ({"run": {"name": "x" * 300}}, "run.name: it has more than 255 bytes"),
        ({"run": {"name": "a\0b"}}, "is not a folder name"),
        ({"long_context": {"lengths": [8], "depths": 10**9}}, "long_context.depths must be at most 1000"),
        (
            {"long_context": {"lengths": [8], "per_cell": 10**9}},
            "long_context.per_cell must be at most 10000",
        ),
    ],
)
def test_what_would_fail_at_the_start_is_refused_before(changes: dict[str, Any], told: str) -> None:
    with pytest.raises(RecipeError, match=told):
        recipe(stage(), **changes)


def test_as_many_layers_as_one_likes_are_counted_at_once() -> None:
    shape = {**SHAPE, "num_layers": 10**12}
    assert any("use a smaller model" in told for told in refusals(shape))


def test_positions_that_no_memory_holds_are_refused() -> None:
    assert any(told.startswith("positions of 1,000") for told in refusals({**SHAPE, "max_context": 10**15}))


def refusals(shape: dict[str, Any]) -> tuple[str, ...]:
    found = recipe(stage(), model={"shape": shape, "tokenizer": "tokenizer"}, run={"device": "cpu"})
    return preflight(found).refusals


def test_stretched_wavelengths_need_two_bounds() -> None:
    scaling = {"factor": 8.0, "low_freq_factor": 4.0, "high_freq_factor": 4.0, "original_context": 32}
    shape = {**SHAPE, "rope_scaling": scaling}
    with pytest.raises(RecipeError, match="low_freq_factor 4 is not below high_freq_factor 4"):
        recipe(stage(), model={"shape": shape, "tokenizer": "tokenizer"})


def test_a_corpus_is_not_named_as_the_long_documents_of_another() -> None:
    first = stage(data=[{"source": "corpora/web", "name": "web-long"}])
    with pytest.raises(RecipeError, match="stages#2: web and web-long are both counted as web-long"):
        recipe(first, stage(long_share=0.5))
    recipe(stage(), stage(long_share=0.5), stage(long_share=0.2, length=16))
