"""The cost of an update and the device's use: FLOPs, their share of the peak, useful places in micro-batches.

Legend: S segments.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import torch

from foresail.model.segment_attention import is_ragged
from foresail.recipe.shape.model_shape import ModelShape
from foresail.records import PackedBatch
from foresail.world import ONE_PROCESS, World, context_size

# Dense 16-bit products with 32-bit sums a second, by the makers' datasheets, of cards with that word in the name.
PEAK_FLOPS = {"H200": 989e12, "H100": 989e12, "A100": 312e12, "L40S": 362e12, "L4": 121e12, "4090": 165e12}


def count_flops(shape: ModelShape, batch: PackedBatch, *, frozen: bool = False) -> float:
    """Of a forward and a backward pass: 6 for every weight of a product and token, and causal attention.

    Of routed experts only a token's own count. An embedding's lookup costs nothing, the head sees only tokens with
    a loss, and recomputation is not counted. Frozen weights have no gradient, which saves a third; LoRA's pairs
    are left out.
    """
    head = (shape.head_rows or shape.vocab_size) * shape.hidden_size
    body = shape.active_parameters - (shape.vocab_size + shape.head_rows) * shape.hidden_size
    attention = 12 * shape.num_layers * shape.num_heads * shape.head_dim * count_pairs(batch)
    each = 4 if frozen else 6
    return each * (body * batch.ids_T.numel() + head * batch.targets_M.numel()) + attention


def count_pairs(batch: PackedBatch) -> float:
    """Pairs of a token and one it attends to: half of a segment's square, plus all of its shared prompt."""
    lengths_S = batch.starts_S1.diff().double()
    pairs = lengths_S.square().sum() / 2
    if batch.parents_S is not None:
        child_S = batch.parents_S >= 0
        pairs += (lengths_S[child_S] * lengths_S[batch.parents_S[child_S]]).sum()
    return float(pairs)


def useful_share(batches: Sequence[PackedBatch]) -> float:
    """The share of computed places that hold tokens: 1 on CUDA; on a CPU attention pads to the longest segment.

    Lengths [4, 2] there: 6 of 8 places. Answers after shared prompts are padded among themselves; where lengths
    differ much, nothing is.
    """
    if batches[0].ids_T.is_cuda:
        return 1.0
    places = sum(len(lengths) * max(lengths) for batch in batches for lengths in padded_together(batch))
    return sum(batch.ids_T.numel() for batch in batches) / places


def padded_together(batch: PackedBatch) -> Iterator[list[int]]:
    lengths_S = batch.starts_S1.diff()
    parents_S = torch.full_like(lengths_S, -1) if batch.parents_S is None else batch.parents_S
    if is_ragged(lengths_S.tolist(), parents_S.tolist()):
        yield from ([length] for length in lengths_S.tolist())
        return
    for some_S in (parents_S >= 0, parents_S < 0):
        if some_S.any():
            yield lengths_S[some_S].tolist()


def update_metrics(
    updates: Sequence[Sequence[PackedBatch]],
    shape: ModelShape,
    *,
    micro_batch_tokens: int,
    frozen: bool,
    world: World = ONE_PROCESS,
) -> dict[str, float]:
    """Over all of a step's updates on all ranks; weights are `frozen` where only LoRA's pairs learn."""
    batches = [batch for update in updates for batch in update]
    tokens = world.data.sum(sum(batch.ids_T.numel() for batch in batches))
    flops = world.data.sum(sum(count_flops(shape, batch, frozen=frozen) for batch in batches))
    room = world.data.sum(len(batches)) * micro_batch_tokens * context_size(world)
    return {
        "perf/update_tflop": flops / 1e12,
        "perf/micro_batch_fill": tokens / room,
        "perf/useful_share": useful_share(batches),
    }


def pace_metrics(device: torch.device, tflop: float, seconds: float) -> dict[str, float]:
    """Share of the device's arithmetic, where its rate is known."""
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else ""
    peak = next((flops for part, flops in PEAK_FLOPS.items() if part in re.findall(r"\w+", name)), None)
    return {} if peak is None else {"perf/mfu/actor": tflop * 1e12 / seconds / peak}


class PeakMemory:
    """The most GPU memory held so far, by PyTorch and beside it (the cache allocates its own)."""

    def __init__(self, device: torch.device) -> None:
        self.device, self.most = device, 0
        self.note()

    def note(self, *, beside: int = 0) -> None:
        """Update the peak; since the last call `beside` bytes were held outside PyTorch."""
        if self.device.type == "cuda":
            self.most = max(self.most, torch.cuda.max_memory_allocated(self.device) + beside)
            torch.cuda.reset_peak_memory_stats(self.device)

    def metrics(self) -> dict[str, float]:
        return {"perf/max_memory_allocated_gb": self.most / 1e9} if self.device.type == "cuda" else {}
