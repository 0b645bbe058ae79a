"""A simulated step: every token once, books that agree, and who is launched and cancelled when."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from small_simulations import run_one, small

from foresail.simulate.clock import VirtualClock
from foresail.simulate.judges import Graders
from foresail.simulate.step import Rounds, simulate
from foresail.simulate.workloads import GroupOutcome, Problems

# The whole step.


@pytest.mark.parametrize("policy", ["group", "fifo", "context", "oracle"])
@pytest.mark.parametrize("speculation", [None, {}])
def test_every_token_of_every_sample_is_generated_once(
    policy: str, speculation: dict[str, Any] | None
) -> None:
    simulation = small(rollout={"policy": policy}, speculation=speculation)
    result = simulate(simulation)[0]
    problems = Problems(simulation.workload, seed=0, step=0)
    assert result.tokens == sum(sum(problems[group].lengths) for group in range(20))
    assert 0 <= result.idle_ratio < 1
    for history in result.history.values():
        assert all(before[0] <= after[0] for before, after in pairwise(history))
        assert history[-1][1] == 0
    if policy == "group":
        assert result.migrations == 0 and result.decisions == 80
    else:
        assert result.preemptions == 0 and result.decisions > 80


def test_the_same_simulation_gives_the_same_result() -> None:
    assert run_one() == run_one()
    assert run_one(seed=1).seconds != run_one().seconds


def test_dividing_shortens_the_tail_of_whole_groups() -> None:
    crowded = {"groups": 60, "samples": 8}
    whole = run_one(workload=crowded, rollout={"policy": "group"})
    divided = run_one(workload=crowded)
    assert whole.preemptions > 0 and whole.idle_ratio > 0.1
    assert divided.seconds < whole.seconds
    assert divided.tail_seconds < whole.tail_seconds
    assert divided.idle_ratio < whole.idle_ratio


def test_drafts_shorten_a_step_and_no_sample() -> None:
    plain, drafted = run_one(), run_one(speculation={})
    assert drafted.tokens == plain.tokens
    assert plain.seconds / 2.6 < drafted.seconds < plain.seconds / 1.2  # at most what is accepted


def test_tail_is_the_time_of_the_last_tenth() -> None:
    # One instance, all alike, no memory for two: requests end one after the other, at equal distances.
    result = run_one(
        cluster={"instances": 1, "max_running": 1},
        workload={"groups": 20, "samples": 1, "mean_tokens": 999, "max_tokens": 1000, "correlation": 0.0},
        rollout={"chunk_tokens": 1000},
    )
    assert result.tail_seconds == pytest.approx(result.seconds / 10, rel=0.02)


def test_a_slow_link_makes_migration_cost_something() -> None:
    crowded = {"groups": 60, "samples": 8}
    fast, slow = (
        run_one(cluster={"migration_gb_per_second": speed}, workload=crowded) for speed in (50.0, 0.001)
    )
    assert fast.migrations > 0
    assert slow.seconds > 1.2 * fast.seconds


def test_without_host_memory_a_chunk_that_moves_or_waits_is_computed_again() -> None:
    crowded = {"groups": 60, "samples": 8}
    roomy, none = (run_one(cluster={"host_gb": size}, workload=crowded) for size in (None, 0.0))
    assert none.tokens == roomy.tokens
    assert none.migrations == 0  # there is nothing to move
    assert none.seconds > roomy.seconds


# Launching and closing.

DYNAMIC = {"groups": 12, "samples": 4, "mean_tokens": 600, "max_tokens": 2000, "valid_share": 0.4}
SLOW_JUDGE = {"quick_seconds": 0.2}
NAIVE = {"launches": "rounds", "grading": "after-all", "graders": 1}


def teaches(group: GroupOutcome) -> bool:
    return len(set(group.right)) == 2


def test_seamless_takes_the_first_valid_groups_in_launch_order_and_cancels_later_ones() -> None:
    simulation = small(workload=DYNAMIC, step={"launches": "continuous"}, rollout={"policy": "fifo"})
    result = simulate(simulation)[0]
    problems = Problems(simulation.workload, seed=0, step=0)
    valid = [group for group in range(result.launched_groups) if teaches(problems[group])]
    assert result.chosen == 12
    assert result.waste_ratio <= (len(valid) - 12) / 12
    patient = run_one(
        workload=DYNAMIC,
        step={"launches": "continuous", "early_termination": False},
        rollout={"policy": "fifo"},
    )
    assert patient.cancelled_groups == 0
    assert patient.seconds >= result.seconds
    assert patient.launched_groups >= result.launched_groups


def test_naive_rounds_launch_what_is_wanted_until_enough_are_valid() -> None:
    simulation = small(workload=DYNAMIC, step=NAIVE)
    result = simulate(simulation)[0]
    problems = Problems(simulation.workload, seed=0, step=0)
    valid = np.cumsum([teaches(problems[group]) for group in range(120)])
    rounds = next(count for count in range(1, 11) if valid[12 * count - 1] >= 12)
    assert rounds > 1
    assert result.launched_groups == 12 * rounds
    assert result.waste_ratio == pytest.approx((valid[12 * rounds - 1] - 12) / 12)


def test_rounds_that_find_nothing_end_at_the_cap() -> None:
    rounds = Rounds(num_groups=2, cap=4)
    for group in range(4):
        assert rounds.closing() is None
        if group % 2 == 0:
            assert rounds.next_launches() == 2
            rounds.launched(group)
            rounds.launched(group + 1)
        assert rounds.next_launches() == 0
        rounds.scored(group, valid=False)
    closing = rounds.closing()
    assert closing is not None and closing.chosen == ()


def test_grading_after_all_comes_on_top_and_grading_meanwhile_does_not() -> None:
    work = {"groups": 10, "samples": 4, "grading": SLOW_JUDGE}
    naive = run_one(workload=work, step={"grading": "after-all", "graders": 1})
    streamed = run_one(workload=work, step={"graders": 40})
    assert naive.seconds == pytest.approx(naive.generating_seconds + 40 * 0.2)
    assert streamed.seconds == pytest.approx(streamed.generating_seconds + 0.2)
    assert naive.generating_seconds == pytest.approx(streamed.generating_seconds)
    assert naive.idle_ratio > streamed.idle_ratio


def test_graders_work_side_by_side_in_order() -> None:
    clock, seen = VirtualClock(), []
    graders = Graders(2, clock)
    for name, seconds in (("a", 3.0), ("b", 1.0), ("c", 1.0), ("d", 1.0)):
        graders.submit(seconds, lambda name=name: seen.append((name, clock.now())))
    clock.run()
    assert seen == [("b", 1.0), ("c", 2.0), ("a", 3.0), ("d", 3.0)]


def test_work_on_cancelled_groups_counts_as_idle() -> None:
    results = [
        simulate(small(seed=seed, workload=DYNAMIC, step={"launches": "continuous"}))[0] for seed in range(20)
    ]
    cut = next(result for result in results if result.cancelled_groups)
    busy = sum(
        after[0] - before[0]
        for history in cut.history.values()
        for before, after in pairwise([*history, (cut.seconds, 0)])
        if before[1]
    )
    assert cut.idle_ratio > 1 - busy / (cut.seconds * len(cut.history))
