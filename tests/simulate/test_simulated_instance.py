"""A simulated engine, its sums in closed form against steps taken one by one, and the instance around it."""

from __future__ import annotations

from typing import Any

import pytest
from small_simulations import COST

from foresail.engine.request import Parked, Request
from foresail.recipe.tables.parts import Sampling
from foresail.rollout.instance import ChunkOrder, Instance, Report
from foresail.rollout.kv_pool import num_bytes
from foresail.rollout.plan import Dispatch, SampleSpec
from foresail.simulate.clock import VirtualClock
from foresail.simulate.engine import Machine, RunningChunk, SimulatedEngine, seconds_for, steps_in
from foresail.simulate.generated_text import Repeated, ids_of, sample_of, to_weightless_sample
from foresail.simulate.instance import SimulatedInstance
from foresail.simulate.shared_state import SharedState

# An engine, against steps taken one by one.


def row(name: str, tokens: int, prompt: int = 100) -> RunningChunk:
    return RunningChunk(name=name, references=0, to_compute=prompt, context=prompt, left=tokens)


class Alone:
    """One engine and what ends there."""

    def __init__(self, kv_tokens: int = 10**9, max_running: int = 64) -> None:
        self.clock, self.ends, self.spent = VirtualClock(), {}, {}
        machine = Machine(kv_tokens=kv_tokens, max_running=max_running, cost=COST)
        self.engine = SimulatedEngine(machine, self.clock, self.ended, self.spent)

    def ended(self, names: list[str]) -> None:
        assert not set(names) & set(self.ends)
        self.ends |= dict.fromkeys(names, self.clock.now())


def step_by_step(arrivals: dict[str, tuple[float, int]], prompt: int = 100) -> dict[str, float]:
    """When rows end that arrive at a moment and draw so many tokens, one step after the other."""
    now, left, contexts, ends = 0.0, {}, {}, {}
    waiting = dict(sorted(arrivals.items(), key=lambda entry: entry[1][0]))
    while left or waiting:
        if not left:
            now = max(now, min(moment for moment, _ in waiting.values()))
        for name in [name for name, (moment, _) in waiting.items() if moment <= now]:
            left[name], contexts[name] = waiting.pop(name)[1], prompt
            now += prompt * COST.per_prefilled_token
        now += COST.step(entries=len(left), cached=sum(contexts.values()))
        for name in [*left]:
            left[name] -= 1
            contexts[name] += 1
            if left[name] == 0:
                ends[name] = now
                del left[name], contexts[name]
    return ends


def test_jumps_end_where_single_steps_end() -> None:
    arrivals = {"0.0": (0.0, 700), "0.1": (0.0, 50), "1.0": (0.0, 400), "1.1": (1.0, 900), "2.0": (30.0, 10)}
    alone = Alone()
    for name, (moment, tokens) in arrivals.items():
        alone.clock.at(moment, lambda name=name, tokens=tokens: alone.engine.add(row(name, tokens)))
    alone.clock.run()
    expected = step_by_step(arrivals)
    assert alone.ends.keys() == expected.keys()
    for name, moment in expected.items():
        assert alone.ends[name] == pytest.approx(moment, abs=2 * 0.005), (
            name
        )  # two steps: fractions of one count


def test_steps_and_seconds_are_inverse() -> None:
    for steps in (0.0, 0.3, 1000.0, 1e6):
        for longer in (0.0, 1e-9, 1e-5):
            assert steps_in(seconds_for(steps, 5e-3, longer), 5e-3, longer) == pytest.approx(steps)


def test_in_a_full_cache_the_last_row_is_put_back_computed_again_and_still_ends() -> None:
    roomy, tight = Alone(), Alone(kv_tokens=2500)
    for alone in (roomy, tight):
        for name in ("0.0", "0.1", "0.2"):
            alone.engine.add(row(name, 1000))
        alone.clock.run()
        assert alone.ends.keys() == {"0.0", "0.1", "0.2"}
    assert roomy.engine.preemptions == 0
    # Three rows of 100 + n fill 2500 at n = 733; the last waits at the front until another ends.
    assert tight.engine.preemptions == 1
    assert tight.engine.computed_again == pytest.approx(833, abs=2)
    assert tight.ends["0.2"] > tight.ends["0.0"] + 200 * COST.fixed
    assert roomy.ends["0.2"] == pytest.approx(roomy.ends["0.0"])


def test_rows_beyond_the_limit_wait_in_line() -> None:
    alone = Alone(max_running=2)
    for number, tokens in enumerate((100, 400, 100, 100)):
        alone.engine.add(row(f"0.{number}", tokens))
    alone.clock.run()
    assert [*alone.ends] == ["0.0", "0.2", "0.3", "0.1"]
    assert max(rows for _, rows in alone.engine.history) == 2


def test_a_cancelled_row_frees_its_cache_and_its_time_counts() -> None:
    alone = Alone()
    alone.engine.add(row("0.0", 1000))
    alone.engine.add(row("0.1", 1000))
    alone.clock.at(1.0, lambda: alone.engine.cancel("0.1"))
    alone.clock.at(1.0, lambda: alone.engine.cancel("9.9"))
    alone.clock.run()
    assert alone.ends.keys() == {"0.0"}
    assert alone.spent["0.1"] == pytest.approx(0.5)  # a second, shared by two
    assert alone.spent["0.0"] == pytest.approx(alone.ends["0.0"] - 0.5)
    assert alone.engine.busy_seconds == pytest.approx(sum(alone.spent.values()))


