"""Which problems a step draws by level and within a window: shares, orders, returns, and exact state."""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from foresail.data.selection.easy_pool import EasyPool
from foresail.data.selection.launch_order import LaunchOrder
from foresail.data.selection.order import problem_at
from foresail.data.selection.pass_window import PassWindow
from foresail.data.selection.strata import Stratum
from foresail.data.selection.supply import Share, Supply, by_level
from foresail.rollout.controller import Controller

NO_POOL = EasyPool(alpha=0.0)
LEVELS = [1 + n % 5 for n in range(60)]  # p0 is of level 1, p1 of level 2, …
MEMBERS = by_level(range(60), LEVELS)


def names(count: int) -> list[str]:
    return [f"p{number}" for number in range(count)]


def level_decks(
    weights: Sequence[float], members: Any, places: dict[str, int] | None = None
) -> dict[str, Stratum]:
    share = Share(name="", weight=1.0, epochs=None, members=(), levels=members)
    return Supply(shares=(share,)).strata(weights, position=0, places=places or {})


def window(rates: dict[str, list[float]], chance: float = 0.0, visits: int = 3) -> PassWindow:
    return PassWindow(low=0.05, high=0.95, visits=visits, chance=chance, rates=rates)


def launch_order(
    *weights: float,
    places: dict[str, int] | None = None,
    pool: EasyPool = NO_POOL,
    step: int = 1,
    **more: Any,
) -> LaunchOrder:
    strata = level_decks(weights, MEMBERS, places) if weights else None
    return LaunchOrder(
        names(60), pool, position=more.pop("position", 0), seed=3, step=step, strata=strata, **more
    )


def picks(line: LaunchOrder, count: int | None = None) -> list[int]:
    return [line.pick(launch) for launch in range(len(line) if count is None else count)]


# Levels.


def test_levels_are_drawn_by_their_weights():
    drawn: Counter[int] = Counter()
    for step in range(2000):
        drawn.update(LEVELS[pick] for pick in picks(launch_order(6, 3, 0, 0, 1, step=step), 8))
    total = 16_000
    for level, share in {1: 0.6, 2: 0.3, 5: 0.1}.items():
        assert abs(drawn[level] - share * total) < 4 * math.sqrt(total * share * (1 - share))
    assert drawn[3] == drawn[4] == 0


