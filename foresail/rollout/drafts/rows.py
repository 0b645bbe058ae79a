"""A table of requests as rows, to append or draft for all in one call.

A row has the group's automaton, the request's state in it, and how many of its tokens are known.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from foresail.rollout.drafts.compiled import Flat, compiled
from foresail.rollout.drafts.continuations import write_draft
from foresail.rollout.drafts.suffixes import LENGTH, ROOT, append, extend, last_tokens

GROUP, WHOLE, RECENT, KNOWN, ROW_SIZE = 0, 1, 2, 3, 4
START, SIZE, TOKENS, GROUP_SIZE = 0, 1, 2, 3  # of a group: its slab, and the tokens that went into it


class RowTable:
    """A table of integer rows; unused ones hold -1."""

    def __init__(self, width: int) -> None:
        self.numbers = np.full((16, width), -1, dtype=np.int64)
        self.free = list(range(15, -1, -1))

    def take(self, values: Sequence[int]) -> int:
        if not self.free:
            length = len(self.numbers)
            self.numbers = np.concatenate([self.numbers, np.full_like(self.numbers, -1)])
            self.free = list(range(2 * length - 1, length - 1, -1))
        number = self.free.pop()
        self.numbers[number] = values
        return number

    def give(self, number: int) -> None:
        self.numbers[number] = -1
        self.free.append(number)


@compiled
def append_all(
    memory: Flat,
    groups: Flat,
    rows: Flat,
    chosen_R: Flat,
    before_R: Flat,
    counts_R: Flat,
    tokens_N: Flat,
    window: int,
) -> None:
    """Append each row's new tokens; none after a gap."""
    first = 0
    for place in range(len(chosen_R)):
        row, count = chosen_R[place] * ROW_SIZE, counts_R[place]
        seen = rows[row + KNOWN] - before_R[place]
        if 0 <= seen < count:
            group = rows[row + GROUP] * GROUP_SIZE
            start = groups[group + START]
            m = memory[start : start + groups[group + SIZE]]
            whole, recent = rows[row + WHOLE], rows[row + RECENT]
            for index in range(first + seen, first + count):
                whole, recent = append(m, whole, recent, tokens_N[index], window)
            rows[row + WHOLE], rows[row + RECENT] = whole, recent
            rows[row + KNOWN] += count - seen
            groups[group + TOKENS] += count - seen
        first += count


@compiled
def draft_all(
    memory: Flat,
    groups: Flat,
    rows: Flat,
    chosen_R: Flat,
    max_R: Flat,
    width: int,
    window: int,
    least: float,
    sizes_R: Flat,
    tokens_RK: Flat,
) -> None:
    """Draft up to max_R tokens for each row, into its `width` places of tokens_RK."""
    for place in range(len(chosen_R)):
        row, first, past = chosen_R[place] * ROW_SIZE, place * width, (place + 1) * width
        group = rows[row + GROUP] * GROUP_SIZE
        start = groups[group + START]
        m = memory[start : start + groups[group + SIZE]]
        state = last_tokens(m, rows[row + RECENT], window)
        length = min(m[state + LENGTH], window)
        sizes_R[place] = write_draft(m, state, length, max_R[place], window, least, tokens_RK[first:past])


@compiled
def append_text(m: Flat, tokens: Flat, window: int) -> None:
    """Append one whole text that is not continued."""
    whole, recent = ROOT, ROOT
    for index in range(len(tokens)):
        whole, recent = append(m, whole, recent, tokens[index], window)


@compiled
def enter(m: Flat, tail: Flat, window: int) -> tuple[int, int]:
    """The state after a known text's last tokens; only the very last is counted again.

    It is counted for every row that continues there, so the shares of their tokens are correct from the start.
    """
    if len(tail) == 0:
        return ROOT, ROOT
    whole = ROOT
    for index in range(len(tail) - 1):
        whole = extend(m, whole, tail[index])
    return append(m, whole, whole, tail[len(tail) - 1], window)
