"""Small programming tasks made here: references pass the judge, partly right programs earn a part."""

import ast

import pytest

from foresail.data.chats.conversations import load_conversations
from foresail.data.made.programs import make_problems
from foresail.data.problems.problems import load_problems
from foresail.judge.grader import CodeGrader
from foresail.judge.programs.difficulty import score
from foresail.judge.programs.program import Limits
from foresail.judge.programs.rows import read_task
from foresail.recipe.tables.parts import Problems
from foresail.records import Problem


def passed(problem: Problem, source: str) -> list[bool]:
    """Which tests a program passes, by Python itself."""
    names: dict[str, object] = {}
    exec(source, names)
    solve = names["solve"]
    assert callable(solve)
    found = []
    for test in read_task(problem.extra).tests:
        try:
            result = solve(*test.arguments)  # type: ignore[union-attr]
            found.append(result == test.expected and type(result) is type(test.expected))  # type: ignore[union-attr]
        except (TypeError, ValueError, IndexError):
            found.append(False)
    return found


def test_references_pass_and_a_constant_does_not() -> None:
    for problem in make_problems(100, seed=0):
        assert all(passed(problem, problem.answer)) and len(passed(problem, problem.answer)) == 8
        expected = [test.expected for test in read_task(problem.extra).tests]  # type: ignore[union-attr]
        assert any(value != expected[0] for value in expected)


def test_leaving_out_a_piece_fails_but_earns_a_part() -> None:
    """The oracle cuts the reference's text: no filter, or no second line; and asks for the points."""
    shares: dict[str, list[float]] = {"all": [], "strict": [], "soft": []}
    for problem in make_problems(100, seed=1):
        tree = ast.parse(problem.answer)
        listed = next((node for node in ast.walk(tree) if isinstance(node, ast.ListComp)), None)
        if listed is None or not listed.generators[0].ifs:
            continue
        listed.generators[0].ifs = []
        results, levels = passed(problem, ast.unparse(tree)), read_task(problem.extra).levels
        assert not all(results)
        for scheme, points in shares.items():
            points.append(score(results, levels, scheme))  # type: ignore[arg-type]
    means = {scheme: sum(points) / len(points) for scheme, points in shares.items()}
    assert len(shares["all"]) > 30 and means["all"] == 0
    assert 0.05 < means["strict"] < means["soft"] < 0.9


def test_the_judge_agrees() -> None:
    problem = make_problems(1, seed=5)[0]
    grade = CodeGrader(scheme="soft", limits=Limits(seconds=5))
    assert grade(problem, problem.extra["solution"]).status == "correct"
    wrong = grade(problem, "```python\ndef solve(_):\n    return None\n```")
    assert (wrong.status, wrong.score) == ("wrong", 0.0)


def test_tasks_are_distinct_stable_and_never_in_both_splits() -> None:
    train = make_problems(120, seed=3)
    assert train == make_problems(120, seed=3) and train[:30] == make_problems(30, seed=3)
    test = make_problems(60, seed=3, split="test")
    codes = [{problem.answer for problem in problems} for problems in (train, test)]
    texts = [{problem.prompt for problem in problems} for problems in (train, test)]
    assert not codes[0] & codes[1] and not texts[0] & texts[1]
    assert (len(codes[0]), len(texts[0]), len({problem.id for problem in train})) == (120, 120, 120)


def test_levels_begin_at_the_easiest() -> None:
    levels = [read_task(problem.extra).levels or () for problem in make_problems(100, seed=4)]
    assert all(set(found) in ({0, 1}, {0, 1, 2}) for found in levels)
    assert sum(set(found) == {0, 1, 2} for found in levels) > 80
    assert sum(found[0] == 0 for found in levels) > 70  # the empty input is what everyone gets right


def test_the_source_and_its_mistakes() -> None:
    assert load_problems(Problems(source="programs:count=3,seed=1")) == make_problems(3, seed=1)
    assert load_conversations("programs:count=1")[0][-1].content.startswith("```python\ndef solve(")
    with pytest.raises(ValueError, match="the test split gives 1 to 500 tasks; 501 is not among them"):
        load_problems(Problems(source="programs:count=501,split=test"))
