"""A simulated engine: its sums in closed form against steps taken one by one."""

from __future__ import annotations

import pytest
from small_simulations import COST

from foresail.rollout.plan import Ask, ChunkEnded, Dispatch
from foresail.rollout.simulation.clock import VirtualClock
from foresail.rollout.simulation.instance import Row, SimulatedInstance, seconds_for, steps_in

# An instance, against steps taken one by one.


def ask(name: str, prompt: int = 100) -> Ask:
    group, sample = map(int, name.split("."))
    return Ask(id=name, group=group, sample=sample, prompt_tokens=prompt, max_tokens=100_000)


def row(name: str, new_tokens: int, prompt: int = 100) -> Row:
    dispatch = Dispatch(ask=ask(name, prompt), instance="i", generated=0, max_tokens=new_tokens)
    return Row(
        dispatch=dispatch,
        finished=True,
        new_tokens=new_tokens,
        references=0,
        to_compute=prompt,
        context=prompt,
        left=new_tokens,
    )


class Alone:
    """One instance and what it reports."""

    def __init__(self, kv_tokens: int = 10**9, max_running: int = 64) -> None:
        self.clock, self.ends, self.spent = VirtualClock(), {}, {}
        self.instance = SimulatedInstance(
            "i",
            kv_tokens=kv_tokens,
            max_running=max_running,
            cost=COST,
            gain=None,
            clock=self.clock,
            report=self.ended,
            spent=self.spent,
        )

    def ended(self, event: ChunkEnded) -> None:
        assert event.ask.id not in self.ends
        self.ends[event.ask.id] = self.clock.now()


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
        alone.clock.at(moment, lambda name=name, tokens=tokens: alone.instance.submit(row(name, tokens)))
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


def test_without_room_the_last_row_is_put_back_computed_again_and_still_ends() -> None:
    roomy, tight = Alone(), Alone(kv_tokens=2500)
    for alone in (roomy, tight):
        for name in ("0.0", "0.1", "0.2"):
            alone.instance.submit(row(name, 1000))
        alone.clock.run()
        assert alone.ends.keys() == {"0.0", "0.1", "0.2"}
    assert roomy.instance.preemptions == 0
    # Three rows of 100 + n fill 2500 at n = 733; the last waits at the front until another ends.
    assert tight.instance.preemptions == 1
    assert tight.instance.computed_again == pytest.approx(833, abs=2)
    assert tight.ends["0.2"] > tight.ends["0.0"] + 200 * COST.fixed
    assert roomy.ends["0.2"] == pytest.approx(roomy.ends["0.0"])


def test_rows_beyond_the_limit_wait_in_line() -> None:
    alone = Alone(max_running=2)
    for number, tokens in enumerate((100, 400, 100, 100)):
        alone.instance.submit(row(f"0.{number}", tokens))
    alone.clock.run()
    assert [*alone.ends] == ["0.0", "0.2", "0.3", "0.1"]
    assert max(rows for _, rows in alone.instance.history) == 2


def test_a_cancelled_row_leaves_its_room_and_its_time_is_booked() -> None:
    alone = Alone()
    alone.instance.submit(row("0.0", 1000))
    alone.instance.submit(row("0.1", 1000))
    alone.clock.at(1.0, lambda: alone.instance.cancel("0.1"))
    alone.clock.at(1.0, lambda: alone.instance.cancel("9.9"))
    alone.clock.run()
    assert alone.ends.keys() == {"0.0"}
    assert alone.spent["0.1"] == pytest.approx(0.5)  # a second, shared by two
    assert alone.spent["0.0"] == pytest.approx(alone.ends["0.0"] - 0.5)
    assert alone.instance.busy_seconds == pytest.approx(sum(alone.spent.values()))
