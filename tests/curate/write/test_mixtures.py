"""Mixtures: shares of token folders, in a file that a stage of pretraining takes."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from random_seed import random_seed

from foresail.curate.curation import curate
from foresail.curate.mixture import Mixture
from foresail.curate.recipe import build_curation
from foresail.curate.run.summary import Summary
from foresail.curate.write.mixtures import Available, weigh
from foresail.recipe.reading.load import RecipeError, build_recipe
from foresail.recipe.stages.pretrain_stage import PretrainStage
from foresail.recipe.tables.corpus import read_manifest

DOMAINS = {"web": 30, "maths": 6, "shop.example": 4, "adverts": 9}


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    rows = [
        {"text": "23+45" * (3 + number % 4), "domain": domain}
        for domain, count in DOMAINS.items()
        for number in range(count)
    ]
    file = tmp_path / "texts.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def recipe(texts: Path, tokenizer: Path, *mixtures: dict[str, Any], **changes: Any) -> dict[str, Any]:
    table = {
        "out": str(texts.parent / "out"),
        "source": [{"path": str(texts)}],
        "sink": [{"kind": "tokens", "by": "domain", "tokenizer": str(tokenizer)}],
        "mixture": list(mixtures),
        "cluster": {"workers": 1},
    }
    return {**table, **changes}


def curated(table: dict[str, Any]) -> Summary:
    return curate(build_curation(table))


def test_a_stage_of_pretraining_reads_the_mixture_of_a_curation(texts: Path, tiny_tokenizer: Path) -> None:
    corpora = [{"name": "maths", "share": 0.5, "epochs": 4}, {"name": "code", "share": 0.1}]
    mixture = {"name": "stage-2", "corpora": corpora, "exclude": ["adverts"]}
    summary = curated(recipe(texts, tiny_tokenizer, mixture))
    out = texts.parent / "out"
    stage = PretrainStage.model_validate(
        {"data": str(out / "mixtures/stage-2.toml"), "tokens": 1000, "batch_tokens": 4096}
    )
    by_name = {corpus.label: corpus for corpus in stage.data}
    assert by_name.keys() == {"maths", "web", "shop_example"}
    assert by_name["maths"].weight == 0.5
    assert by_name["maths"].epochs == 4
    tokens = {name: read_manifest(corpus.source).tokens for name, corpus in by_name.items()}
    weights = {name: corpus.weight or 0.0 for name, corpus in by_name.items()}
    assert weights["web"] / weights["shop_example"] == pytest.approx(
        tokens["web"] / tokens["shop_example"], 1e-4
    )
    assert summary.mixtures["mixtures/stage-2.toml"]["missing"] == ["code"]


def test_a_mixture_takes_corpora_from_elsewhere(texts: Path, tiny_tokenizer: Path) -> None:
    out = texts.parent / "out"
    curated(recipe(texts, tiny_tokenizer))
    synthetic = {"name": "synthetic", "share": 0.1, "source": str(out / "tokens/adverts")}
    mixture = {"name": "stage-3", "corpora": [synthetic], "exclude": ["adverts"]}
    summary = curated(recipe(texts, tiny_tokenizer, mixture))  # all is there: only the mixture is new
    shares = summary.mixtures["mixtures/stage-3.toml"]["shares"]
    assert shares["synthetic"] == 0.1
    assert sum(shares.values()) == pytest.approx(1, abs=1e-5)


def test_shares_are_as_written_and_the_rest_goes_by_tokens() -> None:
    chance = random.Random(random_seed())
    for _ in range(200):
        tokens = {f"c{number}": chance.randrange(1, 10**9) for number in range(chance.randrange(1, 8))}
        fixed = {name: chance.random() / 8 + 1e-6 for name in tokens if chance.random() < 0.5}
        if fixed.keys() == tokens.keys():
            fixed.popitem()
        tables = [{"name": name, "share": share} for name, share in fixed.items()]
        mixture = Mixture.model_validate({"name": "m", "corpora": tables})
        entries = {
            entry.name: entry.weight
            for entry in weigh(mixture, {name: Available(name, count) for name, count in tokens.items()})
        }
        assert sum(entries.values()) == pytest.approx(1)
        assert {name: entries[name] for name in fixed} == fixed
        others = {name: entries[name] / tokens[name] for name in tokens if name not in fixed}
        assert max(others.values()) == pytest.approx(min(others.values()))


@pytest.mark.parametrize(
    ("mixture", "words"),
    [
        ({"name": "a", "sink": "documents"}, "there is no sink 'documents'.*one of: tokens"),
        ({"name": "a", "corpora": [{"name": "x", "share": 0.7}, {"name": "y", "share": 0.7}]}, "1.4 in all"),
        ({"name": "a", "corpora": [{"name": "x"}], "exclude": ["x"]}, "names x and excludes it"),
        ({"name": "a", "corpora": [{"name": "x"}, {"name": "x"}]}, "names x 2 times"),
    ],
)
def test_mistakes_are_said_before_the_run(
    mixture: dict[str, Any], words: str, texts: Path, tiny_tokenizer: Path
) -> None:
    with pytest.raises(RecipeError, match=words):
        build_curation(recipe(texts, tiny_tokenizer, mixture))


@pytest.mark.parametrize(
    "content", [None, "corpus = 3", "", "[[corpus]]\nsource = 1", "[[corpus", "steps = 1"]
)
def test_a_stage_says_what_is_wrong_with_the_file(content: str | None, tmp_path: Path) -> None:
    file = tmp_path / "mixture.toml"
    if content is not None:
        file.write_text(content)
    stage = {"data": str(file), "tokens": 1000, "batch_tokens": 4096}
    with pytest.raises(RecipeError, match=r"stages.*data"):
        build_recipe({"stage": "pretrain", "model": {"path": str(tmp_path)}, "stages": [stage]})
