"""Who runs where on a Ray cluster, with how much of it, and whether that fits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from foresail.recipe.cluster import Cluster
from foresail.recipe.memory import Device
from foresail.recipe.parts import Rollout
from foresail.recipe.ray_cluster import NO_RAY, Room, ask_room, ray_is_there

NOTHING = Room(cpus=0, gpus=0)


@dataclass(frozen=True, kw_only=True)
class Placed:
    """So many processes of one kind, what each of them has to itself, and where they are."""

    what: str
    count: int
    each: Room
    where: str

    @property
    def total(self) -> Room:
        return Room(cpus=self.count * self.each.cpus, gpus=self.count * self.each.gpus)


@dataclass(frozen=True, kw_only=True)
class Placement:
    """Of a local cluster the trainer has its share; on another one its host is not in Ray's books."""

    trainer: Placed
    workers: Placed
    local: bool

    @property
    def reserved(self) -> Room:
        """What Ray must not give to workers: the trainer's share, unless they take turns."""
        return self.trainer.total if self.workers.each != NOTHING else NOTHING

    @property
    def total(self) -> Room:
        trainer, workers = self.trainer.total if self.local else NOTHING, self.workers.total
        return Room(cpus=trainer.cpus + workers.cpus, gpus=trainer.gpus + workers.gpus)


def place(cluster: Cluster, rollout: Rollout, device: Device) -> Placement:
    """Colocated workers and the trainer take turns, so that the workers have nothing to themselves."""
    trainer = Placed(
        what="trainer",
        count=cluster.ranks,
        each=Room(cpus=1, gpus=1 if device == "cuda" else 0),
        where="this process" if cluster.ranks == 1 else "this host, a process for each rank",
    )
    if cluster.placement == "colocated":
        return Placement(
            local=cluster.address is None,
            trainer=trainer,
            workers=Placed(
                what="rollout workers",
                count=rollout.workers,
                each=NOTHING,
                where="this host, in turns with the trainer",
            ),
        )
    each = Room(cpus=cluster.worker_cpus, gpus=worker_gpus(cluster, device))
    where = "this host" if cluster.address is None else "any host of the cluster"
    return Placement(
        local=cluster.address is None,
        trainer=trainer,
        workers=Placed(what="rollout workers", count=rollout.workers, each=each, where=where),
    )


def worker_gpus(cluster: Cluster, device: Device) -> float:
    if cluster.worker_gpus is not None:
        return cluster.worker_gpus
    return 1.0 if device == "cuda" else 0.0


def lines_for(cluster: Cluster, rollout: Rollout, device: Device) -> Iterator[str]:
    """For the preflight: who is where, and who waits for whom."""
    placement = place(cluster, rollout, device)
    where = "started and stopped by the run" if cluster.address is None else f"at {cluster.address}"
    yield f"Placement on a Ray cluster, {where}"
    for placed in (placement.trainer, placement.workers):
        each = f"{placed.each.cpus:g} CPU, {placed.each.gpus:g} GPU each"
        yield f"  {placed.what:<18}{placed.count:>4}   {each:<22}  {placed.where}"
    yield "  graders and tools are processes of this host, beside Ray"
    yield from (f"  {line}" for line in waits(cluster, rollout))


def waits(cluster: Cluster, rollout: Rollout) -> Iterator[str]:
    """Strictly on-policy there is always one side that waits; one step ahead it is the faster one."""
    if rollout.staleness:
        yield "workers generate the next step while the trainer updates; then the faster side waits for the other,"
        yield "and both for the weights: rollout.staleness = 1"
    elif cluster.placement == "colocated":
        yield "workers wait while the trainer updates, and it while they generate: they use the same cores in turn"
    else:
        yield "workers wait while the trainer updates and sends its weights, and it while they generate"
    yield "the trainer also waits for the last verdicts of a step; graders work while workers generate"


def placement_refusals(cluster: Cluster, rollout: Rollout, device: Device) -> Iterator[str]:
    if cluster.kind != "ray":
        return
    if not ray_is_there():
        yield NO_RAY
        return
    if cluster.placement == "colocated" and device == "cuda":
        yield (
            'colocated rollout.workers are processes on a CPU; set cluster.placement = "separate", or, for one GPU '
            'in turns, rollout.workers = 0 and cluster.kind = "local": the trainer has an engine of its own then'
        )
        return
    try:
        room = ask_room(cluster)
    except ValueError as error:
        yield str(error)
        return
    yield from misfits(place(cluster, rollout, device), room)


def misfits(placement: Placement, room: Room) -> Iterator[str]:
    wanted, workers = placement.total, placement.workers
    who = "the trainer and " if placement.local else ""
    for kind, needed, there, each in (
        ("CPUs", wanted.cpus, room.cpus, workers.each.cpus),
        ("GPUs", wanted.gpus, room.gpus, workers.each.gpus),
    ):
        if needed > there:
            fit = int((there - (needed - workers.count * each)) // each) if each else 0
            fewer = f"set rollout.workers = {fit}" if fit > 0 else f"bring more {kind}"
            turns = (
                ' or cluster.placement = "colocated"' if kind == "CPUs" and placement.local and each else ""
            )
            yield (
                f"{who}{workers.count} rollout workers need {needed:g} {kind} and the cluster has "
                f"{there:g}; {fewer}{turns}"
            )
