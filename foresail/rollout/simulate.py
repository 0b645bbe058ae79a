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
from typing import Protocol

from foresail.rollout.clock import VirtualClock
from foresail.rollout.controller import Closing, Controller, Outcome
from foresail.rollout.costs import StepCost
from foresail.rollout.drafting_gain import DraftingGain
from foresail.rollout.plan import Ask
from foresail.rollout.policies import build_policy
from foresail.rollout.scheduler import Scheduler
from foresail.rollout.simulated import SimulatedInstance
from foresail.rollout.simulated_cluster import Cluster, Graders
from foresail.rollout.simulation import Simulation, Step
from foresail.rollout.workloads import Problems

TAIL = 0.1  # the last tenth of the requests


# When to launch, and when a step is over.


class Launcher(Protocol):
    """What the controller is to a step."""

    def next_launches(self) -> int: ...

    def launched(self, group: int) -> None: ...

    def scored(self, group: int, outcome: Outcome) -> None: ...

    def closing(self) -> Closing | None: ...


class Patient(Controller):
    """Continuous launches without early termination: what runs when enough are valid may end."""

    def closing(self) -> Closing | None:
        return super().closing() if self.num_active == 0 else None


class Rounds:
    """Naive dynamic sampling: as many as are wanted, all to their end, again until enough are valid."""

    def __init__(self, *, wanted: int, cap: int) -> None:
        self._wanted, self._cap = wanted, cap
        self._launched: list[int] = []
        self._valid: dict[int, bool] = {}

    def next_launches(self) -> int:
        if len(self._valid) < len(self._launched):
            return 0
        return min(self._wanted, self._cap - len(self._launched))

    def launched(self, group: int) -> None:
        self._launched.append(group)

    def scored(self, group: int, outcome: Outcome) -> None:
        self._valid[group] = outcome.valid

    def closing(self) -> Closing | None:
        valid = [group for group in self._launched if self._valid.get(group)]
        over = len(valid) >= self._wanted or len(self._valid) == self._cap
        if not over or len(self._valid) < len(self._launched):
            return None
        return Closing(
            prefix=tuple(self._launched),
            chosen=tuple(valid[: self._wanted]),
            surplus=tuple(valid[self._wanted :]),
            cancelled=(),
            share=max(len(valid), 1) / len(self._launched),
        )


def build_launcher(step: Step, wanted: int, share_before: float) -> Launcher:
    if step.launches == "all":
        return Controller.for_all(wanted)
    if step.launches == "rounds":
        return Rounds(wanted=wanted, cap=wanted * step.launch_cap)
    build = Controller if step.early_termination else Patient
    return build(wanted=wanted, cap=wanted * step.launch_cap, share_before=share_before)


# The step.


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
