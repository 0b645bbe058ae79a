"""The [cluster] table: on how many hosts and processes a run is spread."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from foresail.recipe.parts import Part, Rollout


class Cluster(Part):
    """Where the processes of a run are; `local` is this machine, without Ray."""

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


def cluster_mistakes(cluster: Cluster, rollout: Rollout) -> Iterator[str]:
    if cluster.kind == "ray" and not rollout.workers:
        yield 'cluster.kind = "ray" places rollout.workers, and there are 0; set rollout.workers = 2, say'
    if cluster.kind == "ray" and rollout.backend == "vllm":
        yield (
            'cluster.kind = "ray" places native engines, and rollout.backend is "vllm"; set rollout.backend = '
            '"native", or cluster.kind = "local"'
        )
    if cluster.kind != "ray" and cluster.address is not None:
        yield 'cluster.address is a Ray cluster\'s; set cluster.kind = "ray", or remove it'
    if cluster.kind != "ray" and cluster.placement == "separate":
        yield 'cluster.placement = "separate" is for Ray; set cluster.kind = "ray", or remove it'
