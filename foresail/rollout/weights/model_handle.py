"""Pickles a model for another process: by its shared memory, or by its structure without weights."""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.reduction import ForkingPickler
from typing import Any

import torch
import torch.multiprocessing as processes
from torch import nn

from foresail.model.decoder import Decoder
from foresail.model.lora import LowRankLinear
from foresail.model.rotary import rotary_table
from foresail.model.shards import is_sharded

ModelHandle = Callable[[], Decoder]


@dataclass(frozen=True)
class SharedModel:
    """For processes of this machine, which share the weights."""

    content: bytes

    @classmethod
    def of(cls, model: Decoder) -> SharedModel:
        before = processes.get_sharing_strategy()
        # by name, so that the other process need not be a child
        processes.set_sharing_strategy("file_system")
        try:
            return cls(bytes(ForkingPickler.dumps(model.share_memory())))
        finally:
            processes.set_sharing_strategy(before)

    def __call__(self) -> Decoder:
        model: Decoder = pickle.loads(self.content)
        return model


@dataclass(frozen=True)
class EmptyModel:
    """For any host: the same model with uninitialised parameters."""

    content: bytes
    device: str

    @classmethod
    def of(cls, model: Decoder, *, device: str = "cpu") -> EmptyModel:
        file = io.BytesIO()
        WithoutValues(file).dump(outline(model) if is_sharded(model.embed.weight) else model)
        return cls(file.getvalue(), device)

    def __call__(self) -> Decoder:
        model: Decoder = WithMemory(io.BytesIO(self.content), torch.device(self.device)).load()
        return model.to(self.device)


def outline(model: Decoder) -> Decoder:
    """A sharded model's structure, with its LoRA pairs, unsharded and without memory for parameters."""
    with torch.device("meta"):
        like = Decoder(model.shape).to(model.dtype)
        like.requires_grad_(False)
        for path, pairs in model.named_modules():
            if isinstance(pairs, LowRankLinear):
                base: Any = like.get_submodule(path)
                low_rank = LowRankLinear(base, pairs.places, pairs.rank, pairs.scale)
                owner, _, name = path.rpartition(".")
                setattr(like.get_submodule(owner), name, low_rank)
    for path, pairs in model.named_modules():
        if isinstance(pairs, LowRankLinear):
            vars(like.get_submodule(path))["_buffers"]["scale_NP"] = pairs.scale_NP.cpu()
    like.cos, like.sin = rotary_table(model.shape)
    return like


class WithoutValues(pickle.Pickler):
    """Pickles parameters as shape, type and number, so that shared ones stay shared."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file)
        self.numbers: dict[int, int] = {}

    def persistent_id(self, value: Any) -> Any:
        if not isinstance(value, nn.Parameter):
            return None
        number = self.numbers.setdefault(id(value), len(self.numbers))
        return number, tuple(value.shape), value.dtype, value.requires_grad


class WithMemory(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, device: torch.device) -> None:
        super().__init__(file)
        self.device, self.parameters = device, dict[int, nn.Parameter]()

    def persistent_load(self, description: Any) -> nn.Parameter:
        number, shape, dtype, requires_grad = description
        if number not in self.parameters:
            empty = torch.empty(shape, dtype=dtype, device=self.device)
            self.parameters[number] = nn.Parameter(empty, requires_grad=requires_grad)
        return self.parameters[number]
