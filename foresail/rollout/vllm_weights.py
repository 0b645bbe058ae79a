"""The policy's weights in vLLM: saved, loaded there, and proved by a checksum of each tensor.

The trainer writes a Hugging Face folder; `WorkerWeights`, which vLLM mixes into its worker, loads it and then
reads back what the layers really compute with. On a GPU that is the parameter. On a CPU vLLM keeps a packed copy
and drops the parameter, so it is read through the layer: what comes out for the identity matrix is the weight. So
a layer that a reload has forgotten is found; vLLM 0.32 forgets a head that shares the embedding.

Names are those of Hugging Face. Legend: N outputs, K inputs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from foresail.model.decoder import Decoder
from foresail.model.hf import some, whole_rows
from foresail.model.hf_names import Part, weight_parts
from foresail.model.weights import tensor_checksum
from foresail.recipe.hf_config import read_shape
from foresail.recipe.shape import ModelShape
from foresail.rollout.weight_sync import WeightsDiffer

Checksums = Mapping[str, int]  # by Hugging Face name

HEAD = "lm_head.weight"
EMBEDDING = "model.embed_tokens.weight"
# Matrices that vLLM stacks, in the same order as ours.
STACKED = (
    (re.compile(r"\.[qkv]_proj\."), ".qkv_proj."),
    (re.compile(r"\.(gate|up)_proj\."), ".gate_up_proj."),
)
MOST_ROWS = 1024  # of the identity matrix, at once


@torch.no_grad()
def trainer_checksums(model: Decoder) -> dict[str, int]:
    """Of every tensor as it is saved, low-rank pairs merged, and of the head also where it is the embedding."""
    found = {part.hf_name: content(saved_rows(model, part)) for part in weight_parts(model.shape)}
    return found | ({HEAD: found[EMBEDDING]} if model.shape.tied else {})


def saved_rows(model: Decoder, part: Part) -> Tensor:
    rows = whole_rows(model, part, to=0)
    assert rows is not None, "engines have whole weights"
    return rows


def check_same(name: str, version: int, ours: Checksums, theirs: Checksums) -> None:
    """An instance that has other weights than the trainer stops the run."""
    if differing := [tensor for tensor in ours if theirs.get(tensor) != ours[tensor]]:
        raise WeightsDiffer(
            f"instance {name} was given version {version} of the weights, and {len(differing)} of {len(ours)} "
            f"tensors there are others than the trainer's: {some(differing)}; samples would not be the policy's. "
            'Resume the run with rollout.backend = "native", and report this with the versions of vLLM and PyTorch'
        )


def content(tensor: Tensor) -> int:
    """Its checksum, in which -0 counts as 0: read through a layer, the sign of a zero is lost."""
    return tensor_checksum(tensor + 0.0)


class WorkerWeights:
    """Methods of vLLM's worker: `worker_extension_cls` names this class, `collective_rpc` calls them."""

    get_model: Any
    reload_weights: Any

    def foresail_load(self, folder: str) -> dict[str, int]:
        """Take the weights in `folder`; the checksums of what the layers have after that."""
        self.reload_weights(weights_path=folder)
        pack_head(self.get_model())
        return self.foresail_checksums(folder)

    def foresail_checksums(self, folder: str) -> dict[str, int]:
        return held_checksums(self.get_model(), read_shape(Path(folder)))


def pack_head(model: Any) -> None:
    """A head that shares the embedding is not among the tensors that are loaded: on a CPU it keeps its old copy."""
    head = model.lm_head
    if hasattr(head, "cpu_linear"):
        head.quant_method.process_weights_after_loading(head)


@torch.no_grad()
def held_checksums(model: nn.Module, shape: ModelShape) -> dict[str, int]:
    read: dict[str, Tensor] = {}  # of layers that several tensors stand in
    found = {part.hf_name: content(held_rows(model, part, read)) for part in weight_parts(shape)}
    if shape.tied:
        rows = computed_weight(model.get_submodule("lm_head"))[: shape.vocab_size]
        found[HEAD] = content(rows)
    return found


def held_rows(model: nn.Module, part: Part, read: dict[str, Tensor]) -> Tensor:
    """The rows of vLLM's layer that a Hugging Face tensor is: those of k_proj begin behind those of q_proj."""
    name = part.hf_name
    for pattern, stacked in STACKED:
        name = pattern.sub(stacked, name)
    if name not in read:
        owner, _, leaf = name.rpartition(".")
        layer = model.get_submodule(owner)
        looked_up = leaf != "weight" or name == EMBEDDING
        read[name] = getattr(layer, leaf) if looked_up else computed_weight(layer)
    return read[name].narrow(0, part.start, part.sizes[0])


def computed_weight(layer: Any) -> Tensor:
    """What a layer multiplies with: its parameter, or on a CPU what it gives for the identity matrix, (N, K)."""
    if not hasattr(layer, "cpu_linear"):
        weight: Tensor = layer.weight
        return weight
    size = getattr(layer, "input_size_per_partition", None) or layer.embedding_dim
    rows = torch.eye(size, dtype=layer.weight.dtype).split(MOST_ROWS)
    return torch.cat([layer.cpu_linear(row, layer.weight, None) for row in rows]).T
