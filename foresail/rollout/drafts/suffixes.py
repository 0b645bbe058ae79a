"""A suffix automaton in one flat int32 array: every substring of some growing texts, with its count.

A state stands for all strings that end at the same positions, so n tokens need at most 2n states and 3n edges, and
appending a token takes amortised constant time. Many texts grow at the same time. Each has two states: `whole`, of
the whole text, where it is extended; and `recent`, of at least its last `window` tokens, where it is continued.

Counts cover a window and the token after it: adding an occurrence walks only from `recent` to the root, so even a
text that repeats itself for ever costs at most `window` states per token.

    clear(slab)
    whole, recent = append(slab, ROOT, ROOT, 5, window)         # a text begins
    whole, recent = append(slab, whole, recent, 9, window)      # and goes on

A field of a state or an edge is at its address: slab[state + COUNT].
"""

from __future__ import annotations

import numpy as np

from foresail.rollout.drafts.compiled import Flat, compiled, flat

LENGTH, LINK, COUNT, HEAVIEST, TOKEN, EDGES, STATE_SIZE = 0, 1, 2, 3, 4, 5, 6
SOURCE, TARGET, NEXT, CHAIN, EDGE_SIZE = 0, 1, 2, 3, 4
NONE = 0  # a state above the root, of length -1, so that the root needs no special case
USED, BUCKETS = 6, 7  # after it: the first free address, and where the buckets of the hash table begin
ROOT = 8

BUCKETS_PER_TOKEN = 2
ROOM_PER_TOKEN = 2 * STATE_SIZE + 3 * EDGE_SIZE  # at most
SLAB_PER_TOKEN = ROOM_PER_TOKEN + BUCKETS_PER_TOKEN + 2  # and the root, in slabs of 8 tokens and more


def clear(slab: np.ndarray) -> None:
    """Make a slab for a power of two of tokens, at least 8, an empty automaton."""
    capacity = len(slab) // SLAB_PER_TOKEN
    assert capacity >= 8 and capacity & (capacity - 1) == 0 and capacity * SLAB_PER_TOKEN == len(slab)
    slab[:ROOT] = 0
    slab[NONE + LENGTH] = -1
    slab[USED] = ROOT
    slab[BUCKETS] = len(slab) - BUCKETS_PER_TOKEN * capacity
    slab[slab[BUCKETS] :] = 0
    new_state(flat(slab), 0, NONE, 0)


def copy_into(larger: np.ndarray, slab: np.ndarray) -> None:
    """Move an automaton to a larger slab; every address stays."""
    clear(larger)
    used = int(slab[USED])
    larger[:USED] = slab[:USED]
    larger[USED] = used
    larger[ROOT:used] = slab[ROOT:used]
    hash_again(flat(slab), flat(larger))


@compiled
def append(m: Flat, whole: int, recent: int, token: int, window: int) -> tuple[int, int]:
    """The states of a text with one more token, which is counted."""
    recent = last_tokens(m, recent, window)
    whole = extend(m, whole, token)
    if m[m[whole + LINK] + LENGTH] <= window:  # the last window + 1 tokens occur only here
        after = whole
    else:
        after = m[find(m, recent, token) + TARGET]
    add_occurrence(m, recent, after)
    return whole, after


@compiled
def extend(m: Flat, whole: int, token: int) -> int:
    """The state of a text with one more token, created if missing. Counts stay."""
    state, longer, edge = whole, NONE, find(m, whole, token)
    while edge == NONE and state != NONE:
        if longer == NONE:
            longer = new_state(m, m[whole + LENGTH] + 1, NONE, token)
        add_edge(m, state, longer, token)
        state = m[state + LINK]
        if state != NONE:
            edge = find(m, state, token)
    if edge == NONE:
        known = ROOT
    else:
        known = m[edge + TARGET]
        if m[known + LENGTH] != m[state + LENGTH] + 1:
            known = split(m, state, known, token)
    if longer == NONE:
        return known
    m[longer + LINK] = known
    return longer


