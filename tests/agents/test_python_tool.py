"""Python as a tool of an episode."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from foresail.agents.environment import EnvironmentBroken, Observation
from foresail.agents.tools.call_formats import Hermes, Tags, ToolCall
from foresail.agents.tools.load_tool import load_tool
from foresail.agents.tools.tool import Tool
from foresail.agents.tools.tool_environment import ToolEnvironment
from foresail.records import Message, Problem, RunStopped

PROBLEM = Problem(id="p", prompt=(Message(role="user", content="?"),), answer="!")


@pytest.fixture(scope="module")
def python() -> Tool:
    try:
        return load_tool("python", seconds=0.5, session_seconds=10, memory_mb=128, sessions=2)
    except RunStopped as error:
        pytest.skip(f"no sandbox can be had here: {error}")


def write(code: str) -> str:
    return Hermes().write(ToolCall("python", {"code": code}))


async def play(environment: ToolEnvironment, *responses: str) -> list[Observation]:
    await environment.reset(PROBLEM)
    try:
        return [await environment.step(response) for response in responses]
    finally:
        await environment.close()


def make(python: Tool, **limits: Any) -> ToolEnvironment:
    return ToolEnvironment([python], Hermes(), **limits)


def contents(observation: Observation) -> list[str]:
    return [message.content for message in observation.messages]


def test_variables_stay_within_an_episode_and_no_longer(python: Tool) -> None:
    first, second = asyncio.run(
        play(make(python), write("x = 20") + write("x + 1"), write("    print(x * 2)\n"))
    )
    assert contents(first) == ["(no output: print what you want to see)", "21"] and contents(second) == ["40"]
    (other,) = asyncio.run(play(make(python), write("x")))
    assert contents(other)[0].endswith("NameError: name 'x' is not defined")
    assert other.uses[0].error == "NameError: name 'x' is not defined"


def test_code_in_a_tag_needs_no_quotes(python: Tool) -> None:
    environment = ToolEnvironment([python], Tags([python]))
    (seen,) = asyncio.run(
        play(environment, "<python>\nfor c in 'ab':\n    print(c + '<|im_end|>')\n</python>")
    )
    assert seen.text == "\n<result>a<|im_end|>\nb<|im_end|></result>\n"  # the tokenizer breaks special tokens


def test_its_own_limits_hold_and_those_of_other_tools_do_not(python: Tool) -> None:
    """Other tools are timed on the wall clock, which a busy machine would spend."""
    (seen,) = asyncio.run(play(make(python, tool_seconds=1e-6), write("while True: pass") + write("1")))
    assert contents(seen) == ["error: stopped after 0.5 s of processor time; variables are kept", "1"]
    assert seen.uses[0].error == contents(seen)[0]


def test_more_episodes_than_sessions_wait_for_their_turn(python: Tool) -> None:
    async def go() -> list[list[Observation]]:
        episodes = [play(make(python), write(f"x = {i}"), write("x")) for i in range(8)]
        return await asyncio.gather(*episodes)

    seen = asyncio.run(go())
    assert [contents(second)[0] for _, second in seen] == [str(i) for i in range(8)]


def test_a_sandbox_that_is_gone_breaks_the_environment(python: Tool) -> None:
    async def go() -> None:
        environment = make(python)
        await environment.reset(PROBLEM)
        await environment.step(write("1"))
        process = environment.opened["python"].state.session.process
        process.worker.link.close()
        try:
            await environment.step(write("import os; os._exit(0)"))
        finally:
            await environment.close()

    with pytest.raises(EnvironmentBroken, match="the sandbox of the tool python"):
        asyncio.run(go())
