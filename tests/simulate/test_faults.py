"""Faults at random: instances die, news is late or comes twice, judges hang; what a step yields stays the same.

Six hundred steps of the real loop on simulated instances, each beside the same step undisturbed.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, replace

from faulty_fleets import A_WHILE, KINDS, Faulty, Grader
from small_simulations import COST

from foresail.data.problems.prompts import PromptedProblem
from foresail.data.selection.easy_pool import EasyPool
from foresail.data.selection.launch_order import LaunchOrder
from foresail.engine.noise import noise_key
from foresail.recipe.tables.parts import Sampling
from foresail.records import FAILURES, Problem
from foresail.rollout.collect import Collected, NoSignal, collect, teaches
from foresail.rollout.controller import Controller
from foresail.rollout.fleet import Fleet
from foresail.rollout.groups import GroupSpec, requests, to_spec
from foresail.rollout.instance import ChunkOrder, InstanceLost
from foresail.rollout.kv_pool import KVPool
from foresail.rollout.plan import SampleSpec
from foresail.rollout.policies import build_policy
from foresail.simulate.clock import VirtualClock
from foresail.simulate.engine import Machine
from foresail.simulate.instance import SimulatedInstance
from foresail.simulate.shared_state import SharedState

RUNS, STEPS = 12, 50
MAX_TOKENS = 24
PROBLEMS = [
    PromptedProblem(problem=Problem(id=f"{n}", prompt=(), answer=""), ids=(n, n, n)) for n in range(40)
]
GROUP_SPEC = GroupSpec(
    sampling=Sampling(max_new_tokens=MAX_TOKENS), num_samples=3, stop_ids=(), seed=0, step=0
)


@dataclass(frozen=True, kw_only=True)
class State:
    """What a run carries from step to step."""

    step: int = 0
    position: int = 0
    pool: EasyPool
    share: float = 0.5


class Run:
    """Instances under one fleet, and a clock; `step` does what `foresail rl` does."""

    def __init__(self, seed: int) -> None:
        self.clock, self.seed = VirtualClock(), seed
        self.shared = SharedState(clock=self.clock, ends=lambda spec: (self.length(spec),))
        self.launched: dict[int, tuple[int, str]] = {}  # group -> step, problem
        self.fleet = self.build_fleet()

    def build_fleet(self) -> Fleet:
        """Undisturbed: one large instance that runs everything at once, in one go."""
        machine = Machine(kv_tokens=10**6, max_running=10**4, cost=COST)
        calm = SimulatedInstance("calm", machine, self.shared)
        return Fleet([calm], build_policy("fifo"), KVPool(0), chunk_tokens=None)

    def length(self, spec: SampleSpec) -> int:
        """As fixed as a real response's: by seed, step, problem and sample."""
        return 1 + noise_key(self.seed, *self.launched[spec.group], spec.sample) % MAX_TOKENS

    def step(self, state: State, grader: Grader) -> tuple[Collected, State]:
        ids = [entry.problem.id for entry in PROBLEMS]
        launch_order = LaunchOrder(ids, state.pool, position=state.position, seed=self.seed, step=state.step)

        def problem_of(launch: int) -> PromptedProblem:
            entry = PROBLEMS[launch_order.pick(launch)]
            self.launched[self.fleet.next_group] = state.step, entry.problem.id
            return entry

        self.fleet.update_weights(state.step)
        try:
            collected = collect(
                self.fleet,
                problem_of,
                replace(GROUP_SPEC, seed=self.seed, step=state.step),
                grader,
                controller=Controller(num_groups=2, cap=8, share_before=state.share),
                usable=teaches,
                wait=self.clock.wait,
            )
        except NoSignal as stopped:
            collected = stopped.collected
        assert set(grader.handed_over.values()) == {1}, "a sample was generated twice"
        return collected, State(
            step=state.step + 1,
            position=launch_order.position_after(len(collected.launched)),
            pool=state.pool.after({g.problem.id: g.pass_rate for g in collected.launched if not g.failed}),
            share=collected.share,
        )

    def grader(self, *, faults: bool) -> Grader:
        return Grader(self.clock, faults=faults)


