"""The step `problem_kind`: what each problem is, as metadata: kind, topic and level.

[[step]]
name = "problem_kind"

    {"kind": "maths", "topic": "geometry", "level": 5}      # of "type": "Geometry", "level": "Level 5"
    {"kind": "code", "topic": "strings", "level": 1}         # of "meta": {"difficulty": "Easy"}

A column names the topic and the level where there is one. Else the topic follows from words (`topics.py`), and
there is no level.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

from pydantic import Field

from foresail.curate.document import Document
from foresail.curate.problems.columns import has_tests
from foresail.curate.problems.topics import name_topic, topic_of_words
from foresail.curate.rows.holds import Holds
from foresail.curate.step import Outcome, StepFunction
from foresail.recipe.tables.inputs import reach
from foresail.recipe.tables.levels import to_level
from foresail.recipe.tables.part import Part
from foresail.recipe.tables.values import Texts

KIND, TOPIC, LEVEL = "kind", "topic", "level"
WORDS = {"easy": 1, "introductory": 1, "medium": 3, "interview": 3, "hard": 5, "competition": 5}


class ProblemKind(Part):
    """Writes kind (maths or code), topic and level to the metadata."""

    takes: ClassVar[Holds] = ("problems",)

    topic_keys: Texts = Field(
        ("topic", "type", "subject", "subfield", "tags"), description="columns tried for the topic"
    )
    level_keys: Texts = Field(
        ("level", "meta.difficulty"),
        description="columns tried for the level: 1 to 5, Level 5, or Easy, Medium, Hard",
    )

    def open(self) -> StepFunction:
        return partial(describe, settings=self)


def describe(document: Document, settings: ProblemKind) -> Outcome:
    row = document.row
    assert row is not None
    maths = not has_tests(row)
    named = next((value for key in settings.topic_keys if (value := reach(row, key))), None)
    topic = name_topic(named) or topic_of_words(document.text, is_maths=maths)
    metadata = {**document.metadata, KIND: "maths" if maths else "code", TOPIC: topic}
    levels = (read_level(reach(row, key)) for key in settings.level_keys)
    if (level := next((level for level in levels if level is not None), None)) is not None:
        metadata[LEVEL] = level
    return replace(document, metadata=metadata)


def read_level(value: Any) -> int | None:
    """read_level("Level 5") -> 5, read_level("Easy") -> 1; None for what is no level."""
    if isinstance(value, str) and value.strip().lower() in WORDS:
        return WORDS[value.strip().lower()]
    try:
        return to_level(value)
    except ValueError:
        return None


def is_maths(metadata: Mapping[str, Any], row: Mapping[str, Any]) -> bool:
    """By the metadata; without it, a problem without tests is one of maths."""
    return metadata[KIND] == "maths" if KIND in metadata else not has_tests(row)
