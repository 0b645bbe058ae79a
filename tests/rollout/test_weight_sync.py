"""Weights on their way to other processes: all arrive, in small buckets, or an error names the tensor."""

from __future__ import annotations

import random
from collections import deque
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_rollouts import small_engine, small_model, whole_requests
from torch import Tensor

from foresail.model.decoder import Decoder
from foresail.model.lora import attach, pairs_of
from foresail.model.weights import checksum, tensor_checksum
from foresail.recipe.tables.parts import Lora
from foresail.rollout.instance import InstanceLost, NoAnswer
from foresail.rollout.weights.buckets import BucketPiece, Content, NotArrived, WeightLoader, fill, num_bytes
from foresail.rollout.weights.model_handle import EmptyModel, outline
from foresail.rollout.weights.sync import (
    SLOTS,
    CopiedWeights,
    Crew,
    SharedWeights,
    WeightsDiffer,
    WeightsLate,
)

SIZES = st.lists(st.integers(0, 40), max_size=8)


# Buckets.


@given(SIZES, st.integers(1, 64), st.sampled_from([torch.float32, torch.bfloat16, torch.uint8]))
def test_buckets_hold_every_byte_once_and_never_more_than_their_limit(
    sizes: list[int], limit: int, dtype: torch.dtype
) -> None:
    named = [(f"{n}", torch.arange(n, n + size).to(dtype)) for n, size in enumerate(sizes)]
    buckets = [*fill(named, limit)]
    assert all(0 < num_bytes(content) <= limit for content in buckets)
    assert all(num_bytes(content) == limit for content in buckets[:-1])
    copies = {name: torch.zeros_like(tensor) for name, tensor in named}
    filled = dict.fromkeys(copies, 0)
    for piece, octets in (entry for content in buckets for entry in content):
        assert piece.start == filled[piece.name]
        filled[piece.name] += len(octets)
        copies[piece.name].view(torch.uint8)[piece.start :][: len(octets)] = octets
    assert all(torch.equal(copies[name], tensor) for name, tensor in named)


@settings(max_examples=25)
@given(st.integers(0, 2), st.integers(1, 70), st.booleans())
def test_a_tensors_checksum_is_what_one_sum_over_all_of_it_gives(
    blocks: int, more: int, narrow: bool
) -> None:
    numbers = torch.Generator().manual_seed(more)
    tensor = torch.randint(0, 255, (blocks * 8 * 2**18 + more,), generator=numbers, dtype=torch.uint8)
    tensor = tensor[::2] if narrow else tensor
    words = torch.nn.functional.pad(tensor.contiguous(), (0, -len(tensor) % 8)).view(torch.int64)
    places = torch.arange(1, len(words) + 1) * 2_654_435_761
    assert tensor_checksum(tensor) == int((words ^ places).sum()) % 2**64


@pytest.mark.parametrize("like", [lambda model: model, outline], ids=["from the model", "from shards"])
def test_a_model_without_values_is_built_alike_pairs_and_shared_parameters_included(like: Any) -> None:
    model = small_model()
    attach(model, Lora(rank=2), seed=0)
    for pairs in pairs_of(model):
        pairs.B.data.normal_(generator=torch.Generator().manual_seed(0))
    empty = EmptyModel.of(like(model))()
    assert [*dict(empty.named_parameters())] == [*dict(model.named_parameters())]
    loader = WeightLoader(empty)
    for content in fill(model.named_parameters(), 100):
        loader.load(content)
    assert checksum(empty) == checksum(model)
    ids = [completion.ids for completion in small_engine(model).generate(whole_requests().values())]
    assert [completion.ids for completion in small_engine(empty).generate(whole_requests().values())] == ids


# Pushes, to members that live in this process.


class Packed:
    """A bucket whose slot may be overwritten: what is opened too late is something else."""

    def __init__(self, transport: Slots, slot: int) -> None:
        self.transport, self.slot = transport, slot

    def open(self) -> Content:
        if self.transport.broken:
            raise NotArrived("somebody died")
        return self.transport.slots[self.slot]


class Slots:
    def __init__(self) -> None:
        self.slots: dict[int, list[tuple[BucketPiece, Tensor]]] = {}
        self.broken = False

    def meet(self, crew: Crew) -> None:
        self.broken = False

    def leave(self) -> None:
        self.slots.clear()

    def pack(self, content: Content, slot: int) -> Packed:
        self.slots[slot] = [(piece, octets.clone()) for piece, octets in content]
        return Packed(self, slot)


