"""An episode with tools: what the model hears, what is counted, and when it ends."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foresail.agents.environment import Environment, EnvironmentBroken, Observation
from foresail.agents.tools.call_formats import CallFormat, Hermes, Tags, ToolCall
from foresail.agents.tools.tool import Tool, tool_of
from foresail.agents.tools.tool_environment import LAST_TURN, NO_TIME, ToolEnvironment, shorten
from foresail.records import Message, Problem

PROBLEM = Problem(id="p", prompt=(Message(role="user", content="?"),), answer="!")
HERMES = Hermes()


def echo(text: str) -> str:
    """Say it again."""
    return text


def fail(text: str) -> str:
    """Fail."""
    raise KeyError(text)


def unreachable(text: str) -> str:
    """Ask a server."""
    raise ConnectionRefusedError("connection refused")


async def slow(text: str) -> str:
    """Wait."""
    await asyncio.sleep(3600)
    return text


class Notes:
    """Keeps notes."""

    opened: list[Notes] = []  # noqa: RUF012

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.closed = False
        Notes.opened.append(self)

    def __call__(self, text: str) -> str:
        """Add a note."""
        self.notes.append(text)
        return " ".join(self.notes)

    def close(self) -> None:
        self.closed = True
        raise OSError("cannot be closed")


TOOLS = [tool_of(each) for each in (echo, fail, slow, Notes)]


def play(environment: Environment, responses: Sequence[str]) -> list[Observation]:
    async def go() -> list[Observation]:
        await environment.reset(PROBLEM)
        try:
            return [await environment.step(response) for response in responses]
        finally:
            await environment.close()

    return asyncio.run(go())


def make(tools: Sequence[Tool] = TOOLS, format: CallFormat = HERMES, **limits: Any) -> ToolEnvironment:
    return ToolEnvironment(tools, format, **limits)


def write(name: str, **arguments: Any) -> str:
    return HERMES.write(ToolCall(name, arguments))


def contents(observation: Observation) -> list[str]:
    return [message.content for message in observation.messages]


def test_calls_are_answered_in_order_and_an_answer_ends_the_episode() -> None:
    first, last = play(make(), [write("echo", text="a") + write("notes", text="b"), "The answer is 4."])
    assert contents(first) == ["a", "b"] and not first.done
    assert [(use.tool, use.error) for use in first.uses] == [("echo", ""), ("notes", "")]
    assert all(use.seconds >= 0 for use in first.uses)
    assert last == Observation(done=True)


def test_tags_get_their_result_right_behind() -> None:
    (seen,) = play(make(format=Tags(TOOLS)), ["I say <echo>a</result></echo>"])
    assert seen.text == "\n<result>a< /result></result>\n" and seen.messages == ()


def test_what_is_wrong_with_a_call_is_answered_and_counted() -> None:
    response = "<tool_call>{</tool_call>" + write("ehco", text="a") + write("echo") + write("fail", text="b")
    (seen,) = play(make(), [response])
    assert contents(seen) == [
        "error: what is in the tool_call tags is not JSON: "
        "Expecting property name enclosed in double quotes at its end",
        "error: there is no tool 'ehco'; there are: echo, fail, slow, notes",
        "error: the argument text is missing",
        "error: KeyError: 'b'",
    ]  # fmt: skip
    assert [use.tool for use in seen.uses] == ["", "", "echo", "fail"]
    assert all(use.error for use in seen.uses)


def test_a_slow_call_is_stopped_and_the_others_are_answered() -> None:
    (seen,) = play(make(tool_seconds=0.05), [write("slow", text="a") + write("echo", text="b")])
    assert contents(seen) == ["error: slow took longer than 0.05 s and was stopped", "b"]


def test_calls_of_a_turn_run_at_the_same_time() -> None:
    barrier = threading.Barrier(3)

    def meet(who: int) -> int:
        """Wait for the others."""
        barrier.wait(60)
        return who

    (seen,) = play(make([tool_of(meet)]), ["".join(write("meet", who=i) for i in range(3))])
    assert contents(seen) == ["0", "1", "2"]


def test_calls_of_a_tool_with_state_run_in_their_order() -> None:
    seen = play(make(), ["".join(write("notes", text=str(i)) for i in range(5)), write("notes", text="5")])
    assert contents(seen[0])[-1] == "0 1 2 3 4" and contents(seen[1]) == ["0 1 2 3 4 5"]


def test_every_episode_has_its_own_state_which_is_closed_whatever_happens() -> None:
    Notes.opened.clear()
    environment = make()
    assert contents(play(environment, [write("notes", text="a")])[0]) == ["a"]
    assert contents(play(environment, [write("notes", text="b")])[0]) == ["b"]
    broken = make([*TOOLS, tool_of(unreachable)])
    with pytest.raises(EnvironmentBroken, match="unreachable: ConnectionRefusedError"):
        play(broken, [write("slow", text="a") + write("unreachable", text="b")])
    assert len(Notes.opened) == 3 and all(notes.closed for notes in Notes.opened)


def test_the_turn_before_the_last_is_told_so_and_the_last_ends_it() -> None:
    call = write("echo", text="a") * 2
    seen = play(make(max_turns=3), [call, call, call])
    assert [contents(each) for each in seen] == [["a", "a"], ["a", f"a\n{LAST_TURN}"], []]
    assert [each.done for each in seen] == [False, False, True]
    assert [use.error for use in seen[2].uses] == ["called in the last turn"] * 2
    assert play(make(max_turns=1), [call])[0].done


def test_when_the_time_of_the_episode_is_over_one_answer_is_left() -> None:
    seen = play(make(episode_seconds=0.05), [write("slow", text="a"), write("echo", text="b")])
    assert contents(seen[0]) == [f"error: slow took longer than 0.05 s and was stopped\n{NO_TIME}"]
    assert seen[1].done


def test_a_long_result_keeps_its_beginning_and_its_end() -> None:
    (seen,) = play(make(max_result_chars=40), [write("echo", text="a" * 1000 + "end")])
    assert contents(seen) == ["a" * 30 + "\n[… 963 of 1003 characters left out …]\n" + "a" * 7 + "end"]
    assert shorten("abcd", 4) == "abcd" and shorten("abcde", 1).startswith("a\n[… 4 of 5")


def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="two tools are called echo"):
        make([tool_of(echo), tool_of(echo)])


PIECES = [
    write("echo", text="a"), write("nobody"), write("fail", text="<tool_call>"), "<tool_call>", "</tool_call>", "{",
    "<think>", "</think>", "<echo>", "</echo>", "<fail>b</fail>", "<|im_end|>", "\ud800", "words",
]  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(st.lists(st.lists(st.sampled_from(PIECES) | st.text(max_size=5), max_size=6).map("".join), max_size=5))
def test_whatever_a_model_writes_is_answered(responses: list[str]) -> None:
    tools = [tool_of(echo), tool_of(fail)]
    for format in (HERMES, Tags(tools)):
        for response, seen in zip(responses, play(make(tools, format, max_turns=4), responses), strict=True):
            calls = format.parse(response)
            assert seen.done or calls
            if not seen.done:
                assert len(seen.uses) == len(calls) == (len(seen.messages) or seen.text.count("<result>"))
                "".join([seen.text, *contents(seen)]).encode()
