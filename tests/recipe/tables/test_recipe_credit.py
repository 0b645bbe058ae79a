"""The [credit] table: its defaults, what it refuses, and its page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from foresail.recipe.tables.credit import NEEDS, Credit, credit_mistakes

PAGE = (Path(__file__).parents[3] / "docs/pbsd.md").read_text(encoding="utf-8")


def test_credit_is_uniform_unless_the_table_says_otherwise() -> None:
    assert Credit().kind == "uniform"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"low": 0.5}, 'low is for kind = "pbsd", and kind is "uniform"; remove low, or set kind'),
        ({"kind": "turn_gae", "form": "raw"}, 'form is for kind = "pbsd", and kind is "turn_gae"'),
        (
            {"kind": "pbsd", "turn_weight": 2.0},
            'turn_weight is for kind = "turn_rewards", and kind is "pbsd"',
        ),
        ({"kind": "pbsd", "level": "token", "min_tokens": 2}, 'min_tokens is for level = "turn"'),
        ({"kind": "pbsd", "form": "additive", "high": 2.0}, 'high is for form = "weights" or "raw"'),
        ({"kind": "pbsd", "additive_weight": 0.2}, 'additive_weight is for form = "additive"'),
        ({"kind": "pbsd", "low": 1.0, "high": 1.0}, "every turn would have the same weight; set low = 0.25"),
        ({"kind": "pbsd", "low": 0.0}, "greater than or equal to 0.001"),
        ({"kind": "pbsd", "high": 0.9}, "greater than or equal to 1"),
        ({"kind": "pbsd", "strength": 1.5}, "less than or equal to 1"),
        ({"kind": "pbsd", "temperature": 0.0}, "greater than 0"),
        ({"kind": "pbsd", "clamp": float("inf")}, "finite number|less than or equal"),
        ({"kind": "opsd", "distill_weight": 0.0}, "greater than 0"),
        ({"kind": "opsd", "strength": 0.5}, 'strength is for kind = "pbsd", and kind is "opsd"'),
        ({"kind": "turn_rewards", "clamp": 2.0}, 'clamp is for kind = "pbsd" or "opsd"'),
        ({"kind": "psbd"}, "'uniform', 'pbsd', 'opsd', 'turn_rewards' or 'turn_gae'"),
    ],
)
def test_mistakes_are_named_with_their_mend(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        Credit(**given)


def test_all_mistakes_are_told_at_once_and_each_once() -> None:
    with pytest.raises(ValidationError) as error:
        Credit(low=0.5, min_tokens=2, level="token")
    told = str(error.value)
    assert [told.count(f"remove {key}") for key in ("low", "min_tokens", "level")] == [1, 1, 1]


def test_every_key_but_the_kind_says_beside_what_it_counts() -> None:
    assert {key for _, _, keys in NEEDS for key in keys} == set(Credit.model_fields) - {"kind"}


def test_a_table_with_every_default_written_out_is_accepted() -> None:
    for kind in ("uniform", "pbsd", "opsd", "turn_rewards", "turn_gae"):
        whole = Credit(kind=kind).model_dump()
        assert Credit(**whole).model_dump() == whole


def test_strength_grows_over_the_warm_up() -> None:
    credit = Credit(kind="pbsd", strength=0.8, warmup_steps=4)
    assert [credit.strength_at(step) for step in (1, 2, 4, 5, 99)] == pytest.approx([0.2, 0.4, 0.8, 0.8, 0.8])
    assert Credit(kind="pbsd", strength=0.8).strength_at(1) == 0.8


@pytest.mark.parametrize(
    ("credit", "advantage", "message"),
    [
        (Credit(kind="turn_gae"), "grpo", 'set advantage.kind = "gae" and add a table [critic]'),
        (Credit(kind="pbsd"), "gae", "a critic gives every token its own"),
        (Credit(kind="turn_rewards"), "gae", "a critic gives every token its own"),
        (Credit(kind="opsd"), "gae", "a critic gives every token its own"),
        (Credit(kind="pbsd", warmup_steps=10), "rloo", "set credit.warmup_steps = 1"),
    ],
)
def test_what_does_not_go_with_the_recipe_is_told(credit: Credit, advantage: str, message: str) -> None:
    (told,) = credit_mistakes(credit, advantage, steps=10)
    assert message in told


@pytest.mark.parametrize(
    ("kind", "advantage"),
    [
        ("uniform", "grpo"),
        ("uniform", "gae"),
        ("pbsd", "rloo"),
        ("turn_rewards", "reinforce++"),
        ("turn_gae", "gae"),
    ],
)
def test_what_goes_together_is_not_told(kind: Any, advantage: str) -> None:
    assert list(credit_mistakes(Credit(kind=kind), advantage, steps=1)) == []


def test_its_keys_are_on_the_page() -> None:
    rows = [line.split(" | ") for line in PAGE.splitlines() if line.startswith("| `")]
    told = {row[0].strip("|` "): (row[1].strip("` "), row[2].strip("| ")) for row in rows if len(row) == 3}
    for name, field in Credit.model_fields.items():
        assert told[name] == (json.dumps(field.default), field.description)