class DisturbedRun(Run):
    """A few small instances that come and go, a policy, chunks and a pool of any size."""

    def __init__(self, seed: int) -> None:
        self.numbers, self.seen = random.Random(seed), Counter()
        self.instances: list[Faulty] = []
        super().__init__(seed)

    def build_fleet(self) -> Fleet:
        numbers = self.numbers
        return Fleet(
            [self.new_instance() for _ in range(numbers.randint(2, 4))],
            build_policy(numbers.choice(["fifo", "group", "context"])),
            KVPool(numbers.choice([0, 3000, 10**6])),
            chunk_tokens=numbers.choice([4, 7, 12, None]),
        )

    def new_instance(self) -> Faulty:
        instance = Faulty(f"{len(self.instances)}", self.shared, self.numbers, self.seen)
        self.instances.append(instance)
        return instance

    def grader(self, *, faults: bool) -> Grader:
        return Grader(self.clock, faults=faults, numbers=self.numbers, seen=self.seen)

    def arrange_faults(self) -> None:
        """Before a step: who may die of it, and when others join. One is always spared."""
        alive = [instance for instance in self.instances if instance.alive]
        for instance in alive:
            instance.mortal = True
        self.numbers.choice(alive).mortal = False
        if self.numbers.random() < 0.3:
            victim = self.numbers.choice(alive)
            self.clock.at(self.clock.now() + self.numbers.random() * 5 * A_WHILE, victim.die)
        if len(alive) < 4 and self.numbers.random() < 0.7:
            self.clock.at(self.clock.now() + self.numbers.random() * 5 * A_WHILE, self.join)

    def join(self) -> None:
        self.seen["joins"] += 1
        self.fleet.add(self.new_instance())
        self.clock.wake()

    def check_books(self) -> None:
        """Nothing is left over of a step, but on machines that are gone."""
        fleet, scheduler = self.fleet, self.fleet.scheduler
        assert not fleet.open and len(fleet.pool) == 0 and fleet.pool.num_bytes == 0
        assert (scheduler.num_running, scheduler.num_waiting) == (0, 0)
        assert not scheduler._open and not scheduler._last and not scheduler._homes
        capacities = {name: instance.state.kv_tokens for name, instance in fleet.instances.items()}
        assert scheduler.free_tokens == capacities
        assert not any(i.load or i.resting for i in self.instances if i.state.name in fleet.instances)

    def faults(self) -> Counter[str]:
        events = Counter(event["what"] for event in self.fleet.event_log.take())
        ignored = Counter({"ignored news": events["late"], "cancelled groups": events["cancel"]})
        return self.seen + ignored + Counter({"evictions": self.fleet.pool.evictions})


class TakesOne(SimulatedInstance):
    """Gone when a second order comes."""

    num_orders = 0

    def submit(self, order: ChunkOrder) -> None:
        self.num_orders += 1
        if self.num_orders > 1:
            raise InstanceLost(self.state.name)
        super().submit(order)


def test_keys_and_values_outlive_an_order_that_found_its_instance_gone() -> None:
    clock = VirtualClock()
    shared = SharedState(clock=clock, ends=lambda spec: (20,))
    machine = Machine(kv_tokens=1000, max_running=4, cost=COST)
    other = SimulatedInstance("other", machine, shared)
    fleet = Fleet(
        [TakesOne("first", machine, shared), other], build_policy("fifo"), KVPool(10**6), chunk_tokens=8
    )
    request = requests(PROBLEMS[0], GROUP_SPEC, 0)[0]
    fleet.launch([to_spec(request, 0, 0)], [request])
    ended = fleet.work()
    while not ended:
        clock.wait()
        ended = fleet.work()
    assert len(ended[0].completion.ids) == 20 and [*fleet.instances] == ["other"]
    assert other.migrations == 1  # they came from the pool, and nothing was computed again


def test_whatever_goes_wrong_every_step_yields_what_it_yields_undisturbed() -> None:
    went_wrong: Counter[str] = Counter()
    for seed in range(RUNS):
        run = DisturbedRun(seed)
        run_beside_calm(run)
        went_wrong += run.faults()
    too_rare = {kind: went_wrong[kind] for kind in KINDS if went_wrong[kind] < RUNS}
    assert not too_rare, f"of {went_wrong}"


def run_beside_calm(disturbed: DisturbedRun) -> None:
    """Each step three times: disturbed, undisturbed with the same failing judges, and with sound ones."""
    calm, state = Run(disturbed.seed), State(pool=EasyPool(alpha=0.1))
    for _ in range(STEPS):
        disturbed.arrange_faults()
        found = disturbed.step(state, disturbed.grader(faults=True))
        disturbed.check_books()
        assert found == calm.step(state, calm.grader(faults=True)), f"seed {calm.seed}, step {state.step}"
        sound, _ = calm.step(state, calm.grader(faults=False))
        compare_with_sound_judges(found[0], sound)
        state = found[1]


def compare_with_sound_judges(collected: Collected, sound: Collected) -> None:
    """A judge that fails costs groups, never another verdict; where none failed, nothing differs at all."""
    for group, same in zip(collected.launched, sound.launched, strict=False):
        assert (group.problem, group.samples) == (same.problem, same.samples)
        for verdict, true in zip(group.verdicts, same.verdicts, strict=True):
            assert verdict == true or verdict.status in FAILURES
    if not any(group.failed for group in collected.launched):
        assert collected == sound
