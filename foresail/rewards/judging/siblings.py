"""Responses of a group compared with each other: each with some siblings, in both orders.

    compare_siblings(judge, rubric, [prompt], [["a", "b", None, "c"]], opponents=2) -> [[0.75, 0.5, 0.0, 0.75]]

The responses form a ring; each is compared with its next neighbours. A score is the mean over a response's
comparisons: 1 for a win, 0 for a loss. Equal texts are a tie, and None, a response without an answer, loses;
neither is asked about. If the judge gives no verdict on a pair, neither of the two has a score.
"""

from __future__ import annotations

from collections.abc import Sequence

from foresail.records import Message
from foresail.rewards.judging.judge import Comparison, Judge, Pair, Unjudged
from foresail.rewards.judging.rubric import Rubric
from foresail.rewards.judging.shorter import OF_SIBLINGS, compare_responses

Pairing = tuple[int, int]  # of a group's responses
ALONE = "no_siblings"


def compare_siblings(
    judge: Judge,
    rubric: Rubric,
    prompts: Sequence[tuple[Message, ...]],
    texts: Sequence[Sequence[str | None]],
    opponents: int,
) -> list[list[float | Unjudged]]:
    """By group. All pairs of all groups are asked about at once."""
    asked: dict[tuple[int, Pairing], Pair] = {}
    for number, (prompt, group) in enumerate(zip(prompts, texts, strict=True)):
        for first, second in ring_pairs(len(group), opponents):
            one, other = group[first], group[second]
            if one is not None and other is not None and one != other:
                asked[number, (first, second)] = Pair(prompt=prompt, first=one, second=other)
    compared = compare_responses(judge, [*asked.values()], rubric, OF_SIBLINGS)
    verdicts = dict(zip(asked, compared, strict=True))
    return [
        score_group(group, opponents, {pair: one for (own, pair), one in verdicts.items() if own == number})
        for number, group in enumerate(texts)
    ]


def ring_pairs(count: int, opponents: int) -> list[Pairing]:
    """ring_pairs(4, 2) -> [(0, 1), (1, 2), (2, 3), (3, 0)]: each response in two of them."""
    pairs = [
        (place, (place + step) % count)
        for step in range(1, min((opponents + 1) // 2, count // 2) + 1)
        for place in range(count)
    ]
    return [*{frozenset(pair): pair for pair in pairs if pair[0] != pair[1]}.values()]


def score_group(
    group: Sequence[str | None], opponents: int, verdicts: dict[Pairing, Comparison | Unjudged]
) -> list[float | Unjudged]:
    won: list[list[float]] = [[] for _ in group]
    broken: dict[int, Unjudged] = {}
    for pair in ring_pairs(len(group), opponents):
        first, second = pair
        verdict = verdicts.get(pair)
        if isinstance(verdict, Unjudged):
            broken |= {first: verdict, second: verdict}
            continue
        score = verdict.score if verdict is not None else unasked(group[first], group[second])
        won[first].append(score)
        won[second].append(1 - score)
    alone = Unjudged(ALONE, "there is no sibling to compare it with")
    return [
        broken[place] if place in broken else sum(scores) / len(scores) if scores else alone
        for place, scores in enumerate(won)
    ]


def unasked(first: str | None, second: str | None) -> float:
    """unasked("a", None) -> 1.0."""
    return ((first is not None) - (second is not None) + 1) / 2
