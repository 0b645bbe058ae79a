"""A class with the few methods of vLLM's engine that are used, and an instance on it: no process, no model.

What it says is a pure function of the context, so chunks, deaths and cancels can be told by what they change.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import torch
from tiny_rollouts import small_model
from torch import Tensor

from foresail.engine.request import Request
from foresail.model.decoder import Decoder
from foresail.model.weights import tensor_checksum
from foresail.recipe.shape.model_shape import ModelShape
from foresail.recipe.tables.parts import Sampling
from foresail.rollout.remote.thread import ThreadInstance
from foresail.rollout.vllm.engine import EngineSize, Started
from foresail.rollout.vllm.instance import VllmInstance
from foresail.rollout.vllm.loader import VllmLoader
from foresail.rollout.vllm.weights import EMBEDDING, HEAD, Assembly, Span, layer_of, saved_weights
from foresail.rollout.weights.sync import CopiedWeights, HandedOver

VOCAB = 29
SIZE = EngineSize(kv_tokens=2000, block=16, max_running=8, max_length=64, prefill_tokens=64)
SHAPE = small_model().shape
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
        self.held: dict[str, Tensor] = {}  # what it computes with
        self.update: tuple[Assembly, dict[str, Tensor]] | None = None
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
        return [getattr(self, f"_{method}")(*args)]

    def _foresail_load(self, shape: dict[str, Any], file: str, spans: list[Span]) -> None:
        if self.update is None:
            self.update = Assembly(ModelShape(**shape), torch.float32), {}
        assembly, loaded = self.update
        octets = torch.from_file(file, size=sum(size for *_, size in spans), dtype=torch.uint8)
        loaded.update(assembly.add(spans, octets))

    def _foresail_finish(self) -> None:
        """Of a layer that gets only some of its tensors, the others are lost, as in vLLM."""
        assert self.update is not None
        loaded, self.update = self.update[1], None
        touched = {layer_of(name) for name in loaded}
        self.held = {name: held for name, held in self.held.items() if layer_of(name) not in touched}
        self.held |= {name: tensor for name, tensor in loaded.items() if name not in self.changed}

    def _foresail_checksums(self, shape: dict[str, Any], names: list[str]) -> dict[str, int]:
        found = {name: tensor_checksum(self.held.get(name, torch.zeros(1))) for name in names}
        if ModelShape(**shape).tied and EMBEDDING in found:
            found[HEAD] = 0 if HEAD in self.changed else found[EMBEDDING]
        return found

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


def fake_instance(name: str = "vllm 0", fake: FakeVllm | None = None, **options: Any) -> VllmInstance:
    """`fake_instance().started.engine` is the fake; its parameters are plain dicts."""

    async def start() -> Started:
        return Started(engine=fake or FakeVllm(), to_params=dict)

    return VllmInstance(name, SHAPE, start, SIZE, **{"vocabulary": LETTERS} | options)


@dataclass(frozen=True, kw_only=True)
class FakeSpec:
    """See `engine_loop.Spec`."""

    name: str
    fake: FakeVllm = field(default_factory=FakeVllm)
    patience: float = 600.0

    def build(self) -> tuple[VllmInstance, VllmLoader]:
        instance = fake_instance(self.name, self.fake, patience=self.patience)
        return instance, VllmLoader(self.name, SHAPE, instance.ask)


def copied(model: Decoder, bucket_bytes: int = 5000) -> CopiedWeights:
    return CopiedWeights(lambda: saved_weights(model), HandedOver(), unit=layer_of, bucket_bytes=bucket_bytes)


@contextmanager
def far_fakes(
    model: Decoder, names: Sequence[str] = ("vllm 0",), **options: Any
) -> Iterator[list[tuple[ThreadInstance, FakeVllm]]]:
    """As the trainer sees them: behind a thread, with weights that are sent to all."""
    specs, weights = [FakeSpec(name=name, **options) for name in names], copied(model)
    found = [(ThreadInstance(spec, weights), spec.fake) for spec in specs]
    try:
        yield found
    finally:
        for instance, fake in found:
            fake.hangs.clear()
            instance.close()


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
