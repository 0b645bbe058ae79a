"""What a step takes beside its rollout: limits that any formula for links, updates and overlap must keep."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_simulations import small

from foresail.simulate.costs import CARDS
from foresail.simulate.links import (
    Links,
    all_to_all_seconds,
    chain_seconds,
    one_by_one_seconds,
    ring_seconds,
    tree_seconds,
)
from foresail.simulate.overlap import mean_step_seconds, steps_seconds
from foresail.simulate.report import describe, summarize
from foresail.simulate.step import simulate
from foresail.simulate.trainer import Trainer
from foresail.simulate.updates import Ranks, communication, replication, split_lengths, update_time
from foresail.simulate.whole_step import whole_steps

LINKS = Links(cards_per_host=8, inside=400e9, between=40e9, latency=5e-6)
MODEL = Trainer().model
EXPERTS = Trainer(parameters_billions=600, expert_billions=550, expert_choices=8).model
BYTES, COUNTS = st.floats(1, 1e13), st.integers(1, 2000)
SECONDS = st.lists(st.tuples(st.floats(0.1, 1e4), st.floats(0.1, 1e4)), min_size=1, max_size=8)


def ranks(count: int = 1, **changes: Any) -> Ranks:
    made = Trainer().on(count, CARDS["H200"], LINKS)
    return replace(made, **changes)


# Links.


@given(BYTES)
def test_one_rank_passes_nothing(num_bytes):
    assert ring_seconds(num_bytes, 1, LINKS) == 0
    assert all_to_all_seconds(num_bytes, 1, LINKS) == 0


@given(BYTES, COUNTS)
def test_no_transfer_is_faster_than_its_bytes(num_bytes, count):
    """What a rank lacks must come in, and no order of sending brings it in faster than its links."""
    lacking = num_bytes * (count - 1) / count
    assert ring_seconds(num_bytes, count, LINKS) >= lacking / LINKS.inside
    for seconds in (tree_seconds, one_by_one_seconds):
        assert seconds(num_bytes, count, LINKS.between) >= 0.999 * num_bytes / LINKS.between
    chained = chain_seconds(num_bytes, count, LINKS.between, 64e6)
    assert chained >= 0.999 * num_bytes / LINKS.between
    # the last receiver waits for at most a piece from each before it
    assert chained <= 1.001 * (num_bytes + (count - 1) * min(num_bytes, 64e6)) / LINKS.between


@given(BYTES, st.integers(1, 1000))
def test_more_receivers_never_take_less_time(num_bytes, count):
    for seconds in (one_by_one_seconds, tree_seconds):
        assert seconds(num_bytes, count, 1e9) <= seconds(num_bytes, count + 1, 1e9)
    assert chain_seconds(num_bytes, count, 1e9, 1e6) <= chain_seconds(num_bytes, count + 1, 1e9, 1e6)


def test_to_one_receiver_every_way_is_the_same():
    ways = (tree_seconds(8e9, 1, 4e9), one_by_one_seconds(8e9, 1, 4e9), chain_seconds(8e9, 1, 4e9, 1e9))
    assert ways == pytest.approx((2, 2, 2))
    assert tree_seconds(8e9, 7, 4e9) == pytest.approx(6)


# Updates.


@given(st.lists(st.integers(1, 5000), min_size=1, max_size=60), st.integers(1, 20))
def test_dealing_keeps_every_sequence_and_no_rank_has_more_than_one_too_many(lengths, count):
    dealt = split_lengths(lengths, count)
    assert sorted(length for row in dealt for length in row) == sorted(lengths)
    tokens = [sum(row) for row in dealt]
    assert max(tokens) - min(tokens) <= max(lengths)


def test_one_rank_only_computes():
    found = update_time([1000] * 64, MODEL, ranks(1))
    assert found.communicating == 0 and found.seconds == found.computing and found.imbalance == 1


def test_twice_the_ranks_halve_the_arithmetic_of_even_work():
    times = [update_time([1000] * 64, MODEL, ranks(count)) for count in (8, 16)]
    assert times[0].computing == pytest.approx(2 * times[1].computing)
    assert times[1].imbalance == 1


def test_one_long_sequence_bounds_every_number_of_ranks():
    lengths = [30_000] + [100] * 500
    alone = update_time([30_000], MODEL, ranks(1)).computing
    assert update_time(lengths, MODEL, ranks(1024)).computing == pytest.approx(alone)
    assert update_time(lengths, MODEL, ranks(1024)).imbalance > 100


def test_overlap_hides_what_it_can_and_no_more():
    for overlap in (0.0, 0.5, 1.0):
        found = update_time([1000] * 64, MODEL, ranks(64, overlap=overlap))
        longer, both = max(found.computing, found.communicating), found.computing + found.communicating
        assert longer * (1 - 1e-12) <= found.seconds <= both
    assert found.seconds == pytest.approx(longer)


def test_experts_that_stay_move_tokens_instead_of_weights():
    """Few tokens are cheaper to move than the experts' weights, and many are not."""
    gathered, sent = ranks(256, experts=1), ranks(256, experts=64)
    assert communication(100, EXPERTS, sent) < communication(100, EXPERTS, gathered) / 5
    assert communication(1e7, EXPERTS, sent) > communication(1e7, EXPERTS, gathered)
    assert communication(100, MODEL, sent) == communication(1e7, MODEL, gathered)


