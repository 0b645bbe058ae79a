"""Mixtures of sources: whose turn it is, in which order, until when; the same after a stop at any place."""

from __future__ import annotations

import json
import math
from collections import Counter

from foresail.data.selection.easy_pool import EasyPool
from foresail.data.selection.launch_order import LaunchOrder
from foresail.data.selection.order import problem_at
from foresail.data.selection.pass_window import PassWindow
from foresail.data.selection.supply import Supply, draw, open_supply
from foresail.recipe.tables.sources import ProblemSource

NAMES = ["a"] * 10 + ["b"] * 30  # the source of each problem
LEVELS = [1 + n % 2 for n in range(40)]
IDS = [f"p{n}" for n in range(40)]
NO_POOL = EasyPool(alpha=0.0)


def supply(a: dict[str, float | None], b: dict[str, float | None]) -> Supply:
    sources = [ProblemSource(source=f"{name}.jsonl", **given) for name, given in (("a", a), ("b", b))]  # type: ignore[arg-type]
    return open_supply(NAMES, LEVELS, sources)


def step(
    of: Supply,
    number: int,
    count: int,
    state: tuple[int, dict[str, int]],
    mix: tuple[float, ...] | None = None,
    window: PassWindow | None = None,
) -> tuple[list[int], tuple[int, dict[str, int]]]:
    """One step of so many launches: what it picked, and where it left off, as a checkpoint's JSON keeps it."""
    position, places = state
    strata = of.strata(mix, position=position, places=places)
    line = LaunchOrder(IDS, NO_POOL, position=position, seed=5, step=number, strata=strata, window=window)
    count = min(count, len(line))
    picked = [line.pick(launch) for launch in range(count)]
    after = line.position_after(count), {**places, **line.places_after(count)}
    return picked, json.loads(json.dumps(after))


def test_one_source_keeps_the_order_it_always_had():
    (share,) = open_supply(NAMES, LEVELS, [ProblemSource(source="x.jsonl", weight=7.0)]).shares
    strata = Supply(shares=(share,)).strata(None, position=13, places={})
    line = LaunchOrder(IDS, NO_POOL, position=13, seed=5, step=1, strata=strata)
    plain = LaunchOrder(IDS, NO_POOL, position=13, seed=5, step=1)
    assert [line.pick(n) for n in range(20)] == [plain.pick(n) for n in range(20)]
    assert [plain.pick(n) for n in range(20)] == [problem_at(13 + n, 40, 5) for n in range(20)]
    assert line.position_after(20) == 33 and line.places_after(20) == {}


def test_several_without_weights_are_one_after_the_other_in_one_order():
    together = supply({}, {})
    picked, (position, places) = step(together, 1, 12, (0, {}))
    assert picked == [problem_at(n, 40, 5) for n in range(12)] and (position, places) == (12, {})
    assert [*together.strata((1, 3, 0, 0, 0), position=0, places={})] == ["1", "2"]


def test_weights_share_the_launches_and_every_source_keeps_its_own_place():
    of = supply({"weight": 1.0}, {"weight": 3.0})
    state: tuple[int, dict[str, int]] = (0, {})
    drawn: Counter[str] = Counter()
    orders: dict[str, list[int]] = {"a": [], "b": []}
    for number in range(2000):
        picked, state = step(of, number, 4, state)
        for index in picked:
            drawn[NAMES[index]] += 1
            orders[NAMES[index]].append(index)
    assert abs(drawn["a"] - 2000) < 4 * math.sqrt(8000 * 0.25 * 0.75)
    assert state[0] == 0 and set(state[1]) == {"a", "b"}
    # in a pass of 30 each of b comes once, but for what a step that crosses into the next had picked already
    assert max(Counter(orders["b"]).values()) - min(Counter(orders["b"]).values()) <= 3


def test_the_weight_of_a_source_s_level_is_the_product():
    strata = supply({"weight": 2.0}, {"weight": 0.5}).strata(
        (1, 3, 0, 0, 0), position=0, places={"b/2": 7, "2": 9}
    )
    assert {name: (stratum.weight, stratum.place) for name, stratum in strata.items()} == {
        "a/1": (2.0, 0), "a/2": (6.0, 0), "b/1": (0.5, 0), "b/2": (1.5, 7),
    }  # fmt: skip
    assert all(NAMES[n] == "b" and LEVELS[n] == 2 for n in strata["b/2"].members)