# The instance: orders in, reports out.

LENGTH = 250
MIGRATION = 1e-3


def shared(length: int = LENGTH) -> SharedState:
    return SharedState(clock=VirtualClock(), ends=lambda spec: (length,))


def instance(name: str, around: SharedState, **options: Any) -> SimulatedInstance:
    machine = Machine(
        **{
            "kv_tokens": 10_000,
            "max_running": 8,
            "cost": COST,
            "kv_bytes": 1000,
            "migration_seconds_per_token": MIGRATION,
        }
        | options
    )
    return SimulatedInstance(name, machine, around)


def order(place: Instance, work: Request | Parked) -> ChunkOrder:
    name, generated = (work.request.id, len(work.ids)) if isinstance(work, Parked) else (work.id, 0)
    spec = SampleSpec(id=name, group=0, sample=int(name[-1]), prompt_tokens=50, max_tokens=1000)
    dispatch = Dispatch(spec=spec, instance=place.state.name, generated=generated, max_tokens=100)
    return ChunkOrder(dispatch=dispatch, work=work)


def request(sample: int = 0) -> Request:
    return Request(id=f"0.{sample}", prompt=(0,) * 50, key=0, sampling=Sampling(max_new_tokens=1000))


def run_chunk(place: SimulatedInstance, work: Request | Parked, around: SharedState) -> tuple[Report, float]:
    """Its report, and the seconds it took."""
    start = around.clock.now()
    place.submit(order(place, work))
    assert place.load == 1 and place.poll() == []
    around.clock.wait()
    (report,) = place.poll()
    assert place.load == 0 and place.poll() == []
    return report, around.clock.now() - start


def parked_by(report: Report) -> Parked:
    assert report.parked is not None
    return report.parked


def test_chunks_come_back_parked_until_the_last_is_a_whole_response() -> None:
    around = shared()
    place = instance("a", around)
    place.update_weights(3)
    work: Request | Parked = request()
    ends = []
    for _ in range(3):
        report, _ = run_chunk(place, work, around)
        event, completion = report.event, report.completion
        ends.append((event.generated, event.new_tokens, event.finished, completion.finish))
        work = report.parked or work
    assert ends == [(0, 100, False, "chunk"), (100, 100, False, "chunk"), (200, 50, True, "stop")]
    assert completion.ids == ids_of(0, 0, LENGTH) and report.parked is None
    assert list(completion.versions) == [3] * LENGTH and list(completion.logprobs) == [0.0] * LENGTH


def test_keys_and_values_have_a_size_and_going_elsewhere_takes_time() -> None:
    around = shared()
    here, there = instance("here", around), instance("there", around)
    first, _ = run_chunk(here, request(), around)
    parked = parked_by(first)
    assert num_bytes(parked) == 150 * 1000
    stays, moves, recomputes = (
        run_chunk(place, work, around)[1]
        for place, work in ((here, parked), (there, parked), (there, parked.without_kv()))
    )
    assert moves == pytest.approx(stays + 150 * MIGRATION)
    assert recomputes == pytest.approx(stays + 150 * COST.per_prefilled_token)
    assert (here.migrations, there.migrations) == (0, 1)


def test_keys_and_values_of_other_weights_are_computed_again() -> None:
    around = shared()
    place = instance("a", around)
    parked = parked_by(run_chunk(place, request(), around)[0])
    same = run_chunk(place, parked, around)[1]
    place.update_weights(1)
    other = run_chunk(place, parked, around)[1]
    assert other == pytest.approx(same + 150 * COST.per_prefilled_token)


def test_what_is_cancelled_is_never_reported_wherever_it_is() -> None:
    around = shared()
    place, elsewhere = instance("a", around), instance("b", around)
    parked = parked_by(run_chunk(elsewhere, request(), around)[0])
    place.submit(order(place, parked))  # on its way
    place.submit(order(place, request(1)))  # running
    place.cancel("0.0")
    place.cancel("0.1")
    place.submit(order(place, request(2)))
    around.clock.wait()
    place.cancel("0.2")  # has ended, and nobody has asked
    around.clock.run()
    assert place.load == 0 and place.poll() == []
    assert place.engine.history[-1][1] == 0


def test_a_chunk_that_goes_on_with_something_else_is_refused() -> None:
    around = shared()
    place = instance("a", around)
    parked = parked_by(run_chunk(place, request(), around)[0])
    wrong = order(place, parked)
    with pytest.raises(AssertionError, match="something else"):
        place.submit(ChunkOrder(dispatch=order(place, request()).dispatch, work=parked))
    with pytest.raises(AssertionError, match="goes on with nothing"):
        place.submit(ChunkOrder(dispatch=wrong.dispatch, work=request()))


def test_text_takes_no_memory_and_tells_whose_it_is() -> None:
    for key in (12345678, -12345678):
        ids = ids_of(key, 7, 10**9)
        assert len(ids) == 10**9 and sample_of(ids) == 7
    assert ids_of(10**9, 7, 5) != ids_of(2 * 10**9, 7, 5)
    assert list(Repeated("x", 3)) == ["x"] * 3 and len(Repeated(0, 10)[2:5]) == 3
    with pytest.raises(IndexError):
        Repeated(0, 3)[3]
    report, _ = run_chunk(instance("a", (around := shared(10**8))), request(), around)
    sample = to_weightless_sample(report.completion)
    assert len(sample.ids) == len(sample.loss_mask) == len(sample.versions) == 100
