"""Whose turn it is: every policy against what it promises, `context` against Algorithm 2 written as it is told."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foresail.rollout.plan import SampleSpec
from foresail.rollout.policies import Context, Policy, build_policy
from foresail.rollout.ranking import Ranking

MAX_TOKENS = 40


def spec(group: int, sample: int, max_tokens: int = MAX_TOKENS) -> SampleSpec:
    return SampleSpec(
        id=f"{group}.{sample}", group=group, sample=sample, prompt_tokens=5, max_tokens=max_tokens
    )


def push_groups(policy: Policy, *sizes: int) -> None:
    for group, size in enumerate(sizes):
        for sample in range(size):
            policy.push(spec(group, sample), 0)


def pops(policy: Policy, count: int, tokens: int = 10) -> list[str]:
    return [policy.pop(tokens).spec.id for _ in range(count)]


# fifo, group, oracle


def test_fifo_keeps_a_requests_place_between_its_chunks() -> None:
    policy = build_policy("fifo")
    push_groups(policy, 2, 2)
    assert pops(policy, 3) == ["0.0", "0.1", "1.0"]
    policy.push(spec(0, 1), 10)
    assert pops(policy, 2) == ["0.1", "1.1"]
    assert policy.peek() is None


def test_only_group_keeps_groups_whole() -> None:
    policies = {name: build_policy(name, true_length=len) for name in ("fifo", "group", "context", "oracle")}  # type: ignore[arg-type]
    assert [name for name, policy in policies.items() if policy.whole_groups] == ["group"]


def test_oracle_goes_by_true_lengths() -> None:
    lengths = {"0.0": 3, "0.1": 30, "1.0": 8, "1.1": 30}
    policy = build_policy("oracle", true_length=lambda spec: lengths[spec.id])
    push_groups(policy, 2, 2)
    assert pops(policy, 4) == ["0.1", "1.1", "1.0", "0.0"]


@pytest.mark.parametrize(("name", "told"), [("oracle", "true lengths"), ("lifo", "fifo, group, context")])
def test_what_cannot_be_built_says_what_can(name: str, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        build_policy(name)


# context


def test_probes_go_first_then_the_longest_group() -> None:
    policy = build_policy("context")
    push_groups(policy, 3, 3, 3)
    assert pops(policy, 3) == ["0.0", "1.0", "2.0"]
    policy.finished(spec(1, 0), 9)
    policy.finished(spec(0, 0), 25)
    assert pops(policy, 6) == ["2.1", "2.2", "0.1", "0.2", "1.1", "1.2"]


def test_the_probe_with_fewest_tokens_goes_first() -> None:
    policy = build_policy("context")
    push_groups(policy, 1, 1, 1)
    pops(policy, 3)
    for group, generated in ((0, 20), (1, 30), (2, 10)):
        policy.push(spec(group, 0), generated)
    assert pops(policy, 3) == ["2.0", "0.0", "1.0"]


def test_a_probe_stays_one_through_all_its_chunks() -> None:
    policy = build_policy("context")
    push_groups(policy, 2, 2)
    pops(policy, 2)
    policy.push(spec(1, 0), 10)
    pick = policy.peek()
    assert pick is not None and (pick.spec.id, pick.why) == ("1.0", "probe")


def test_the_guard_serves_the_group_with_fewest_tokens() -> None:
    policy = Context(guard_every=3)
    push_groups(policy, 6, 6)
    pops(policy, 2)
    policy.finished(spec(1, 0), 5)  # group 1 seems short, so only the guard lets it run
    assert pops(policy, 6) == ["0.1", "0.2", "1.1", "0.3", "0.4", "1.2"]


def test_the_guard_goes_by_tokens_not_by_picks() -> None:
    policy = Context(guard_every=1)
    push_groups(policy, 4, 4)
    assert [policy.pop(tokens).spec.id for tokens in (30, 10)] == ["0.0", "1.0"]
    assert pops(policy, 5) == [
        "1.1",
        "1.2",
        "0.1",
        "1.3",
        "0.2",
    ]  # 30:10, 30:20, 30:30, 40:30, and only 0 waits


def test_by_default_each_sixteenth_pick_is_guarded() -> None:
    policy = build_policy("context")
    push_groups(policy, 40)
    assert [policy.pop(10).why for _ in range(33)] == ["probe", *(["longest"] * 15 + ["underserved"]) * 2]


def test_within_a_group_few_are_half_way() -> None:
    policy = build_policy("context")
    push_groups(policy, 4)
    assert pops(policy, 3) == ["0.0", "0.1", "0.2"]
    policy.push(spec(0, 2), 10)
    assert pops(policy, 2) == ["0.2", "0.3"]


def test_unknown_is_long_then_the_first_replaces_and_later_ones_lengthen() -> None:
    policy = Context()
    push_groups(policy, 2)
    seen = [policy._groups[0].length]
    for length in (30, 20, 50):
        policy.finished(spec(0, 0), length)
        seen.append(policy._groups[0].length)
    assert seen == [MAX_TOKENS, 30, 30, 50]


def test_a_group_that_is_dropped_leaves_no_estimate_behind() -> None:
    policy = Context()
    push_groups(policy, 2)
    policy.drop(0)
    assert policy._groups == {}


class AlgorithmTwo:
    """Seer's Algorithm 2 over plain lists, everything looked for anew at every pick."""

    def __init__(self, guard_every: int) -> None:
        self.guard_every = guard_every
        self.waiting: list[tuple[SampleSpec, int]] = []
        self.ended: dict[int, list[int]] = {}
        self.scheduled: Counter[int] = Counter()
        self.picks_of_rest = 0

    def push(self, spec: SampleSpec, generated: int) -> None:
        self.waiting.append((spec, generated))

    def is_probe(self, spec: SampleSpec) -> bool:
        return spec.sample == 0

    def estimate(self, group: int) -> int:
        return max(self.ended.get(group, []), default=MAX_TOKENS)

    def peek(self) -> tuple[SampleSpec, int] | None:
        probes = [request for request in self.waiting if self.is_probe(request[0])]
        rest = [request for request in self.waiting if not self.is_probe(request[0])]
        if probes:
            return min(probes, key=lambda request: (request[1], request[0].group))
        if not rest:
            return None
        groups = sorted({spec.group for spec, _ in rest})  # min and max take the first of equals
        if (self.picks_of_rest + 1) % self.guard_every == 0:
            group = min(groups, key=lambda group: self.scheduled[group])
        else:
            group = max(groups, key=self.estimate)
        siblings = [request for request in rest if request[0].group == group]
        return min(siblings, key=lambda request: (-request[1], request[0].sample))

    def pop(self, tokens: int) -> None:
        picked = self.peek()
        assert picked is not None
        self.waiting.remove(picked)
        self.picks_of_rest += not self.is_probe(picked[0])
        self.scheduled[picked[0].group] += tokens

    def finished(self, spec: SampleSpec, length: int) -> None:
        self.ended.setdefault(spec.group, []).append(length)

    def drop(self, group: int) -> None:
        self.waiting = [request for request in self.waiting if request[0].group != group]

    def remove(self, spec: SampleSpec) -> None:
        self.waiting = [request for request in self.waiting if request[0] != spec]


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["launch", "pop", "pop", "again", "finish", "drop", "remove"]), st.integers(0, 10**6)
    ),
    min_size=20,
    max_size=80,
)


