"""Simulated instances and judges that fail at random, on a virtual clock, for tests of what must not change."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from small_simulations import COST

from foresail.engine.request import Parked
from foresail.records import Problem, Sample, Status, Verdict
from foresail.rollout.instance import ChunkOrder, InstanceLost, Report
from foresail.rollout.plan import InstanceState, SampleSpec
from foresail.simulate.clock import VirtualClock
from foresail.simulate.engine import Machine
from foresail.simulate.instance import SimulatedInstance
from foresail.simulate.judges import KnownVerdict
from foresail.simulate.shared_state import SharedState

# How many calls an instance may live to see, by the call that finds it gone.
FATES = {"submit": 25, "poll": 250, "park": 4, "learn": 80, "cancel": 3, "update_weights": 4}
A_WHILE = 0.05  # virtual seconds: some ten steps of an engine
KINDS = (
    *(f"gone at {call}" for call in FATES),
    *("gone", "joins", "late", "twice", "ignored news", "hangs", "dies", "cancelled groups", "evictions"),
)


class Faulty:
    """A simulated instance whose reports come late, twice and in disorder, and which is gone one day."""

    works_by_itself = True

    def __init__(self, name: str, shared: SharedState, numbers: random.Random, seen: Counter[str]) -> None:
        machine = Machine(
            kv_tokens=numbers.randint(60, 150),
            max_running=numbers.randint(1, 5),
            cost=COST,
            kv_bytes=100,
            migration_seconds_per_token=1e-4,
        )
        self.inner = SimulatedInstance(name, machine, shared)
        self.clock, self.numbers, self.seen = shared.clock, numbers, seen
        self.fate = numbers.choice([*FATES])
        self.calls_left = numbers.randint(1, FATES[self.fate])
        self.mortal, self.alive, self.closed = True, True, False
        self.arrived: list[Report] = []
        self.rests = numbers.random() < 0.5
        self.resting: dict[str, Parked] = {}

    @property
    def state(self) -> InstanceState:
        return self.inner.state

    @property
    def load(self) -> int:
        return self.inner.load

    def submit(self, order: ChunkOrder) -> None:
        if parked := self.resting.pop(order.dispatch.spec.id, None):
            order = replace(order, work=parked)
        if self.numbers.random() < 0.5:  # it may have come through, or not
            self._live_through("submit")
            self.inner.submit(order)
        else:
            self.inner.submit(order)
            self._live_through("submit")

    def cancel(self, request_id: str) -> None:
        self._live_through("cancel")
        self.resting.pop(request_id, None)
        self.inner.cancel(request_id)

    def poll(self) -> list[Report]:
        self._live_through("poll")
        for report in self.inner.poll():
            self._deliver(report)
        arrived, self.arrived = self.arrived, []
        self.numbers.shuffle(arrived)
        return arrived

    def park(self, request_id: str) -> Parked | None:
        self._live_through("park")
        return self.resting.pop(request_id)

    def learn(self, spec: SampleSpec, ids: Sequence[int]) -> None:
        self._live_through("learn")
        self.inner.learn(spec, ids)

    def update_weights(self, version: int) -> None:
        self._live_through("update_weights")
        self.inner.update_weights(version)

    def close(self) -> None:
        self.closed = True
        self.inner.close()

    def die(self) -> None:
        """Without a word; whoever calls next will find out."""
        if self.mortal and self.alive:
            self.alive = False
            self.seen["gone"] += 1
            self.clock.wake()

    def _live_through(self, call: str) -> None:
        assert not self.closed, f"{call} to an instance that was given up"
        if self.mortal and self.alive and call == self.fate:
            self.calls_left -= 1
            self.alive = self.calls_left > 0
            self.seen[f"gone at {call}"] += not self.alive
        if not self.alive:
            raise InstanceLost(self.state.name)

    def _deliver(self, report: Report) -> None:
        """At once or later; some come again, in the middle of a later chunk, another step or another life."""
        if self.rests and report.parked is not None:
            self.resting[report.event.spec.id] = report.parked
            report = replace(report, state="resting", parked=None)
        if self.numbers.random() < 0.8:
            self.arrived.append(report)
        else:
            self._deliver_later(report, "late", A_WHILE)
        for patience in (A_WHILE, 20 * A_WHILE):
            if self.numbers.random() < 0.15:
                self._deliver_later(report, "twice", patience)

    def _deliver_later(self, report: Report, what: str, patience: float) -> None:
        def arrive() -> None:
            self.arrived.append(report)
            self.clock.wake()

        self.seen[what] += 1
        self.clock.at(self.clock.now() + self.numbers.random() * patience, arrive)


class Grader:
    """Verdicts follow from the text alone; when they come does not, where there are `numbers` to choose it by.

    With `faults` one in forty hangs, and as many die; the verdict says so, and late.
    """

    def __init__(
        self,
        clock: VirtualClock,
        *,
        faults: bool,
        numbers: random.Random | None = None,
        seen: Counter[str] | None = None,
    ) -> None:
        self.clock, self.faults, self.numbers, self.seen = (
            clock,
            faults,
            numbers,
            Counter() if seen is None else seen,
        )
        self.handed_over: Counter[tuple[str, int]] = Counter()

    def __call__(self, problem: Problem, sample: Sample) -> KnownVerdict:
        text = sample.ids[sample.loss_mask.index(1)]  # the first token tells all
        self.handed_over[problem.id, text] += 1
        status = self.status(problem, text)
        score = float(status == "correct")
        judged = KnownVerdict(Verdict(status=status, score=score))
        self.clock.at(self.clock.now() + self.seconds(status), lambda: self.finish(judged))
        return judged

    def finish(self, judged: KnownVerdict) -> None:
        judged.finish()
        self.clock.wake()

    def status(self, problem: Problem, text: int) -> Status:
        coin = random.Random(f"{problem.id} {text}")
        fault, right = coin.random(), coin.random() < int(problem.id) % 5 / 4
        if self.faults and fault < 0.05:
            return "timeout" if fault < 0.025 else "crashed"
        return "correct" if right else "wrong"

    def seconds(self, status: Status) -> float:
        if self.numbers is None:
            return 0.0
        self.seen["hangs"] += status == "timeout"
        self.seen["dies"] += status == "crashed"
        return 10.0 if status == "timeout" else self.numbers.expovariate(1 / A_WHILE)