def test_a_level_s_problems_all_come_once_in_a_pass_whatever_the_weights_in_between():
    """Stages with other weights, and one without a mix, leave every stratum where it was."""
    places: dict[str, int] = {}
    seen: dict[int, list[int]] = {level: [] for level in MEMBERS}
    stages = [(1, 1, 0, 0, 0), (), (0, 1, 3, 1, 0), (1, 0, 0, 0, 2), (1, 1, 1, 1, 1)]
    for step in range(300):  # of one launch each: a step that crosses into a new pass may have to skip
        line = launch_order(*stages[step // 60], places=places, step=step)
        for pick in picks(line, 1) if stages[step // 60] else ():
            seen[LEVELS[pick]].append(pick)
        places = {**places, **line.places_after(1)}
    for level, drawn in seen.items():
        assert len(drawn) > 12 and places[str(level)] == len(drawn)
        for start in range(0, len(drawn) - 11, 12):
            assert sorted(drawn[start : start + 12]) == MEMBERS[level]


def test_a_mix_has_its_own_places_and_leaves_the_data_s_position_alone():
    line = launch_order(1, 0, 0, 0, 0, position=17)
    assert (
        line.position_after(4) == 17 and line.places_after(4) == {"1": 4} and line.places_after(0) == {"1": 0}
    )
    plain = launch_order(position=17)
    assert plain.position_after(4) == 21 and plain.places_after(4) == {}


def test_a_step_draws_its_levels_once_each_and_no_others():
    line = launch_order(2, 0, 1, 0, 0, places={"1": 7, "3": 100})
    assert len(line) == 24
    assert sorted(picks(line)) == sorted(MEMBERS[1] + MEMBERS[3])


def test_when_a_level_is_used_up_the_others_go_on():
    few = level_decks((1000, 1, 0, 0, 0), {1: [4], 2: [5, 6, 7]})
    line = LaunchOrder(names(10), NO_POOL, position=0, seed=0, step=0, strata=few)
    assert sorted(picks(line)) == [4, 5, 6, 7] and line.pick(0) == 4


def test_problems_without_a_level_are_in_no_deck_but_may_be_easy():
    members = by_level(range(5), [1, None, 1, None, 2])
    assert members == {1: [0, 2], 2: [4]}
    strata = level_decks((1, 0, 0, 0, 0), members)
    assert sorted(picks(LaunchOrder(names(5), NO_POOL, position=0, seed=0, step=0, strata=strata))) == [0, 2]
    pool = EasyPool(alpha=0.5, problems=("p3", "p4"))
    assert sorted(picks(LaunchOrder(names(5), pool, position=0, seed=0, step=0, strata=strata))) == [
        0,
        2,
        3,
        4,
    ]


# The window.


def test_the_latest_visits_make_the_rate():
    before = window({"a": [0.0, 0.0, 0.5], "b": [1.0]}, visits=3)
    after = before.after({"a": 0.25, "c": 0.0})
    assert after.rates == {"a": [0.0, 0.5, 0.25], "b": [1.0], "c": [0.0]}
    assert before.rates == {"a": [0.0, 0.0, 0.5], "b": [1.0]}
    assert after.outside() == {"b", "c"} and after.sizes() == {"below": 1, "inside": 1, "above": 1}
    assert window(json.loads(json.dumps(after.state()))) == after


def test_outside_the_window_is_passed_over_and_the_unknown_is_drawn():
    rates = {f"p{n}": [0.0] for n in range(20)} | {f"p{n}": [1.0] for n in range(20, 30)}
    rates |= {f"p{n}": [0.5] for n in range(30, 40)}
    line = launch_order(position=5, window=window(rates))
    order = [problem_at(place, 60, 3) for place in range(5, 125)]
    wanted = [*dict.fromkeys(pick for pick in order if pick >= 30)]
    assert picks(line, 30) == wanted
    # the position is past what was passed over, too
    assert line.position_after(3) == 5 + order.index(wanted[2]) + 1


def test_when_nothing_else_is_left_the_outside_is_drawn():
    line = launch_order(0, 1, 0, 0, 0, window=window({f"p{n}": [1.0] for n in MEMBERS[2][:9]}))
    drawn = picks(line)
    assert set(drawn[:3]) == set(MEMBERS[2][9:]) and sorted(drawn) == MEMBERS[2]


def test_in_every_pass_what_is_outside_returns_with_its_chance():
    outside = {f"p{n}": [0.0] for n in range(30)}
    returned, position, steps = 0, 0, 3000
    for step in range(steps):
        line = launch_order(position=position, step=step, window=window(outside, chance=0.2))
        returned += sum(pick < 30 for pick in picks(line, 10))
        position = line.position_after(10)
    visits = 30 * position / 60
    assert abs(returned - 0.2 * visits) < 4 * math.sqrt(visits * 0.2 * 0.8)


def test_the_easy_pool_goes_before_the_window():
    """A problem in the pool comes back by alpha, not by the window's chance."""
    pool = EasyPool(alpha=1.0, problems=("p4",))
    assert launch_order(pool=pool, window=window({"p4": [1.0]})).pick(0) == 4


# State over many steps.


State = dict[str, Any]
Trace = list[tuple[list[str], State]]
STAGES = {0: (1, 1, 0, 0, 0), 1: (), 2: (0, 0.5, 1, 1, 0.2)}


def rate_in(step: int, problem: str) -> float | None:
    """A problem's pass rate in a step, a pure function as the samples' noise makes it; None: not gradable."""
    return random.Random(f"{step} {problem}").choice([0.0, 0.25, 0.5, 0.75, 1.0, None])


def train(state: State, first: int, last: int, ends: Callable[[list[int]], int]) -> Trace:
    """Chosen problems and the state after every step, when `ends` says which group ends next."""
    trace: Trace = []
    for step in range(first, last + 1):
        state = json.loads(json.dumps(state))
        pool = EasyPool(alpha=0.2, problems=tuple(state["easy"]))
        watched = window(state["rates"], chance=0.3)
        weights = STAGES[(step - 1) // 8]
        line = launch_order(
            *weights, places=state["places"], pool=pool, step=step, position=state["position"], window=watched
        )
        controller = Controller(num_groups=4, cap=len(line), share_before=state["share"])
        running: list[int] = []
        count = 0
        while (closing := controller.closing()) is None:
            for _ in range(controller.next_launches()):
                controller.launched(count)
                running.append(count)
                count += 1
            running.remove(group := ends(running))
            controller.scored(group, valid=rate_in(step, f"p{line.pick(group)}") in (0.25, 0.5, 0.75))
        prefix = {f"p{line.pick(group)}": rate_in(step, f"p{line.pick(group)}") for group in closing.prefix}
        graded = {problem: rate for problem, rate in prefix.items() if rate is not None}
        state = {
            "position": line.position_after(len(prefix)),
            "places": {**state["places"], **line.places_after(len(prefix))},
            "easy": pool.after(graded).state(),
            "rates": watched.after(graded).state(),
            "share": closing.share,
        }
        trace.append(([f"p{line.pick(group)}" for group in closing.chosen], state))
    return trace


FRESH: State = {"position": 0, "places": {}, "easy": [], "rates": {}, "share": 1.0}


@settings(max_examples=20, deadline=None)
@given(order=st.randoms(use_true_random=False), stop=st.integers(1, 23))
def test_a_run_is_the_same_whatever_ends_first_and_wherever_it_is_resumed(order, stop):
    expected = train(FRESH, 1, 24, lambda running: running[0])
    assert any(state["easy"] for _, state in expected) and expected[-1][1]["places"].keys() == {
        "1",
        "2",
        "3",
        "4",
        "5",
    }
    before = train(FRESH, 1, stop, order.choice)
    after = train(before[-1][1], stop + 1, 24, order.choice)
    assert before + after == expected
