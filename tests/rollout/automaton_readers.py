"""What a slab of an automaton says, read without the code that wrote it."""

from __future__ import annotations

from collections.abc import Sequence

from foresail.rollout.drafts.suffixes import (
    COUNT,
    EDGES,
    NEXT,
    NONE,
    ROOT,
    TARGET,
    TOKEN,
    find,
)

Text = tuple[int, ...]


def state_of(m: Sequence[int], string: Text) -> int | None:
    state = ROOT
    for token in string:
        edge = find(m, state, token)
        if edge == NONE:
            return None
        state = m[edge + TARGET]
    return state


def edges_of(m: Sequence[int], state: int) -> dict[int, int]:
    found = {}
    edge = m[state + EDGES]
    while edge != NONE:
        child = m[edge + TARGET]
        found[int(m[child + TOKEN])] = int(m[child + COUNT])
        edge = m[edge + NEXT]
    return found
