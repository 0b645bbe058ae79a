"""Best-of-n by a reward model, compared with pass@n, the majority and pass@1.

    best_of([2.0, 0.5, 1.0], [False, True, True], 2) -> 1/3: in two of three pairs the model picks the wrong one

All are expectations over subsets of the samples that were drawn: best-of-n and pass@n exactly, the majority over
subsets drawn at random.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import comb
from statistics import fmean

import numpy as np

from foresail.evaluation.metrics import majority_at_k, pass_at_k
from foresail.evaluation.results import figure, subset_sizes

SUBSETS = 100  # of a problem's samples, for the majority of fewer than all
Z = 1.959963984540054  # the normal distribution's 97.5 % point


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A sample that both the grader and the reward model could judge; `answer` is what it votes for."""

    answer: str | None
    correct: bool
    score: float


@dataclass(frozen=True, kw_only=True)
class Candidates:
    """The samples of one problem; `unjudged` more of them failed in the grader or in the reward model."""

    problem_id: str
    samples: tuple[Candidate, ...]
    unjudged: int = 0


def best_of(scores: Sequence[float], correct: Sequence[bool], k: int) -> float:
    """The chance that the best-scored of k samples, chosen at random from all, is right.

    The sample of rank r is the best in C(n-r, k-1) of the C(n, k) subsets. Of equal scores any may be taken.
    """
    n = len(scores)
    if not 1 <= k <= n:
        raise ValueError(f"the best of {k} cannot be taken from {n} samples")
    ranked = sorted(zip(scores, correct, strict=True), key=lambda sample: -sample[0])
    total, rank = 0.0, 0
    for _, equal in groupby(ranked, key=lambda sample: sample[0]):
        share = [right for _, right in equal]
        chances = [comb(n - rank - place, k - 1) / comb(n, k) for place in range(1, len(share) + 1)]
        total += fmean(share) * sum(chances)
        rank += len(share)
    return total


def majority_of(answers: Sequence[str | None], correct: Sequence[bool], k: int, *, seed: int) -> float:
    """The chance that the majority of k samples is right: exact for one and for all, else over random subsets."""
    n = len(answers)
    if k == 1:
        return fmean(correct)
    if k == n:
        return majority_at_k(answers, correct)
    rng = np.random.default_rng([seed, n, k])
    subsets = (rng.choice(n, size=k, replace=False) for _ in range(SUBSETS))
    return fmean(majority_at_k([answers[i] for i in some], [correct[i] for i in some]) for some in subsets)


def best_of_figures(
    problems: Sequence[Candidates], *, seed: int = 0
) -> dict[str, dict[str, dict[str, float]]]:
    """{"16": {"best_of": figure, "majority": figure, "pass": figure, "lead": …}}, by n; of problems with n samples.

    A figure is a mean over problems with its 95 % interval; `lead` is best-of-n less the majority, problem by
    problem.
    """
    figures = {}
    num_samples = max((len(problem.samples) for problem in problems), default=0)
    if not num_samples:
        raise ValueError(
            f"none of {sum(problem.unjudged for problem in problems):,} samples could be judged by both the grader "
            "and the reward model, so there is nothing to rank; look at its weights and the problems' answers"
        )
    for k in subset_sizes(num_samples):
        rows = [score_problem(problem, k, seed + number) for number, problem in enumerate(problems)
                if len(problem.samples) >= k]  # fmt: skip
        by_name = {name: [row[name] for row in rows] for name in rows[0]}
        leads = [row["best_of"] - row["majority"] for row in rows]
        reach = Z * float(np.std(leads)) / max(1, len(leads) - 1) ** 0.5
        figures[str(k)] = {name: figure(values) for name, values in by_name.items()} | {
            "lead": {"value": fmean(leads), "low": fmean(leads) - reach, "high": fmean(leads) + reach}
        }
    return figures


def score_problem(problem: Candidates, k: int, seed: int) -> Mapping[str, float]:
    scores, correct, answers = (
        [getattr(sample, name) for sample in problem.samples] for name in ("score", "correct", "answer")
    )
    return {
        "best_of": best_of(scores, correct, k),
        "majority": majority_of(answers, correct, k, seed=seed),
        "pass": pass_at_k(len(correct), sum(correct), k),
    }
