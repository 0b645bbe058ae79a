"""Environments that say something when an episode begins: it is read with the problems, and ends their prompts.

A prompt is tokenised before its episode begins, and shared by a group. So what an environment says at the beginning
must follow from the problem's row alone (its seed, its level); every episode checks that it hears the same again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, Protocol

from foresail.agents.environment import EnvironmentBroken
from foresail.records import Problem

AT_ONCE = 16  # environments that are open at the same time while problems are read


class OpeningEnvironment(Protocol):
    """An environment whose `open` begins an episode and returns what it says, "" for nothing."""

    async def open(self, problem: Problem) -> str: ...

    async def close(self) -> None: ...


def add_openings(make: Callable[[], OpeningEnvironment], problems: Sequence[Problem]) -> list[Problem]:
    """Each problem with what its environment says at the end of the prompt. A ValueError says what went wrong."""
    with ThreadPoolExecutor(1) as aside:  # a notebook has an event loop of its own in this thread
        texts = aside.submit(asyncio.run, open_all(make, problems)).result()
    return [with_opening(problem, text) for problem, text in zip(problems, texts, strict=True)]


async def open_all(make: Callable[[], OpeningEnvironment], problems: Sequence[Problem]) -> list[str]:
    free = asyncio.Semaphore(AT_ONCE)

    async def ask(problem: Problem) -> str:
        async with free:
            environment = make()
            try:
                return await environment.open(problem)
            except EnvironmentBroken as error:
                raise ValueError(f"environment: the problem {problem.id}: {error}") from error
            finally:
                await environment.close()

    return list(await asyncio.gather(*map(ask, problems)))


def with_opening(problem: Problem, text: str) -> Problem:
    """with_opening(…"Play."…, "You see a door.") has the prompt "Play.\\n\\nYou see a door."."""
    if not text or hears(problem, text):
        return problem
    *before, last = problem.prompt
    said = f"{last.content}\n\n{text}" if last.content else text
    return replace(problem, prompt=(*before, replace(last, content=said)))


def hears(problem: Problem, text: str) -> bool:
    return text in problem.prompt[-1].content


def check_opening(problem: Problem, text: Any) -> None:
    """At the beginning of an episode."""
    if text and not hears(problem, text):
        raise EnvironmentBroken(
            f"it began with {text[:80]!r}, and when prompts were read it said something else; let it follow from "
            "the problem's row alone, by a column seed for instance"
        )
