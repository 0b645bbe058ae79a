"""Evaluation: draw, grade, and keep a record of every attempt at every problem."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import replace

from foresail.data.prompts import PromptedProblem
from foresail.engine.engine import Engine
from foresail.evaluate.results import Attempt, ProblemResult
from foresail.recipe.parts import Reward, Sampling
from foresail.records import Problem, Sample, Verdict
from foresail.rewards.grader import find_ballot
from foresail.rewards.grading import Grading
from foresail.rewards.peers import add_ids
from foresail.rollout.groups import Draw, draw_samples
from foresail.tokenizer.tokenizer import Tokenizer

OPENING = 8  # tokens at the prompt's end in which a `<think>` would stand
EVALUATION_STEP = -1  # its own stream of noise, apart from every training step

# Hands a sample to the grader and returns at once; what it returns waits for the verdict.
Judge = Callable[[Problem, Sample], Callable[[], Attempt]]


def judge_with(tokenizer: Tokenizer, settings: Reward, grading: Grading) -> Judge:
    """Grade the response's text; the prompt is never graded."""
    ballot = find_ballot(settings)

    def judge(problem: Problem, sample: Sample) -> Callable[[], Attempt]:
        text = response_text(tokenizer, sample)
        verdict = hand_over(problem, sample, text, settings, grading)
        return lambda: to_attempt(verdict.result(), text, sample)

    def to_attempt(verdict: Verdict, text: str, sample: Sample) -> Attempt:
        right = float(verdict.status == "correct")
        return Attempt(
            status=verdict.status,
            score=right if settings.own_function else verdict.score,  # rewards need not lie in [0, 1]
            answer=ballot(text),
            length=sample.num_response_tokens,
            text=text,
        )

    return judge


def hand_over(
    problem: Problem, sample: Sample, text: str, settings: Reward, grading: Grading
) -> Future[Verdict]:
    """Submit a response; functions of one's own get its token ids too."""
    return grading.submit(add_ids(problem, sample) if settings.own_function else problem, text)


def response_text(tokenizer: Tokenizer, sample: Sample) -> str:
    """What the model wrote; where the chat template opened `<think>` for it, that belongs to it too.

    Without it a response that was cut off while thinking would look like a final answer.
    """
    start = sample.loss_mask.index(1) if 1 in sample.loss_mask else len(sample.ids)
    drawn = [token for token, mask in zip(sample.ids, sample.loss_mask, strict=True) if mask]
    text = tokenizer.decode(drawn, skip_special_tokens=True)
    before = tokenizer.decode(sample.ids[max(0, start - OPENING) : start], skip_special_tokens=False)
    return "<think>" + text if before.rstrip().endswith("<think>") else text


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
    """All attempts by problem, in the samples' order; responses are graded while others are still drawn."""
    pending: dict[str, dict[int, Callable[[], Attempt]]] = {entry.problem.id: {} for entry in problems}
    for entry, number, sample in draw_samples(engine, problems, draw):
        pending[entry.problem.id][number] = judge(entry.problem, sample)
    return {
        problem_id: tuple(group[number]() for number in range(draw.num_samples))
        for problem_id, group in pending.items()
    }


def replace_sampling(sampling: Sampling, **changes: float) -> Sampling:
    return sampling.model_copy(update=changes)
