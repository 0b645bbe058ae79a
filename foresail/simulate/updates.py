"""The time of a sharded trainer's updates: arithmetic by FLOPs, communication by bytes.

Ranks hold equal shards of weights, gradients and optimiser states (FSDP). In every micro-batch each layer's
weights are gathered twice, forwards and backwards, and its gradients are scattered once. Sequences are assigned
longest first, each to the rank with the fewest tokens, and all ranks wait for the slowest. Routed experts are not
gathered: tokens are sent to them, and each expert group of ranks has all experts once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapify, heapreplace

from foresail.simulate.links import Links, all_to_all_seconds, ring_seconds


@dataclass(frozen=True, kw_only=True)
class TrainedModel:
    """Numbers of parameters: shared by all tokens, of routed experts, and used by one token."""

    shared_parameters: float
    expert_parameters: float
    active_parameters: float
    layers: int
    width: int  # of the residual stream
    attention_width: int  # of all heads of a layer
    expert_choices: int = 0  # experts per token in every layer

    def flops(self, length: float) -> float:
        """FLOPs of a sequence, forwards and backwards: six per weight and token, and causal attention."""
        return 6 * self.active_parameters * length + 6 * self.layers * self.attention_width * length**2


@dataclass(frozen=True, kw_only=True)
class Ranks:
    """The training ranks: `shard` ranks hold all weights once; `experts` of them hold all experts once."""

    count: int
    shard: int
    experts: int
    flops: float  # per second, of one rank
    links: Links
    micro_batch_tokens: int
    weight_bytes: float  # of a gathered weight
    gradient_bytes: float
    overlap: float  # share of the communication that can run beside the arithmetic


@dataclass(frozen=True, kw_only=True)
class UpdateTime:
    """Seconds of one optimiser update."""

    computing: float
    communicating: float
    seconds: float  # of both with their overlap
    imbalance: float  # the slowest rank's FLOPs over the mean's: 1 is even
    micro_batches: int  # of every rank

    @property
    def exposed(self) -> float:
        """Seconds of communication outside the overlap."""
        return self.seconds - self.computing


def update_time(lengths: Sequence[int], model: TrainedModel, ranks: Ranks) -> UpdateTime:
    dealt = split_lengths(lengths, ranks.count)
    flops = [sum(map(model.flops, row)) for row in dealt]
    micro_batches = max(math.ceil(sum(row) / ranks.micro_batch_tokens) for row in dealt)
    computing = max(flops) / ranks.flops
    each = sum(lengths) / ranks.count / micro_batches  # tokens
    communicating = micro_batches * communication(each, model, ranks) + replication(model, ranks)
    return UpdateTime(
        computing=computing,
        communicating=communicating,
        seconds=computing + communicating - min(computing, ranks.overlap * communicating),
        imbalance=max(flops) * ranks.count / sum(flops),
        micro_batches=micro_batches,
    )


def split_lengths(lengths: Sequence[int], ranks: int) -> list[list[int]]:
    """split_lengths([5, 4, 3, 2], 2) -> [[5, 2], [4, 3]]: longest first, to the rank with the fewest tokens."""
    dealt: list[list[int]] = [[] for _ in range(ranks)]
    tokens = [(0, rank) for rank in range(ranks)]
    heapify(tokens)
    for length in sorted(lengths, reverse=True):
        before, rank = tokens[0]
        dealt[rank].append(length)
        heapreplace(tokens, (before + length, rank))
    return dealt


def communication(tokens: float, model: TrainedModel, ranks: Ranks) -> float:
    """Seconds of communication of a micro-batch with `tokens` tokens per rank."""
    moved = 2 * ranks.weight_bytes + ranks.gradient_bytes  # per parameter
    shared = ring_seconds(moved * model.shared_parameters / model.layers / 3, ranks.shard, ranks.links)
    seconds = 3 * model.layers * shared
    if model.expert_parameters:
        own = moved * model.expert_parameters / ranks.experts / model.layers / 3
        seconds += 3 * model.layers * ring_seconds(own, ranks.shard // ranks.experts, ranks.links)
        sent = tokens * model.expert_choices * model.width * ranks.weight_bytes
        # there and back, forwards and backwards
        seconds += 4 * model.layers * all_to_all_seconds(sent, ranks.experts, ranks.links)
    return seconds


def replication(model: TrainedModel, ranks: Ranks) -> float:
    """Seconds to sum gradients over the model's copies, by scatter and gather of each rank's shard."""
    own = ranks.gradient_bytes * (model.shared_parameters + model.expert_parameters) / ranks.shard
    return 2 * ring_seconds(own, ranks.count // ranks.shard, apart(ranks.links))


def apart(links: Links) -> Links:
    """The links of ranks on different hosts, as the copies of a shard are."""
    return Links(cards_per_host=1, inside=links.between, between=links.between, latency=links.latency)
