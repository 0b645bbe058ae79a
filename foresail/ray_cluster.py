"""The Ray cluster of a run: an existing one, or a local one that ends with the run.

    with open_cluster(Cluster(kind="ray"), trainer=Room(cpus=1, gpus=0)): …

Ray's token authentication is always on: without it anyone who reaches a port of the cluster can run code on it. A
local cluster makes its own token; for another one Ray reads the file of `ray get-auth-token`, or RAY_AUTH_TOKEN.
"""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from foresail.recipe.estimates.machine import Room, this_machine, visible_cards
from foresail.recipe.estimates.memory import Device
from foresail.recipe.estimates.placement import NO_RAY, misfits, place, ray_is_there
from foresail.recipe.reading.preflight import Preflight
from foresail.recipe.tables.cluster import Cluster
from foresail.recipe.tables.parts import Rollout

AUTH_MODE = "RAY_AUTH_MODE"  # Ray's; once it is loaded, setting it here would be too late
CONNECT_SECONDS = 20.0  # for a host to answer
PACKAGES = str(Path(__file__).parents[1])  # what a local cluster's processes must be able to import


@contextmanager
def open_cluster(cluster: Cluster, trainer: Room) -> Iterator[None]:
    """Afterwards, also after an error, a local cluster has ended, and this run's actors on another cluster have.

    A cluster that this process is connected to already, in a notebook say, is used and left running. The room of
    `trainer` is reserved.
    """
    if not ray_is_there():
        raise ImportError(NO_RAY)
    check_tokens_wanted()
    import ray

    if ray.is_initialized():
        yield
        return
    try:
        connect(cluster, trainer)
        check_tokens_used(cluster)
        yield
    finally:
        ray.shutdown()


def connect(cluster: Cluster, trainer: Room) -> None:
    import ray

    quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
    if cluster.address is not None:
        check_reachable(cluster.address)
        try:
            ray.init(address=cluster.address, **quiet)
        except Exception as error:  # of many kinds: no cluster, another version, no token
            raise ValueError(f"cluster.address = {cluster.address!r}: {error}") from error
        return
    offered = this_machine() - trainer
    with environment(start_environment(int(trainer.gpus))):
        # "local": else RAY_ADDRESS would name another one
        ray.init(
            "local",
            num_cpus=int(offered.cpus),
            num_gpus=int(offered.gpus),
            include_dashboard=False,
            **quiet,
        )


def check_reachable(address: str) -> None:
    """Raise if no host answers there; Ray itself would try for many minutes."""
    if address == "auto":
        return
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        raise ValueError(
            f"cluster.address = {address!r} is no HOST:PORT, as `ray start --head` prints it, nor auto"
        )
    try:
        socket.create_connection((host, int(port)), timeout=CONNECT_SECONDS).close()
    except OSError as error:
        raise ValueError(f"cluster.address = {address!r}: nothing answers there ({error})") from error


def this_node() -> str:
    """The id of this process's node in an open cluster."""
    import ray

    node: str = ray.get_runtime_context().get_node_id()
    return node


def check_cluster(preflight: Preflight) -> Preflight:
    """The preflight, with a refusal if the nodes of an existing cluster have too little room."""
    recipe = preflight.recipe
    refusals = cluster_refusals(recipe.cluster, recipe.engines, preflight.device)
    return replace(preflight, refusals=(*preflight.refusals, *refusals))


def cluster_refusals(cluster: Cluster, rollout: Rollout, device: Device) -> Iterator[str]:
    if cluster.kind != "ray" or cluster.address is None or not ray_is_there():
        return
    try:
        nodes = ask_nodes(cluster)
    except ValueError as error:
        yield str(error)
        return
    yield from misfits(place(cluster, rollout, device), nodes)


def ask_nodes(cluster: Cluster) -> list[Room]:
    """The room of each node of the cluster; a ValueError if it cannot be reached."""
    with open_cluster(cluster, Room(cpus=0, gpus=0)):
        import ray

        nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    return [Room(cpus=node.get("CPU", 0.0), gpus=node.get("GPU", 0.0)) for node in nodes]


def start_environment(trainer_gpus: int) -> dict[str, str]:
    """Variables of a local cluster's processes: this package's path, the trainer's GPUs, no usage reports."""
    paths = [PACKAGES, *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        "PYTHONPATH": os.pathsep.join(paths),
        "CUDA_VISIBLE_DEVICES": ",".join(visible_cards()[trainer_gpus:]),
        "RAY_USAGE_STATS_ENABLED": os.environ.get("RAY_USAGE_STATS_ENABLED", "0"),
    }


def check_tokens_wanted() -> None:
    mode = os.environ.get(AUTH_MODE, "token")
    if mode != "token":
        raise ValueError(f"{AUTH_MODE} is {mode!r}, and a run uses Ray with tokens only; unset it")


def check_tokens_used(cluster: Cluster) -> None:
    """Raise if Ray uses no tokens: it does for local clusters, and elsewhere if it finds one."""
    if os.environ.get(AUTH_MODE) != "token":
        raise ValueError(
            f"cluster.address = {cluster.address!r} is used without a token, so anyone who reaches it can run code "
            f"there; make one: `ray get-auth-token --generate`, and start the cluster with it and {AUTH_MODE}=token"
        )


@contextmanager
def environment(changes: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in changes}
    os.environ.update(changes)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
