"""Preference pairs from a prompt's answers: by the rank of their rewards, or right against wrong.

    by rank    rewards [.1, .9, .5]: the best against the worst, (1, 0); with two pairs also the second best against
               the second worst, as long as the one is better than the other
    by rule    the best-rewarded right answer against the best-rewarded wrong one; then the second best of both

Compass-v2 pairs open prompts by rank and maths by rule, with the wrong answer that the reward model likes best. Of
equal rewards the answer that was drawn first comes first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

PairingKind = Literal["auto", "rank", "rule"]


@dataclass(frozen=True, kw_only=True)
class ScoredAnswer:
    """One answer to a prompt; `right` is None where the grader gives no right or wrong, `tokens` where none are
    compared.
    """

    reward: float
    right: bool | None = None
    tokens: Sequence[int] | None = None


Pair = tuple[int, int]  # places of the chosen and of the rejected answer


def pair_answers(answers: Sequence[ScoredAnswer], kind: PairingKind, limit: int) -> list[Pair]:
    """At most so many pairs of one prompt's answers; each answer is in one of them at the most.

    "auto": by rule where answers are right or wrong, by rank where they only have rewards. There is no pair of
    answers that are all right, all wrong, or all worth the same, nor of two that are the same, token by token: a
    reward model's rounding may tell them apart.
    """
    judged = any(answer.right is not None for answer in answers)
    by_rule = kind == "rule" or (kind == "auto" and judged)
    pairs = (pair_by_rule if by_rule else pair_by_rank)(answers)
    return [pair for pair in pairs if not are_same(*(answers[place] for place in pair))][:limit]


def are_same(one: ScoredAnswer, other: ScoredAnswer) -> bool:
    return one.tokens is not None and one.tokens == other.tokens


def pair_by_rank(answers: Sequence[ScoredAnswer]) -> list[Pair]:
    """pair_by_rank of rewards [.1, .9, .5, .5] -> [(1, 0)]. A right answer is never rejected for a wrong one."""
    ranked = best_first(answers, range(len(answers)))
    pairs = zip(ranked[: len(ranked) // 2], reversed(ranked), strict=False)
    return [
        (chosen, rejected)
        for chosen, rejected in pairs
        if answers[chosen].reward > answers[rejected].reward
        and not (answers[rejected].right and answers[chosen].right is False)
    ]


def pair_by_rule(answers: Sequence[ScoredAnswer]) -> list[Pair]:
    """pair_by_rule of right .2, right .7, wrong .9 and wrong .1 -> [(1, 2), (0, 3)]."""
    right, wrong = (
        best_first(answers, [place for place, answer in enumerate(answers) if answer.right is side])
        for side in (True, False)
    )
    return list(zip(right, wrong, strict=False))


def best_first(answers: Sequence[ScoredAnswer], places: Sequence[int]) -> list[int]:
    return sorted(places, key=lambda place: (-answers[place].reward, place))
