"""Preferences of all sources of a recipe, pairs of answers or answers judged alone: what there is to draw from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from foresail.data.length_limit import LengthLimit
from foresail.recipe.tables.sources import HeldOutPreferences
from foresail.records import TrainAnswer, TrainPair

Entry = TypeVar("Entry", TrainPair, TrainAnswer)


@dataclass(frozen=True, kw_only=True)
class EncodedPreferences(Generic[Entry]):
    """What one source holds, and how many of its rows teach nothing, by the reason."""

    entries: list[Entry]
    unusable: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class PreferenceMixture(Generic[Entry]):
    """What there is to draw from, the source of each, and by source how many were too long or taught nothing."""

    entries: list[Entry]
    datasets: list[str]
    dropped: dict[str, int] = field(default_factory=dict)
    unusable: dict[str, Mapping[str, int]] = field(default_factory=dict)


def mix_preferences(
    sources: Sequence[HeldOutPreferences],
    read: Callable[[HeldOutPreferences], EncodedPreferences[Entry]],
    limit: LengthLimit,
) -> PreferenceMixture[Entry]:
    """`read` is a reader's. What is too long is an error, or dropped and counted, as each source says."""
    entries: list[Entry] = []
    datasets: list[str] = []
    dropped: dict[str, int] = {}
    unusable: dict[str, Mapping[str, int]] = {}
    for source in sources:
        encoded = read(source)
        fitting = limit.keep(encoded.entries, source.too_long, source.source)
        entries += fitting
        datasets += [source.label] * len(fitting)
        if len(fitting) < len(encoded.entries):
            dropped[source.label] = len(encoded.entries) - len(fitting)
        if encoded.unusable:
            unusable[source.label] = encoded.unusable
    return PreferenceMixture(entries=entries, datasets=datasets, dropped=dropped, unusable=unusable)


def pair_limit(tokens: int) -> LengthLimit:
    return LengthLimit(unit="pairs", key="max_length", tokens=tokens)


def answer_limit(tokens: int) -> LengthLimit:
    return LengthLimit(unit="answers", key="max_length", tokens=tokens)


def describe_unusable(unusable: Mapping[str, Mapping[str, int]]) -> str:
    """describe_unusable({"hh": {"with equal answers": 3}}) -> "left out: 3 of hh with equal answers"."""
    counts = [f"{count:,} of {name} {why}" for name, by in unusable.items() for why, count in by.items()]
    return f"left out: {', '.join(counts)}"


def describe_one_label(*, good: bool) -> str:
    """Why answers that are all alike are no data for KTO."""
    word, other = ("good", "bad") if good else ("bad", "good")
    instead = "; good answers alone are what foresail sft imitates" if good else ""
    return (
        f"every answer is labelled {word}, and KTO learns what tells good from bad; add {other} ones{instead}"
    )
