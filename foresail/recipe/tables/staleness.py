"""Checks of `rollout.staleness = 1`: rollouts that run during the update before."""

from __future__ import annotations

from collections.abc import Iterator

from foresail.recipe.tables.cluster import Cluster
from foresail.recipe.tables.parts import Rollout


def staleness_mistakes(rollout: Rollout, cluster: Cluster, *, carry: bool) -> Iterator[str]:
    if not rollout.staleness:
        return
    if rollout.backend == "native" and not rollout.workers:
        yield (
            "rollout.staleness = 1 lets engines generate while the trainer updates, and the only engine is in the "
            "trainer's process; set rollout.workers = 1 or more (processes on this machine's CPU, or actors with "
            'cluster.kind = "ray" and cluster.placement = "separate"), rollout.backend = "vllm", or '
            "rollout.staleness = 0"
        )
    if cluster.kind == "ray" and cluster.placement == "colocated":
        yield (
            "rollout.staleness = 1 lets engines generate while the trainer updates, and colocated ones take turns "
            'with it; set cluster.placement = "separate", or rollout.staleness = 0'
        )
    if carry:
        yield (
            "dynamic_sampling.carry continues samples of the step before, which with rollout.staleness = "
            "1 are two versions old; set dynamic_sampling.carry = false, or rollout.staleness = 0"
        )
