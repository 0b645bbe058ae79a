"""Engines in the place of lost ones: started beside the run, given up after some time, and not for ever."""

from __future__ import annotations

import random

import pytest
from tiny_rollouts import MAX_TOKENS, small_engine, small_model, specs, whole_requests

from foresail.recipe.tables.parts import Rollout
from foresail.records import RunStopped
from foresail.rollout.build import gather
from foresail.rollout.instance import InstanceLost, Report
from foresail.rollout.native import NativeInstance
from foresail.rollout.remote.replacements import MAX_FAILED_STARTS, Restarts


class Mortal(NativeInstance):
    """An engine in this process that is not ready at once, and dies when it is told to."""

    def __init__(self, name: str, *, looks: float = 0, dead: bool = False) -> None:
        super().__init__(name, small_engine(small_model(), max_running=2))
        self.name, self.looks, self.dead, self.num_reports, self.closed = name, looks, dead, 0, False

    @property
    def is_ready(self) -> bool:
        if self.dead:
            raise InstanceLost(self.name)
        self.looks -= 1
        return self.looks < 0

    def poll(self) -> list[Report]:
        if self.dead:
            raise InstanceLost(self.name)
        reports = super().poll()
        self.num_reports += len(reports)
        return reports

    def close(self) -> None:
        self.closed = True


def test_lost_engines_are_followed_by_others_and_every_request_ends_once() -> None:
    numbers, started = random.Random(0), list[Mortal]()

    def start(name: str) -> Mortal:
        started.append(Mortal(name, looks=numbers.randrange(4)))
        return started[-1]

    replacements = Restarts(start)  # type: ignore[arg-type]
    fleet = gather(
        [Mortal("a"), Mortal("b")], Rollout(chunk_tokens=3), max_length=40, replacements=replacements
    )
    requests, drawn, kills = whole_requests(), {}, 0
    for group in range(4):
        members = [spec for spec in specs() if spec.group == group]
        fleet.launch(members, [requests[spec.id] for spec in members])
    while fleet.busy:
        for spec, completion in fleet.work():
            assert spec.id not in drawn
            drawn[spec.id] = completion.ids
        at_work = [one for one in fleet.instances.values() if one.num_reports]
        if at_work and numbers.random() < 0.2:
            numbers.choice(at_work).dead = True
            kills += 1
    assert drawn == {c.request.id: c.ids for c in small_engine(small_model()).generate(requests.values())}
    assert kills > 5 and {one.name for one in started} > {"a.1", "a.2", "b.1", "b.2"}
    figures = fleet.take_figures()
    assert figures["rollout/instances_lost"] in (kills, kills - 1)  # one may not have been found yet
    assert len([*drawn[next(iter(drawn))]]) <= MAX_TOKENS


def test_a_place_where_engines_die_before_they_do_anything_is_left_empty() -> None:
    replacements = Restarts(lambda name: Mortal(name, dead=True))  # type: ignore[arg-type, return-value]
    fleet = gather([Mortal("a", dead=True)], Rollout(), max_length=40, replacements=replacements)
    requests, members = whole_requests(), [spec for spec in specs() if spec.group == 0]
    fleet.launch(members, [requests[spec.id] for spec in members])
    with pytest.raises(RunStopped, match="all engines' processes have ended"):
        [fleet.work() for _ in range(100)]
    assert replacements.number == {"a": MAX_FAILED_STARTS}


def test_an_engine_that_never_comes_is_given_up() -> None:
    late = Mortal("late", looks=float("inf"))
    replacements = Restarts(lambda name: late, seconds=-1)  # type: ignore[arg-type, return-value]
    replacements.lost("a")
    assert replacements.pending
    assert replacements.ready() == [] and not replacements.pending and late.closed