class FakeMember:
    """Does what `engine_loop` does, when it is asked for the answer; `fault` may spoil an order."""

    def __init__(self, name: str, model: Decoder, fault: Any = lambda kind, content: content) -> None:
        self.name, self.model, self.fault = name, model, fault
        self.loader, self.version = WeightLoader(model), -1
        self.waiting: deque[tuple[str, Any]] = deque()

    def order(self, kind: str, content: Any) -> None:
        assert len(self.waiting) < SLOTS
        self.waiting.append((kind, content))

    def answer(self, seconds: float) -> Any:
        kind, content = self.waiting.popleft()
        try:
            content = self.fault(kind, content.open() if kind == "bucket" else content)
        except NotArrived as error:
            return error
        if kind == "bucket":
            return self.loader.load(content)
        if kind == "begin":
            return self.loader.begin()
        self.version, names = content
        return self.loader.checksums(names)


def copies(model: Decoder, **options: Any) -> CopiedWeights:
    return CopiedWeights(model.named_parameters, Slots(), **{"bucket_bytes": 500} | options)


def other_model(model: Decoder) -> Decoder:
    return EmptyModel.of(model)()


def test_all_members_have_the_weights_and_only_what_changed_is_sent_again() -> None:
    model = small_model()
    members = [FakeMember(f"{n}", other_model(model)) for n in range(3)]
    weights = copies(model)
    assert weights.push(1, members[:2]) == []
    size = sum(parameter.nbytes for parameter in model.parameters())
    assert weights.take_figures()["perf/weight_sync_gb"] == size / 1e9
    with torch.no_grad():
        model.blocks[1].mlp.down.weight[3, 4] += 1
    assert weights.push(2, members[:2]) == []
    assert weights.take_figures()["perf/weight_sync_gb"] == model.blocks[1].mlp.down.weight.nbytes / 1e9
    assert weights.push(2, members[:2]) == []
    assert weights.take_figures()["perf/weight_sync_gb"] == 0
    assert weights.push(2, members) == []  # the third has nothing yet
    assert {checksum(member.model) for member in members} == {checksum(model)}
    assert {member.version for member in members} == {2}


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.sampled_from(["flip", "drop", "swap", "die", "break", "late", "none"]))
def test_whatever_happens_to_a_bucket_members_have_the_weights_or_an_error_names_the_tensor(
    seed: int, fault: str
) -> None:
    numbers, model = random.Random(seed), small_model()
    at, seen, touched = numbers.randrange(20), 0, list[str]()

    def spoil(kind: str, content: Any) -> Any:
        nonlocal seen
        seen += 1
        if seen != at + 1 or kind != "bucket":
            return content
        touched.extend(piece.name for piece, _ in content)
        match fault:
            case "flip":
                _, octets = numbers.choice(content)
                octets[numbers.randrange(len(octets))] ^= 1 << numbers.randrange(8)
            case "drop":
                return ()
            case "swap":
                _, octets = numbers.choice(content)
                octets.copy_(octets.roll(1))
            case "die":
                raise InstanceLost("spoilt")
            case "break":  # its death breaks what carries buckets to others
                weights.transport.broken = True
                raise InstanceLost("spoilt")
            case "late":
                raise NoAnswer("spoilt")
        return content

    spoilt, sound = FakeMember("spoilt", other_model(model), spoil), FakeMember("sound", other_model(model))
    with torch.no_grad():
        for parameter in spoilt.model.parameters():
            parameter.zero_()
    weights = copies(model, bucket_bytes=numbers.randint(200, 3000))
    lost, said = list[str](), ""
    try:
        lost = weights.push(1, [spoilt, sound])
    except (WeightsDiffer, WeightsLate) as error:
        said = str(error)
    if said:
        assert any(name in said for name in touched), f"{said} does not name one of {touched}"
        assert fault in ("flip", "drop", "swap", "late") and "spoilt" in said
        return
    assert lost == (["spoilt"] if touched and fault in ("die", "break") else [])
    alive = [sound] if lost else [sound, spoilt]
    assert {checksum(member.model) for member in alive} == {checksum(model)}
    follower = FakeMember("spoilt.1", other_model(model))
    assert weights.push(2, [sound, follower]) == [] and checksum(follower.model) == checksum(model)


def test_members_on_shared_memory_that_see_another_tensor_stop_the_run() -> None:
    model = small_model()
    weights = SharedWeights(model.named_parameters)
    member = FakeMember("far", small_model())
    assert weights.push(1, [member]) == []
    with torch.no_grad():
        model.blocks[0].attention.out.weight[1, 2] += 1
    with pytest.raises(
        WeightsDiffer, match=r"blocks\.0\.attention\.out\.weight .* instance far .* version 2"
    ):
        weights.push(2, [member])
