"""Work that a step gave up and the next one goes on with: nothing drawn twice, no token other than in one go."""

from __future__ import annotations

from functools import partial

import pytest
from ahead_of_the_host import run_ahead
from small_rollouts import FakeJudge, fleet_of, group_spec_of, some_problems, tiny_engine, tiny_fleet

from foresail.records import Group
from foresail.rollout.collect import Collected, collect, teaches
from foresail.rollout.controller import Controller
from foresail.rollout.fleet import Fleet
from foresail.rollout.groups import requests
from foresail.rollout.leftovers import CarryingStream, Leftovers
from foresail.rollout.stream import Stream

PROBLEMS = some_problems(40)
SAMPLES = 4


def take_step(
    fleet: Fleet, step: int, first: int, leftovers: Leftovers | None, *, share: float = 0.25, wanted: int = 3
) -> Collected:
    """Expecting that few groups teach, a step launches many more than it needs: all do."""
    return collect(
        fleet,
        lambda launch: PROBLEMS[first + launch],
        group_spec_of(SAMPLES, step=step),
        FakeJudge(lambda name: ["correct", "wrong"] * (SAMPLES // 2)),
        controller=Controller(num_groups=wanted, cap=30, share_before=share),
        usable=teaches,
        stream=Stream if leftovers is None else partial(CarryingStream, leftovers=leftovers),
    )


def drawn_in_one_go(step: int) -> dict[tuple[str, int], list[int]]:
    group_spec = group_spec_of(SAMPLES, step=step)
    found = {}
    for entry in PROBLEMS:
        for number, completion in enumerate(
            sorted(tiny_engine().generate(requests(entry, group_spec, 0)), key=lambda c: c.request.id)
        ):
            found[entry.problem.id, number] = list(completion.ids)
    return found


def responses(group: Group) -> list[list[int]]:
    return [
        [token for token, mask in zip(sample.ids, sample.loss_mask, strict=True) if mask]
        for sample in group.samples
    ]


@pytest.fixture(scope="module")
def whole() -> dict[int, dict[tuple[str, int], list[int]]]:
    return {step: drawn_in_one_go(step) for step in (1, 2)}


def test_cancelled_samples_go_on_in_the_next_step(whole):
    fleet, leftovers = tiny_fleet(max_running=7), Leftovers()
    first = take_step(fleet, 1, 0, leftovers)
    kept = {name: (set(left.samples), set(left.parked)) for name, left in leftovers.items()}
    assert any(ended for ended, _ in kept.values()) and any(half for _, half in kept.values())
    assert all(not ended & half for ended, half in kept.values())
    fleet.update_weights(1)
    second = take_step(fleet, 2, len(first.launched), leftovers, wanted=9)
    carried = mixed = 0
    for group in second.launched:
        name = group.problem.id
        ended, half = kept.get(name, (set(), set()))
        for number, (said, sample) in enumerate(zip(responses(group), group.samples, strict=True)):
            step = 1 if number in ended | half else 2
            assert said == whole[step][name, number]
            versions = {v for v, mask in zip(sample.versions, sample.loss_mask, strict=True) if mask}
            carried += step == 1
            mixed += len(versions) == 2
            assert versions <= {0, 1} and (0 in versions) == (step == 1)
    assert carried > 4 and mixed > 0
    assert not fleet.busy and not fleet.open


def test_without_leave_they_are_drawn_anew(whole):
    fleet = tiny_fleet(max_running=7)
    first = take_step(fleet, 1, 0, None)
    fleet.update_weights(1)
    for group in take_step(fleet, 2, len(first.launched), None).launched:
        for number, said in enumerate(responses(group)):
            assert said == whole[2][group.problem.id, number]


def test_work_that_is_given_up_twice_is_still_there(whole):
    """A problem that two steps in a row launched too late."""
    fleet, leftovers = tiny_fleet(max_running=5), Leftovers()
    position = 0
    for _ in range(4):
        position += len(take_step(fleet, 1, position, leftovers, wanted=1, share=0.05).launched)
    for name, left in leftovers.items():
        for number, parts in left.parked.items():
            expected = whole[1][name, number]
            ids = [token for parked in parts for token in parked.ids]
            assert ids == expected[: len(ids)] and len(ids) < len(expected)
            assert all(len(parked.logprobs) == len(parked.versions) == len(parked.ids) for parked in parts)
    assert leftovers


def test_drafts_and_leftovers_go_together(whole):
    """What ends while others are withdrawn is nobody's, and the next step is not disturbed by it."""
    fleet = fleet_of(tiny_engine(max_running=7), drafts="on")
    for instance in fleet.instances.values():
        run_ahead(instance.engine)
    leftovers, position = Leftovers(), 0
    for step in (1, 2, 1, 2):
        fleet.update_weights(position)
        collected = take_step(fleet, step, position, leftovers, wanted=2)
        position += len(collected.launched)
        for group in collected.launched:
            for number, said in enumerate(responses(group)):
                assert said in (whole[1][group.problem.id, number], whole[2][group.problem.id, number])
