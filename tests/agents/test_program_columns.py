"""Programs see the columns that the recipe names, whatever the others are called and wherever they stand."""

from __future__ import annotations

import json
import random
import re
from typing import Any

import pytest

from foresail.agents.programs.columns import HiddenColumn, show_problem
from foresail.agents.programs.outcome import failed
from foresail.agents.programs.program import Agent, FunctionProgram, ProgramJob
from foresail.recipe.tables.environment import Environment
from foresail.records import Message, Problem

# As datasets of programs, mathematics and questions call what only the verdict may know.
ANSWERS = (
    "answer answers canonical_solution code private_tests public_tests generated_tests hidden_test_cases "
    "base_input plus_input answer_aliases possible_answers golden_answers test_list reward_model ground_truth gold"
).split()


def problem(**extra: Any) -> Problem:
    return Problem(id="1", prompt=(Message(role="user", content="6*7?"),), answer="42", extra=extra)


@pytest.mark.parametrize("name", ANSWERS)
def test_nothing_is_shown_that_is_not_named(name: str) -> None:
    row = {name: "secret", "repo": "x", "info": {name: ["secret"], "rows": [{name: "secret", "n": 1}]}}
    for columns in (
        (),
        ("repo",),
        ("info.rows.n", "repo"),
        ("info.absent",),
        ("in",),
        ("info.rows.n.deeper",),
    ):
        found = show_problem(problem(**row), columns)
        assert found.answer == "" and "secret" not in json.dumps(found.extra)


def test_what_is_named_is_shown_whole_or_in_parts() -> None:
    row = {"repo": "x", "info": {"a": [1], "rows": [{"n": 1, "m": 2}, {"n": 3}]}, "tools": [{"name": "t"}]}
    assert show_problem(problem(**row), ()).extra == {"tools": [{"name": "t"}]}
    assert show_problem(problem(**row), ("repo", "info.rows.n")).extra == {
        "repo": "x",
        "info": {"rows": [{"n": 1}, {"n": 3}]},
        "tools": [{"name": "t"}],
    }
    assert show_problem(problem(**row), ("info", "repo", "tools")).extra == row


def make_value(numbers: random.Random, path: str, depth: int, leaves: list[str]) -> Any:
    """A value whose leaves say where they stand."""
    kind = numbers.randrange(3) if depth else 2
    if kind == 0:
        names = numbers.sample("abcdef", numbers.randint(0, 3))
        return {name: make_value(numbers, f"{path}.{name}", depth - 1, leaves) for name in names}
    if kind == 1:
        return [make_value(numbers, path, depth - 1, leaves) for _ in range(numbers.randint(0, 3))]
    leaves.append(path)
    return f"<{path}>"


@pytest.mark.parametrize("seed", range(300))
def test_of_any_row_exactly_the_named_leaves_are_shown(seed: int) -> None:
    numbers, leaves = random.Random(seed), list[str]()
    row = {name: make_value(numbers, name, 4, leaves) for name in "abcd"}
    choices = [*leaves, *(leaf.rpartition(".")[0] for leaf in leaves), "z", "a.z"]
    columns = [name for name in numbers.sample(choices, min(len(choices), numbers.randint(0, 4))) if name]
    shown = re.findall(r"<(.*?)>", json.dumps(show_problem(problem(**row), columns).extra))
    expected = [leaf for leaf in leaves if any(f"{leaf}.".startswith(f"{name}.") for name in columns)]
    assert sorted(shown) == sorted(expected)


def test_a_hidden_column_names_the_key_to_add() -> None:
    extra = show_problem(problem(task=3, info={"place": "x", "index": 1}), ("info.index",)).extra
    for read in (lambda: extra["task"], lambda: extra.get("task"), lambda: extra.get("task", 5)):
        with pytest.raises(HiddenColumn, match=r'in the recipe: environment.columns = \["task"\]'):
            read()
    with pytest.raises(KeyError, match=r'environment.columns = \["info.place"\]'):
        extra["info"]["place"]
    with pytest.raises(KeyError, match=r"^'absent'$"):
        extra["absent"]
    assert extra.get("absent", 5) == 5 and extra.get("info") == {"index": 1} and "task" not in extra


def test_the_verdict_says_so_too() -> None:
    agent = Agent(base_url="", api_key="", model="", problem=show_problem(problem(task=3), ()))
    with pytest.raises(KeyError) as error:
        FunctionProgram(lambda agent: agent.problem.extra["task"]).run(agent, ProgramJob(agent, print))
    assert 'environment.columns = ["task"]' in failed(error.value).detail


def test_columns_are_a_programs() -> None:
    assert not [*Environment(program="a.py:f", columns=("task",)).mistakes()]
    (said,) = Environment(tools=("calculator",), columns=("task",)).mistakes()
    assert said.startswith("environment.columns is for environment.program")
    assert [*Environment(program="a.py:f", columns=("",)).mistakes()]
