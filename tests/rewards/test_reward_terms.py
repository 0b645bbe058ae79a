"""Rewards of several terms, functions that get a whole group, and functions given as they are."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from foresail.recipe.reading.dump import to_toml
from foresail.recipe.reading.load import RecipeError, load_recipe
from foresail.recipe.reward_function import can_travel, check_function, file_of, name_of
from foresail.recipe.tables.reward import Reward, Term
from foresail.records import Message, Problem, Verdict, single_turn
from foresail.rewards.build import choose_workers, open_grading
from foresail.rewards.grading import Grading, Pair, group_verdicts
from foresail.rewards.group_rewards import reward
from foresail.rewards.pool import GradingPool

PROBLEM = Problem(
    id="p",
    prompt=(Message(role="user", content="3+4?"),),
    answer="7",
    source="sums",
    extra={"level": 2, "answer": "…#### 7"},
)

FUNCTIONS = '''
def shortest(prompts, completions, completion_ids, level, log_metric, log_extra, **kwargs):
    """The shortest of the group gets 1: nothing that a batch of one could tell."""
    assert prompts == ["3+4?"] * len(completions) and level == [2] * len(completions)
    assert len(kwargs["answer"]) == len(completions) and "prompt_ids" not in kwargs
    lengths = [len(text) for text in completions]
    log_metric("spread", max(lengths) - min(lengths))
    log_extra("length", lengths)
    return [float(length == min(lengths)) for length in lengths]

def ranked(queries, prompts, labels, **kwargs):
    order = sorted(queries, key=len)
    ranks = [order.index(query) for query in queries]
    return {"rewards": ranks, "scores": [float(label in query) for query, label in zip(queries, labels)],
            "extra_logs": {"rank": ranks, "size": len(queries)}}

def says_so(data_source, solution_str, ground_truth, extra_info=None):
    words = len(solution_str.split())
    return {"score": 0.5, "acc": ground_truth in solution_str, "words": words, "pred": solution_str}

def only_even(solution_str):
    return float(len(solution_str)) if len(solution_str) % 2 == 0 else None

def never(solution_str):
    return None

def breaks(solution_str):
    if "break" in solution_str:
        raise KeyError("here")
    return 1.0

def too_few(completions):
    return [1.0]
'''


@pytest.fixture(scope="module")
def functions(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    path = tmp_path_factory.mktemp("terms") / "many_rewards.py"
    path.write_text(FUNCTIONS)
    return lambda name: f"{path}:{name}"


def pairs_of(*responses: str) -> list[Pair]:
    return [(PROBLEM, single_turn(response)) for response in responses]


def judge_all(grading: Grading, pairs: Sequence[Pair]) -> list[Verdict]:
    """As a rollout does: each as it ends, then the group."""
    submit = grading.submit_early if grading.traits.group else grading.submit
    nothing: Future[Verdict] = Future()
    nothing.set_result(Verdict(status="scored", score=0.0))
    early = [submit(*pair) if grading.traits.early else nothing for pair in pairs]
    return [future.result(300) for future in group_verdicts(grading, pairs, early)]


def price(verdict: Verdict, settings: Reward) -> float | None:
    return reward(verdict, settings, prompt="", response="", num_tokens=1, limit=100)


# Recipes.


def test_terms_have_names_and_weights() -> None:
    settings = Reward(
        terms=(Term(grader="a.py:brevity"), Term(grader="kit.style:tone", weight=-0.5, name="harsh"))
    )
    assert [(term.label, term.weight) for term in settings.terms] == [("brevity", 1.0), ("harsh", -0.5)]
    assert settings.functions == {
        "reward.terms#1.grader": "a.py:brevity",
        "reward.terms#2.grader": "kit.style:tone",
    }


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"terms": [{"grader": "a.py:f"}, {"grader": "b.py:f"}]}, '2 terms are named "f"'),
        ({"terms": [{"grader": "maths"}]}, "did you mean math?"),
        ({"terms": [{"grader": "none"}]}, 'unknown grader "none"'),
        ({"terms": [{"grader": "a.py:f", "name": "a/b"}]}, "cannot be the name of a metric"),
        ({"grader": "none", "wrong": -1.0, "terms": [{"grader": "a.py:f"}]}, "so remove them"),
        ({"grader": 3}, "grader"),
    ],
)
def test_terms_that_mean_nothing_are_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        Reward(**settings)


RECIPE = """
stage = "rl"
steps = 1
[model]
path = "m"
[data]
source = "arithmetic:count=9"
[reward]
grader = "none"
[[reward.terms]]
grader = "exact"
weight = 2.0
[[reward.terms]]
grader = "a.py:f"
name = "g"
"""


def test_terms_come_from_a_recipe_and_go_back_to_one(tmp_path: Path) -> None:
    path = tmp_path / "recipe.toml"
    path.write_text(RECIPE)
    recipe = load_recipe(path)
    assert [term.label for term in recipe.reward.terms] == ["exact", "g"]
    path.write_text(to_toml(recipe))
    assert load_recipe(path) == recipe
    assert load_recipe(path, ["reward.grader=none"]) == recipe
    for override, words in {
        "dynamic_sampling.easy_pool=0.1": 'reward.grader is "none"',
        "reward.terms=3": r"one or more tables ([[reward.terms]])",
    }.items():
        with pytest.raises(RecipeError, match=re.escape(words)):
            load_recipe(path, [override])
    path.write_text(RECIPE.replace('grader = "none"', "grader = 3"))
    with pytest.raises(RecipeError, match=r"reward.grader must be text in quotes, not 3"):
        load_recipe(path)
    (refusal,) = (line for line in recipe.refusals(None) if "reward" in line)
    assert refusal.startswith("reward.terms#2.grader a.py:f: the file a.py does not exist")


# What verdicts hold, and what they are worth.


@pytest.mark.parametrize("workers", [0, 1])
def test_each_term_keeps_its_score_and_the_reward_is_their_sum(
    functions: Callable[[str], str], workers: int
) -> None:
    settings = Reward(
        accept="any",
        workers=workers,
        terms=(
            Term(grader=functions("shortest"), weight=0.5),
            Term(grader=functions("only_even"), weight=-0.1, name="even"),
            Term(grader=functions("says_so")),
            Term(grader="exact"),
        ),
    )
    with open_grading(settings) as grading:
        assert grading.traits.early and grading.traits.group and not grading.traits.main_in_group
        right, wrong = judge_all(grading, pairs_of("7", "It is 8"))
        alone = grading.submit(*pairs_of("It is 8")[0]).result(300)
    assert (right.status, wrong.status) == ("correct", "wrong")
    assert right.terms == {
        "shortest": 1.0,
        "says_so": 0.5,
        "exact": 1.0,
    }  # of one letter: `even` does not apply
    assert wrong.terms == {"shortest": 0.0, "says_so": 0.5, "exact": 0.0}
    assert price(right, settings) == 1 + 0.5 + 0.5 + 1
    assert price(wrong, settings) == 0 + 0.5
    assert right.extra == {"length": 1, "words": 1, "pred": "7"} and wrong.extra["length"] == 7
    assert right.metrics == {"spread": 6.0, "words/mean": 1.0} and wrong.metrics["words/mean"] == 3.0
    assert alone.terms["shortest"] == 1.0 and alone.status == "wrong"


@pytest.mark.parametrize("workers", [0, 1])
def test_a_batched_main_grader_sees_the_whole_group(functions: Callable[[str], str], workers: int) -> None:
    settings = Reward(grader=functions("ranked"), workers=workers, terms=(Term(grader=functions("breaks")),))
    with open_grading(settings) as grading:
        verdicts = judge_all(grading, pairs_of("7 7 7", "8", "77"))
        failed = judge_all(grading, pairs_of("7", "break", "8"))
    assert [verdict.score for verdict in verdicts] == [2.0, 0.0, 1.0]
    assert [verdict.status for verdict in verdicts] == ["correct", "wrong", "correct"]
    assert verdicts[0].terms == {"breaks": 1.0}
    assert verdicts[0].metrics == {"rank/mean": 2.0, "size/mean": 3.0} and verdicts[0].extra["rank"] == 2
    assert [verdict.status for verdict in failed] == ["correct", "crashed", "wrong"]
    assert failed[1].detail == "KeyError: 'here' (many_rewards.py:29)" and price(failed[1], settings) is None


def test_a_batched_function_alone_is_called_once_a_group(functions: Callable[[str], str]) -> None:
    with open_grading(Reward(grader=functions("shortest"), workers=0)) as grading:
        assert grading.traits.group and not grading.traits.early
        assert [verdict.score for verdict in judge_all(grading, pairs_of("77", "7", "777"))] == [
            0.0,
            1.0,
            0.0,
        ]


@pytest.mark.parametrize("workers", [0, 1])
def test_a_batch_function_that_fails_fails_its_group(functions: Callable[[str], str], workers: int) -> None:
    with open_grading(Reward(grader=functions("too_few"), workers=workers)) as grading:
        verdicts = judge_all(grading, pairs_of("7", "8", "9"))
    assert {verdict.status for verdict in verdicts} == {"crashed"} and len(verdicts) == 3
    assert "it returned 1 values for 3 responses" in verdicts[0].detail


@pytest.mark.parametrize("workers", [0, 1])
def test_without_a_main_grader_nothing_is_right_or_wrong(
    functions: Callable[[str], str], workers: int
) -> None:
    settings = Reward(
        grader="none",
        workers=workers,
        terms=(Term(grader=functions("only_even"), weight=2.0), Term(grader=functions("never"))),
    )
    with open_grading(settings) as grading:
        even, odd = judge_all(grading, pairs_of("four", "seven"))
    assert (even.status, even.terms, price(even, settings)) == ("scored", {"only_even": 4.0}, 8.0)
    assert (
        odd.status == "ungradable" and "no reward term applies" in odd.detail and price(odd, settings) is None
    )


def test_a_killed_or_slow_batch_is_a_failure_of_all(tmp_path: Path) -> None:
    path = tmp_path / "deadly.py"
    path.write_text(
        textwrap.dedent("""
            import os, time
            def f(completions):
                if completions[0] == "die":
                    os._exit(3)
                if completions[0] == "hang":
                    time.sleep(600)
                return [1.0] * len(completions)
        """)
    )
    with open_grading(Reward(grader=f"{path}:f", workers=1, time_limit=1.0)) as grading:
        for first, status in (("die", "crashed"), ("hang", "timeout"), ("ok", "correct")):
            verdicts = judge_all(grading, pairs_of(first, "b"))
            assert [verdict.status for verdict in verdicts] == [status] * 2


def test_one_by_one_graders_judge_before_the_group_is_there(functions: Callable[[str], str]) -> None:
    settings = Reward(accept="any", workers=0, terms=(Term(grader=functions("shortest")),))
    with open_grading(settings) as grading:
        first = grading.submit_early(*pairs_of("7")[0])
        assert first.done() and first.result().status == "correct" and first.result().terms == {}


def test_a_group_that_is_given_up_is_not_graded() -> None:
    """Cancelling one verdict takes the batch with it, if it has not begun."""
    from graders_for_pools import misbehave

    with GradingPool(misbehave, workers=1, seconds=60) as pool:
        busy = pool.submit(PROBLEM, single_turn("sleep 0.5"))
        early = [pool.submit(PROBLEM, single_turn("7")) for _ in range(2)]
        pool.traits = type(pool.traits)(group=True)
        verdicts = group_verdicts(pool, pairs_of("7", "8"), early)
        assert all(verdict.cancel() for verdict in verdicts)
        assert all(verdict.cancelled() for verdict in early)
        assert busy.result(300)
        assert pool.submit(PROBLEM, single_turn("7")).result(
            300
        )  # the batch, which `misbehave` cannot grade, is gone


# Plain functions, and functions as they are.


@pytest.mark.parametrize(
    "function",
    [
        lambda response, answer: float(answer in response),
        lambda solution, ground_truth: float(ground_truth in solution),
        lambda text, gold, level, **columns: float(gold in text and level == 2 and "answer" in columns),
        lambda completion, label, prompt="": float(label in completion and prompt == "3+4?"),
    ],
)
def test_a_plain_function_gets_the_response_and_the_answer(function: Callable[..., float]) -> None:
    with open_grading(Reward(grader=function)) as grading:
        statuses = [grading.submit(*pair).result().status for pair in pairs_of("It is 7", "It is 8")]
    assert statuses == ["correct", "wrong"]


class Counting:
    """Bound methods and objects keep their state, since they run in this process."""

    def __init__(self) -> None:
        self.calls = 0

    def score(self, completions: list[str], **kwargs: Any) -> list[float]:
        self.calls += 1
        return [float(len(text)) for text in completions]

    def __call__(self, response: str, answer: str) -> float:
        self.calls += 1
        return 0.25


def test_methods_objects_and_closures_are_taken() -> None:
    counting, weight = Counting(), 0.5

    def closure(solution_str: str, ground_truth: str) -> float:
        return weight

    settings = Reward(
        grader=counting.score, terms=(Term(grader=counting, name="object"), Term(grader=closure, weight=2.0))
    )
    assert choose_workers(settings, cores=2) == 0
    with open_grading(settings) as grading:
        one, two = judge_all(grading, pairs_of("7", "77"))
    assert (one.score, two.score, counting.calls) == (1.0, 2.0, 3)
    assert one.terms == {"object": 0.25, "closure": 0.5} and price(one, settings) == 1 + 0.25 + 1.0


def score_for_workers(response: str, answer: str) -> float:
    return float(answer in response)


def test_what_others_can_import_may_be_graded_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    assert name_of(score_for_workers) == f"{__name__}:score_for_workers" and can_travel(score_for_workers)
    assert file_of(score_for_workers) == Path(__file__)
    monkeypatch.syspath_prepend(Path(__file__).parent)
    assert choose_workers(Reward(grader=score_for_workers), cores=2) == 2
    with open_grading(Reward(grader=score_for_workers, workers=1)) as grading:
        assert isinstance(grading, GradingPool)
        assert grading.submit(*pairs_of("7")[0]).result(300).status == "correct"
    with pytest.raises(ValueError, match=r"reward.workers = 2: no other process can import python:lambda"):
        open_grading(Reward(grader=lambda response, answer: 1.0, workers=2))


def test_a_function_of_a_program_has_a_name_in_the_run_but_no_file(tmp_path: Path) -> None:
    path = tmp_path / "recipe.toml"
    path.write_text(RECIPE)
    recipe = load_recipe(path)
    given = recipe.model_copy(update={"reward": Reward(grader=lambda response, answer: 1.0)})
    path.write_text(to_toml(given))
    kept = load_recipe(path).reward.grader
    assert kept == "python:lambda" and file_of(kept) is None
    (line,) = check_function("reward.grader", kept)
    assert "was given by a Python program" in line
