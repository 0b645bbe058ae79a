"""Starts a run's ranks: processes of this machine, actors of a Ray cluster, or those that torchrun has started.

    with open_ranks(recipe.cluster, recipe.run) as world:   # rank 0, which is this process
        …

This process is rank 0: it keeps the terminal, a script's own functions and the stage's result. The others follow
(`follower.py`); what they print is in the run's folder. One that fails ends the run, and its error is raised here.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any

import torch.distributed as dist

from foresail.ray_cluster import open_cluster
from foresail.recipe.estimates.placement import rank_room
from foresail.recipe.stages.stage import Stage
from foresail.recipe.tables import parts
from foresail.recipe.tables.cluster import Cluster, group_mistakes, torchrun_place
from foresail.train.ranks.follower import Failure, follow, own_device
from foresail.train.ranks.followers import leading
from foresail.train.ranks.local_processes import local_followers
from foresail.train.ranks.process_world import joined
from foresail.train.ranks.ray_actors import ray_followers
from foresail.world import ONE_PROCESS, World


def placed(recipe: Stage) -> AbstractContextManager[None]:
    """The cluster that the recipe names, for the time of the run."""
    if recipe.cluster.kind == "local":
        return contextlib.nullcontext()
    return open_cluster(recipe.cluster, recipe.place().reserved)


@contextlib.contextmanager
def open_ranks(cluster: Cluster, run: parts.Run) -> Iterator[World]:
    """The world of rank 0, whose followers have joined and end with the block. A Ray cluster is open already."""
    for mistake in group_mistakes(cluster):
        raise ValueError(mistake)
    if (place := torchrun_place()) is not None:
        assert place.rank == 0, "other ranks follow"
        if cluster.ranks not in (1, place.size):
            raise ValueError(
                f"cluster.ranks is {cluster.ranks}, and torchrun has started {place.size} processes; leave "
                "cluster.ranks out"
            )
        device = own_device(run.device, place.local_rank)
        with joined(place.rank, place.size, torchrun_store(), device, context=cluster.context) as world:
            yield world
            world.broadcast(None)
        return
    if cluster.ranks == 1:
        yield ONE_PROCESS
        return
    device = own_device(run.device, 0)
    if cluster.kind == "ray":
        room = rank_room(cluster, "cuda" if device.type == "cuda" else "cpu")
        followers = ray_followers(cluster.ranks, room, run.folder, device.type)
    else:
        followers = local_followers(cluster.ranks, run, device)
    with followers as group, leading(group, device, cluster.context) as world:
        yield world


def follow_torchrun(run: parts.Run) -> None:
    """If torchrun started this process as another rank than 0: follow to the end of the run, and exit."""
    place = torchrun_place()
    if place is None or place.rank == 0:
        return
    for number in (signal.SIGINT, signal.SIGTERM):  # rank 0's to answer
        signal.signal(number, signal.SIG_IGN)
    terminal = os.dup(2)

    def tell(failure: Failure) -> None:
        os.write(terminal, f"{failure.text}\n".encode())

    follow(place.rank, place.size, torchrun_store, tell, device=run.device, local_rank=place.local_rank)
    sys.exit(0)


def torchrun_store() -> Any:
    store, _, _ = next(dist.rendezvous("env://"))
    return store
