"""Simulates a step's rollout: the loop of a real run with simulated engines and judges.

    result = simulate(load_simulation("recipes/simulate/seer-moonlight.toml", ["rollout.policy=group"]))

The results are throughput, tail, idle and waste ratios, and the rows of each instance over time. The assumptions
are the keys of the TOML file and the module docstrings of `costs`, `workloads`, `tools`, `drafting_gain`, `engine`
and `instance`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from foresail.data.problems.prompts import PromptedProblem
from foresail.recipe.tables.parts import Sampling
from foresail.rollout.collect import teaches
from foresail.rollout.controller import Controller, StepEnd
from foresail.rollout.event_log import EventLog
from foresail.rollout.fleet import Fleet
from foresail.rollout.groups import GroupSpec
from foresail.rollout.instance import Instance
from foresail.rollout.kv_pool import KVPool
from foresail.rollout.policies import build_policy
from foresail.rollout.stream import Stream, StreamKind
from foresail.simulate.clock import VirtualClock
from foresail.simulate.costs import StepCost
from foresail.simulate.episodes import EpisodeCount, SimulatedEpisodes
from foresail.simulate.fleet import AnnouncedFleet
from foresail.simulate.generated_text import to_weightless_sample
from foresail.simulate.host_time import HostTime
from foresail.simulate.instance import SimulatedInstance
from foresail.simulate.judges import Judges
from foresail.simulate.settings import Simulation, Step
from foresail.simulate.shared_state import SharedState
from foresail.simulate.workloads import Problems

TAIL = 0.1  # share of the requests that end last


@dataclass(frozen=True, kw_only=True)
class StepResult:
    """The figures of one step; seconds are simulated, up to the last needed verdict."""

    seconds: float
    generating_seconds: float  # until the last sample ended
    tail_seconds: float  # of these, after nine tenths of the requests
    tokens: int
    idle_ratio: float  # of all instances' time; work on cancelled groups counts as idle
    waste_ratio: float  # unused valid groups over required ones
    chosen: int
    launched_groups: int
    cancelled_groups: int
    preemptions: int
    computed_again: int  # tokens
    migrations: int
    decisions: int
    share: float  # of valid groups, for the next step
    history: dict[str, list[tuple[float, int]]]  # instance -> time and the number of rows from then on
    episodes: EpisodeCount | None  # None without tools
    trained: tuple[int, ...]  # tokens of the training samples, prompts included
    sibling_messages: int  # messages to instances with siblings' texts
    sibling_tokens: int  # tokens in them
    grading_seconds: float  # total of all verdicts
    host_seconds: float = field(compare=False)  # real CPU seconds: see `host_time`

    @property
    def tokens_per_second(self) -> float:
        return self.tokens / self.generating_seconds


class SimulatedStep:
    """One step of the real loop with a run's fleet, scheduler, controller and stream."""

    def __init__(
        self, simulation: Simulation, cost: StepCost, problems: Problems, share_before: float
    ) -> None:
        work, step = simulation.workload, simulation.step
        self._wanted, self._samples, self._problems = work.groups, work.samples, problems
        self._clock = VirtualClock()
        self._shared = SharedState(clock=self._clock, ends=problems.ends)
        machine = simulation.machine(cost)
        self._instances = [
            SimulatedInstance(f"i{place}", machine, self._shared)
            for place in range(simulation.cluster.instances)
        ]
        self._judges = Judges(
            problems, self._clock, count=step.graders, after_all=step.grading == "after-all"
        )
        self._host = HostTime()
        self._controller = build_controller(step, work.groups, share_before)
        stream: StreamKind = Stream
        if work.tools is not None:
            stream = partial(SimulatedEpisodes, problems=problems, clock=self._clock)
        self._stream = stream(
            fleet=build_fleet(simulation, self._instances, problems, self._shared),
            problem_of=self._problem_of,
            group_spec=GroupSpec(
                sampling=Sampling(max_new_tokens=work.max_new_tokens),
                num_samples=work.samples,
                stop_ids=(),
                seed=simulation.seed,
                step=0,
            ),
            judge=self._judges,
            controller=self._controller,
            usable=teaches if step.launches != "all" else lambda group: True,
            wait=self._host.left_out(self._clock.wait),
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

    def _result(self, closing: StepEnd) -> StepResult:
        host_seconds = self._host.seconds()
        seconds, ends = self._clock.now(), self._judges.ends
        engines = [instance.engine for instance in self._instances]
        cancelled = {str(group) for group in closing.cancelled}
        useful = sum(
            spent for name, spent in self._shared.spent.items() if name.partition(".")[0] not in cancelled
        )
        return StepResult(
            seconds=seconds,
            generating_seconds=ends[-1],
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
            episodes=self._stream.count if isinstance(self._stream, SimulatedEpisodes) else None,
            trained=self._trained(closing.chosen),
            sibling_messages=self._shared.sibling_texts.messages,
            sibling_tokens=self._shared.sibling_texts.tokens,
            grading_seconds=self._judges.grading_seconds,
            host_seconds=host_seconds,
        )

    def _trained(self, groups: Sequence[int]) -> tuple[int, ...]:
        prompt = self._problems.workload.prompt_tokens
        return tuple(prompt + ends[-1] for group in groups for ends in self._problems[group].ends)


# Baselines of the controller: other rules for launches and the end of a step.


class Patient(Controller):
    """Continuous launches without early termination: running groups finish."""

    def closing(self) -> StepEnd | None:
        return super().closing() if self.num_active == 0 else None


class Rounds(Patient):
    """Naive dynamic sampling: whole batches of the required size until enough groups are valid."""

    def next_launches(self) -> int:
        return 0 if self.num_active else min(self.num_groups, self.cap - len(self._order))


def build_controller(step: Step, wanted: int, share_before: float) -> Controller:
    if step.launches == "all":
        return Controller.for_all(wanted)
    build = Rounds if step.launches == "rounds" else Controller if step.early_termination else Patient
    return build(num_groups=wanted, cap=wanted * step.launch_cap, share_before=share_before)


def build_fleet(
    simulation: Simulation, instances: Sequence[Instance], problems: Problems, shared: SharedState
) -> Fleet:
    rollout = simulation.rollout
    policy = build_policy(rollout.policy, true_length=problems.length)
    pool, event_log = KVPool(simulation.cluster.host_bytes), EventLog(shared.clock.now)
    return AnnouncedFleet(
        instances, policy, pool, shared.news, chunk_tokens=rollout.chunk_tokens, event_log=event_log
    )


def simulate(simulation: Simulation) -> list[StepResult]:
    """One result per step; each step expects the share of valid groups of the one before."""
    cost, share, results = simulation.cluster.step_cost(), simulation.workload.valid_share, []
    for number in range(simulation.steps):
        problems = Problems(simulation.workload, seed=simulation.seed, step=number)
        results.append(SimulatedStep(simulation, cost, problems, share).run())
        share = results[-1].share
    return results
