"""Evaluation: sample, grade, and keep a record of every attempt at every problem.

Many problems are sampled at the same time, by the same loop and scheduler as the groups of a training step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass

from foresail.data.problems.prompts import PromptedProblem
from foresail.evaluation.results import Attempt, ProblemResult
from foresail.recipe.tables.parts import Sampling
from foresail.recipe.tables.reward import Reward
from foresail.records import Group, Problem, Sample, Verdict
from foresail.rewards.grader import find_ballot
from foresail.rewards.grading import Grading
from foresail.rewards.group_rewards import judge_group, judge_sample, pay
from foresail.rewards.thinking import open_counter, read_thought
from foresail.rewards.trajectory import read_trajectory
from foresail.rollout.fleet import Fleet
from foresail.rollout.groups import specify_groups
from foresail.rollout.stream import Stream, StreamKind, sample_all, watched
from foresail.tokenizer.tokenizer import Tokenizer

EVALUATION_STEP = -1  # its own stream of noise, apart from every training step


@dataclass(frozen=True, kw_only=True)
class Examiner:
    """Submits responses to the grader, and builds the record of each attempt."""

    tokenizer: Tokenizer
    reward: Reward
    grading: Grading

    def judge(self, problem: Problem, sample: Sample) -> Future[Verdict]:
        return judge_sample(
            problem, sample, tokenizer=self.tokenizer, settings=self.reward, grading=self.grading
        )

    def judge_group(
        self, problem: Problem, samples: Sequence[Sample], early: Sequence[Future[Verdict]]
    ) -> Sequence[Future[Verdict]]:
        """Reward functions that want a group get all attempts at the problem."""
        return judge_group(
            problem, samples, early, tokenizer=self.tokenizer, settings=self.reward, grading=self.grading
        )

    def attempts(self, group: Group) -> list[Attempt]:
        ballot, paid = find_ballot(self.reward), {term.label for term in self.reward.terms}
        texts = [read_trajectory(self.tokenizer, sample).response for sample in group.samples]
        counter = open_counter(self.tokenizer)
        votes = {text: ballot(text) for text in {*texts}}  # the samples of a good model are often equal
        return [
            Attempt(
                status=verdict.status,
                answer=votes[text],
                length=sample.num_response_tokens,
                text=text,
                reward=pay(verdict, self.reward) if self.reward.has_scores else None,
                shares={name: score for name, score in verdict.terms.items() if name not in paid},
                thinking=None if counter is None else read_thought(counter, sample).tokens,
                forced=bool(sample.forced),
            )
            for sample, text, verdict in zip(group.samples, texts, group.verdicts, strict=True)
        ]


def ignore(verdict: Future[Verdict]) -> None:
    """For callers without a progress bar."""


def evaluate(
    fleet: Fleet,
    problems: Sequence[PromptedProblem],
    examiner: Examiner,
    *,
    sampling: Sampling,
    num_samples: int,
    seed: int,
    greedy: bool = True,
    stream: StreamKind = Stream,
    advance: Callable[[Future[Verdict]], None] = ignore,
) -> list[ProblemResult]:
    """A greedy attempt, if `greedy`, and `num_samples` drawn ones for every problem, in the given order.

    `advance` is called with every attempt that ends.
    """
    group_spec = specify_groups(
        examiner.tokenizer,
        sampling,
        num_samples,
        besides=(sampling.model_copy(update={"temperature": 0.0}),) if greedy else (),
        seed=seed,
        step=EVALUATION_STEP,
    )
    results = {}
    judge = watched(examiner.judge, advance)
    groups = sample_all(fleet, problems, group_spec, judge, judge_group=examiner.judge_group, stream=stream)
    for group in groups:
        attempts = examiner.attempts(group)
        results[group.problem.id] = ProblemResult(
            problem_id=group.problem.id,
            source=group.problem.source,
            greedy=attempts[-1] if greedy else None,
            samples=tuple(attempts[:num_samples]),
        )
    return [results[entry.problem.id] for entry in problems]
