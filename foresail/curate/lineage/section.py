"""One station of a trace: a rollout, a row of a file, a curation, a generator; and what is known of it there."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from foresail.curate.document import Document

MADE = "made"  # a row's column, or a key of its metadata: how it was made
FROM = "from"  # below it: [{"source": FILE, "id": …}], the rows that it was made of
LONGEST = 200  # characters of a value


@dataclass(frozen=True, kw_only=True)
class Section:
    """`lines` are (label, what is said)."""

    title: str
    lines: tuple[tuple[str, str], ...] = ()


def made_of(columns: Mapping[str, Any]) -> dict[str, Any]:
    """How a row was made, as its column or its metadata says; empty if neither does."""
    metadata = columns.get("metadata")
    for table in (columns, metadata if isinstance(metadata, Mapping) else {}):
        if isinstance(made := table.get(MADE), Mapping):
            return dict(made)
    return {}


def row_origin(document: Document) -> dict[str, Any]:
    """{"id": "web:17"}: a row of the same curation, and how that row was made itself."""
    made = document.metadata.get(MADE)
    return {"id": document.id, **({MADE: made} if made else {})}


def made_lines(made: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """made_lines({"model": "qwen3-8b", "seed": 1}) -> ("model", "qwen3-8b"), ("seed", "1")"""
    for key, value in made.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        yield key, text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
