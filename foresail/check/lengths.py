"""Reports prompts or conversations that are too long: how many, the longest, and what to set."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from foresail.check.finding import Finding, refusal, warning
from foresail.data.length_limit import Encoded, LengthLimit
from foresail.recipe.tables.sources import Source


def look_at_lengths(
    key: str, source: Source, entries: Sequence[Encoded], limit: LengthLimit, room_for: Callable[[int], str]
) -> Iterator[Finding]:
    """`room_for(81)` names the key to set for an entry of 81 tokens."""
    description = limit.describe(entries)
    if description is None:
        return
    some_fit = any(map(limit.fits, entries))
    if some_fit and source.too_long == "drop":
        yield warning(f'{key}: {description}; they are left out ({key}.too_long = "drop")')
        return
    if source.too_long == "split":
        yield warning(f'{key}: {description}; they are split between turns ({key}.too_long = "split")')
        return
    room = room_for(max(len(entry.ids) for entry in entries))
    or_drop = f', or leave them out: {key}.too_long = "drop"' if some_fit else ""
    yield refusal(f"{key}: {description}; {room}{or_drop}")
