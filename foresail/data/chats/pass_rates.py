"""A window of pass rates: conversations of problems that are neither too easy nor too hard for a model.

[[data]]
source = "long-chains.jsonl"            # rows with an id, or in the order of the problems that were measured
pass_rates = "graded/difficulty.jsonl"  # by `foresail data grade-difficulty`, with the starting model
pass_window = [0.1, 0.9]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from foresail.data.chats.conversations import Chat
from foresail.recipe.tables.levels import read_by_id


@dataclass(frozen=True, kw_only=True)
class Windowed:
    """The conversations inside the window, and how many are outside, by the reason."""

    kept: list[Chat]
    below: int = 0
    above: int = 0
    unmeasured: int = 0

    def describe(self, window: Sequence[float]) -> str:
        """ "kept 80 of 100 with a pass rate in [0.1, 0.9]; below 12, above 8"."""
        counts = {name.name: getattr(self, name.name) for name in fields(self) if name.name != "kept"}
        others = ", ".join(f"{name} {count:,}" for name, count in counts.items() if count)
        total = len(self.kept) + sum(counts.values())
        return f"kept {len(self.kept):,} of {total:,} with a pass rate in {list(window)}" + (
            f"; {others}" if others else ""
        )


def keep_window(
    conversations: Sequence[Chat], rates: dict[str, float | None], window: Sequence[float], label: str
) -> Windowed:
    """Conversations go by their ids, or, where some have none or share one, by `label:0`, `label:1`, …"""
    own = [conversation.id for conversation in conversations]
    unique = None not in own and len({*own}) == len(own)
    ids = own if unique or shared(own, rates) else [f"{label}:{number}" for number in range(len(own))]
    if not any(identity in rates for identity in ids):
        raise ValueError(
            f"pass rates of {len(rates)} problems are known, and none is of these conversations: rates have "
            f"{next(iter(rates), 'none')!r}, conversations {ids[0]!r}; measure the problems they come from, and "
            "give rows the ids of these"
        )
    low, high = window
    rate_of = [None if identity is None else rates.get(identity) for identity in ids]
    kept = [
        conversation
        for conversation, rate in zip(conversations, rate_of, strict=True)
        if rate is not None and low <= rate <= high
    ]
    return Windowed(
        kept=kept,
        below=sum(rate is not None and rate < low for rate in rate_of),
        above=sum(rate is not None and rate > high for rate in rate_of),
        unmeasured=rate_of.count(None),
    )


def shared(ids: Sequence[str | None], rates: dict[str, float | None]) -> bool:
    """Whether rows share ids, as several solutions of one problem do."""
    return any(identity in rates for identity in ids if identity is not None)


def read_pass_rates(path: Path) -> dict[str, float | None]:
    """By problem id, from lines like {"id": "gsm8k:17", "pass_rate": 0.25}; null: not gradable."""
    return read_by_id(path, "pass_rate", to_rate)


def to_rate(value: Any) -> float | None:
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1):
        return value
    raise TypeError("no rate from 0 to 1")
