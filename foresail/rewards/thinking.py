"""Counts a sample's thinking tokens, and whether its budget ended the thinking.

counter = open_counter(tokenizer)          # None: its chat template knows no thinking
read_thought(counter, sample)              # Thought(tokens=212, forced=False, closed=True)
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from statistics import fmean
from typing import TYPE_CHECKING

from foresail.records import Group, Sample, Verdict
from foresail.rewards.trajectory import OPENING, opens_thinking, turn_spans

if TYPE_CHECKING:  # as in `trajectory`
    from foresail.tokenizer.tokenizer import Tokenizer

OPEN, CLOSE = "<think>", "</think>"
Find = Callable[[Sequence[int], int], int | None]  # the place behind a tag's last token, at or after a place


@dataclass(frozen=True, kw_only=True)
class Counter:
    """Finds both tags in token ids."""

    tokenizer: Tokenizer
    opening: Find
    closing: Find

    def count(self, before: Sequence[int], ids: Sequence[int]) -> tuple[int, bool]:
        """Thinking tokens of a response, its tags among them, and whether thinking was closed, if it was open.

        A prompt that ends with <think>, and the response 5 9 </think> 4: (3, True).
        """
        start: int | None = 0
        if not opens_thinking(self.tokenizer, tuple(before[-OPENING:])):
            start = self.opening(ids, 0)
            if start is None:
                return 0, True
        end = self.closing(ids, start or 0)
        return (len(ids) if end is None else end), end is not None


@dataclass(frozen=True, kw_only=True)
class Thought:
    """Of all turns of an episode; `closed` unless one of them ended while it thought."""

    tokens: int
    forced: bool
    closed: bool


@lru_cache(maxsize=4)
def open_counter(tokenizer: Tokenizer) -> Counter | None:
    """None where the chat template knows no thinking, or the bytes of tokens are not known."""
    if tokenizer.chat is None or CLOSE not in tokenizer.chat.source:
        return None
    try:
        return Counter(tokenizer=tokenizer, opening=finder(tokenizer, OPEN), closing=finder(tokenizer, CLOSE))
    except ValueError:
        return None


def finder(tokenizer: Tokenizer, tag: str) -> Find:
    """By its id where the tag is one token, else by bytes."""
    number = tokenizer.token_id(tag)
    if number is None:
        return in_bytes(tokenizer.token_bytes(), tag.encode())

    def find(ids: Sequence[int], start: int) -> int | None:
        try:
            return ids.index(number, start) + 1
        except ValueError:
            return None

    return find


def in_bytes(vocabulary: Sequence[bytes], tag: bytes) -> Find:
    def find(ids: Sequence[int], start: int) -> int | None:
        pieces = [vocabulary[token] for token in ids[start:]]
        place = b"".join(pieces).find(tag)
        if place < 0:
            return None
        ends = [*accumulate(map(len, pieces))]
        return start + bisect_left(ends, place + len(tag)) + 1

    return find


def read_thought(counter: Counter, sample: Sample) -> Thought:
    spans = [
        counter.count(record.ids[start:middle], record.ids[middle:end])
        for record in sample.records
        for start, middle, end in turn_spans(record)
    ]
    return Thought(
        tokens=sum(tokens for tokens, _ in spans),
        forced=any(record.forced for record in sample.records),
        closed=all(closed for _, closed in spans),
    )


def thinking_metrics(counter: Counter | None, groups: Sequence[Group]) -> dict[str, float]:
    """Metrics of a step; groups with thinking off have metrics of their own, and should have no thinking tokens."""
    if counter is None:
        return {}
    off = [group for group in groups if group.problem.thinking is False]
    on = [group for group in groups if group.problem.thinking is not False]
    metrics = {f"thinking/off/{name}": value for name, value in mode_metrics(counter, off).items()}
    return metrics | {f"thinking/{name}": value for name, value in mode_metrics(counter, on).items()}


def mode_metrics(counter: Counter, groups: Sequence[Group]) -> Mapping[str, float]:
    thoughts = [read_thought(counter, sample) for group in groups for sample in group.samples]
    if not thoughts:
        return {}
    return {
        "tokens/mean": fmean(thought.tokens for thought in thoughts),
        "tokens/max": max(thought.tokens for thought in thoughts),
        "forced": fmean(thought.forced for thought in thoughts),
        "unclosed": fmean(not thought.closed for thought in thoughts),
        "accuracy": fmean(is_right(verdict) for group in groups for verdict in group.verdicts),
    }


def is_right(verdict: Verdict) -> bool:
    return verdict.status == "correct"
