"""Finds the most likely continuation of a context in the suffix automaton.

A child's share is its count over its parent's; a path's probability is the product of its shares. The current end
of the text is itself an occurrence without a child, so what happened once before has probability 1/2. Every known
suffix of the context can be continued: long ones are rare but reliable, short ones common but vague. The suffix
whose path has the highest sum of probabilities, the expected number of accepted tokens, is used.
"""

from __future__ import annotations

from foresail.rollout.drafts.compiled import Flat, compiled
from foresail.rollout.drafts.suffixes import COUNT, HEAVIEST, LENGTH, LINK, NONE, ROOT, TOKEN, last_tokens


@compiled
def write_draft(
    m: Flat, state: int, length: int, max_tokens: int, window: int, least: float, tokens: Flat
) -> int:
    """Write a draft for a context whose last `length` tokens lie in `state`; returns its length."""
    state, limit = best_start(m, state, length, max_tokens, window, least)
    return 0 if state == NONE else write_path(m, state, limit, window, least, tokens)


@compiled
def best_start(
    m: Flat, state: int, length: int, max_tokens: int, window: int, least: float
) -> tuple[int, int]:
    """The suffix of a context to continue, and by how many tokens, at most its own length."""
    start, start_limit, start_score = NONE, 0, 0.0
    while state != ROOT:
        limit = min(max_tokens, length)
        if start_score >= limit:
            break  # no shorter suffix can have a better path
        score = path_score(m, state, limit, window, least)
        if score > start_score:
            start, start_limit, start_score = state, limit, score
        state = m[state + LINK]
        length = m[state + LENGTH]
    return start, start_limit


@compiled
def path_score(m: Flat, state: int, limit: int, window: int, least: float) -> float:
    """The sum of probabilities along heaviest children, down to `least`."""
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
    """Write the path of `path_score`; returns its length."""
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
    # Behind a prompt the child is counted for each response, the parent once.
    return min(1.0, m[child + COUNT] / m[state + COUNT])
