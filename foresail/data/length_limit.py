"""Length limits of prompts and conversations. One that is too long is never cut: it is refused or left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from foresail.recipe.tables.values import TooLong


class Encoded(Protocol):
    """Token ids, with a name for error messages."""

    @property
    def name(self) -> str: ...

    @property
    def ids(self) -> Sequence[int]: ...


Entry = TypeVar("Entry", bound=Encoded)


@dataclass(frozen=True, kw_only=True)
class LengthLimit:
    """LengthLimit(unit="prompts", key="max_prompt_tokens", tokens=64): what is counted, and the recipe's key."""

    unit: str
    key: str
    tokens: int

    def fits(self, entry: Encoded) -> bool:
        return len(entry.ids) <= self.tokens

    def describe(self, entries: Sequence[Encoded]) -> str | None:
        """None where all fit, else "3 of 900 prompts are longer than max_prompt_tokens 64, the longest (…) has 81
        tokens"."""
        too_long = sum(not self.fits(entry) for entry in entries)
        if not too_long:
            return None
        longest = max(entries, key=lambda entry: len(entry.ids))
        return (
            f"{too_long:,} of {len(entries):,} {self.unit} are longer than {self.key} {self.tokens}, the longest "
            f"({longest.name}) has {len(longest.ids)} tokens"
        )

    def keep(self, entries: Sequence[Entry], too_long: TooLong, source: str) -> list[Entry]:
        """Those that fit; an error if none does, or if `too_long` is an error."""
        fitting = [entry for entry in entries if self.fits(entry)]
        if len(fitting) == len(entries) or (fitting and too_long == "drop"):
            return fitting
        longest = max(len(entry.ids) for entry in entries)
        or_drop = ', or leave them out: data.too_long = "drop"' if fitting else ""
        raise ValueError(
            f"{source}: {self.describe(entries)}; raise {self.key} to {longest} if the model's context allows it"
            + or_drop
        )
