"""A step's rollout on a cluster that is not there: the real scheduler and controller, simulated engines.

    result = simulate(load_simulation("recipes/simulate/seer-moonlight.toml", ["rollout.policy=group"]))

Out of it come throughput, tail, idle and waste ratios, and who had how many rows when. The assumptions are the
keys of the TOML file and the openings of `costs`, `workloads`, `drafting_gain` and `simulated`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from foresail.rollout.controller import Closing
from foresail.rollout.plan import Ask
from foresail.rollout.policies import build_policy
from foresail.rollout.scheduler import Scheduler
from foresail.rollout.simulation.clock import VirtualClock
from foresail.rollout.simulation.cluster import Cluster, Graders
from foresail.rollout.simulation.costs import StepCost
from foresail.rollout.simulation.drafting_gain import DraftingGain
from foresail.rollout.simulation.instance import SimulatedInstance
from foresail.rollout.simulation.launchers import build_launcher
from foresail.rollout.simulation.settings import Simulation
from foresail.rollout.simulation.workloads import Problems

TAIL = 0.1  # the last tenth of the requests


@dataclass(frozen=True, kw_only=True)
class StepResult:
    """What came of one step; seconds are simulated ones, and last until the last verdict that was needed."""

    seconds: float
    drawing_seconds: float  # until the last sample ended
    tail_seconds: float  # of these, with nine tenths of the requests done
    tokens: int
    idle_ratio: float  # of all instances' time; work on groups that were cancelled counts as idle
    waste_ratio: float  # valid groups that were drawn in vain, against those wanted
    chosen: int
    launched_groups: int
    cancelled_groups: int
    preemptions: int
    computed_again: int  # tokens
    migrations: int
    decisions: int
    share: float  # of valid groups, for the next step
    history: dict[str, list[tuple[float, int]]]  # instance -> rows it has from a moment on

    @property
    def tokens_per_second(self) -> float:
        return self.tokens / self.drawing_seconds


class SimulatedStep:
    """Launch, draw, grade, until the launcher closes the step."""

    def __init__(self, simulation: Simulation, cost: StepCost, number: int, share_before: float) -> None:
        work = simulation.workload
        self._settings, self._wanted, self._samples = simulation.step, work.groups, work.samples
        self._clock = VirtualClock()
        self._problems = Problems(work, seed=simulation.seed, step=number)
        self._launcher = build_launcher(simulation.step, work.groups, share_before)
        self._graders = Graders(simulation.step.graders, self._clock)
        self._cluster = build_cluster(simulation, cost, self._problems, self._clock, self._sample_ended)
        self._held: list[Ask] = []
        self._verdicts: Counter[int] = Counter()
        self._num_launched = self._num_drawing = 0
        self._closing: Closing | None = None

    def run(self) -> StepResult:
        self._launch()
        self._clock.run()
        assert self._closing is not None, "a step ends when nothing is left to do"
        return self._result(self._closing)

    def _launch(self) -> None:
        for _ in range(self._launcher.next_launches()):
            group = self._num_launched
            self._num_launched += 1
            self._num_drawing += self._samples
            self._launcher.launched(group)
            self._cluster.launch(group)

    def _sample_ended(self, ask: Ask) -> None:
        self._num_drawing -= 1
        self._held.append(ask)
        if self._settings.grading == "as-they-end" or self._num_drawing == 0:
            held, self._held = self._held, []
            for each in held:
                seconds = self._problems[each.group].grading_seconds
                self._graders.submit(seconds, partial(self._graded, each.group))

    def _graded(self, group: int) -> None:
        self._verdicts[group] += 1
        if self._verdicts[group] < self._samples:
            return
        self._launcher.scored(group, self._problems[group].outcome)
        self._closing = self._launcher.closing()
        if self._closing is None:
            self._launch()
            return
        self._cluster.cancel(self._closing.cancelled)
        for instance in self._cluster.instances.values():
            instance.settle()
        self._clock.stop()

    def _result(self, closing: Closing) -> StepResult:
        seconds, tally = self._clock.now(), self._cluster.tally
        instances = self._cluster.instances.values()
        cancelled = {str(group) for group in closing.cancelled}
        useful = sum(
            spent for name, spent in self._cluster.spent.items() if name.partition(".")[0] not in cancelled
        )
        ends = tally.ends
        return StepResult(
            seconds=seconds,
            drawing_seconds=ends[-1],
            tail_seconds=ends[-1] - ends[int(len(ends) * (1 - TAIL)) - 1],
            tokens=tally.tokens,
            idle_ratio=1 - useful / (seconds * len(instances)),
            waste_ratio=len(closing.surplus) / self._wanted,
            chosen=len(closing.chosen),
            launched_groups=self._num_launched,
            cancelled_groups=len(cancelled),
            preemptions=sum(instance.preemptions for instance in instances),
            computed_again=round(sum(instance.computed_again for instance in instances)),
            migrations=tally.migrations,
            decisions=self._cluster.scheduler.decisions,
            share=closing.share,
            history={instance.state.name: instance.history for instance in instances},
        )


def build_cluster(
    simulation: Simulation,
    cost: StepCost,
    problems: Problems,
    clock: VirtualClock,
    ended: Callable[[Ask], None],
) -> Cluster:
    machines, rollout = simulation.cluster, simulation.rollout
    policy = build_policy(rollout.policy, true_length=problems.length)
    scheduler = Scheduler(policy, chunk_tokens=rollout.chunk_tokens)
    gain = None if simulation.speculation is None else DraftingGain(simulation.speculation)
    cluster = Cluster(
        scheduler,
        problems,
        clock,
        ended,
        migration_seconds_per_token=machines.migration_seconds_per_token,
        drafting=gain is not None,
    )
    for number in range(machines.instances):
        instance = SimulatedInstance(
            f"i{number}",
            kv_tokens=machines.kv_tokens,
            max_running=machines.max_running,
            cost=cost,
            gain=gain,
            clock=clock,
            report=cluster.chunk_ended,
            spent=cluster.spent,
        )
        cluster.add(instance)
    return cluster


def simulate(simulation: Simulation) -> list[StepResult]:
    """One result a step; each step expects the share of valid groups that the one before it saw."""
    cost, share, results = simulation.cluster.step_cost(), simulation.workload.valid_share, []
    for number in range(simulation.steps):
        results.append(SimulatedStep(simulation, cost, number, share).run())
        share = results[-1].share
    return results
