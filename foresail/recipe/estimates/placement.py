"""The placement of processes on a Ray cluster, their CPUs and GPUs, and whether they fit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from math import ceil

from foresail.recipe.estimates.machine import Room, this_machine
from foresail.recipe.estimates.memory import Device
from foresail.recipe.tables.cluster import Cluster
from foresail.recipe.tables.parts import Rollout

NO_RAY = 'cluster.kind = "ray" needs Ray, which is not installed here; pip install "foresail[ray]"'
ROUNDING = 1e-9  # 45 workers of 1.4 CPUs need 62.99999999999999
NOTHING = Room(cpus=0, gpus=0)


@dataclass(frozen=True, kw_only=True)
class Placed:
    """Processes of one kind: how many, the room of each, and where they are."""

    what: str
    count: int
    each: Room
    where: str

    @property
    def total(self) -> Room:
        return Room(cpus=self.count * self.each.cpus, gpus=self.count * self.each.gpus)


@dataclass(frozen=True, kw_only=True)
class Placement:
    """On a local cluster the trainer's share counts; on another one its host is not part of the cluster."""

    trainer: Placed
    ranks: Placed  # besides the trainer's own
    workers: Placed
    graders: Placed
    local: bool

    @property
    def by_ray(self) -> tuple[Placed, ...]:
        """What Ray places."""
        return tuple(placed for placed in (self.ranks, self.workers, self.graders) if placed.count)

    @property
    def reserved(self) -> Room:
        """The trainer's share, which Ray must not give to others; none if all take turns with the trainer."""
        in_turns = all(placed.each == NOTHING for placed in self.by_ray)
        return NOTHING if in_turns else self.trainer.total

    @property
    def total(self) -> Room:
        counted = (*((self.trainer,) if self.local else ()), *self.by_ray)
        return Room(
            cpus=sum(placed.total.cpus for placed in counted),
            gpus=sum(placed.total.gpus for placed in counted),
        )


def place(cluster: Cluster, rollout: Rollout, device: Device) -> Placement:
    """Colocated workers take turns with the trainer, so they have no CPUs and GPUs of their own."""
    where = "this host" if cluster.address is None else "any host of the cluster"
    workers = Placed(
        what="rollout workers",
        count=rollout.workers,
        each=Room(cpus=cluster.worker_cpus, gpus=worker_gpus(cluster, device)),
        where=where,
    )
    if cluster.placement == "colocated":
        workers = replace(workers, each=NOTHING, where="this host, in turns with the trainer")
    return Placement(
        local=cluster.address is None,
        trainer=Placed(
            what="trainer" if cluster.ranks == 1 else "trainer, rank 0",
            count=1,
            each=Room(cpus=1, gpus=1 if device == "cuda" else 0),
            where="this process",
        ),
        ranks=Placed(
            what="other ranks", count=cluster.ranks - 1, each=rank_room(cluster, device), where=where
        ),
        workers=workers,
        graders=Placed(
            what="grader hosts", count=cluster.grader_hosts, each=grader_room(cluster), where=where
        ),
    )


def rank_room(cluster: Cluster, device: Device) -> Room:
    """Of a rank that Ray places."""
    return Room(cpus=cluster.worker_cpus, gpus=1 if device == "cuda" else 0)


def grader_room(cluster: Cluster) -> Room:
    return Room(cpus=cluster.grader_cpus, gpus=0)


def worker_gpus(cluster: Cluster, device: Device) -> float:
    if cluster.worker_gpus is not None:
        return cluster.worker_gpus
    return 1.0 if device == "cuda" else 0.0


def lines_for(cluster: Cluster, rollout: Rollout, device: Device) -> Iterator[str]:
    """Lines of the preflight: the processes' places, and which wait for which."""
    placement = place(cluster, rollout, device)
    where = "started and stopped by the run" if cluster.address is None else f"at {cluster.address}"
    yield f"Placement on a Ray cluster, {where}"
    for placed in (placement.trainer, *placement.by_ray):
        each = f"{placed.each.cpus:g} CPU, {placed.each.gpus:g} GPU each"
        yield f"  {placed.what:<18}{placed.count:>4}   {each:<22}  {placed.where}"
    yield from (f"  {line}" for line in waits(cluster, rollout))


