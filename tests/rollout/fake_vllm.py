"""A class with the few methods of vLLM's engine that are used, and an instance on it: no process, no model.

What it says is a pure function of the context, so chunks, deaths and cancels can be told by what they change.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from tiny_rollouts import small_model

from foresail.engine.request import Request
from foresail.model.decoder import Decoder
from foresail.model.hf import load_model
from foresail.recipe.parts import Sampling
from foresail.rollout.vllm_engine import EngineSize, Started
from foresail.rollout.vllm_instance import VllmInstance
from foresail.rollout.vllm_weights import trainer_checksums

VOCAB = 29
SIZE = EngineSize(kv_tokens=2000, block=16, max_running=8, max_length=64, prefill_tokens=64)
LETTERS = [bytes([97 + token % 26]) for token in range(VOCAB)]


def next_token(context: list[int]) -> int:
    return random.Random(str(context)).randrange(VOCAB)


def logprob_of(token: int) -> float:
    return -(token + 1) / 8


def says(prompt: tuple[int, ...], limit: int, stop_ids: tuple[int, ...] = ()) -> list[int]:
    """All that follows a prompt."""
    context = [*prompt]
    while len(context) < len(prompt) + limit:
        context.append(next_token(context))
        if context[-1] in stop_ids:
            break
    return context[len(prompt) :]


class Dead(Exception):
    """What vLLM raises when its process has ended."""


class FakeVllm:
    """Tokens come one to three at a time, each time the loop gets around to it."""

    def __init__(self) -> None:
        self.errored = False
        self.calls: list[str] = []  # in their order
        self.asked: list[dict[str, Any]] = []  # context, parameters, name and priority
        self.aborted: list[str] = []
        self.busy_resets = 0  # so many times the cache cannot be emptied yet
        self.changed: list[str] = []  # tensors that it does not take over
        self.hangs: set[str] = set()  # methods that never answer
        self.silenced = False  # whether requests wait for ever
        self.logprob = logprob_of
        self.numbers = random.Random(0)

    async def generate(
        self, prompt: Any, sampling_params: dict[str, Any], request_id: str, *, priority: int
    ) -> AsyncGenerator[Any, None]:
        context, options = [*prompt["prompt_token_ids"]], sampling_params
        self.asked.append({"context": [*context], "name": request_id, "priority": priority} | options)
        left = options["max_tokens"]
        try:
            while left:
                await asyncio.sleep(0)
                while self.silenced:
                    await asyncio.sleep(0.001)
                if self.errored:
                    raise Dead
                new: list[int] = []
                for _ in range(min(left, self.numbers.randint(1, 3))):
                    new.append(next_token(context))
                    context.append(new[-1])
                    if new[-1] in options["stop_token_ids"]:
                        break
                left = 0 if new[-1] in options["stop_token_ids"] else left - len(new)
                entries = [{token: SimpleNamespace(logprob=self.logprob(token))} for token in new]
                yield SimpleNamespace(outputs=[SimpleNamespace(token_ids=new, logprobs=entries)])
        except (GeneratorExit, asyncio.CancelledError):
            self.aborted.append(request_id)
            raise

    async def collective_rpc(self, method: str, *, args: tuple[Any, ...] = ()) -> list[Any]:
        self.calls.append(method)
        await self._perhaps_hang(method)
        found = trainer_checksums(load_model(Path(*args), dtype=torch.float32, device="cpu"))
        return [found | dict.fromkeys(self.changed, 0)]

    async def reset_prefix_cache(self) -> bool:
        self.calls.append("reset_prefix_cache")
        await self._perhaps_hang("reset_prefix_cache")
        self.busy_resets -= 1
        return self.busy_resets < 0

    async def is_sleeping(self) -> bool:
        await self._perhaps_hang("is_sleeping")
        return False

    def shutdown(self) -> None:
        self.calls.append("shutdown")

    async def _perhaps_hang(self, method: str) -> None:
        if self.errored:
            raise Dead
        if method in self.hangs:
            await asyncio.Event().wait()


def fake_instance(
    name: str = "vllm 0", model: Decoder | None = None, fake: FakeVllm | None = None, **options: Any
) -> VllmInstance:
    """`fake_instance().started.engine` is the fake; its parameters are plain dicts."""

    async def start(_: Path) -> Started:
        return Started(engine=fake or FakeVllm(), to_params=dict)

    settings = {"vocabulary": LETTERS} | options
    return VllmInstance(name, small_model() if model is None else model, start, SIZE, **settings)


@contextmanager
def opened(**options: Any) -> Iterator[tuple[VllmInstance, FakeVllm]]:
    instance = fake_instance(**options)
    fake = instance.started.engine
    assert isinstance(fake, FakeVllm)
    try:
        yield instance, fake
    finally:
        fake.hangs.clear()
        instance.close()


def request_of(name: str = "3.1", prompt: tuple[int, ...] = (1, 2, 3), **sampling: Any) -> Request:
    return Request(id=name, prompt=prompt, key=7, sampling=Sampling(**{"max_new_tokens": 12} | sampling))
