"""Records events of the scheduler, the controller and the judge, for the timeline of a run."""

from __future__ import annotations

import time
from collections.abc import Callable

from foresail.rollout.scheduler import Event


def clock() -> float:
    return round(time.time(), 4)  # for short lines


class EventLog:
    """Decisions with their time, and waits with start and end; the caller of `take` adds the step."""

    def __init__(self, now: Callable[[], float] = clock) -> None:
        self.now = now
        self.events: list[Event] = []

    def __call__(self, event: Event) -> None:
        """Record a decision of the scheduler: {"event": "launch", "group": 17}."""
        now = self.now()
        self.events.append({"what": event.pop("event"), "start": now, "end": now, **event})

    def note(self, what: str, span: OpenSpan | None = None, **facts: object) -> None:
        """note("grade", span, request="17.3"); without a span it happens now; an open span ends now."""
        now = self.now()
        start = now if span is None else span.start
        end = now if span is None or span.end is None else span.end
        self.events.append({"what": what, "start": start, "end": end, **facts})

    def take(self) -> list[Event]:
        """The events since the last call."""
        taken, self.events = self.events, []
        return taken


class OpenSpan:
    """A time span that begins at construction; `stop` ends it, from any thread."""

    def __init__(self, now: Callable[[], float] = clock) -> None:
        self.now, self.start = now, now()
        self.end: float | None = None

    def stop(self, _: object = None) -> None:
        self.end = self.now()