def waits(cluster: Cluster, rollout: Rollout) -> Iterator[str]:
    """On-policy, rollout and training wait for each other in turn; with staleness 1 only the faster one waits."""
    if cluster.ranks > 1:
        yield "all ranks update together; the others wait while rank 0 does anything else"
    if rollout.staleness:
        yield "workers generate the next step while the trainer updates; then the faster side waits for the other,"
        yield "and both for the weights: rollout.staleness = 1"
    elif rollout.workers and cluster.placement == "colocated":
        yield "workers wait while the trainer updates, and it while they generate: they use the same cores in turn"
    elif rollout.workers:
        yield "workers wait while the trainer updates and sends its weights, and it while they generate"


def grading_lines(cluster: Cluster) -> Iterator[str]:
    """Lines for a stage that grades."""
    where = "tools are" if cluster.grader_hosts else "graders and tools are"
    yield f"  {where} processes of this host, beside Ray"
    yield "  the trainer also waits for the last verdicts of a step; graders work while workers generate"


def placement_refusals(cluster: Cluster, rollout: Rollout, device: Device) -> Iterator[str]:
    """Checks of Ray on this machine; `foresail.ray_cluster.check_cluster` checks another cluster later."""
    if cluster.kind != "ray":
        return
    if not ray_is_there():
        yield NO_RAY
        return
    if rollout.workers and cluster.placement == "colocated" and device == "cuda":
        yield (
            'colocated rollout.workers are processes on a CPU; set cluster.placement = "separate", or, for one GPU '
            'in turns, rollout.workers = 0 and cluster.kind = "local": the trainer has an engine of its own then'
        )
        return
    if cluster.address is None:
        yield from misfits(place(cluster, rollout, device), [this_machine()])


def ray_is_there() -> bool:
    return find_spec("ray") is not None


def misfits(placement: Placement, nodes: Sequence[Room]) -> Iterator[str]:
    """What the whole cluster has too little of; else which processes fit no node, each kind taken alone."""
    total = placement.total
    who = ["the trainer"] if placement.local else []
    who += [named(placed) for placed in placement.by_ray]
    there = Room(cpus=sum(node.cpus for node in nodes), gpus=sum(node.gpus for node in nodes))
    fits = True
    for kind, needed, has in (("CPUs", total.cpus, there.cpus), ("GPUs", total.gpus, there.gpus)):
        if needed > has + ROUNDING:
            fits = False
            mend = fewer(placement, kind, needed - has) or f"bring more {kind}"
            yield f"{', '.join(who)} need {needed:g} {kind} and the cluster has {has:g}; {mend}"
    for placed in placement.by_ray if fits else ():
        places = sum(count_fitting(placed.each, node, placed.count) for node in nodes)
        if places < placed.count:
            yield (
                f"{named(placed)} need {placed.each.cpus:g} CPUs and {placed.each.gpus:g} GPUs each on "
                f"one node, and the cluster's {len(nodes)} nodes have room for {places}; request less for "
                "each or fewer of them, or use larger nodes"
            )


def named(placed: Placed) -> str:
    """1 rollout worker, 2 rollout workers."""
    return f"{placed.count} {placed.what}"[: -1 if placed.count == 1 else None]


def count_fitting(each: Room, node: Room, limit: int) -> int:
    """How many rooms of 2 CPUs fit a node of 5 -> 2."""
    shares = [(node.cpus, each.cpus), (node.gpus, each.gpus)]
    return min([limit, *(int(there / needed + ROUNDING) for there, needed in shares if needed)])


def fewer(placement: Placement, kind: str, missing: float) -> str | None:
    """The first key that can be lowered until all fits; ranks include the trainer's own."""
    keys = (
        ("rollout.workers", placement.workers, 1, 0),
        ("cluster.grader_hosts", placement.graders, 1, 0),
        ("cluster.ranks", placement.ranks, 0, 1),
    )
    for key, placed, least, others in keys:
        each = placed.each.cpus if kind == "CPUs" else placed.each.gpus
        fit = placed.count - ceil(missing / each - ROUNDING) if each else -1
        if fit >= least:
            turns = ' or cluster.placement = "colocated"' if takes_turns(placement, kind, placed) else ""
            return f"set {key} = {fit + others}{turns}"
    if takes_turns(placement, kind, placement.workers):
        return 'set cluster.placement = "colocated"'
    return None


def takes_turns(placement: Placement, kind: str, placed: Placed) -> bool:
    """Whether these could share the trainer's CPUs."""
    own = placed is placement.workers and placed.count and placed.each.cpus
    return bool(own and kind == "CPUs" and placement.local)
