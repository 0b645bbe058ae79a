"""Tools of typed functions: what a model is told, what its arguments become, what it hears of mistakes."""

from __future__ import annotations

import asyncio
import threading
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foresail.agents.environment import EnvironmentBroken
from foresail.agents.threads import Threads, TooSlow
from foresail.agents.tools.tool import Tool, ToolAnswer, tool_of
from foresail.records import Message, Problem

PROBLEM = Problem(id="p", prompt=(Message(role="user", content="?"),), answer="!")


def call(tool: Tool, seconds: float | None = None, /, **arguments: Any) -> ToolAnswer:
    return asyncio.run(tool.call(arguments, seconds))


def google(query: str, count: int = 3, order: Literal["best", "newest"] = "best") -> str:
    """Search the encyclopedia.

    It knows everything.

    Args:
        query (str): what to look for,
            in words
        count: how many

    Returns:
        passages
    """
    return f"{query} {count} {order}"


def numpy_style(query: str, count: int = 3, order: Literal["best", "newest"] = "best") -> str:
    """Search the encyclopedia.

    It knows everything.

    Parameters
    ----------
    query : str
        what to look for,
        in words
    count : int, optional
        how many

    Returns
    -------
    str
        passages
    """
    return ""


def plain(query: str, count: int = 3, order: Literal["best", "newest"] = "best") -> str:
    """Search the encyclopedia.

    It knows everything.

    query: what to look for,
        in words
    count: how many
    """
    return ""


def sphinx(query: str, count: int = 3, order: Literal["best", "newest"] = "best") -> str:
    """Search the encyclopedia.

    It knows everything.

    :param query: what to look for,
        in words
    :param int count: how many
    """
    return ""


@pytest.mark.parametrize("function", [google, numpy_style, plain, sphinx])
def test_every_docstring_style_tells_the_model_the_same(function: Any) -> None:
    tool = tool_of(function, name="search")
    assert tool.description == "Search the encyclopedia.\n\nIt knows everything."
    assert tool.schema()["function"]["parameters"] == {
        "type": "object",
        "additionalProperties": False,
        "required": ["query"],
        "properties": {
            "query": {"type": "string", "description": "what to look for, in words"},
            "count": {"type": "integer", "description": "how many", "default": 3},
            "order": {"enum": ["best", "newest"], "type": "string", "default": "best"},
        },
    }


def test_a_colon_in_the_description_is_no_argument() -> None:
    def look(query: str) -> str:
        """Look it up. Note: slow.

        Example:
            query: not this one
        """
        return query

    tool = tool_of(look)
    assert tool.description == "Look it up. Note: slow."
    assert "description" not in tool.parameters["properties"]["query"]


def test_names_that_pydantic_keeps_for_itself_are_fine() -> None:
    def f(json: str, _x: int, schema: bool, model_config: float, argument_1: str | None = None) -> str:
        """F."""
        return f"{json} {_x} {schema} {model_config} {argument_1}"

    tool = tool_of(f)
    assert list(tool.parameters["properties"]) == ["json", "_x", "schema", "model_config", "argument_1"]
    assert call(tool, json="a", _x=1, schema=True, model_config=1.5).text == "a 1 True 1.5 None"


class Names:
    def __init__(self) -> None:
        self.seen: list[str] = []

    def remember(self, names: list[str], table: dict[str, int]) -> Any:
        """Remember."""
        self.seen += names
        return {"seen": self.seen, "table": table}


def test_a_method_is_a_tool_and_values_come_back_as_json() -> None:
    tool = tool_of(Names().remember)
    assert call(tool, names=["a"], table={"b": 2}).text == '{"seen": ["a"], "table": {"b": 2}}'


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "the argument query is missing"),
        ({"query": 1}, "query: Input should be a valid string, not 1"),
        ({"query": "a", "count": "many"}, "count: Input should be a valid integer"),
        ({"query": "a", "order": "worst"}, "order: Input should be 'best' or 'newest', not 'worst'"),
        ({"query": "a", "cuont": 1}, "there is no argument cuont; there are: query, count, order"),
        ({"query": "a", "count": [1] * 10**5}, "count: Input should be a valid integer"),
    ],
)
def test_a_wrong_argument_is_answered_with_what_is_wrong(arguments: dict[str, Any], said: str) -> None:
    answer = call(tool_of(google), **arguments)
    assert said in answer.text
    assert answer.text.startswith("error: ") and answer.error and len(answer.text) < 500


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


def typed(a: int, b: float, c: list[int], d: dict[str, bool], e: str | None = None, f: int | str = 1) -> str:
    """Check."""
    assert type(a) is int and type(b) is float and all(type(x) is int for x in c)
    assert all(type(x) is bool for x in d.values()) and (e is None or type(e) is str)
    assert type(f) in (int, str)
    return "typed"


TYPED = tool_of(typed)


@settings(max_examples=150, deadline=None)
@given(arguments=st.dictionaries(st.sampled_from("abcdefg") | st.text(), JSON, max_size=8))
def test_whatever_a_model_writes_the_function_gets_its_types_or_is_not_called(
    arguments: dict[str, Any],
) -> None:
    answer = call(TYPED, **{"a": 1, "b": 2, "c": [], "d": {}} | arguments)
    assert answer.text == "typed" or answer.error
    assert "AssertionError" not in answer.text and "\n" not in answer.error