@settings(max_examples=300, deadline=None)
@given(steps=STEPS, every=st.integers(1, 5))
def test_context_picks_what_algorithm_two_picks(steps: list[tuple[str, int]], every: int) -> None:
    fast, slow = Context(guard_every=every), AlgorithmTwo(every)
    running: list[tuple[SampleSpec, int]] = []
    groups = 0
    for step, number in [("launch", 3)] * 3 + steps:
        picked = fast.peek()
        assert (picked and picked[:2]) == slow.peek()
        if step == "launch":
            for sample in range(1 + number % 4):
                fast.push(spec(groups, sample), 0)
                slow.push(spec(groups, sample), 0)
            groups += 1
        elif step == "pop" and picked is not None:
            tokens = 1 + number % 9
            assert fast.pop(tokens) == picked
            slow.pop(tokens)
            running.append(picked[:2])
        elif step == "again" and running:
            request, generated = running.pop(number % len(running))
            fast.push(request, generated + number % 7)
            slow.push(request, generated + number % 7)
        elif step == "finish" and running:
            request, generated = running.pop(number % len(running))
            fast.finished(request, generated + number % 20)
            slow.finished(request, generated + number % 20)
        elif step == "drop" and groups:
            group = number % groups
            fast.drop(group)
            slow.drop(group)
            running = [request for request in running if request[0].group != group]
        elif step == "remove" and slow.waiting:
            request, _ = slow.waiting[number % len(slow.waiting)]
            fast.remove(request)
            slow.remove(request)


