"""What may follow a place in the texts: the likeliest path.

The share of a child is its count over its parent's, the probability of a path the product of its shares. The
end of the text that asks is itself an occurrence without a child, so that what happened once before counts as
an even chance. Every end of the context that is known could be continued; long ones are sure but rare, short
ones often seen but vague. The one whose path has the highest sum of probabilities, which is the number of its
tokens that should be accepted, is taken.
"""

from __future__ import annotations

from foresail.rollout.drafts.compiled import Flat, compiled
from foresail.rollout.drafts.suffixes import COUNT, HEAVIEST, LENGTH, LINK, NONE, ROOT, TOKEN, last_tokens


@compiled
def write_draft(
    m: Flat, state: int, length: int, max_tokens: int, window: int, least: float, tokens: Flat
) -> int:
    """Write down what may follow a context whose last `length` tokens lie in `state`; how many tokens it has."""
    state, limit = best_start(m, state, length, max_tokens, window, least)
    return 0 if state == NONE else write_path(m, state, limit, window, least, tokens)


@compiled
def best_start(
    m: Flat, state: int, length: int, max_tokens: int, window: int, least: float
) -> tuple[int, int]:
    """Which end of a context to continue, and by how many tokens: no more than it is long itself."""
    start, start_limit, start_score = NONE, 0, 0.0
    while state != ROOT:
        limit = min(max_tokens, length)
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
def write_path(m: Flat, state: int, limit: int, window: int, least: float, tokens: Flat) -> int:
    """Write down the path of `path_score`; the number of its tokens."""
    probability = 1.0
    for place in range(limit):
        child = m[state + HEAVIEST]
        if child == NONE:
            return place
        probability *= share(m, state, child)
        if probability < least:
            return place
        tokens[place] = m[child + TOKEN]
        state = last_tokens(m, child, window)
    return limit


@compiled
def share(m: Flat, state: int, child: int) -> float:
    # Where a prompt branches into responses the child is counted for each of them, the parent once.
    return min(1.0, m[child + COUNT] / m[state + COUNT])
