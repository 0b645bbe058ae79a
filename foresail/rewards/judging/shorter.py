"""A response on which the judge gives no verdict is shown again, shorter, and at last not at all.

    rate_responses(judge, [judged], rubric)               # 1,000 characters, then 250, then that 1,000 are left out
    compare_responses(judge, pairs, rubric, AGAINST_REFERENCE)

Otherwise a policy could have a wrong answer dropped, and not punished, by a response that its judge cannot judge:
too long for it, refused by the server's filter, an instruction to answer with a poem. What is left out is marked,
so the judge sees that it is. A judge that gives no verdict even then is broken, and that is no score.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from foresail.rewards.judging.judge import Comparison, Judge, Pair, Rating, Unjudged
from foresail.rewards.judging.question import Judged
from foresail.rewards.judging.quoting import shortened
from foresail.rewards.judging.rubric import Rubric

SHARES = (0.25, 0.0)  # of a response that are shown, after all of it
Shares = tuple[float, float]
AGAINST_REFERENCE: tuple[Shares, ...] = ((0.25, 1.0), (0.0, 1.0))
# of two responses the longer one is cut first; whose removal helps is to blame
OF_SIBLINGS: tuple[Shares, ...] = ((0.25, 1.0), (1.0, 0.25), (0.25, 0.25), (0.0, 1.0), (1.0, 0.0), (0.0, 0.0))


def rate_responses(judge: Judge, judged: Sequence[Judged], rubric: Rubric) -> list[Rating | Unjudged]:
    ratings = judge.rate(judged, [rubric])
    for share in SHARES:
        failed = [number for number, rating in enumerate(ratings) if isinstance(rating, Unjudged)]
        if not failed:
            break
        cut = [replace(judged[number], response=cut_to(judged[number].response, share)) for number in failed]
        for number, rating in zip(failed, judge.rate(cut, [rubric]), strict=True):
            if isinstance(rating, Rating):
                ratings[number] = replace(rating, shown=share)
    return ratings


def compare_responses(
    judge: Judge, pairs: Sequence[Pair], rubric: Rubric, cuts: Sequence[Shares]
) -> list[Comparison | Unjudged]:
    verdicts = judge.compare(pairs, rubric)
    for shares in cuts:
        failed = [number for number, verdict in enumerate(verdicts) if isinstance(verdict, Unjudged)]
        if not failed:
            break
        again = judge.compare([cut_pair(pairs[number], shares, cuts) for number in failed], rubric)
        for number, verdict in zip(failed, again, strict=True):
            if isinstance(verdict, Comparison):
                verdicts[number] = replace(verdict, shown=min(shares))
    return verdicts


def cut_pair(pair: Pair, shares: Shares, cuts: Sequence[Shares]) -> Pair:
    first, second = shares
    if cuts is OF_SIBLINGS and len(pair.second) > len(pair.first):
        first, second = second, first
    return replace(pair, first=cut_to(pair.first, first), second=cut_to(pair.second, second))


def cut_to(text: str, share: float) -> str:
    """cut_to("abcdefgh", 0.25) -> "a", a mark of 6 characters left out, and "h"."""
    return shortened(text, int(len(text) * share))