def test_an_error_of_the_tool_is_an_answer_in_a_line() -> None:
    def fail(how: str) -> str:
        """Fail."""
        if how == "exit":
            raise SystemExit("bye")
        if how == "stop":
            raise StopIteration("no more")
        raise KeyError("a\nb")

    async def fail_later(how: str) -> str:
        """Fail."""
        await asyncio.sleep(0)
        if how == "cancel":
            raise asyncio.CancelledError
        raise SystemExit("bye") if how == "exit" else TimeoutError("from within")

    assert call(tool_of(fail), how="").text == "error: KeyError: 'a\\nb'"
    assert call(tool_of(fail), how="exit").error == "SystemExit: bye"
    assert call(tool_of(fail), how="stop").error == "RuntimeError: coroutine raised StopIteration"
    assert call(tool_of(fail_later), 60, how="exit").error == "SystemExit: bye"
    assert call(tool_of(fail_later), 60, how="").error == "TimeoutError: from within"
    assert call(tool_of(fail_later), 60, how="cancel").error == "RuntimeError: the tool cancelled itself"


def test_a_server_that_cannot_be_reached_breaks_the_environment() -> None:
    def fetch(how: str) -> str:
        """Fetch."""
        try:
            raise ConnectionRefusedError("no server")
        except ConnectionRefusedError as error:
            if how == "wrapped":
                raise RuntimeError("no answer") from error
            raise

    for how in ("plain", "wrapped"):
        with pytest.raises(EnvironmentBroken, match="fetch"):
            call(tool_of(fetch), how=how)


def test_a_call_that_takes_too_long_is_given_up_and_stalls_nobody() -> None:
    release = threading.Event()
    threads = Threads(max_threads=2)

    async def go() -> list[int]:
        for _ in range(5):
            with pytest.raises(TooSlow):
                await threads.run(release.wait, 0.01)
        found = await asyncio.gather(*(threads.run(lambda i=i: i) for i in range(50)))  # type: ignore[misc]
        return list(found)

    try:
        assert asyncio.run(go()) == list(range(50))
    finally:
        release.set()


def test_a_call_that_waits_for_a_thread_spends_none_of_its_time() -> None:
    threads, release = Threads(max_threads=1), threading.Event()

    async def go() -> int:
        first = asyncio.ensure_future(threads.run(release.wait))
        second = asyncio.ensure_future(threads.run(lambda: 2, 0.05))
        await asyncio.sleep(0.2)
        assert not second.done()
        release.set()
        await first
        return int(await second)

    assert asyncio.run(go()) == 2


def test_a_call_that_was_cancelled_before_it_began_never_begins() -> None:
    threads, release, began = Threads(max_threads=1), threading.Event(), []

    async def go() -> None:
        first = asyncio.ensure_future(threads.run(release.wait))
        second = asyncio.ensure_future(threads.run(lambda: began.append(1)))
        await asyncio.sleep(0.01)
        second.cancel()
        await asyncio.gather(second, return_exceptions=True)
        release.set()
        await first
        await threads.run(lambda: None)

    asyncio.run(go())
    assert began == []


def test_time_limits_hold_on_the_loop_and_in_threads() -> None:
    release = threading.Event()

    def wait_here(x: int) -> str:
        """Wait."""
        release.wait()
        return ""

    async def wait_there(x: int) -> str:
        """Wait."""
        await asyncio.sleep(3600)
        return ""

    try:
        for function in (wait_here, wait_there):
            answer = call(tool_of(function), 0.05, x=1)
            assert answer.error == f"{function.__name__} took longer than 0.05 s and was stopped"
    finally:
        release.set()


class Counter:
    """Counts the calls of an episode."""

    closed = 0

    def __init__(self) -> None:
        self.count = 0

    def reset(self, problem: Problem) -> None:
        self.count = len(problem.answer)

    async def __call__(self, by: int = 1) -> int:
        before = self.count
        await asyncio.sleep(0)
        self.count = before + by
        return self.count

    def close(self) -> None:
        Counter.closed += 1


def test_a_class_is_a_tool_with_an_object_for_each_episode() -> None:
    tool = tool_of(Counter)
    assert (tool.name, tool.description) == ("counter", "Counts the calls of an episode.")

    async def episode() -> list[str]:
        opened = await tool.open(PROBLEM)
        answers = await asyncio.gather(*(opened.call({}) for _ in range(5)))  # one after the other, in order
        await opened.close()
        return [answer.text for answer in answers]

    assert [asyncio.run(episode()), asyncio.run(episode())] == [["2", "3", "4", "5", "6"]] * 2
    assert Counter.closed == 2


def test_a_tool_that_cannot_start_breaks_the_environment() -> None:
    class Broken:
        """Broken."""

        def __init__(self) -> None:
            raise OSError("no disk")

        def __call__(self) -> str:
            return ""

    with pytest.raises(EnvironmentBroken, match="broken cannot start: OSError: no disk"):
        asyncio.run(tool_of(Broken).open(PROBLEM))


def no_type(a) -> str:  # type: ignore[no-untyped-def]
    """A."""
    return ""


def no_words(a: int) -> str:
    return ""


def many(*numbers: int) -> str:
    """A."""
    return ""


def strange(a: threading.Event) -> str:
    """A."""
    return ""


@pytest.mark.parametrize(
    ("thing", "said"),
    [
        (no_type, "the parameter a of no_type has no type"),
        (no_words, "no docstring"),
        (many, "write them out"),
        (strange, "cannot be told to a model"),
        (lambda: 1, "no docstring"),
        (3, "is no tool"),
        (Problem, "no __call__"),
    ],
)
def test_what_cannot_be_a_tool_is_refused_with_what_to_do(thing: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        tool_of(thing)
