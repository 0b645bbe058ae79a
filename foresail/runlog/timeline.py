"""Reads the spans of one step from a run's timeline: parts of the step, chunks of instances, waits for verdicts.

Lines are `{"step", "what", "start", "end", …}`. Parts of a step (rollout, update, eval, save) and waits for
verdicts are spans already; the scheduler's decisions are moments. A dispatch and its end (a finished chunk, a
cancel or a lost instance) make one span. Unknown events are skipped, so that old runs can be read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Event = Mapping[str, Any]
How = Literal["finished", "parked", "cancelled", "lost", "open"]

PARTS = ("rollout", "update", "eval", "save")
ROUNDING = 1e-4  # seconds; decisions are rounded to it, parts are not


@dataclass(frozen=True, kw_only=True)
class Span:
    """Seconds since the step began."""

    start: float
    end: float

    @property
    def seconds(self) -> float:
        return self.end - self.start

    def holds(self, moment: float) -> bool:
        return self.start - ROUNDING <= moment <= self.end + ROUNDING


@dataclass(frozen=True, kw_only=True)
class StepPart(Span):
    """One part of the step: StepPart(name="rollout", start=0.0, end=1.7)."""

    name: str


@dataclass(frozen=True, kw_only=True)
class RequestSpan(Span):
    """A span of one request; request "17.3" belongs to group 17."""

    request: str

    @property
    def group(self) -> int:
        return int(self.request.partition(".")[0])


@dataclass(frozen=True, kw_only=True)
class Chunk(RequestSpan):
    """A request's time on an instance, and how it ended; `open` if unknown."""

    instance: str
    tokens: int
    how: How


@dataclass(frozen=True, kw_only=True)
class Wait(RequestSpan):
    """A sample's time with the judge; the status is `dropped` if its group was cancelled."""

    status: str


@dataclass(frozen=True, kw_only=True)
class LaunchesClosed:
    """When the controller ended the step, and the groups that were chosen, surplus or cancelled."""

    at: float
    chosen: tuple[int, ...]
    surplus: tuple[int, ...]
    cancelled: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Timeline:
    """One step. Groups and instances map to the time of their launch, cancelling or loss."""

    step: int
    parts: list[StepPart] = field(default_factory=list)
    chunks: list[Chunk] = field(default_factory=list)
    waits: list[Wait] = field(default_factory=list)
    launches: dict[int, float] = field(default_factory=dict)
    cancels: dict[int, float] = field(default_factory=dict)
    losses: dict[str, float] = field(default_factory=dict)
    closings: list[LaunchesClosed] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        return max((span.end for span in [*self.parts, *self.chunks, *self.waits]), default=0.0)

    @property
    def instances(self) -> dict[str, list[Chunk]]:
        """The chunks of each instance, by name."""
        names = {chunk.instance for chunk in self.chunks} | {*self.losses}
        ran: dict[str, list[Chunk]] = {name: [] for name in sorted(names, key=natural)}
        for chunk in self.chunks:
            ran[chunk.instance].append(chunk)
        return ran

    @property
    def generating(self) -> list[Timeline]:
        """The parts with generation, rollout or eval, each with the spans that began in it."""
        alone = [self.within(part) for part in self.parts]
        return [timeline for timeline in alone if timeline.chunks]

    def within(self, part: StepPart) -> Timeline:
        return Timeline(
            step=self.step,
            parts=[part],
            chunks=[chunk for chunk in self.chunks if part.holds(chunk.start)],
            waits=[wait for wait in self.waits if part.holds(wait.start)],
            launches={group: at for group, at in self.launches.items() if part.holds(at)},
            cancels={group: at for group, at in self.cancels.items() if part.holds(at)},
            losses={name: at for name, at in self.losses.items() if part.holds(at)},
            closings=[closing for closing in self.closings if part.holds(closing.at)],
        )


def read_step(events: Iterable[Event], step: int | None = None) -> Timeline:
    """The timeline of `step`, by default the last."""
    events = list(events)
    steps = sorted({event["step"] for event in events})
    if not steps:
        raise ValueError("there is no timeline yet; it is written at the end of every step")
    step = steps[-1] if step is None else step
    if step not in steps:
        raise ValueError(f"the timeline has no step {step}; steps there: {name_ranges(steps)}")
    chosen = [event for event in events if event["step"] == step]
    began = min(event["start"] for event in [*filter(is_part, chosen)] or chosen)
    return TimelineReader(Timeline(step=step), began).read(chosen)


class TimelineReader:
    """Matches the events of one step that begin and end spans."""

    def __init__(self, timeline: Timeline, began: float) -> None:
        self.timeline, self.began = timeline, began
        self.running: dict[str, tuple[str, float]] = {}  # request -> its instance and the start

    def read(self, events: Sequence[Event]) -> Timeline:
        for event in events:
            self.take(event, event["start"] - self.began, event["end"] - self.began)
        for request in [*self.running]:
            self.end_chunk(request, self.timeline.seconds, "open")
        return self.timeline

    def take(self, event: Event, start: float, end: float) -> None:
        timeline = self.timeline
        match event["what"]:
            case name if name in PARTS:
                timeline.parts.append(StepPart(name=name, start=start, end=end))
            case "launch":
                timeline.launches[event["group"]] = end
            case "dispatch":
                self.running[event["request"]] = event["instance"], end
            case "chunk":
                how: How = "finished" if event["finished"] else "parked"
                self.end_chunk(event["request"], end, how, event["new_tokens"])
            case "cancel":
                timeline.cancels[event["group"]] = end
                for request in event["running"]:
                    self.end_chunk(request, end, "cancelled")
            case "lose_instance":
                timeline.losses[event["instance"]] = end
                for request in event["requests"]:
                    self.end_chunk(request, end, "lost")
            case "grade":
                wait = Wait(request=event["request"], start=start, end=end, status=event["status"])
                timeline.waits.append(wait)
            case "closing":
                groups = {name: tuple(event[name]) for name in ("chosen", "surplus", "cancelled")}
                timeline.closings.append(LaunchesClosed(at=end, **groups))

    def end_chunk(self, request: str, end: float, how: How, tokens: int = 0) -> None:
        if (place := self.running.pop(request, None)) is not None:
            instance, start = place
            chunk = Chunk(request=request, instance=instance, start=start, end=end, tokens=tokens, how=how)
            self.timeline.chunks.append(chunk)


def is_part(event: Event) -> bool:
    return event["what"] in PARTS


def natural(name: str) -> tuple[str, int]:
    """A sort key with gpu2 before gpu10: natural("gpu10") -> ("gpu", 10)."""
    stem = name.rstrip("0123456789")
    return stem, int(name[len(stem) :] or 0)


def name_ranges(numbers: Sequence[int]) -> str:
    """name_ranges([0, 1, 2, 5]) -> "0 to 2, 5"."""
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and number == ranges[-1][-1] + 1:
            ranges[-1][1:] = [number]
        else:
            ranges.append([number])
    return ", ".join(" to ".join(map(str, ends)) for ends in ranges)
