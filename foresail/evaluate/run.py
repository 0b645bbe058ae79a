"""Evaluation: draw, grade, and keep a record of every attempt at every problem."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from foresail.data.prompts import PromptedProblem
from foresail.engine.engine import Engine
from foresail.evaluate.results import Attempt, ProblemResult
from foresail.recipe.parts import Sampling
from foresail.records import Problem, Sample
from foresail.rewards.grader import BALLOTS, GRADERS
from foresail.rollout.groups import Draw, draw_groups
from foresail.tokenizer.tokenizer import Tokenizer

EVALUATION_STEP = -1  # its own stream of noise, apart from every training step

Judge = Callable[[Problem, Sample], Attempt]


def judge_with(tokenizer: Tokenizer, grader: str) -> Judge:
    """Grade the response's text; the prompt is never graded."""

    def judge(problem: Problem, sample: Sample) -> Attempt:
        text = response_text(tokenizer, sample)
        verdict = GRADERS[grader](problem, text)
        return Attempt(
            status=verdict.status,
            score=verdict.score,
            answer=BALLOTS[grader](text),
            length=sample.num_response_tokens,
            text=text,
        )

    return judge


def response_text(tokenizer: Tokenizer, sample: Sample) -> str:
    ids = [token for token, drawn in zip(sample.ids, sample.loss_mask, strict=True) if drawn]
    return tokenizer.decode(ids, skip_special_tokens=True)


def evaluate(
    engine: Engine,
    problems: Sequence[PromptedProblem],
    judge: Judge,
    *,
    sampling: Sampling,
    num_samples: int,
    stop_ids: tuple[int, ...],
    seed: int,
) -> list[ProblemResult]:
    """One greedy attempt and `num_samples` drawn ones (none if 0) for every problem, in the given order."""
    greedy = replace_sampling(sampling, temperature=0.0)
    draw = Draw(sampling=greedy, num_samples=1, stop_ids=stop_ids, seed=seed, step=EVALUATION_STEP)
    first = attempt_all(engine, problems, judge, draw)
    rest: dict[str, tuple[Attempt, ...]] = {}
    if num_samples:
        rest = attempt_all(engine, problems, judge, replace(draw, sampling=sampling, num_samples=num_samples))
    return [
        ProblemResult(
            problem_id=entry.problem.id,
            source=entry.problem.source,
            greedy=first[entry.problem.id][0],
            samples=rest.get(entry.problem.id, ()),
        )
        for entry in problems
    ]


def attempt_all(
    engine: Engine, problems: Sequence[PromptedProblem], judge: Judge, draw: Draw
) -> dict[str, tuple[Attempt, ...]]:
    return {
        entry.problem.id: tuple(judge(entry.problem, sample) for sample in samples)
        for entry, samples in draw_groups(engine, problems, draw)
    }


def replace_sampling(sampling: Sampling, **changes: float) -> Sampling:
    return sampling.model_copy(update=changes)
