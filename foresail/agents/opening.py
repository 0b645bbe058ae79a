"""Adds the first text of environments, such as a game's first scene, to the prompts of their problems.

A prompt is tokenised before its episode begins, and shared by a group. So this text must depend on the problem's
row alone (its seed, its level); every episode checks that it gets the same text again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, Protocol

from foresail.agents.environment import EnvironmentBroken
from foresail.records import Problem

AT_ONCE = 16  # environments open at the same time while problems are read


class OpeningEnvironment(Protocol):
    """An environment whose `open` begins an episode and returns its first text, or ""."""

    async def open(self, problem: Problem) -> str: ...

    async def close(self) -> None: ...


def add_openings(make: Callable[[], OpeningEnvironment], problems: Sequence[Problem]) -> list[Problem]:
    """Each problem with its environment's first text at the end of the prompt."""
    with ThreadPoolExecutor(1) as executor:  # in a notebook this thread already has an event loop
        texts = executor.submit(asyncio.run, open_all(make, problems)).result()
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
    if not text or has_opening(problem, text):
        return problem
    *before, last = problem.prompt
    content = f"{last.content}\n\n{text}" if last.content else text
    return replace(problem, prompt=(*before, replace(last, content=content)))


def has_opening(problem: Problem, text: str) -> bool:
    return text in problem.prompt[-1].content


def check_opening(problem: Problem, text: Any) -> None:
    """Check at an episode's start that the environment's first text is the one in the prompt."""
    if text and not has_opening(problem, text):
        raise EnvironmentBroken(
            f"it began with {text[:80]!r}, and when prompts were read it said something else; let it follow from "
            "the problem's row alone, by a column seed for instance"
        )
