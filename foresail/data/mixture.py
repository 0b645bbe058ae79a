"""All that a recipe's sources hold, as ids, one source after the other.

What is too long is an error, or dropped and counted, as each source says.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Generic

from foresail.data.length_limit import Entry, LengthLimit
from foresail.data.prompts import PromptedProblem, check_ids
from foresail.data.reader import Reader
from foresail.recipe.parts import Problems
from foresail.recipe.sources import Conversations, Source
from foresail.records import TrainSequence


@dataclass(frozen=True, kw_only=True)
class Mixture(Generic[Entry]):
    """What there is to draw from, the source of each, and by source how many were too long."""

    entries: list[Entry]
    datasets: list[str]
    dropped: dict[str, int] = field(default_factory=dict)


def mix_problems(sources: Sequence[Problems], reader: Reader, max_tokens: int) -> Mixture[PromptedProblem]:
    mixture = mix(sources, tell_apart([*map(reader.problems, sources)]), prompt_limit(max_tokens))
    check_ids(mixture.entries)
    return mixture


def mix_conversations(
    sources: Sequence[Conversations], reader: Reader, max_length: int
) -> Mixture[TrainSequence]:
    return mix(sources, [*map(reader.conversations, sources)], conversation_limit(max_length))


def prompt_limit(tokens: int) -> LengthLimit:
    return LengthLimit(unit="prompts", key="max_prompt_tokens", tokens=tokens)


def conversation_limit(tokens: int) -> LengthLimit:
    return LengthLimit(unit="conversations", key="max_length", tokens=tokens)


def mix(sources: Sequence[Source], encoded: Sequence[Sequence[Entry]], limit: LengthLimit) -> Mixture[Entry]:
    entries: list[Entry] = []
    datasets: list[str] = []
    dropped: dict[str, int] = {}
    for source, of_source in zip(sources, encoded, strict=True):
        fitting = limit.keep(of_source, source.too_long, source.source)
        entries += fitting
        datasets += [source.label] * len(fitting)
        if len(fitting) < len(of_source):
            dropped[source.label] = len(of_source) - len(fitting)
    return Mixture(entries=entries, datasets=datasets, dropped=dropped)


def tell_apart(sources: Sequence[Sequence[PromptedProblem]]) -> list[list[PromptedProblem]]:
    """Ids that occur in two sources get their source's name before them: "7" -> "gsm8k:7". All others stay."""
    found = Counter(identity for entries in sources for identity in {entry.problem.id for entry in entries})
    return [
        [name_source(entry) if found[entry.problem.id] > 1 else entry for entry in entries]
        for entries in sources
    ]


def name_source(entry: PromptedProblem) -> PromptedProblem:
    problem = entry.problem
    return replace(entry, problem=replace(problem, id=f"{problem.dataset}:{problem.id}"))


def describe_dropped(dropped: dict[str, int], limit: str) -> str:
    """describe_dropped({"gsm8k": 3}, "max_prompt_tokens 64") -> "dropped as longer than …: 3 of gsm8k"."""
    counts = ", ".join(f"{count:,} of {name}" for name, count in dropped.items())
    return f"dropped as longer than {limit}: {counts}"
