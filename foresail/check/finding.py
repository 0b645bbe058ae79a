"""A finding of an inspection: a sentence and its severity; and which sources are inspected."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from foresail.recipe.tables.inputs import check_source


@dataclass(frozen=True, kw_only=True)
class Finding:
    kind: Literal["refusal", "warning", "note"]
    text: str


def refusal(text: str) -> Finding:
    return Finding(kind="refusal", text=text)


def warning(text: str) -> Finding:
    return Finding(kind="warning", text=text)


def note(text: str) -> Finding:
    return Finding(kind="note", text=text)


def may_open(source: str, largest: int | None) -> bool:
    """False where the preflight refuses the source, and for a file of more than `largest` bytes."""
    if any(check_source("", source)):
        return False
    file = Path(source)
    return largest is None or not file.is_file() or file.stat().st_size <= largest
