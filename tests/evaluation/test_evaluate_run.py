"""An evaluation's attempts: sampled all at once, judged as they end, and each what it would be alone."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tiny_world import HELD_OUT, MAX_NEW, tiny_shape

from foresail.data.problems.problems import load_problems
from foresail.data.problems.prompts import PromptedProblem, encode_problems
from foresail.engine.engine import Engine
from foresail.engine.noise import noise_key
from foresail.engine.request import Request
from foresail.evaluation.results import ProblemResult, summarise
from foresail.evaluation.run import Examiner, evaluate
from foresail.maths import exact
from foresail.model.hf import build_model
from foresail.recipe.tables.parts import Problems, Rollout, Sampling
from foresail.recipe.tables.reward import Reward
from foresail.records import Problem, Trajectory, Verdict
from foresail.rewards.grader import find_grader
from foresail.rewards.grading import GraderTraits, InlineGrading
from foresail.rollout.build import gather
from foresail.rollout.fleet import Fleet
from foresail.rollout.native import NativeInstance
from foresail.tokenizer.tokenizer import Tokenizer

SAMPLING = Sampling(max_new_tokens=MAX_NEW)
SETTINGS = Reward(grader="exact")
SEED = 5


@pytest.fixture(scope="module")
def tokenizer(tiny_tokenizer: Path) -> Tokenizer:
    return Tokenizer.load(tiny_tokenizer)


@pytest.fixture
def problems(tokenizer: Tokenizer) -> list[PromptedProblem]:
    return encode_problems(load_problems(Problems(source=HELD_OUT)), tokenizer, 20)


def tiny_engine(tokenizer: Tokenizer, **sizes: Any) -> Engine:
    return Engine(
        build_model(tiny_shape(tokenizer.vocab_size), seed=0), **{"num_pages": 800, "page_size": 4} | sizes
    )


def tiny_fleet(tokenizer: Tokenizer, **sizes: Any) -> Fleet:
    return gather([NativeInstance("engine", tiny_engine(tokenizer, **sizes))], Rollout(), max_length=20)


def run(
    fleet: Fleet, problems: list[PromptedProblem], tokenizer: Tokenizer, grading: Any, num_samples: int = 3
) -> list[ProblemResult]:
    examiner = Examiner(tokenizer=tokenizer, reward=SETTINGS, grading=grading)
    return evaluate(fleet, problems, examiner, sampling=SAMPLING, num_samples=num_samples, seed=SEED)


Alone = Callable[[str, int, tuple[int, ...], float], tuple[str, int]]


@pytest.fixture(scope="module")
def alone(tokenizer: Tokenizer) -> Alone:
    """Text and length of one attempt, sampled by itself; once for all cases that compare with it."""
    engine = tiny_engine(tokenizer)

    @cache
    def attempt(problem: str, number: int, prompt: tuple[int, ...], temperature: float) -> tuple[str, int]:
        sampling = Sampling(max_new_tokens=MAX_NEW, temperature=temperature)
        key = noise_key(SEED, -1, problem, number)
        request = Request(id="alone", prompt=prompt, key=key, sampling=sampling, stop_ids=tokenizer.eos_ids)
        (completion,) = engine.generate([request])
        return tokenizer.decode(completion.ids, skip_special_tokens=True), len(completion.ids)

    return attempt


@pytest.mark.parametrize(
    "sizes", [{}, {"max_running": 5}, {"num_pages": 24, "max_running": 8}], ids=["enough", "rows", "divided"]
)
def test_every_attempt_is_what_it_is_alone(
    sizes: dict[str, int], problems: list[PromptedProblem], tokenizer: Tokenizer, alone: Alone
) -> None:
    """Sample n by the noise of its own number in the evaluation's own step, -1; the greedy one without noise."""
    results = run(tiny_fleet(tokenizer, **sizes), problems, tokenizer, InlineGrading(find_grader(SETTINGS)))
    assert [result.problem_id for result in results] == [entry.problem.id for entry in problems]
    for entry, result in zip(problems, results, strict=True):
        assert result.greedy is not None
        assert (result.greedy.text, result.greedy.length) == alone(entry.problem.id, 99, entry.ids, 0.0)
        for number, attempt in enumerate(result.samples):
            assert (attempt.text, attempt.length) == alone(entry.problem.id, number, entry.ids, 1.0)
        for attempt in (result.greedy, *result.samples):
            verdict = exact.grade(attempt.text, entry.problem.answer)
            assert attempt.status == verdict.status
            assert attempt.answer == exact.ballot(attempt.text)


def test_without_samples_there_is_the_greedy_attempt(
    problems: list[PromptedProblem], tokenizer: Tokenizer
) -> None:
    grading = InlineGrading(find_grader(SETTINGS))
    with_samples = run(tiny_fleet(tokenizer), problems, tokenizer, grading)
    without = run(tiny_fleet(tokenizer), problems, tokenizer, grading, num_samples=0)
    assert [result.greedy for result in without] == [result.greedy for result in with_samples]
    assert all(result.samples == () for result in without)


def test_a_failed_grader_costs_its_own_attempts_only(
    problems: list[PromptedProblem], tokenizer: Tokenizer
) -> None:
    unlucky = {entry.problem.id for entry in problems[::2]}

    def fail_on_some(problem: Problem, trajectory: Trajectory) -> Verdict:
        if problem.id in unlucky:
            raise KeyError("gold")
        return Verdict(status="correct", score=1.0)

    results = run(tiny_fleet(tokenizer), problems, tokenizer, InlineGrading(fail_on_some))
    for result in results:
        assert result.greedy is not None
        expected = "crashed" if result.problem_id in unlucky else "correct"
        assert {attempt.status for attempt in (result.greedy, *result.samples)} == {expected}
    figures = summarise(results)
    assert figures["greedy"]["value"] == 1.0 and figures["greedy"]["problems"] == 10
    assert figures["greedy_attempts"]["failures"] == 10 and figures["samples"]["failures"] == 30


def test_part_of_a_reward_is_no_part_of_an_accuracy(
    problems: list[PromptedProblem], tokenizer: Tokenizer
) -> None:
    """Graders may pay for some of the tests, or more than one for an answer; curves must mean the same for all."""
    good = {entry.problem.id for entry in problems[::4]}

    def pay_in_part(problem: Problem, trajectory: Trajectory) -> Verdict:
        right = problem.id in good
        return Verdict(status="correct" if right else "wrong", score=2.5 if right else 0.7)

    figures = summarise(run(tiny_fleet(tokenizer), problems, tokenizer, InlineGrading(pay_in_part)))
    assert figures["greedy"]["value"] == figures["mean@3"]["value"] == len(good) / len(problems)


class PatientGrading:
    """Gives no verdict until it has seen every response; whoever waits for one before that waits for ever."""

    traits = GraderTraits()

    def __init__(self, expected: int) -> None:
        self.expected, self.pending = expected, list[Future[Verdict]]()

    def submit(self, problem: Problem, trajectory: Trajectory) -> Future[Verdict]:
        self.pending.append(Future())
        if len(self.pending) == self.expected:
            for future in self.pending:
                future.set_result(Verdict(status="wrong", score=0.0))
        return self.pending[-1]


def test_no_attempt_waits_for_the_verdict_on_another(
    problems: list[PromptedProblem], tokenizer: Tokenizer
) -> None:
    grading = PatientGrading(expected=20 * 4)
    results = run(tiny_fleet(tokenizer, max_running=6), problems, tokenizer, grading)
    assert {attempt.status for result in results for attempt in result.samples} == {"wrong"}
