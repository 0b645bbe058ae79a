"""Verdicts of a group's samples, and the rewards computed from them.

Every sample is judged as soon as it ends, except by reward functions that want the whole group: they are called
when its last sample has ended. Rewards are made when the group's last verdict is in: a function in the place of
`reward_group` sees all samples of the problem together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from foresail.recipe.tables.reward import NO_GRADER
from foresail.records import FAILURES, Group, Problem, Sample, Verdict
from foresail.rewards.foreign_rewards import add_ids
from foresail.rewards.grading import NOTHING_YET, Grading, Pair, group_verdicts
from foresail.rewards.shaping import format_penalty, language_penalty, overlong_penalty
from foresail.rewards.trajectory import read_trajectory

if TYPE_CHECKING:
    from foresail.recipe.tables.reward import Reward
    from foresail.tokenizer.tokenizer import Tokenizer

IDS_OF = "ids_of"  # column of a problem: whose ids its sample has, by the tokenizer's fingerprint
Rewards = tuple[float | None, ...]  # of a group's samples, in their order; None for a failed verdict


def judge_sample(
    problem: Problem, sample: Sample, *, tokenizer: Tokenizer, settings: Reward, grading: Grading
) -> Future[Verdict]:
    """Submit a sample's text to the grader; a user's functions get its token ids too. Prompts are not graded.

    Where some functions wait for the whole group, the others judge it now.
    """
    traits = grading.traits
    if not traits.early:
        return NOTHING_YET
    submit = grading.submit_early if traits.group else grading.submit
    return submit(*to_pair(problem, sample, tokenizer=tokenizer, settings=settings))


def judge_group(
    problem: Problem,
    samples: Sequence[Sample],
    early: Sequence[Future[Verdict]],
    *,
    tokenizer: Tokenizer,
    settings: Reward,
    grading: Grading,
) -> Sequence[Future[Verdict]]:
    """All verdicts on a group whose last sample has ended, from what `judge_sample` gave for each."""
    if not grading.traits.group:
        return early
    pairs = [to_pair(problem, sample, tokenizer=tokenizer, settings=settings) for sample in samples]
    return group_verdicts(grading, pairs, early)


def to_pair(problem: Problem, sample: Sample, *, tokenizer: Tokenizer, settings: Reward) -> Pair:
    graded_problem = add_ids(problem, sample) if settings.functions or settings.asks_model else problem
    if settings.asks_model:
        graded_problem = replace(
            graded_problem, extra={**graded_problem.extra, IDS_OF: tokenizer.fingerprint}
        )
    return graded_problem, read_trajectory(tokenizer, sample)


def reward_group(
    problem: Problem,
    samples: Sequence[Sample],
    verdicts: Sequence[Verdict],
    *,
    tokenizer: Tokenizer,
    settings: Reward,
    limit: int,
) -> Rewards:
    """Each sample's reward by the recipe; of several turns the last response's format and language count."""
    prompt = "\n".join(message.content for message in problem.prompt)
    reads_text = bool(settings.format_weight or settings.language_weight)
    return tuple(
        reward(
            verdict,
            settings,
            prompt=prompt,
            response=read_trajectory(tokenizer, sample).response if reads_text else "",
            num_tokens=max(
                sum(record.loss_mask) for record in sample.records
            ),  # each has the limit to itself
            limit=limit,
        )
        for sample, verdict in zip(samples, verdicts, strict=True)
    )


def right_or_wrong(problem: Problem, samples: Sequence[Sample], verdicts: Sequence[Verdict]) -> Rewards:
    """1 for a right answer, 0 for any other, whatever a recipe pays for a part of it: for evaluations."""
    return tuple(
        None if verdict.status in FAILURES else float(verdict.status == "correct") for verdict in verdicts
    )


def reward(
    verdict: Verdict, settings: Reward, *, prompt: str, response: str, num_tokens: int, limit: int
) -> float | None:
    """Maps the score in [0, 1] onto [wrong, correct] and adds the recipe's terms, then length, format and language.

    A right answer of 9 tokens gets 1.0, a wrong one with Reward(wrong=-1) -1.0. The scores of a function of
    one's own may be any numbers; `wrong` and `correct` are then 0 and 1, which leaves them as they are.
    None for a failure, which is never a score: the caller drops the sample's group.
    """
    earned = pay(verdict, settings)
    if earned is None:
        return None
    return (
        earned
        + overlong_penalty(
            num_tokens, limit=limit, buffer=settings.overlong_buffer, factor=settings.overlong_factor
        )
        + format_penalty(response, weight=settings.format_weight)
        + language_penalty(prompt, response, weight=settings.language_weight)
    )


def pay(verdict: Verdict, settings: Reward) -> float | None:
    """A verdict's score, scaled to `wrong` … `correct`, plus its terms' weighted scores."""
    if verdict.status in FAILURES:
        return None
    earned = settings.wrong + verdict.score * (settings.correct - settings.wrong)
    return earned + sum(term.weight * verdict.terms.get(term.label, 0.0) for term in settings.terms)


@dataclass(frozen=True, kw_only=True)
class RewardPart:
    """One summand of a group's rewards: its weight, and the score of each sample; NaN where it does not apply."""

    weight: float
    scores: tuple[float, ...]


def reward_parts(group: Group, settings: Reward) -> dict[str, RewardPart]:
    """The parts of a group without failures, by name: the grader, each term, and the penalties."""
    parts = {}
    paid = [pay(verdict, settings) or 0.0 for verdict in group.verdicts]
    if settings.grader != NO_GRADER:
        span = settings.correct - settings.wrong
        scores = tuple(settings.wrong + verdict.score * span for verdict in group.verdicts)
        parts["grader"] = RewardPart(weight=1.0, scores=scores)
    for term in settings.terms:
        scores = tuple(verdict.terms.get(term.label, math.nan) for verdict in group.verdicts)
        parts[f"term {term.label}"] = RewardPart(weight=term.weight, scores=scores)
    if settings.shapes:
        pairs = zip(group.rewards, paid, strict=True)
        scores = tuple((reward or 0.0) - earned for reward, earned in pairs)
        parts["shaping"] = RewardPart(weight=1.0, scores=scores)
    return parts
