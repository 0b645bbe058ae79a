"""Weights by a broadcast between real processes: all have them, whoever dies meanwhile, or an error says who
did not come."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from tiny_rollouts import small_model

from foresail.model.decoder import Decoder
from foresail.model.weights import tensor_checksum
from foresail.rollout.instance import InstanceLost, NoAnswer
from foresail.rollout.remote.engine_loop import EngineSpec
from foresail.rollout.remote.instance import RemoteInstance
from foresail.rollout.remote.worker import PipeChannel
from foresail.rollout.weights.broadcast import Broadcast, Invitation
from foresail.rollout.weights.buckets import Content, NotArrived, whole_weights
from foresail.rollout.weights.model_handle import EmptyModel
from foresail.rollout.weights.sync import CopiedWeights, WeightsLate

HERE = "127.0.0.1"
OPTIONS = {"num_pages": 40, "page_size": 4}
BACKSTOP = 600.0


class Disturbed(Broadcast):
    """Does something before the bucket with this number."""

    at, number_packed = -1, 0

    def disturb(self) -> None: ...

    def pack(self, content: Content, slot: int) -> Any:
        bucket = super().pack(content, slot)
        if self.number_packed == self.at:
            self.disturb()
        self.number_packed += 1
        return bucket


class Crowd:
    """Engines in processes of their own, with weights of their own."""

    def __init__(self, model: Decoder) -> None:
        self.transport, self.model = Disturbed(HERE, "gloo", seconds=60.0), model
        self.weights = CopiedWeights(lambda: whole_weights(model), self.transport)
        self.members: list[RemoteInstance] = []
        self.started = 0

    def start(self) -> None:
        name = f"engine {self.started}"
        spec = EngineSpec(name=name, model=EmptyModel.of(self.model), options=OPTIONS, drafts=False)
        self.members.append(RemoteInstance(name, PipeChannel(name, spec), self.weights))
        self.started += 1

    def kill(self, number: int) -> str:
        channel: Any = self.members[number].channel
        os.kill(channel.process.pid, signal.SIGKILL)
        return self.members[number].name

    def push(self, version: int) -> list[str]:
        lost = self.weights.push(version, self.members)
        for member in [member for member in self.members if member.name in lost]:
            self.members.remove(member)
            member.close()
        return lost

    def checksums(self) -> list[dict[str, int]]:
        """Of all that each of them has, asked for by itself."""
        for member in self.members:
            member.order("weights", (0, None))
        return [member.answer(BACKSTOP) for member in self.members]


@contextmanager
def crowd(model: Decoder, size: int) -> Iterator[Crowd]:
    found = Crowd(model)
    try:
        for _ in range(size):
            found.start()
        yield found
    finally:
        for member in found.members:
            member.close()
        found.transport.leave()


@pytest.mark.usefixtures("forked_workers")
def test_whoever_dies_or_joins_meanwhile_the_others_have_every_tensor() -> None:
    """Sizes of buckets, tensors that change, and who is killed before which bucket: all by chance."""
    numbers, model = random.Random(0), small_model()
    model.blocks[0].to(torch.bfloat16)
    with crowd(model, 3) as engines:
        killed: list[str] = []
        engines.transport.disturb = lambda: killed.append(
            engines.kill(numbers.randrange(len(engines.members)))
        )
        for version in range(1, 9):
            for parameter in numbers.sample([*model.parameters()], numbers.randint(1, 9)):
                parameter.data.mul_(numbers.uniform(0.5, 2))
            engines.weights.bucket_bytes = numbers.choice([300, 2000, 9000])
            engines.transport.number_packed = 0
            engines.transport.at = numbers.choice([-1, 0, 1, 2, 5])
            killed.clear()
            lost = engines.push(version)
            assert {*lost} <= {*killed}, "nobody is taken for dead who is alive"
            wanted = {name: tensor_checksum(weight) for name, weight in model.named_parameters()}
            dead = {*killed} - {*lost}  # one that had all of it, and died after that
            engines.members = [member for member in engines.members if member.name not in dead]
            assert all(found == wanted for found in engines.checksums())
            while len(engines.members) < 3:
                engines.start()


class Absent:
    """A member that is asked to join, and does what it is told to instead."""

    def __init__(self, name: str, error: Exception | None) -> None:
        self.name, self.error, self.last = name, error, ""

    def order(self, kind: str, content: Any) -> None:
        self.last = kind
        assert kind != "join" or isinstance(content, Invitation)

    def answer(self, seconds: float) -> Any:
        if self.last == "join" and isinstance(self.error, InstanceLost):
            raise self.error
        return NotArrived("it was waited too long for others") if self.last == "join" else None


def test_who_does_not_come_to_the_group_is_named_and_nobody_is_waited_for_without_end() -> None:
    model = small_model()

    def weights() -> CopiedWeights:
        return CopiedWeights(lambda: whole_weights(model), Broadcast(HERE, "gloo", seconds=0.2))

    with pytest.raises(WeightsLate, match="instance hung did not confirm"):
        weights().push(1, [Absent("sound", None), Absent("hung", NoAnswer("hung"))])
    with pytest.raises(WeightsLate, match=r"did not reach all of a, b though none .* waited too long"):
        weights().push(1, [Absent("a", None), Absent("b", None)])
    assert weights().push(1, [Absent("dead", InstanceLost("dead"))]) == ["dead"]