def test_after_its_epochs_a_source_is_over_and_the_others_go_on():
    of, state = supply({"epochs": 2}, {}), (0, dict[str, int]())
    seen: Counter[int] = Counter()
    last = []
    for number in range(60):
        last, state = step(of, number, 4, state)
        seen.update(last)
    assert [seen[n] for n in range(10)] == [2] * 10 and state[1]["a"] == 20
    assert {NAMES[n] for n in last} == {"b"}


def test_when_all_are_over_a_step_finds_less_than_it_needs():
    for mix in (None, (1.0, 1.0, 0.0, 0.0, 0.0)):
        of, state = supply({"epochs": 1, "weight": 1}, {"epochs": 2, "weight": 1}), (0, dict[str, int]())
        picked: list[int] = []
        for number in range(40):
            found, state = step(of, number, 3, state, mix)
            picked += found
        counts = Counter(picked)
        assert [counts[n] for n in range(40)] == [1] * 10 + [2] * 30
        assert step(of, 99, 3, state, mix) == ([], state)


def test_a_lone_source_ends_too():
    of = open_supply(NAMES, LEVELS, [ProblemSource(source="x.jsonl", epochs=1)])
    state: tuple[int, dict[str, int]] = (0, {})
    picked: list[int] = []
    for number in range(9):
        found, state = step(of, number, 6, state)
        picked += found
    assert sorted(picked) == [*range(40)] and state == [40, {}]


def test_no_source_is_passed_more_often_than_it_may_be_with_a_window():
    """What lies outside is passed over, which takes its place in the pass as well."""
    window = PassWindow(low=0.1, high=0.9, visits=1, chance=0.5, rates={f"p{n}": [1.0] for n in range(5)})
    of, state = supply({"epochs": 2}, {"epochs": 1}), (0, dict[str, int]())
    seen: Counter[int] = Counter()
    for number in range(40):
        picked, state = step(of, number, 4, state, window=window)
        seen.update(picked)
    assert [seen[n] for n in range(5, 10)] == [2] * 5 and [seen[n] for n in range(10, 40)] == [1] * 30
    assert max(seen.values()) == 2 and sum(seen[n] for n in range(5)) < 10


def test_steps_cut_anywhere_draw_the_same():
    of = supply({"weight": 1.0, "epochs": 3}, {"weight": 2.0})
    whole, again = [], []
    state: tuple[int, dict[str, int]] = (0, {})
    for number in range(10):
        picked, state = step(of, number, 5, state)
        whole.append(picked)
        if number == 4:
            saved = json.loads(json.dumps(state))
    for number in range(5, 10):
        picked, saved = step(of, number, 5, (saved[0], saved[1]))
        again.append(picked)
    assert again == whole[5:]


# Conversations.


def test_conversations_of_one_source_come_in_the_data_s_own_order():
    of = open_supply(NAMES, [None] * 40, [ProblemSource(source="x.jsonl")])
    strata = of.strata(None, position=33, places={})
    assert draw(strata, 50, seed=5, position=33) == (
        [problem_at(33 + n, 40, 5) for n in range(50)],
        {"all": 83},
    )


def test_conversations_of_a_mixture_follow_weights_epochs_and_position_alone():
    of = supply({"weight": 1.0, "epochs": 2}, {"weight": 1.0})
    whole, places = draw(of.strata(None, position=0, places={}), 100, seed=5, position=0)
    counts = Counter(whole)
    assert [counts[n] for n in range(10)] == [2] * 10 and places == {"a": 20, "b": 80}
    head, between = draw(of.strata(None, position=0, places={}), 30, seed=5, position=0)
    tail, after = draw(of.strata(None, position=30, places=between), 70, seed=5, position=30)
    assert head + tail == whole and after == places


def test_conversations_end_with_the_last_epoch():
    of = supply({"weight": 1.0, "epochs": 1}, {"weight": 9.0, "epochs": 1})
    drawn, _ = draw(of.strata(None, position=0, places={}), 64, seed=5, position=0)
    assert sorted(drawn) == [*range(40)]
