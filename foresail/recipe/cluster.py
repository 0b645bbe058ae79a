"""Where a run's processes are: the recipe's [cluster], and what torchrun says of this one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Literal, NamedTuple

from pydantic import Field

from foresail.recipe.parts import Part, Rollout

TORCHRUN = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")


class Cluster(Part):
    """Where the processes of a run are; `local` is this machine, without Ray."""

    ranks: int = Field(1, gt=0, description="processes that train the model together")
    kind: Literal["local", "ray"] = Field(
        "local", description="ray: rollout engines are actors of a Ray cluster"
    )
    address: str | None = Field(
        None,
        description="of a Ray cluster that runs, or auto; default: one of this machine, for this run alone",
    )
    placement: Literal["colocated", "separate"] = Field(
        "colocated",
        description="colocated: engines on the trainer's host, in turns with it, on its weights in shared memory; "
        "separate: on any host, with CPUs, GPUs and weights of their own",
    )
    worker_cpus: float = Field(1.0, gt=0, description="CPUs of each rollout worker that is placed separately")
    worker_gpus: float | None = Field(
        None, ge=0, description="GPUs of each; default: 1 where the trainer has one, else 0"
    )
    transport: Literal["auto", "objects", "broadcast"] = Field(
        "auto",
        description="of weights to engines that are placed separately: Ray's object store, or a broadcast of "
        "torch.distributed (NCCL between GPUs, else gloo)",
    )


def cluster_mistakes(cluster: Cluster, rollout: Rollout) -> Iterator[str]:
    if cluster.kind == "ray" and not rollout.workers:
        yield 'cluster.kind = "ray" places rollout.workers, and there are 0; set rollout.workers = 2, say'
    if cluster.kind == "ray" and cluster.placement == "colocated" and rollout.backend == "vllm":
        yield (
            'cluster.placement = "colocated" shares the trainer\'s memory, and vLLM has weights of its own; set '
            'cluster.placement = "separate", or cluster.kind = "local"'
        )
    if cluster.kind != "ray" and cluster.address is not None:
        yield 'cluster.address is a Ray cluster\'s; set cluster.kind = "ray", or remove it'
    if cluster.kind != "ray" and cluster.placement == "separate":
        yield 'cluster.placement = "separate" is for Ray; set cluster.kind = "ray", or remove it'


def have_copies(cluster: Cluster, rollout: Rollout) -> bool:
    """Whether engines have weights of their own, to which the trainer's are sent."""
    return rollout.backend == "vllm" or (cluster.kind == "ray" and cluster.placement == "separate")


def transport_of(cluster: Cluster, *, on_cards: bool) -> Literal["objects", "broadcast"]:
    """The faster one: between GPUs without the detour through host memory, else Ray's, as measured on CPUs."""
    if cluster.transport == "auto":
        return "broadcast" if on_cards else "objects"
    return cluster.transport


def worker_mistakes(cluster: Cluster, stage: str) -> Iterator[str]:
    """Of a stage that rolls nothing out."""
    if cluster.kind == "ray":
        yield f'cluster.kind = "ray" places rollout workers, and {stage} has none; remove it'


def rank_mistakes(cluster: Cluster, samples: int, key: str) -> Iterator[str]:
    """`samples` of one update are dealt to the ranks."""
    if cluster.ranks > samples:
        yield (
            f"cluster.ranks {cluster.ranks} exceeds the {samples} samples of an update, so some ranks would have "
            f"none; set cluster.ranks = {samples} or less, or raise {key}"
        )


class TorchrunPlace(NamedTuple):
    rank: int
    size: int
    local_rank: int  # among those of this host


def torchrun_place() -> TorchrunPlace | None:
    """Where torchrun has put this process; None if somebody else has started it."""
    if not all(name in os.environ for name in TORCHRUN):
        return None
    return TorchrunPlace(*(int(os.environ[name]) for name in TORCHRUN[:3]))
