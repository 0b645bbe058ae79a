"""Resampling: expected copies by tier, occurrences and language; one draw for each id."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from foresail.curate.curation import curate
from foresail.curate.document import Document
from foresail.curate.recipe import build_curation
from foresail.curate.select.resample import Resample
from foresail.data.zst import open_zst
from foresail.recipe.reading.load import RecipeError


def resampled(
    pieces: list[list[Document]], folder: Path, **settings: Any
) -> tuple[list[str], dict[str, Any]]:
    """Ids of what is left, and the figures."""
    step = Resample(quality="quality", **settings)
    folder.mkdir()
    features = [folder / f"{number}.features" for number in range(len(pieces))]
    decisions = [folder / f"{number}.decisions" for number in range(len(pieces))]
    for file, piece in zip(features, pieces, strict=True):
        step.collect(iter(piece), file)
    figures = step.decide(features, decisions, folder)
    left = []
    for file, piece in zip(decisions, pieces, strict=True):
        decide = step.open(file)
        for number, document in enumerate(piece):
            outcome = decide(number, document)
            left += [each.id for each in outcome] if isinstance(outcome, list) else []
    return left, figures


def shares(**languages: float) -> list[dict[str, Any]]:
    return [{"name": name, "share": share} for name, share in languages.items()]


def corpus(count: int, seed: int = 0) -> list[Document]:
    generator = random.Random(seed)
    return [
        Document(
            id=f"d{number}",
            text="x" * generator.randrange(50, 150),
            metadata={
                "quality": generator.random(),
                "occurrences": generator.choice([1, 1, 1, 4, 9]),
                "language": generator.choice(["id", "id", "id", "th", "en"]),
            },
        )
        for number in range(count)
    ]


def test_copies_follow_quality_and_occurrences(tmp_path: Path) -> None:
    documents = corpus(3000)
    left, figures = resampled(
        [documents], tmp_path / "a", tiers=(0.5, 0.8), copies=(0.25, 1.0, 1.0), repeat=(0.0, 0.0, 0.5)
    )
    copies = Counter(name.partition("~")[0] for name in left)
    tiers = figures["tiers"]
    assert tiers["1"]["documents"] == pytest.approx(1500, abs=3)
    assert tiers["1"]["documents_after"] == pytest.approx(375, abs=60)
    assert tiers["2"]["documents_after"] == tiers["2"]["documents"]
    best = {}
    for language in ("id", "th", "en"):
        own = sorted(d.metadata["quality"] for d in documents if d.metadata["language"] == language)
        best[language] = own[-(len(own) // 5)]
    for document in documents:
        if document.metadata["quality"] > best[document.metadata["language"]]:
            assert copies[document.id] == round(document.metadata["occurrences"] ** 0.5)
    assert len(left) == figures["after"]["documents"] and len({*left}) == len(left)
    assert figures["after"]["quality"] > figures["before"]["quality"] + 0.1


def test_neither_order_nor_pieces_change_the_copies(tmp_path: Path) -> None:
    documents = corpus(400)
    settings = {"tiers": (0.5,), "copies": (0.3, 1.7), "repeat": (0.0, 0.3), "shares": shares(th=0.5)}
    first, _ = resampled([documents], tmp_path / "a", **settings)
    shuffled = random.Random(3).sample(documents, len(documents))
    second, _ = resampled([shuffled[:10], [], shuffled[10:]], tmp_path / "b", **settings)
    assert sorted(first) == sorted(second)
    other, _ = resampled([documents], tmp_path / "c", **settings, seed=1)
    assert sorted(other) != sorted(first)


def test_languages_reach_their_shares_and_the_others_keep_their_proportion(tmp_path: Path) -> None:
    documents = corpus(4000)
    _, figures = resampled([documents], tmp_path / "a", shares=shares(th=0.5))
    languages = figures["groups"]
    total = figures["after"]["bytes"]
    assert languages["th"]["bytes_after"] / total == pytest.approx(0.5, abs=0.02)
    assert total == pytest.approx(figures["before"]["bytes"], rel=0.03)
    before, after = ([languages[name][key] for name in ("id", "en")] for key in ("bytes", "bytes_after"))
    assert after[0] / after[1] == pytest.approx(before[0] / before[1], rel=0.1)


def test_no_document_is_repeated_beyond_the_limit(tmp_path: Path) -> None:
    documents = corpus(500)
    left, figures = resampled([documents], tmp_path / "a", shares=shares(th=0.99), most_copies=3.0)
    assert max(Counter(name.partition("~")[0] for name in left).values()) == 3
    assert figures["groups"]["th"]["documents_after"] == 3 * figures["groups"]["th"]["documents"]


def test_tiers_by_value_and_documents_without_quality(tmp_path: Path) -> None:
    values: list[Any] = [0.5, 1.0, 1.5, float("nan"), None, "good", True]
    documents = [Document(id=str(n), text="x", metadata={"quality": value}) for n, value in enumerate(values)]
    left, figures = resampled(
        [documents], tmp_path / "a", by="value", tiers=(1.0,), copies=(0.0, 2.0), unscored=1.0
    )
    assert left == ["1", "1~2", "2", "2~2", "3", "4", "5", "6"] and figures["without_quality"] == 4


def test_hostile_metadata_is_counted_once(tmp_path: Path) -> None:
    counts: list[Any] = [0, -3, 10**30, float("inf"), "9", None, [1]]
    documents = [
        Document(
            id=str(n), text="\ud800", metadata={"quality": 1.0, "occurrences": count, "language": [n % 2]}
        )
        for n, count in enumerate(counts)
    ]
    left, _ = resampled([documents], tmp_path / "a", repeat=(1.0,), most_copies=5.0)
    assert Counter(name.partition("~")[0] for name in left) == {
        "0": 1,
        "1": 1,
        "2": 5,
        "3": 1,
        "4": 1,
        "5": 1,
        "6": 1,
    }


def test_nothing_to_resample(tmp_path: Path) -> None:
    left, figures = resampled(
        [[], []], tmp_path / "a", tiers=(0.5,), copies=(1.0, 1.0), shares=shares(id=0.4)
    )
    assert left == [] and figures["after"] == {"documents": 0, "bytes": 0, "quality": None}


def test_in_a_recipe_the_drop_is_counted_and_copies_are_written(tmp_path: Path) -> None:
    rows = [{"id": d.id, "text": d.text, **d.metadata} for d in corpus(60)]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    keys = {"quality": "quality", "tiers": [0.5], "copies": [0.0, 2.0]}
    recipe = {
        "out": str(tmp_path / "out"),
        "source": [{"path": str(tmp_path / "in.jsonl")}],
        "step": [{"name": "resample", **keys}],
        "cluster": {"workers": 1},
    }
    summary = curate(build_curation(recipe))
    dropped = summary.dropped()["1 resample"]["resampled"]
    written = [
        json.loads(line) for file in (tmp_path / "out" / "documents").glob("*") for line in open_zst(file)
    ]
    assert len(written) == 2 * (60 - dropped) == summary.decided["1 resample"]["after"]["documents"]
    assert {*Counter(row["id"].partition("~")[0] for row in written).values()} == {2}


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({}, "quality"),
        ({"tiers": [0.5, 0.2], "copies": [1.0, 1.0, 1.0]}, "must rise"),
        ({"tiers": [2.0], "copies": [1, 1]}, 'set by = "value"'),
        ({"tiers": [0.5]}, "copies has 1 numbers; 1 ends make 2 tiers"),
        ({"copies": [-1.0]}, "below 0"),
        ({"repeat": [1.0, 2.0]}, "repeat has 2 numbers"),
        ({"shares": shares(id=0.7, th=0.5)}, "shares of 1.2 in all"),
    ],
)
def test_settings_are_checked(keys: dict[str, Any], message: str) -> None:
    entry = {"name": "resample", **({"quality": "q"} if keys else {}), **keys}
    with pytest.raises(RecipeError, match=message):
        build_curation({"out": "x", "source": [{"path": "in"}], "step": [entry]})
