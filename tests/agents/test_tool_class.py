"""Classes whose methods are tools, as TRL's `environment_factory` takes them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from small_worlds import TOKENIZER
from tiny_world import write_lines

from foresail.agents.environment import EnvironmentBroken, Observation
from foresail.agents.factory import EnvironmentFactory, open_factory
from foresail.agents.tools.call_formats import Hermes, ToolCall
from foresail.check.inspection import inspect_sources
from foresail.recipe.reading.load import load_recipe
from foresail.recipe.stages.rl import Rl
from foresail.recipe.tables.environment import Environment
from foresail.recipe.tables.parts import Problems
from foresail.records import Message, Problem
from foresail.runlog.directory import RunDirectory
from foresail.train.stages.rl import run_rl

FILE = '''
import time

class Counter:
    """Counts."""

    made = 0

    def __init__(self):
        Counter.made += 1
        self.count, self.log = 0, []

    def reset(self, start: int = 0, **row) -> str | None:
        self.count, self.row = start, row
        return f"The count is {start}." if start else None

    def add(self, number: int, twice: bool = False) -> str:
        """Add to the count.

        Args:
            number: How much
                to add.
            twice: Whether to add it again.

        Returns:
            The count.
        """
        before = self.count
        time.sleep(0.002 * (number % 3))
        self.count = before + number * (1 + twice)
        return str(self.count)

    async def columns(self) -> str:
        """List the columns of the row.

        Returns:
            Their names.
        """
        return " ".join(sorted(self.row))

    def fail(self) -> str:
        """Fail."""
        raise ValueError("no way")

    def _hidden(self): ...

    def get_reward(self) -> float:
        return float(self.count == 10)

class Plain:
    def reset(self) -> None:
        self.reward = 0.25

    def inspect_sources(self) -> str:
        """Look around."""
        return "a door"

class Forgetful(Plain):
    def reset(self) -> str:
        Forgetful.times = getattr(Forgetful, "times", 0) + 1
        return f"This is the time number {Forgetful.times}."

class Broken(Plain):
    def reset(self) -> None:
        raise OSError("no disk")

class Untyped(Plain):
    def go(self, where):
        """Go."""

class Toolless:
    def reset(self): ...
'''


@pytest.fixture
def file(tmp_path: Path) -> str:
    (tmp_path / "own.py").write_text(FILE)
    return str(tmp_path / "own.py")


def problem(**row: Any) -> Problem:
    return Problem(id="p", prompt=(Message(role="user", content="Count to ten."),), answer="10", extra=row)


async def play(factory: EnvironmentFactory, responses: list[str], **row: Any) -> list[Observation]:
    environment = factory.make()
    reader = factory.reader(TOKENIZER)
    (opened,) = reader.openings([problem(**row)]) if reader.openings else [problem(**row)]
    await environment.reset(opened)
    seen = [await environment.step(response) for response in responses]
    await environment.close()
    return seen


def calls(*wanted: tuple[str, dict[str, Any]]) -> str:
    return "".join(Hermes().write(ToolCall(name, arguments)) for name, arguments in wanted)


def test_its_public_methods_are_tools_that_google_docstrings_describe(file: str) -> None:
    with open_factory(Environment(name=f"{file}:Counter")) as factory:
        assert [tool.name for tool in factory.tools] == ["add", "columns", "fail"]
        schema = factory.tools[0].schema()["function"]
        assert schema["description"] == "Add to the count."
        assert schema["parameters"]["properties"]["number"] == {
            "type": "integer", "description": "How much to add.",
        }  # fmt: skip
        assert schema["parameters"]["required"] == ["number"]


def test_an_episode_has_an_object_of_its_own_whose_calls_run_in_order(file: str) -> None:
    """All at once would lose some: each reads the count, waits, and writes it."""
    with open_factory(Environment(name=f"{file}:Counter")) as factory:

        async def go() -> list[list[Observation]]:
            turns = [calls(*(("add", {"number": n}) for n in (1, 2, 3, 4))), "Done."]
            return list(await asyncio.gather(*(play(factory, turns, start=start) for start in (0, 1, 0))))

        episodes = asyncio.run(go())
    said = [[message.content for message in first.messages] for first, _ in episodes]
    assert said == [["1", "3", "6", "10"], ["2", "4", "7", "11"], ["1", "3", "6", "10"]]
    assert [last.reward for _, last in episodes] == [1.0, 0.0, 1.0]
    assert [first.reward for first, _ in episodes] == [None] * 3


def test_reset_gets_the_row_and_errors_are_answered(file: str) -> None:
    with open_factory(Environment(name=f"{file}:Counter")) as factory:
        turn = calls(("columns", {}), ("fail", {}), ("add", {}))
        (seen,) = asyncio.run(play(factory, [turn], level=3, start=0))
    columns, failed, missing = (message.content for message in seen.messages)
    assert columns == "answer level prompt"
    assert failed == "error: ValueError: no way" and "number is missing" in missing


def test_an_attribute_may_be_the_reward(file: str) -> None:
    with open_factory(Environment(name=f"{file}:Plain")) as factory:
        assert factory.opening is None  # reset says nothing: it is not asked beforehand
        (last,) = asyncio.run(play(factory, ["Done."]))
    assert last.done and last.reward == 0.25


def test_what_reset_says_ends_the_prompt(file: str, tmp_path: Path) -> None:
    data = tmp_path / "data.jsonl"
    data.write_text(
        '{"prompt": "Count.", "answer": "10", "start": 4}\n{"prompt": "Count.", "answer": "10"}\n'
    )
    with open_factory(Environment(name=f"{file}:Counter", instructions=False)) as factory:
        entries = factory.reader(TOKENIZER).problems(Problems(source=str(data)))
        prompts = [entry.problem.prompt[-1].content for entry in entries]
        assert prompts == ["Count.\n\nThe count is 4.", "Count."]
        asyncio.run(factory.make().reset(entries[0].problem))  # type: ignore[arg-type]
    with open_factory(Environment(name=f"{file}:Forgetful", instructions=False)) as factory:
        entries = factory.reader(TOKENIZER).problems(Problems(source=str(data)))
        with pytest.raises(EnvironmentBroken, match="let it follow from the problem's row alone"):
            asyncio.run(factory.make().reset(entries[0].problem))  # type: ignore[arg-type]


def test_a_class_that_cannot_be_used_is_told(file: str) -> None:
    with (
        open_factory(Environment(name=f"{file}:Broken")) as factory,
        pytest.raises(EnvironmentBroken, match=r"Broken\.reset: OSError: no disk"),
    ):
        asyncio.run(play(factory, []))
    for name, words in (
        ("Untyped", "the parameter where of .* has no type"),
        ("Toolless", "methods that are tools"),
    ):
        with pytest.raises(ValueError, match=words), open_factory(Environment(name=f"{file}:{name}")):
            pass


RECIPE = """
stage = "rl"
steps = 1
prompts_per_step = 2
samples_per_prompt = 4
max_prompt_tokens = 900
micro_batch_tokens = 2048
data = {{ source = "data.jsonl" }}
sampling = {{ max_new_tokens = 6 }}
dynamic_sampling = {{ enabled = false }}
reward = {{ grader = "environment", threshold = 0.25 }}
run = {{ device = "cpu", root = "." }}
environment = {{ name = "{file}:Vowels", instructions = false }}
[model]
tokenizer = "tokenizer"
shape = {{ vocab_size = 300, hidden_size = 16, intermediate_size = 16, num_layers = 1, num_heads = 2, \
num_kv_heads = 1, head_dim = 8, max_context = 1024 }}
"""


def test_a_run_learns_from_a_class_and_its_rewards(
    file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A random model calls nothing, and writes to its limit; each episode is told, paid and logged all the same."""
    monkeypatch.chdir(tmp_path)
    Path(file).write_text(
        FILE + "class Vowels(Counter):\n    def get_reward(self) -> float:\n        return 0.5\n"
    )
    TOKENIZER.save("tokenizer")
    rows = [{"prompt": f"Count {n}.", "answer": "-", "start": n + 1} for n in range(3)]
    write_lines(Path("data.jsonl"), rows)
    Path("recipe.toml").write_text(RECIPE.format(file=file))
    recipe = load_recipe("recipe.toml")
    assert isinstance(recipe, Rl)
    seen = inspect_sources(recipe, max_context=1024)
    assert seen.refusals == ()
    kept = RunDirectory(run_rl(recipe, reader=seen.reader).run).read_rollouts(1)
    assert {row["prompt"] for row in kept} <= {f"Count {n}.\n\nThe count is {n + 1}." for n in range(3)}
    assert {row["status"] for row in kept} <= {"correct", "wrong"}
    assert all(row["reward"] == (0.5 if row["finish"] == "stop" else 0.0) for row in kept)
