"""Mixtures of a recipe's preferences: pairs of answers, or answers judged alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from foresail.data.length_limit import LengthLimit
from foresail.data.mix import Mixture, mix
from foresail.recipe.tables.sources import HeldOutPreferences
from foresail.records import TrainAnswer, TrainPair

Entry = TypeVar("Entry", TrainPair, TrainAnswer)


@dataclass(frozen=True, kw_only=True)
class EncodedPreferences(Generic[Entry]):
    """One source's entries, and how many of its rows teach nothing, by reason."""

    entries: list[Entry]
    unusable: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class PreferenceMixture(Mixture[Entry]):
    """`unusable`: by source, how many rows teach nothing, by the reason."""

    unusable: dict[str, Mapping[str, int]] = field(default_factory=dict)


def mix_preferences(
    sources: Sequence[HeldOutPreferences],
    read: Callable[[HeldOutPreferences], EncodedPreferences[Entry]],
    limit: LengthLimit,
) -> PreferenceMixture[Entry]:
    """`read` is `Reader.pairs` or `Reader.answers`."""
    encoded = [*map(read, sources)]
    mixture = mix(sources, [each.entries for each in encoded], limit)
    unusable = {
        source.label: each.unusable for source, each in zip(sources, encoded, strict=True) if each.unusable
    }
    return PreferenceMixture(**vars(mixture), unusable=unusable)


def pair_limit(tokens: int) -> LengthLimit:
    return LengthLimit(unit="pairs", key="max_length", tokens=tokens)


def answer_limit(tokens: int) -> LengthLimit:
    return LengthLimit(unit="answers", key="max_length", tokens=tokens)


def describe_unusable(unusable: Mapping[str, Mapping[str, int]]) -> str:
    """describe_unusable({"hh": {"with equal answers": 3}}) -> "left out: 3 of hh with equal answers"."""
    counts = [f"{count:,} of {name} {why}" for name, by in unusable.items() for why, count in by.items()]
    return f"left out: {', '.join(counts)}"


def describe_one_label(*, good: bool) -> str:
    """The error for KTO data whose answers are all good or all bad."""
    word, other = ("good", "bad") if good else ("bad", "good")
    instead = "; good answers alone are what foresail sft imitates" if good else ""
    return (
        f"every answer is labelled {word}, and KTO learns what tells good from bad; add {other} ones{instead}"
    )
