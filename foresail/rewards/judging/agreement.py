"""How well a judge agrees with preference pairs whose better answer is known, and with itself.

    agreement(verdicts, clusters=["prompt 1", "prompt 1", "prompt 2"])
    -> Agreement(pairs=3, unjudged={}, agreement=Share(0.83, 0.41, 0.97), consistency=Share(…), position_bias=…)

A verdict is a `Comparison` whose first answer is the one that people preferred. Pairs of one prompt are not
independent of each other: intervals are Wilson's, with the number of pairs reduced by what prompts have in common.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

from foresail.rewards.judging.judge import Comparison, Unjudged

Z = 1.959963984540054  # the normal distribution's 97.5 % point


@dataclass(frozen=True, kw_only=True)
class Share:
    """A share of `count` cases, with its 95 % interval."""

    value: float
    low: float
    high: float
    count: int


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """`agreement`: with the known verdicts; ties and inconsistent verdicts count half. `by_mean`: the same where
    the mean of both orders decides, which is seldom a tie. `decided`: among pairs on which both orders say the
    same. `in_one_order`: of single questions, as if each pair were asked once.

    `consistency`: pairs on which both orders agree. `position_bias`: how often A is said less how often B is, from
    -1 to 1. The last three need both orders; without them they are None.
    """

    pairs: int
    unjudged: Mapping[str, int]
    agreement: Share | None
    by_mean: Share | None
    decided: Share | None
    in_one_order: Share | None
    consistency: Share | None
    position_bias: float | None


def agreement(
    verdicts: Sequence[Comparison | Unjudged], clusters: Sequence[str], *, both_orders: bool = True
) -> Agreement:
    judged = [
        (verdict, cluster)
        for verdict, cluster in zip(verdicts, clusters, strict=True)
        if isinstance(verdict, Comparison)
    ]
    names = [cluster for _, cluster in judged]
    right = {"first": 1.0, "second": 0.0}
    outcomes = [right.get(verdict.outcome, 0.5) for verdict, _ in judged]
    firm = [(right[verdict.outcome], name) for verdict, name in judged if verdict.outcome in right]
    of_orders = None
    if both_orders and judged:
        sides = [((a > 0.5) + (a >= 0.5)) / 2 for verdict, _ in judged for a in verdict.said]
        of_orders = share(sides, [name for name in names for _ in range(2)])
        a_less_b = sum(  # the first answer stands as A in the first order, and as B in the second
            sign(verdict.said[0]) - sign(verdict.said[1]) for verdict, _ in judged
        )
    return Agreement(
        pairs=len(verdicts),
        unjudged=dict(sorted(Counter(one.reason for one in verdicts if isinstance(one, Unjudged)).items())),
        agreement=share(outcomes, names),
        by_mean=share([(sign(verdict.score) + 1) / 2 for verdict, _ in judged], names),
        decided=share([value for value, _ in firm], [name for _, name in firm]),
        in_one_order=of_orders,
        consistency=share([float(one.outcome != "inconsistent") for one, _ in judged], names)
        if both_orders
        else None,
        position_bias=a_less_b / (2 * len(judged)) if of_orders is not None else None,
    )


def sign(said: float) -> int:
    return (said > 0.5) - (said < 0.5)


def share(values: Sequence[float], clusters: Sequence[str]) -> Share | None:
    """The mean of values from 0 to 1; None of none."""
    if not values:
        return None
    mean = sum(values) / len(values)
    low, high = wilson(mean, effective_count(values, clusters, mean))
    return Share(value=mean, low=low, high=high, count=len(values))


def effective_count(values: Sequence[float], clusters: Sequence[str], mean: float) -> float:
    """Independent values with as wide an interval: 10 where 20 values are 10 pairs of equal ones."""
    sums: dict[str, float] = defaultdict(float)
    for value, cluster in zip(values, clusters, strict=True):
        sums[cluster] += value - mean
    alone = sum((value - mean) ** 2 for value in values)  # variance of the sum, were all values independent
    if alone == 0 or len(sums) == 1:
        return float(len(sums))
    return len(values) / max(1.0, sum(total**2 for total in sums.values()) / alone)


def wilson(mean: float, count: float) -> tuple[float, float]:
    weight = Z * Z / count
    centre = (mean + weight / 2) / (1 + weight)
    reach = Z * sqrt(mean * (1 - mean) / count + weight / (4 * count)) / (1 + weight)
    return max(0.0, centre - reach), min(1.0, centre + reach)


def describe_agreement(figures: Agreement) -> list[str]:
    lines = [f"{figures.pairs:,} pairs"]
    for name, one in (
        ("agreement", figures.agreement),
        ("by mean of orders", figures.by_mean),
        ("of decided pairs", figures.decided),
        ("asked once", figures.in_one_order),
        ("swap consistency", figures.consistency),
    ):
        if one is not None:
            lines.append(f"  {name:<18} {one.value:.1%}   {one.low:.1%} to {one.high:.1%}, of {one.count:,}")
    if figures.position_bias is not None:
        lines.append(f"  {'position bias':<18} {figures.position_bias:+.1%} for A")
    if figures.unjudged:
        failed = ", ".join(f"{reason} {count:,}" for reason, count in figures.unjudged.items())
        lines.append(f"  {'without a verdict':<18} {failed}")
    return lines