def test_copies_of_the_model_are_summed_only_where_there_are_some():
    assert replication(MODEL, ranks(64, shard=64)) == 0
    assert replication(MODEL, ranks(64, shard=8)) > 0
    # groups of one host gather faster than one ring through all hosts
    assert communication(100, MODEL, ranks(1024, shard=8)) < communication(
        100, MODEL, ranks(1024, shard=1024)
    )


def test_the_update_that_was_measured_takes_as_long_as_measured():
    """rl_step_gpu.py on one H200: four updates of 1,024 samples of 128 + 1,024 tokens took 86.0 s."""
    seconds = 4 * update_time([128 + 1024] * 256, MODEL, ranks(1)).seconds
    assert seconds == pytest.approx(86.0, rel=0.08)


# Steps.


@given(SECONDS, st.floats(0, 100))
def test_one_step_ahead_is_never_slower_and_at_best_halves_the_time(steps, sync):
    rollouts, updates = map(list, zip(*steps, strict=True))
    in_turns, ahead = (steps_seconds(rollouts, updates, sync, staleness=n) for n in (0, 1))
    assert ahead <= in_turns * (1 + 1e-12)
    assert ahead >= max(sum(rollouts), sum(updates))
    in_turns, ahead = (mean_step_seconds(rollouts, updates, sync, staleness=n) for n in (0, 1))
    assert in_turns / 2 <= ahead * (1 + 1e-12) and ahead <= in_turns * (1 + 1e-12)


def test_a_single_step_has_nothing_to_be_ahead_of():
    for staleness in (0, 1):
        assert steps_seconds([5], [3], 1, staleness=staleness) == 8


@settings(max_examples=30)
@given(SECONDS.filter(lambda steps: len(steps) > 1), st.floats(0, 100))
def test_a_long_run_takes_its_mean_step_each_time(steps, sync):
    rollouts, updates = map(list, zip(*steps, strict=True))
    times = 400
    for staleness in (0, 1):
        whole = steps_seconds(rollouts * times, updates * times, sync, staleness=staleness)
        mean = mean_step_seconds(rollouts, updates, sync, staleness=staleness)
        most = max(rollouts) + max(updates) + sync  # the start and the end
        assert abs(whole - mean * times * len(steps)) <= 2 * most


def test_whole_steps_add_up_and_are_told():
    simulation = small(steps=2, trainer={"parameters_billions": 0.5})
    results = simulate(simulation)
    whole = whole_steps(simulation, results)
    assert whole is not None
    parts = whole.rollout_seconds + whole.sync_seconds + whole.update_seconds
    assert whole.seconds == pytest.approx(parts)
    assert len(results[0].trained) == 80 and min(results[0].trained) > 50
    assert any(line.startswith("whole step") for line in describe(summarize(simulation, results)))
    ahead = small(steps=2, trainer={"parameters_billions": 0.5, "ranks": 4}, rollout={"staleness": 1})
    found = whole_steps(ahead, simulate(ahead))
    assert found is not None and 0 < found.update_seconds < found.rollout_seconds
    assert found.seconds == pytest.approx(found.rollout_seconds + found.sync_seconds)
    assert whole_steps(small(), simulate(small())) is None


def test_what_cannot_be_trained_is_refused_with_what_to_do():
    with pytest.raises(ValueError, match=r"at least 60 do; raise trainer\.ranks"):
        small(trainer={"parameters_billions": 671, "ranks": 32})
    with pytest.raises(ValueError, match=r"staleness 1 .* set trainer\.ranks"):
        small(trainer={}, rollout={"staleness": 1})
    with pytest.raises(ValueError, match="must divide"):
        small(trainer={"ranks": 12, "shard_ranks": 8})
    with pytest.raises(ValueError, match=r"expert_billions 8 is not below"):
        small(trainer={"expert_billions": 8})
