"""What chat templates know as `strftime_now`, for a run that goes on tomorrow with the prompts it began with."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date


@dataclass(frozen=True)
class Today:
    """Today("2026-11-18")("%d %b %Y") -> "18 Nov 2026"."""

    day: str

    def __call__(self, form: str) -> str:
        return date.fromisoformat(self.day).strftime(form)
