"""Computes figures of a step's spans: work of instances, waits for verdicts, outcomes of groups."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from statistics import fmean
from typing import Literal

from foresail.runlog.timeline import Chunk, RequestSpan, Span, StepPart, Timeline, Wait

GroupOutcome = Literal["chosen", "equal", "surplus", "cancelled", "held out", "open"]

TAIL = 0.1  # share of the requests that end last


@dataclass(frozen=True, kw_only=True)
class InstanceFigures:
    """An instance's busy share of a part of the step, and its mean number of rows."""

    busy: float
    rows: float
    tokens: int
    chunks: int


def measure_work(chunks: Sequence[Chunk], part: StepPart) -> InstanceFigures:
    seconds = max(part.seconds, 1e-9)
    return InstanceFigures(
        busy=busy_seconds(chunks) / seconds,
        rows=sum(chunk.seconds for chunk in chunks) / seconds,
        tokens=sum(chunk.tokens for chunk in chunks),
        chunks=len(chunks),
    )


@dataclass(frozen=True, kw_only=True)
class GradingFigures:
    """The number of verdicts and their seconds, without cancelled groups."""

    verdicts: int
    mean: float
    longest: float


def measure_grading(waits: Iterable[Wait]) -> GradingFigures:
    seconds = [wait.seconds for wait in waits if wait.status != "dropped"]
    return GradingFigures(
        verdicts=len(seconds), mean=fmean(seconds or [0.0]), longest=max(seconds, default=0.0)
    )


def group_outcomes(timeline: Timeline) -> dict[int, GroupOutcome]:
    """The outcome of every group at the end of its step; `open` without one.

    Groups that are neither chosen nor surplus nor cancelled had equal rewards, or could not be graded.
    """
    outcomes: dict[int, GroupOutcome] = dict.fromkeys(timeline.launches, "open")
    evaluations = [part for part in timeline.parts if part.name == "eval"]
    for closing in sorted(timeline.closings, key=lambda closing: -closing.at):
        before = [group for group, at in timeline.launches.items() if at <= closing.at]
        if any(part.holds(closing.at) for part in evaluations):
            outcomes |= dict.fromkeys(before, "held out")
        else:
            outcomes |= dict.fromkeys(before, "equal")
            outcomes |= dict.fromkeys(closing.chosen, "chosen")
            outcomes |= dict.fromkeys(closing.surplus, "surplus")
            outcomes |= dict.fromkeys(closing.cancelled, "cancelled")
    return outcomes


def groups_under_way(timeline: Timeline) -> list[Span]:
    """A span for every group, from its launch to its last verdict or its cancelling."""
    ends: dict[int, float] = {}
    seen: list[RequestSpan] = [*timeline.chunks, *timeline.waits]
    for span in seen:
        ends[span.group] = max(span.end, ends.get(span.group, span.end))
    ends |= timeline.cancels
    return [Span(start=at, end=ends.get(group, timeline.seconds)) for group, at in timeline.launches.items()]


def count_over_time(spans: Iterable[Span]) -> tuple[list[float], list[int]]:
    """The number of open spans from each moment on; spans 0 to 2 and 1 to 3 -> ([0, 1, 2, 3], [1, 2, 1, 0])."""
    changes: dict[float, int] = {}
    for span in spans:
        changes[span.start] = changes.get(span.start, 0) + 1
        changes[span.end] = changes.get(span.end, 0) - 1
    moments = sorted(changes)
    return moments, [*accumulate(changes[moment] for moment in moments)]


def stack(spans: Sequence[Span]) -> list[int]:
    """A row for each span, so that none overlap; spans 0 to 2, 1 to 3 and 2 to 4 -> [0, 1, 0]."""
    rows = [0] * len(spans)
    running: list[tuple[float, int]] = []  # end and row
    free: list[int] = []
    for place in sorted(range(len(spans)), key=lambda place: spans[place].start):
        while running and running[0][0] <= spans[place].start:
            heapq.heappush(free, heapq.heappop(running)[1])
        rows[place] = heapq.heappop(free) if free else len(running)
        heapq.heappush(running, (spans[place].end, rows[place]))
    return rows


def busy_seconds(spans: Iterable[Span]) -> float:
    """Seconds with at least one open span; spans 0 to 2, 1 to 3 and 5 to 6 -> 4."""
    busy, reached = 0.0, float("-inf")
    for span in sorted(spans, key=lambda span: span.start):
        busy += max(0.0, span.end - max(span.start, reached))
        reached = max(reached, span.end)
    return busy


def tail_seconds(ends: Iterable[float]) -> float:
    """Seconds of the last tenth: tail_seconds([1, 2, 3, 4, 5, 6, 7, 8, 9, 30]) -> 21."""
    ordered = sorted(ends)
    return ordered[-1] - ordered[int(len(ordered) * (1 - TAIL)) - 1] if ordered else 0.0


def write_seconds(seconds: float) -> str:
    """write_seconds(75) -> "75 s", write_seconds(1.234) -> "1.23 s", write_seconds(0.0042) -> "4.2 ms"."""
    if seconds < 0.1:
        return f"{seconds * 1e3:.2g} ms"
    return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:,.0f} s"
