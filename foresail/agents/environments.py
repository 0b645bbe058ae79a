"""Runs the environments of all episodes on a thread of its own, beside the engines.

    environments = Environments(make=Guess, step_seconds=60)
    environments.begin("17.3", problem)
    answer = environments.step("17.3", "<search>Paris</search>")     # a future
    environments.end("17.3")

Every episode has its own environment, whose methods run one after the other. Different episodes run at the same
time, so a slow or dead tool delays no other episode.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from foresail.agents.environment import Environment, EnvironmentBroken, Observation
from foresail.agents.figures import EpisodeFigures
from foresail.agents.threads import THREADS
from foresail.records import Problem

CLOSING_SECONDS = 10.0


@dataclass
class RunningEnvironment:
    """An environment, its reset, and its current or latest step."""

    environment: Environment
    reset: asyncio.Task[None]
    step: asyncio.Task[Any] | None = None


class Environments:
    """begin, step, end: each returns immediately. `close` ends all episodes and the thread."""

    def __init__(
        self,
        make: Callable[[], Environment],
        *,
        step_seconds: float,
    ) -> None:
        self.make, self.step_seconds = make, step_seconds
        self.figures = EpisodeFigures()
        self.by_id: dict[str, RunningEnvironment] = {}
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, name="environments", daemon=True)
        self.thread.start()

    def begin(self, episode: str, problem: Problem) -> None:
        self._call(self._begin(episode, problem))

    def step(self, episode: str, response: str) -> Future[Observation]:
        """The environment's answer. The future raises `EnvironmentBroken` or a time-out."""
        return self._call(self._step(episode, response))

    def end(self, episode: str) -> None:
        """Allowed in the middle of a step, or for an episode that never began."""
        self._call(self._end(episode))

    def close(self) -> None:
        if not self.thread.is_alive():
            return
        ended = self._call(self._end_all())
        with suppress(TimeoutError):
            ended.result(CLOSING_SECONDS)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(CLOSING_SECONDS)

    def _call(self, work: Coroutine[Any, Any, Any]) -> Future[Any]:
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    async def _begin(self, episode: str, problem: Problem) -> None:
        environment = self.make()
        reset = asyncio.ensure_future(self._limited(environment.reset, problem))
        reset.add_done_callback(lambda task: task.cancelled() or task.exception())  # the first step raises it
        self.by_id[episode] = RunningEnvironment(environment, reset)

    async def _step(self, episode: str, response: str) -> Observation:
        if episode not in self.by_id:
            raise EnvironmentBroken("the episode has no environment: it has not started, or has ended")
        world = self.by_id[episode]
        world.step = asyncio.current_task()
        await world.reset
        observation = await self._limited(world.environment.step, response)
        if not isinstance(observation, Observation):
            name, kind = type(world.environment).__name__, type(observation).__name__
            raise EnvironmentBroken(f"{name}.step returned a {kind}; return an Observation")
        return observation

    async def _end(self, episode: str) -> None:
        world = self.by_id.pop(episode, None)
        if world is None:
            return
        for task in (world.reset, world.step):
            if task is not None:
                task.cancel()
        with suppress(Exception):  # the episode is over: nobody needs the error
            await self._limited(world.environment.close)

    async def _end_all(self) -> None:
        await asyncio.gather(*(self._end(episode) for episode in [*self.by_id]))
        if others := asyncio.all_tasks() - {asyncio.current_task()}:
            await asyncio.wait(others)

    async def _limited(self, method: Callable[..., Any], *arguments: Any) -> Any:
        """Call an environment's method, async or plain, within the time limit."""
        try:
            async with asyncio.timeout(self.step_seconds):
                if inspect.iscoroutinefunction(method):
                    return await method(*arguments)
                return await THREADS.run(partial(method, *arguments))
        except TimeoutError:
            raise TimeoutError(
                f"{method.__qualname__} took longer than environment.step_seconds {self.step_seconds:g}"
            ) from None
