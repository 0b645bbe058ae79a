"""Where a run's processes are: the recipe's [cluster], and the environment variables of torchrun."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Literal, NamedTuple

from pydantic import Field

from foresail.recipe.tables.parts import Part, Rollout

TORCHRUN = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")


class Cluster(Part):
    """Where the processes of a run are: on this machine, or on a Ray cluster."""

    ranks: int = Field(1, gt=0, description="processes that train the model together")
    context: int = Field(
        1,
        gt=0,
        description="context parallelism: ranks that split a micro-batch's sequences, micro_batch_tokens each; for "
        "sequences too long for one rank; must divide cluster.ranks",
    )
    kind: Literal["local", "ray"] = Field(
        "local",
        description="local: processes of this machine; ray: rollout workers, grader hosts and all ranks but the "
        "first are Ray actors",
    )
    address: str | None = Field(
        None,
        description="address of a running Ray cluster, or auto; default: start one on this machine for this run",
    )
    placement: Literal["colocated", "separate"] = Field(
        "colocated",
        description="colocated: engines on the trainer's host take turns with it and use its weights in shared "
        "memory; separate: engines on any host, with CPUs, GPUs and weights of their own",
    )
    worker_cpus: float = Field(
        1.0, gt=0, description="CPUs of each separately placed rollout worker, and of each rank"
    )
    worker_gpus: float | None = Field(
        None,
        ge=0,
        description="GPUs of each separately placed rollout worker; default: 1 if the trainer has one, else 0",
    )
    grader_hosts: int = Field(
        0, ge=0, description="Ray actors that grade, with grader_cpus processes each; 0: grade on this host"
    )
    grader_cpus: int = Field(4, gt=0, description="CPUs, and grading processes, of each grader host")
    transport: Literal["auto", "objects", "broadcast"] = Field(
        "auto",
        description="how weights reach separately placed engines. objects: Ray's object store; broadcast: "
        "torch.distributed (NCCL between GPUs, else gloo); auto: broadcast between GPUs, else objects",
    )


def cluster_mistakes(cluster: Cluster, rollout: Rollout) -> Iterator[str]:
    if cluster.kind == "ray" and cluster.ranks == 1 and not (rollout.workers or cluster.grader_hosts):
        yield (
            'cluster.kind = "ray" places rollout.workers, cluster.grader_hosts and ranks beyond the '
            "first, and there are none; set rollout.workers = 2, for example"
        )
    if on_ray(cluster, rollout) and cluster.placement == "colocated" and rollout.backend == "vllm":
        yield (
            'cluster.placement = "colocated" shares the trainer\'s memory, and vLLM has weights of its own; set '
            'cluster.placement = "separate", or cluster.kind = "local"'
        )
    yield from local_mistakes(cluster)


def on_ray(cluster: Cluster, rollout: Rollout) -> bool:
    """Whether engines are actors; without workers there is one engine, and it is here."""
    return cluster.kind == "ray" and rollout.workers > 0


def have_copies(cluster: Cluster, rollout: Rollout) -> bool:
    """Whether engines have their own copy of the weights, which the trainer updates."""
    return rollout.backend == "vllm" or (on_ray(cluster, rollout) and cluster.placement == "separate")


def transport_of(cluster: Cluster, *, on_cards: bool) -> Literal["objects", "broadcast"]:
    """auto: broadcast between GPUs, without host memory; else Ray's object store, the faster one on CPUs."""
    if cluster.transport == "auto":
        return "broadcast" if on_cards else "objects"
    return cluster.transport


def local_mistakes(cluster: Cluster) -> Iterator[str]:
    """Keys for Ray in a recipe without Ray."""
    if cluster.kind == "ray":
        return
    if cluster.address is not None:
        yield 'cluster.address is for a Ray cluster; set cluster.kind = "ray", or remove it'
    if cluster.placement == "separate":
        yield 'cluster.placement = "separate" is for Ray; set cluster.kind = "ray", or remove it'
    if cluster.grader_hosts:
        yield 'cluster.grader_hosts is for Ray; set cluster.kind = "ray", or remove it'


def training_mistakes(cluster: Cluster, stage: str) -> Iterator[str]:
    """For a stage without rollouts and graders."""
    if cluster.kind == "ray" and cluster.ranks == 1:
        yield (
            f'cluster.kind = "ray" places ranks beyond the first, and this {stage} has none; set '
            "cluster.ranks = 2, for example"
        )
    if cluster.grader_hosts:
        yield f"cluster.grader_hosts is for stages that grade, and {stage} does not; remove it"
    yield from local_mistakes(cluster)


def rank_mistakes(cluster: Cluster, samples: int, key: str) -> Iterator[str]:
    """The `samples` of an update are split over the ranks, or over groups of them."""
    if cluster.ranks > 1:  # else torchrun may say how many there are
        yield from group_mistakes(cluster)
    if cluster.ranks // cluster.context > samples:
        groups = "" if cluster.context == 1 else f" / cluster.context {cluster.context}"
        yield (
            f"cluster.ranks {cluster.ranks}{groups} exceeds the {samples} samples of an update, so some ranks "
            f"would have none; set cluster.ranks = {samples * cluster.context} or less, or raise {key}"
        )


def group_mistakes(cluster: Cluster) -> Iterator[str]:
    """Checks the number of ranks that the recipe or torchrun starts."""
    place = torchrun_place()
    ranks = cluster.ranks if place is None else place.size
    if ranks % cluster.context:
        fitting = -(-ranks // cluster.context) * cluster.context
        yield (
            f"cluster.context {cluster.context} does not divide the number of ranks, {ranks}, into equal groups; "
            f"set cluster.ranks = {fitting}, or cluster.context = 1"
        )


def head_mistakes(context: int, heads: int, kv_heads: int) -> Iterator[str]:
    """Each rank of a context group has the same number of heads, and the key heads of its queries."""
    if heads % context or (kv_heads % context and context % kv_heads):
        fitting = [
            size
            for size in range(1, heads + 1)
            if not heads % size and (not kv_heads % size or not size % kv_heads)
        ]
        yield (
            f"cluster.context {context} does not divide the model's {heads} attention heads and {kv_heads} key "
            f"heads evenly; it may be {', '.join(map(str, fitting))}"
        )


class TorchrunPlace(NamedTuple):
    rank: int
    size: int
    local_rank: int  # among those of this host


def torchrun_place() -> TorchrunPlace | None:
    """The place that torchrun gave this process; None if torchrun did not start it."""
    if not all(name in os.environ for name in TORCHRUN):
        return None
    return TorchrunPlace(*(int(os.environ[name]) for name in TORCHRUN[:3]))
