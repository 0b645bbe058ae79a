"""What may follow a place in the texts: the likeliest path, or a tree of the likeliest few.

The share of a child is its count over its parent's, the probability of a path the product of its shares. The
end of the text that asks is itself an occurrence without a child, so that what happened once before counts as
an even chance. Every end of the context that is known could be continued; long ones are sure but rare, short
ones often seen but vague. The one whose path has the highest sum of probabilities, which is the number of its
tokens that should be accepted, is taken.
"""

from __future__ import annotations

from foresail.rollout.drafts.compiled import Flat, compiled
from foresail.rollout.drafts.suffixes import (
    COUNT,
    EDGES,
    HEAVIEST,
    LENGTH,
    LINK,
    NEXT,
    NONE,
    ROOT,
    TARGET,
    TOKEN,
    last_tokens,
)

MAX_ENDS = 64  # open ends of a tree; they exclude each other, so no more than 1 / least are likely enough


@compiled
def write_draft(
    m: Flat,
    state: int,
    length: int,
    most: int,
    paths: int,
    window: int,
    least: float,
    tokens: Flat,
    parents: Flat,
    chances: Flat,
    ends: Flat,
    end_chances: Flat,
) -> int:
    """Write down what may follow a context whose last `length` tokens lie in `state`; how many tokens it has."""
    state, limit = best_start(m, state, length, most, window, least)
    if state == NONE:
        return 0
    if paths == 1:
        return write_path(m, state, limit, window, least, tokens, parents, chances)
    return write_tree(
        m, state, limit, most, paths, window, least, tokens, parents, chances, ends, end_chances
    )


@compiled
def best_start(m: Flat, state: int, length: int, most: int, window: int, least: float) -> tuple[int, int]:
    """Which end of a context to continue, and by how many tokens: no more than it is long itself."""
    start, start_limit, start_score = NONE, 0, 0.0
    while state != ROOT:
        limit = min(most, length)
        if start_score >= limit:
            break  # no shorter end can have a better path
        score = path_score(m, state, limit, window, least)
        if score > start_score:
            start, start_limit, start_score = state, limit, score
        state = m[state + LINK]
        length = m[state + LENGTH]
    return start, start_limit


@compiled
def path_score(m: Flat, state: int, limit: int, window: int, least: float) -> float:
    """The sum of probabilities along heaviest children, as far as these are not below `least`."""
    score, probability = 0.0, 1.0
    for _ in range(limit):
        child = m[state + HEAVIEST]
        if child == NONE:
            break
        probability *= share(m, state, child)
        if probability < least:
            break
        score += probability
        state = last_tokens(m, child, window)
    return score


@compiled
def write_path(
    m: Flat, state: int, limit: int, window: int, least: float, tokens: Flat, parents: Flat, chances: Flat
) -> int:
    """Write down the path of `path_score`; the number of its tokens."""
    probability = 1.0
    for place in range(limit):
        child = m[state + HEAVIEST]
        if child == NONE:
            return place
        probability *= share(m, state, child)
        if probability < least:
            return place
        tokens[place], parents[place], chances[place] = m[child + TOKEN], place - 1, probability
        state = last_tokens(m, child, window)
    return limit


@compiled
def write_tree(
    m: Flat,
    state: int,
    limit: int,
    most: int,
    paths: int,
    window: int,
    least: float,
    tokens: Flat,
    parents: Flat,
    chances: Flat,
    ends: Flat,
    end_chances: Flat,
) -> int:
    """Take the likeliest child of all taken so far, up to `most` tokens, `limit` deep and with `paths` leaves.

    `ends` holds the open ones as pairs of a state and the place of its parent.
    """
    size, leaves = 0, 1
    num_ends = open_children(m, state, -1, 1.0, least, ends, end_chances, 0)
    while num_ends > 0 and size < most:
        end = likeliest(end_chances, num_ends)
        child, parent, probability = ends[2 * end], ends[2 * end + 1], end_chances[end]
        num_ends -= 1
        ends[2 * end], ends[2 * end + 1] = ends[2 * num_ends], ends[2 * num_ends + 1]
        end_chances[end] = end_chances[num_ends]
        if num_children(parents, size, parent) > 0:
            if leaves == paths:
                continue
            leaves += 1
        tokens[size], parents[size], chances[size] = m[child + TOKEN], parent, probability
        if depth(parents, size) < limit:
            state = last_tokens(m, child, window)
            num_ends = open_children(m, state, size, probability, least, ends, end_chances, num_ends)
        size += 1
    return size


@compiled
def open_children(
    m: Flat,
    state: int,
    place: int,
    probability: float,
    least: float,
    ends: Flat,
    end_chances: Flat,
    num_ends: int,
) -> int:
    """Add the children of a state that are likely enough to the open ends; how many there are now."""
    edge = m[state + EDGES]
    while edge != NONE and num_ends < MAX_ENDS:
        child = m[edge + TARGET]
        chance = probability * share(m, state, child)
        if chance >= least:
            ends[2 * num_ends], ends[2 * num_ends + 1], end_chances[num_ends] = child, place, chance
            num_ends += 1
        edge = m[edge + NEXT]
    return num_ends


@compiled
def likeliest(end_chances: Flat, num_ends: int) -> int:
    best = 0
    for end in range(1, num_ends):
        if end_chances[end] > end_chances[best]:
            best = end
    return best


@compiled
def depth(parents: Flat, place: int) -> int:
    steps = 0
    while place >= 0:
        place = parents[place]
        steps += 1
    return steps


@compiled
def num_children(parents: Flat, size: int, parent: int) -> int:
    children = 0
    for place in range(size):
        children += parents[place] == parent
    return children


@compiled
def share(m: Flat, state: int, child: int) -> float:
    # Where a prompt branches into responses the child is counted for each of them, the parent once.
    return min(1.0, m[child + COUNT] / m[state + COUNT])
