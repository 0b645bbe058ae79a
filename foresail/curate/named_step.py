"""A step of a recipe: what worker processes get of it. They import little, for every process pays for it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foresail.curate.rows.holds import ANY, DOCUMENTS, Holds
from foresail.curate.user_step import UserStep, is_user_code


@dataclass(frozen=True)
class NamedStep:
    """A step at its place in the recipe. `settings` is a Step or a CorpusStep; `keys` is what the recipe says."""

    number: int
    name: str
    settings: Any
    keys: dict[str, Any]

    @property
    def label(self) -> str:
        """ "2 length"; of a user's step without its folder: "3 cleaning.py:fix"."""
        return f"{self.number} {Path(self.name).name}"

    @property
    def sees_all(self) -> bool:
        """Whether it decides only after it has seen all documents."""
        return hasattr(self.settings, "collect")

    @property
    def asks(self) -> bool:
        """Whether it asks a model: its cost is told before it begins."""
        return hasattr(self.settings, "open_asking")

    @property
    def begins_phase(self) -> bool:
        """Whether all documents must have come through the steps before it."""
        return self.sees_all or self.asks

    @property
    def takes(self) -> Holds:
        unsaid = ANY if is_user_code(self.name) else DOCUMENTS
        takes: Holds = getattr(self.settings, "takes", unsaid)
        return takes

    def __reduce__(self) -> tuple[Any, ...]:
        """Other processes build a user's step again: they find its class by its file, not by a module's name."""
        if is_user_code(self.name):
            return build_user_step, (self.number, self.name, self.keys)
        return NamedStep, (self.number, self.name, self.settings, self.keys)


def build_user_step(number: int, name: str, keys: dict[str, Any]) -> NamedStep:
    return NamedStep(number, name, UserStep.check(f"step#{number}", name, keys), keys)
