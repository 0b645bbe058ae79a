"""Evaluation: draw, grade, and keep a record of every attempt at every problem.

The attempts at many problems are under way at once, in the same loop and by the same scheduler as the groups of
a training step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import lru_cache
from itertools import compress
from typing import Any

from foresail.data.prompts import PromptedProblem
from foresail.evaluate.results import Attempt, ProblemResult
from foresail.recipe.parts import Reward, Sampling
from foresail.records import FAILURES, Group, Problem, Sample, Verdict
from foresail.rewards.grader import find_ballot
from foresail.rewards.grading import Grading
from foresail.rewards.peers import add_ids
from foresail.rollout.fleet import Fleet
from foresail.rollout.groups import Draw
from foresail.rollout.stream import draw_all
from foresail.tokenizer.tokenizer import Tokenizer

OPENING = 8  # tokens at the prompt's end in which a `<think>` would stand
EVALUATION_STEP = -1  # its own stream of noise, apart from every training step


@dataclass(frozen=True)
class Judged:
    """A response with the grader: its verdict, when it is there, and what `worth` makes of it."""

    graded: Future[Verdict]
    worth: Callable[[Verdict], float | None]

    def done(self) -> bool:
        return self.graded.done()

    def add_done_callback(self, call: Callable[[Any], None]) -> None:
        self.graded.add_done_callback(call)

    def cancel(self) -> bool:
        return self.graded.cancel()

    def result(self) -> tuple[Verdict, float | None]:
        verdict = self.graded.result()
        return verdict, self.worth(verdict)


@dataclass(frozen=True, kw_only=True)
class Examiner:
    """Puts responses before the grader, and keeps what there is to know of each. The prompt is never graded."""

    tokenizer: Tokenizer
    reward: Reward
    grading: Grading

    def judge(self, problem: Problem, sample: Sample) -> Judged:
        text = response_text(self.tokenizer, sample)
        return Judged(hand_over(problem, sample, text, self.reward, self.grading), self.score)

    def score(self, verdict: Verdict) -> float | None:
        """Right or not, whatever a reward pays for a part of it."""
        return None if verdict.status in FAILURES else float(verdict.status == "correct")

    def attempts(self, group: Group) -> list[Attempt]:
        ballot = find_ballot(self.reward)
        texts = [response_text(self.tokenizer, sample) for sample in group.samples]
        votes = {text: ballot(text) for text in {*texts}}  # a good model says the same again and again
        return [
            Attempt(
                status=verdict.status,
                answer=votes[text],
                length=sample.num_response_tokens,
                text=text,
            )
            for sample, text, verdict in zip(group.samples, texts, group.verdicts, strict=True)
        ]


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
    text = tokenizer.decode([*compress(sample.ids, sample.loss_mask)], skip_special_tokens=True)
    before = tuple(sample.ids[max(0, start - OPENING) : start])
    return "<think>" + text if opens_thinking(tokenizer, before) else text


@lru_cache(maxsize=1024)  # a template ends all prompts alike
def opens_thinking(tokenizer: Tokenizer, ids: tuple[int, ...]) -> bool:
    return tokenizer.decode(ids, skip_special_tokens=False).rstrip().endswith("<think>")


def evaluate(
    fleet: Fleet,
    problems: Sequence[PromptedProblem],
    examiner: Examiner,
    *,
    sampling: Sampling,
    num_samples: int,
    seed: int,
) -> list[ProblemResult]:
    """One greedy attempt and `num_samples` drawn ones (none if 0) for every problem, in the given order."""
    draw = Draw(
        sampling=sampling,
        num_samples=num_samples,
        besides=(sampling.model_copy(update={"temperature": 0.0}),),
        stop_ids=examiner.tokenizer.eos_ids,
        seed=seed,
        step=EVALUATION_STEP,
    )
    results = {}
    for group in draw_all(fleet, problems, draw, examiner.judge):
        *samples, greedy = examiner.attempts(group)
        results[group.problem.id] = ProblemResult(
            problem_id=group.problem.id, source=group.problem.source, greedy=greedy, samples=tuple(samples)
        )
    return [results[entry.problem.id] for entry in problems]
