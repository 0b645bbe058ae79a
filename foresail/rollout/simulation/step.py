"""A step's rollout on a cluster that is not there: the loop of a real run, simulated engines and judges.

    result = simulate(load_simulation("recipes/simulate/seer-moonlight.toml", ["rollout.policy=group"]))

Out of it come throughput, tail, idle and waste ratios, and who had how many rows when. The assumptions are the
keys of the TOML file and the openings of `costs`, `workloads`, `drafting_gain`, `engine` and `instance`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from foresail.data.prompts import PromptedProblem
from foresail.recipe.parts import Sampling
from foresail.records import Group
from foresail.rollout.controller import Closing, Outcome, outcome_of
from foresail.rollout.diary import Diary
from foresail.rollout.estimates import Estimates
from foresail.rollout.fleet import Fleet
from foresail.rollout.groups import Draw
from foresail.rollout.instance import Instance
from foresail.rollout.kv_pool import KVPool
from foresail.rollout.policies import build_policy
from foresail.rollout.simulation.clock import VirtualClock
from foresail.rollout.simulation.costs import StepCost
from foresail.rollout.simulation.drawn_text import to_weightless_sample
from foresail.rollout.simulation.instance import SimulatedInstance
from foresail.rollout.simulation.judges import Judges
from foresail.rollout.simulation.launchers import build_controller
from foresail.rollout.simulation.settings import Simulation
from foresail.rollout.simulation.workloads import Likeness, Problems, alike_by_copula
from foresail.rollout.simulation.world import World
from foresail.rollout.stream import Stream

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
    """One step of the real loop: fleet, scheduler, controller and stream are those of a run."""

    def __init__(
        self, simulation: Simulation, cost: StepCost, problems: Problems, share_before: float
    ) -> None:
        work, step = simulation.workload, simulation.step
        self._wanted, self._samples, self._problems = work.groups, work.samples, problems
        self._clock = VirtualClock()
        self._world = World(clock=self._clock, length=problems.length)
        machine = simulation.machine(cost)
        self._instances = [
            SimulatedInstance(f"i{place}", machine, self._world)
            for place in range(simulation.cluster.instances)
        ]
        self._judges = Judges(
            problems, self._clock, count=step.graders, after_all=step.grading == "after-all"
        )
        self._controller = build_controller(step, work.groups, share_before)
        self._stream = Stream(
            fleet=build_fleet(simulation, self._instances, problems, self._clock),
            problem_of=self._problem_of,
            draw=Draw(
                sampling=Sampling(max_new_tokens=work.max_tokens),
                num_samples=work.samples,
                stop_ids=(),
                seed=simulation.seed,
                step=0,
            ),
            judge=self._judges,
            controller=self._controller,
            worth=keep_all if step.launches == "all" else outcome_of,
            wait=self._clock.wait,
            read=to_weightless_sample,
        )

    def run(self) -> StepResult:
        for _ in self._stream:
            pass
        closing = self._controller.closing()
        assert closing is not None, "a stream ends with its step"
        return self._result(closing)

    def _problem_of(self, launch: int) -> PromptedProblem:
        self._judges.expect(self._samples)
        return self._problems.prompted(launch)

    def _result(self, closing: Closing) -> StepResult:
        seconds, ends = self._clock.now(), self._judges.ends
        engines = [instance.engine for instance in self._instances]
        cancelled = {str(group) for group in closing.cancelled}
        useful = sum(
            spent for name, spent in self._world.spent.items() if name.partition(".")[0] not in cancelled
        )
        return StepResult(
            seconds=seconds,
            drawing_seconds=ends[-1],
            tail_seconds=ends[-1] - ends[int(len(ends) * (1 - TAIL)) - 1],
            tokens=self._judges.tokens,
            idle_ratio=1 - useful / (seconds * len(engines)),
            waste_ratio=len(closing.surplus) / self._wanted,
            chosen=len(closing.chosen),
            launched_groups=self._stream.num_launched,
            cancelled_groups=len(cancelled),
            preemptions=sum(engine.preemptions for engine in engines),
            computed_again=round(sum(engine.computed_again for engine in engines)),
            migrations=sum(instance.migrations for instance in self._instances),
            decisions=self._stream.fleet.scheduler.decisions,
            share=closing.share,
            history={instance.state.name: instance.engine.history for instance in self._instances},
        )


def keep_all(group: Group) -> Outcome:
    """Where nothing is replaced, every group is wanted as it comes."""
    return Outcome(valid=True)


def build_fleet(
    simulation: Simulation, instances: Sequence[Instance], problems: Problems, clock: VirtualClock
) -> Fleet:
    rollout = simulation.rollout
    estimates = Estimates(partial(longest_before, problems)) if rollout.prior_lengths else Estimates()
    policy = build_policy(rollout.policy, estimates=estimates, true_length=problems.length)
    pool, diary = KVPool(simulation.cluster.host_bytes), Diary(clock.now)
    return Fleet(instances, policy, pool, chunk_tokens=rollout.chunk_tokens, diary=diary)


def longest_before(problems: Problems, group: int) -> int:
    """What a run remembers of a problem: the longest of its responses."""
    return max(problems[group].earlier)


def simulate(simulation: Simulation, *, likeness: Likeness = alike_by_copula) -> list[StepResult]:
    """One result a step; each step expects the share of valid groups that the one before it saw."""
    cost, share, results = simulation.cluster.step_cost(), simulation.workload.valid_share, []
    for number in range(simulation.steps):
        problems = Problems(simulation.workload, seed=simulation.seed, step=number, likeness=likeness)
        results.append(SimulatedStep(simulation, cost, problems, share).run())
        share = results[-1].share
    return results
