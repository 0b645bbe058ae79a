"""Checks a run's metrics after each step and raises alarms: each once, and again only after it has ended.

    monitor = AlarmMonitor(run.read_metrics())        # alarms of before a resume are not raised again
    for raised in monitor.check(record):
        print(raised.alarm)

Its state follows from the records, so a resumed run continues without one of its own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from foresail.runlog.alarms import CHECKS, RECENT, Alarm, Record

WINDOW = 100  # steps of the history that are kept, besides the first few
QUIET = 5  # steps without the alarm's reason, after which it ends


@dataclass(frozen=True, kw_only=True)
class Raised:
    """An alarm, and the step in which it was raised."""

    step: int
    alarm: Alarm


class AlarmMonitor:
    """`raised` holds every alarm so far, `standing` those that have not ended, by name."""

    def __init__(self, records: Iterable[Record] = ()) -> None:
        self.first: list[Record] = []
        self.window: deque[Record] = deque(maxlen=WINDOW)
        self.stage: Any = None  # of the curriculum
        self.raised: list[Raised] = []
        self.standing: dict[str, Raised] = {}
        self.quiet: dict[str, int] = {}
        for record in records:
            self.check(record)

    def check(self, record: Record) -> list[Raised]:
        """The alarms that this step raises. Step 0, before the first update, is not in the history."""
        if record["step"] == 0:
            return []
        if record.get("curriculum/stage") != self.stage:
            # a new stage has other problems and lengths, so the history starts again
            self.stage = record.get("curriculum/stage")
            self.first, self.window = [], deque(maxlen=WINDOW)
        if len(self.first) < RECENT:
            self.first.append(record)
        else:
            self.window.append(record)
        history = [*self.first, *self.window]
        alarms = [alarm for check in CHECKS if (alarm := check(history)) is not None]
        self.end_alarms({alarm.name for alarm in alarms})
        new = [
            Raised(step=record["step"], alarm=alarm) for alarm in alarms if alarm.name not in self.standing
        ]
        self.standing |= {raised.alarm.name: raised for raised in new}
        self.raised += new
        return new

    def end_alarms(self, present: set[str]) -> None:
        """End alarms only after some quiet steps, since values fluctuate around a threshold."""
        for name in list(self.standing):
            self.quiet[name] = 0 if name in present else self.quiet.get(name, 0) + 1
            if self.quiet[name] >= QUIET:
                del self.standing[name], self.quiet[name]
