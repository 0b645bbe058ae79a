"""Loads the policy's weights into vLLM bucket by bucket, and proves each tensor by a checksum.

The trainer sends tensors by their Hugging Face names (`saved_weights`). `WorkerWeights`, which vLLM mixes into its
worker, assembles them and passes them to vLLM's layer-wise reload, so at most one layer is held twice. A layer of
vLLM must be loaded whole: the rest of a partly loaded one would be uninitialised memory. So all tensors of a layer
are sent together (`layer_of`).

Then the worker reads back the weights that its layers compute with. On a GPU that is the parameter. On a CPU vLLM
keeps only a packed copy, so the weight is the layer's output for the identity matrix. This finds layers that a
reload has left out; vLLM 0.32 leaves out a head that shares the embedding.

Legend: N outputs, K inputs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

import torch
from torch import Tensor, nn

from foresail.model.decoder import Decoder
from foresail.model.hf import gather_rows
from foresail.model.hf_names import TensorPart, weight_parts
from foresail.model.weights import as_bytes, tensor_checksum
from foresail.recipe.shape.model_shape import ModelShape

HEAD = "lm_head.weight"
EMBEDDING = "model.embed_tokens.weight"
# Matrices that vLLM stacks, in the same order as ours.
STACKED = (
    (re.compile(r"\.[qkv]_proj\."), ".qkv_proj."),
    (re.compile(r"\.(gate|up)_proj\."), ".gate_up_proj."),
)
MAX_ROWS = 1024  # of the identity matrix in one call

Span = tuple[str, int, int]  # part of a bucket: tensor, first byte, number of bytes


@torch.no_grad()
def saved_weights(model: Decoder) -> Iterator[tuple[str, Tensor]]:
    """Every tensor as it is saved, with LoRA merged; of sharded weights only rank 0 gets them.

    -0 becomes 0: read through a layer, the sign of a zero is lost.
    """
    for parameter, parts in groupby(weight_parts(model.shape.without_mtp()), key=lambda part: part.parameter):
        if (rows_of := gather_rows(model, parameter, to=0)) is not None:
            yield from ((part.hf_name, rows_of(part) + 0.0) for part in parts)


def layer_of(hf_name: str) -> str:
    """vLLM's layer: layer_of("model.layers.0.self_attn.k_proj.bias") -> "model.layers.0.self_attn.qkv_proj"."""
    return stacked_name(hf_name).rpartition(".")[0]


def stacked_name(hf_name: str) -> str:
    for pattern, stacked in STACKED:
        hf_name = pattern.sub(stacked, hf_name)
    return hf_name


class Assembly:
    """Assembles tensors from buckets."""

    def __init__(self, shape: ModelShape, dtype: torch.dtype) -> None:
        self.sizes, self.dtype = {part.hf_name: part.sizes for part in weight_parts(shape)}, dtype
        self.started: dict[str, Tensor] = {}
        self.filled: dict[str, int] = {}

    def add(self, spans: Sequence[Span], octets: Tensor) -> Iterator[tuple[str, Tensor]]:
        """Yield completed tensors as copies, since the bucket's memory is used again."""
        begin = 0
        for name, start, size in spans:
            if name not in self.started:
                self.started[name] = torch.empty(self.sizes[name], dtype=self.dtype)
                self.filled[name] = 0
            tensor = self.started[name]
            as_bytes(tensor)[start : start + size] = octets[begin : begin + size]
            begin, self.filled[name] = begin + size, self.filled[name] + size
            if self.filled[name] == tensor.nbytes:
                yield name, self.started.pop(name)


class WorkerWeights:
    """Methods of vLLM's worker: `worker_extension_cls` names this class, `collective_rpc` calls them."""

    get_model: Any
    model_config: Any
    vllm_config: Any
    foresail_update: Assembly | None = None  # during an update

    def foresail_load(self, shape: dict[str, Any], file: str, spans: list[Span]) -> None:
        """Load a bucket from a file; the first one begins an update."""
        from vllm.config import set_current_vllm_config
        from vllm.model_executor.model_loader.reload import initialize_layerwise_reload

        model = self.get_model()
        if self.foresail_update is None:
            self.foresail_update = Assembly(ModelShape(**shape), self.model_config.dtype)
            initialize_layerwise_reload(model)
        octets = torch.from_file(file, size=sum(size for *_, size in spans), dtype=torch.uint8)
        with set_current_vllm_config(self.vllm_config):
            model.load_weights(self.foresail_update.add(spans, octets))

    def foresail_finish(self) -> None:
        """Use the loaded weights in their layers; other layers are unchanged."""
        from vllm.config import set_current_vllm_config
        from vllm.model_executor.model_loader.reload import finalize_layerwise_reload

        if self.foresail_update is not None:
            with set_current_vllm_config(self.vllm_config):
                finalize_layerwise_reload(self.get_model(), self.model_config)
            pack_head(self.get_model())
            self.foresail_update = None

    def foresail_checksums(self, shape: dict[str, Any], names: list[str]) -> dict[str, int]:
        return held_checksums(self.get_model(), ModelShape(**shape), names)


def pack_head(model: Any) -> None:
    """Pack a head that shares the embedding again: a reload on a CPU leaves its old copy."""
    head = model.lm_head
    if hasattr(head, "cpu_linear"):
        head.quant_method.process_weights_after_loading(head)


@torch.no_grad()
def held_checksums(model: nn.Module, shape: ModelShape, names: Sequence[str]) -> dict[str, int]:
    """Checksums of these tensors, and of a head that shares the embedding."""
    chosen = [part for part in weight_parts(shape) if part.hf_name in {*names}]
    checksums: dict[str, int] = {}
    for layer, parts in groupby(chosen, key=lambda part: stacked_name(part.hf_name)):
        whole = held_weight(model, layer)
        checksums |= {part.hf_name: held_checksum(whole, part) for part in parts}
    if shape.tied and EMBEDDING in checksums:
        head = computed_weight(model.get_submodule("lm_head"))
        checksums[HEAD] = tensor_checksum(head[: shape.vocab_size] + 0.0)
    return checksums


def held_checksum(whole: Tensor, part: TensorPart) -> int:
    """The checksum of a Hugging Face tensor's rows in a layer: those of k_proj follow those of q_proj."""
    return tensor_checksum(whole.narrow(0, part.start, part.sizes[0]) + 0.0)


def held_weight(model: nn.Module, name: str) -> Tensor:
    owner, _, leaf = name.rpartition(".")
    layer = model.get_submodule(owner)
    if leaf != "weight" or name == EMBEDDING:  # not multiplied
        weight: Tensor = getattr(layer, leaf)
        return weight
    return computed_weight(layer)


def computed_weight(layer: Any) -> Tensor:
    """A layer's weight, (N, K): its parameter, or on a CPU its output for the identity matrix."""
    if not hasattr(layer, "cpu_linear"):
        weight: Tensor = layer.weight
        return weight
    size = getattr(layer, "input_size_per_partition", None) or layer.embedding_dim
    rows = torch.eye(size, dtype=layer.weight.dtype).split(MAX_ROWS)
    return torch.cat([layer.cpu_linear(row, layer.weight, None) for row in rows]).T
