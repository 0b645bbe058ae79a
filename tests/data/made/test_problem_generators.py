"""Problems made on the spot: arithmetic, reasoning-gym, and what is asked of them by name."""

import sys
from itertools import product

import pytest

from foresail.data.made import arithmetic
from foresail.data.made.arithmetic import direct, make_problems, results, split_of, to_problem, worked
from foresail.data.problems.problems import load_problems
from foresail.maths.extract import last_box
from foresail.recipe.tables.parts import Problems
from foresail.records import Problem
from foresail.tokenizer.train import train_bpe


def load(source: str, limit: int | None = None) -> list[Problem]:
    return load_problems(Problems(source=source, limit=limit))


def evaluate_from_left(expression: str) -> int:
    """Python's own arithmetic on ((7+5)*3)-4; modulo 10 once at the end, which must come to the same."""
    first, *operations = expression.split()
    return int(eval("(" * len(operations) + first + "".join(f"{op})" for op in operations))) % 10


@pytest.mark.parametrize("key", ["prompt_key", "answer_key"])
def test_columns_of_what_has_none_are_refused(key: str) -> None:
    with pytest.raises(ValueError, match="has no columns; leave out prompt_key and answer_key"):
        load_problems(Problems.model_validate({"source": "arithmetic:count=3", key: "text"}))


def test_problems_are_distinct_stable_and_of_the_asked_lengths() -> None:
    problems = make_problems(500, seed=3)
    assert problems == make_problems(500, seed=3)
    assert make_problems(100, seed=3) == problems[:100]
    assert problems != make_problems(500, seed=4)
    assert len({problem.id for problem in problems}) == 500
    assert {len(problem.extra["expression"].split()) - 1 for problem in problems} == {3, 4, 5}
    # Written down once: a change of the generator would silently change every run's data.
    assert problems[0].prompt[0].content == "2 +2 *4 *6 -5"


def test_answers_agree_with_python() -> None:
    for problem in make_problems(500, seed=0, steps=(1, 6)):
        assert problem.answer == str(evaluate_from_left(problem.prompt[0].content))


def test_solutions_of_both_habits_reach_the_answer() -> None:
    problem = to_problem("7 +5 *3 -9")
    assert worked(problem) == r"<think>7 +5=2 *3=6 -9=7</think>\boxed{7}"
    assert direct(problem) == r"\boxed{7}"
    for problem in make_problems(100, seed=1):
        assert last_box(worked(problem)) == last_box(direct(problem)) == problem.answer


def test_each_written_step_is_true() -> None:
    for problem in make_problems(50, seed=2):
        value, *steps = worked(problem).removeprefix("<think>").partition("</think>")[0].split()
        for step in steps:
            operation, _, result = step.partition("=")
            assert eval(value + operation) % 10 == int(result)
            value = result


def test_train_and_test_never_meet_whatever_the_seeds() -> None:
    train = {problem.id for seed in range(5) for problem in make_problems(2000, seed=seed, split="train")}
    test = {problem.id for seed in range(5) for problem in make_problems(2000, seed=seed, split="test")}
    assert not train & test


def test_answers_cannot_be_guessed() -> None:
    answers = [problem.answer for problem in make_problems(5000, seed=0)]
    assert max(answers.count(digit) for digit in "0123456789") < 0.25 * len(answers)


@pytest.mark.parametrize("split", ["train", "test"])
def test_as_many_problems_exist_as_are_allowed(split: str) -> None:
    expressions = [f"{a} {b}" for a, b in product(arithmetic.FIRST, arithmetic.OPERATIONS)]
    existing = [expression for expression in expressions if split_of(expression) == split]
    with pytest.raises(ValueError, match=r"ask for at most \d+, or for more steps") as error:
        make_problems(len(expressions), seed=0, steps=(1, 1), split=split)
    allowed = int(str(error.value).partition("at most ")[2].partition(",")[0])
    assert 0 < allowed <= len(existing)
    assert len(make_problems(allowed, seed=0, steps=(1, 1), split=split)) == allowed


def test_a_step_costs_four_tokens() -> None:
    problems = make_problems(200, seed=0)
    texts = [text for problem in problems for text in (problem.prompt[0].content, worked(problem))]
    whole = ["<think>", "</think>", r"\boxed{"]
    tokenizer = train_bpe(texts, vocab_size=64, whole_tokens=whole, alphabet="seen")
    assert tokenizer.vocab_size < 40
    for problem in problems:
        steps = len(results(problem.extra["expression"]))
        assert len(tokenizer.encode(worked(problem))) == 1 + 4 * steps + 5
        assert len(tokenizer.encode_prompt(problem.prompt)) == 1 + 1 + 2 * steps + 1


def test_arithmetic_by_name() -> None:
    assert load("arithmetic:count=20,seed=1,steps=2-3,split=test") == make_problems(
        20, seed=1, steps=(2, 3), split="test"
    )
    assert load("arithmetic:count=20, steps=4", limit=5) == make_problems(5, seed=0, steps=(4, 4))


def test_reasoning_gym_by_name() -> None:
    import reasoning_gym

    problems = load("reasoning-gym:chain_sum,size=7,seed=3,min_terms=4,max_terms=4")
    theirs = list(reasoning_gym.create_dataset("chain_sum", size=7, seed=3, min_terms=4, max_terms=4))
    assert [problem.answer for problem in problems] == [item["answer"] for item in theirs]
    assert [problem.prompt[0].content for problem in problems] == [item["question"] for item in theirs]
    assert problems[0].extra["num_terms"] == 4
    assert (problems[6].id, problems[6].source) == ("chain_sum:3:6", "chain_sum")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (
            "arithmetics:count=3",
            r"unknown .* 'arithmetics:count=3'; .* arithmetic:…, multi-hop:…, passage-qa:…, programs:…",
        ),
        ("arithmetic", "arithmetic needs a count: arithmetic:count=2000"),
        ("arithmetic:2000", "'2000' is not of the form name=value"),
        ("arithmetic:count=many", "count='many' is not a whole number"),
        ("arithmetic:count=9,step=3", "unknown arithmetic option 'step'; did you mean steps"),
        ("arithmetic:count=9,zzz=3", "known are count, seed, split, steps"),
        ("arithmetic:count=9,steps=5-3", "steps 5-3 is not a range from 1 up; try 3-5"),
        ("arithmetic:count=0", "count 0 makes no problems"),
        ("arithmetic:count=9,split=dev", "unknown split 'dev'; use one of train, test"),
        ("reasoning-gym:size=5", "reasoning-gym needs a dataset's name"),
        ("reasoning-gym:chain_smu", "unknown reasoning-gym dataset 'chain_smu'; did you mean chain_sum"),
        ("reasoning-gym:chain_sum,bogus=1", "reasoning-gym refuses chain_sum with .*bogus"),
        ("reasoning-gym:chain_sum,min_terms=-1", "min_terms must be positive"),
    ],
)
def test_bad_names_say_what_to_write(source: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load(source)


def test_missing_reasoning_gym_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "reasoning_gym", None)
    with pytest.raises(ImportError, match=r"pip install 'foresail\[gym\]'"):
        load("reasoning-gym:chain_sum")
