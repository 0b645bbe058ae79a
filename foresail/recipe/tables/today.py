"""`strftime_now` of chat templates with a fixed date, so that a resumed run has the same prompts on another day."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date


@dataclass(frozen=True)
class Today:
    """Today("2026-11-18")("%d %b %Y") -> "18 Nov 2026"."""

    day: str

    def __call__(self, form: str) -> str:
        return date.fromisoformat(self.day).strftime(form)