@pytest.mark.parametrize("name", ["fifo", "oracle", "context"])
def test_a_dropped_group_is_gone_and_the_others_stay(name: str) -> None:
    policy = build_policy(name, true_length=lambda spec: 10 * spec.group + spec.sample)
    push_groups(policy, 3, 3, 3)
    policy.pop(10)
    policy.drop(1)
    policy.drop(1)
    left = set()
    while pick := policy.peek():
        left.add(policy.pop(10).spec.id)
        assert pick.spec.id in left
    assert len(left) == 5 and not any(id.startswith("1.") for id in left)


# the heap under all of them


@pytest.mark.parametrize("seed", range(10))
def test_a_ranking_is_a_sorted_table(seed: int) -> None:
    numbers = random.Random(seed)
    ranking: Ranking[int] = Ranking()
    table: dict[int, int] = {}
    for _ in range(2000):
        item, rank = numbers.randrange(30), numbers.randrange(20)
        if numbers.random() < 0.8:
            ranking.put(item, (rank,))
            table[item] = rank
        else:
            ranking.remove(item)
            table.pop(item, None)
        assert ranking.first() == min(table, key=lambda item: (table[item], item), default=None)
        assert len(ranking) == len(table)


def test_a_ranking_never_holds_many_more_entries_than_items() -> None:
    ranking: Ranking[int] = Ranking()
    for item in range(100):
        ranking.put(item, (0, item))
    for turn in range(10_000):
        ranking.put(turn % 100, (turn % 7, turn))
    assert len(ranking._heap) <= 2 * len(ranking) + 64
    for item in range(100):
        ranking.remove(item)
    assert len(ranking._heap) <= 64


class Counted(int):
    """A number that counts how often it is compared."""

    comparisons = 0

    def __lt__(self, other: int) -> bool:
        Counted.comparisons += 1
        return int(self) < int(other)


def comparisons_per_call(act: Callable[[int], object], count: int) -> float:
    Counted.comparisons = 0
    for number in range(count):
        act(number)
    return Counted.comparisons / count


def test_a_ranking_of_many_takes_few_more_comparisons_than_one_of_few() -> None:
    def move(ranking: Ranking[int], number: int) -> None:
        first = ranking.first()
        assert first is not None
        ranking.put(first, (Counted(1_000_000 + number),))

    costs = {}
    for size in (100, 10_000):
        ranking: Ranking[int] = Ranking()
        for item in range(size):
            ranking.put(item, (Counted(item * 7919 % 1_000_003),))
        costs[size] = comparisons_per_call(partial(move, ranking), 1000)
    assert costs[100] > 0
    assert costs[10_000] < costs[100] + 4 * 7  # log2 of a hundred times as many, twice down and twice up