@compiled
def split(m: Flat, state: int, known: int, token: int) -> int:
    """Move the shorter strings of `known`, up to one of `state` plus the token, to a new state."""
    shorter = new_state(m, m[state + LENGTH] + 1, m[known + LINK], token)
    m[shorter + COUNT] = m[known + COUNT]
    m[shorter + HEAVIEST] = m[known + HEAVIEST]
    edge = m[known + EDGES]
    while edge != NONE:
        child = m[edge + TARGET]
        add_edge(m, shorter, child, m[child + TOKEN])
        edge = m[edge + NEXT]
    m[known + LINK] = shorter
    while state != NONE:
        edge = find(m, state, token)
        if m[edge + TARGET] != known:
            break
        m[edge + TARGET] = shorter  # HEAVIEST follows at the next occurrence
        state = m[state + LINK]
    return shorter


@compiled
def add_occurrence(m: Flat, before: int, after: int) -> None:
    """Count all strings that end with the new token; `before` and `after` are the window without and with it.

    Each state on the way from `before` to the root updates its heaviest child; among equals that is the latest.
    """
    m[after + COUNT] += 1
    while before != NONE:
        shortest = m[m[before + LINK] + LENGTH] + 2  # of the strings of `before` plus the token
        while m[m[after + LINK] + LENGTH] >= shortest:
            after = m[after + LINK]
            m[after + COUNT] += 1
        heaviest = m[before + HEAVIEST]
        if heaviest == NONE or m[after + COUNT] >= m[heaviest + COUNT]:
            m[before + HEAVIEST] = after
        before = m[before + LINK]
    m[ROOT + COUNT] += 1


@compiled
def last_tokens(m: Flat, state: int, window: int) -> int:
    """The state of the last `window` tokens of a state's strings."""
    if m[state + LENGTH] > window:
        while m[m[state + LINK] + LENGTH] >= window:
            state = m[state + LINK]
    return state


# States, edges, and the hash table that finds an edge by its source and token.


@compiled
def new_state(m: Flat, length: int, link: int, token: int) -> int:
    state = m[USED]
    m[USED] = state + STATE_SIZE
    m[state + LENGTH] = length
    m[state + LINK] = link
    m[state + COUNT] = 0
    m[state + HEAVIEST] = NONE
    m[state + TOKEN] = token
    m[state + EDGES] = NONE
    return state


@compiled
def add_edge(m: Flat, source: int, child: int, token: int) -> None:
    edge, first = m[USED], m[source + EDGES]
    m[USED] = edge + EDGE_SIZE
    m[edge + SOURCE] = source
    m[edge + TARGET] = child
    m[edge + NEXT] = first
    m[source + EDGES] = edge
    if first != NONE:
        enter_table(m, edge, token)
        if m[first + NEXT] == NONE:
            enter_table(m, first, m[m[first + TARGET] + TOKEN])


@compiled
def find(m: Flat, source: int, token: int) -> int:
    """A state's edge with a token, or NONE. A state's only edge, the usual case, is not in the hash table."""
    edge = m[source + EDGES]
    if edge == NONE or m[m[edge + TARGET] + TOKEN] == token:
        return edge
    if m[edge + NEXT] == NONE:
        return NONE
    edge = m[bucket(m, source, token)]
    while edge != NONE:
        if m[edge + SOURCE] == source and m[m[edge + TARGET] + TOKEN] == token:
            return edge
        edge = m[edge + CHAIN]
    return NONE


@compiled
def enter_table(m: Flat, edge: int, token: int) -> None:
    slot = bucket(m, m[edge + SOURCE], token)
    m[edge + CHAIN] = m[slot]
    m[slot] = edge


@compiled
def bucket(m: Flat, source: int, token: int) -> int:
    mixed = source * 2654435761 + token * 40503
    return m[BUCKETS] + ((mixed ^ (mixed >> 15)) & (len(m) - m[BUCKETS] - 1))


@compiled
def hash_again(m: Flat, larger: Flat) -> None:
    """Enter the edges of one slab's hash table into that of its copy."""
    for slot in range(m[BUCKETS], len(m)):
        edge = m[slot]
        while edge != NONE:
            enter_table(larger, edge, m[m[edge + TARGET] + TOKEN])
            edge = m[edge + CHAIN]
