"""Fleets that ask and tell fewer instances decide what fleets decide that ask and tell all of them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest
from small_simulations import small

from foresail.rollout.fleet import Fleet
from foresail.rollout.groups import behind_prompt
from foresail.rollout.instance import ChunkOrder, Report
from foresail.rollout.plan import SampleSpec
from foresail.simulate import step
from foresail.simulate.instance import SimulatedInstance
from foresail.simulate.workloads import Problems


class Listening(SimulatedInstance):
    """Notes what it is told of groups of which it ran something, as an instance that drafts would."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.known: set[int] = set()
        self.heard: list[tuple[str, int]] = []

    def submit(self, order: ChunkOrder) -> None:
        self.known.add(order.dispatch.spec.group)
        super().submit(order)

    def learn(self, spec: SampleSpec, ids: Sequence[int]) -> None:
        if spec.group in self.known:
            self.heard.append((spec.id, len(ids)))


class AskAndTellAll(Fleet):
    """The plain way."""

    def __init__(self, instances, policy, pool, news, **options) -> None:
        super().__init__(instances, policy, pool, **options)

    def _share_text(self, report: Report) -> None:
        spec, completion = report.event.spec, report.completion
        for name, instance in self.instances.items():
            if name != report.event.instance:
                instance.learn(spec, behind_prompt(spec, completion.request, completion.ids))


def some_simulation(numbers: random.Random):
    return small(
        seed=numbers.randrange(1000),
        cluster={"instances": numbers.randint(1, 7), "max_running": numbers.choice([2, 5, 1024])},
        workload={"groups": numbers.randint(2, 12), "valid_share": numbers.choice([0.4, 1.0])},
        rollout={
            "policy": numbers.choice(["fifo", "group", "context"]),
            "chunk_tokens": numbers.choice([64, 300, None]),
        },
        step={"launches": numbers.choice(["all", "continuous"])},
    )


def run(simulation):
    problems = Problems(simulation.workload, seed=simulation.seed, step=0)
    simulated = step.SimulatedStep(simulation, simulation.cluster.step_cost(), problems, 0.5)
    result = simulated.run()
    return result, simulated._stream.fleet.event_log.take(), [i.heard for i in simulated._instances]


@pytest.mark.parametrize("seed", range(25))
def test_asking_and_telling_fewer_instances_changes_no_decision(seed, monkeypatch):
    simulation = some_simulation(random.Random(seed))
    monkeypatch.setattr(step, "SimulatedInstance", Listening)
    result, events, heard = run(simulation)
    monkeypatch.setattr(step, "AnnouncedFleet", AskAndTellAll)
    assert run(simulation) == (result, events, heard)
    assert len(events) > 10


def test_only_instances_that_ran_a_sibling_are_told():
    """Sixteen instances, and each group of four fits on few of them: far fewer messages than instances."""
    simulation = small(cluster={"instances": 16}, workload={"groups": 8})
    result = run_counting(simulation)
    assert 0 < result.sibling_messages < 8 * result.decisions


def run_counting(simulation):
    problems = Problems(simulation.workload, seed=0, step=0)
    return step.SimulatedStep(simulation, simulation.cluster.step_cost(), problems, 1.0).run()
