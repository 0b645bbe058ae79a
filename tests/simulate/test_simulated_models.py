"""What a simulation is made of: the clock, costs of steps, workloads, and what drafts gain."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from small_simulations import COST, TABLE

from foresail.rollout.plan import SampleSpec
from foresail.simulate.clock import VirtualClock
from foresail.simulate.costs import (
    CARDS,
    MEASURED,
    MEASURED_ON,
    MeasuredStep,
    carry_over,
    fit,
    read_step_table,
)
from foresail.simulate.distributions import beta_width, exponential_rate
from foresail.simulate.drafting_gain import DraftingGain, Speculation, expected_tokens
from foresail.simulate.shared_state import GroupLengths
from foresail.simulate.workloads import Problems, Workload

# The clock.


def test_virtual_time_jumps_and_equal_moments_keep_their_order() -> None:
    clock, seen = VirtualClock(), []

    def note(name: str) -> Callable[[], None]:
        return lambda: seen.append((name, clock.now()))

    clock.at(5.0, note("late"))
    clock.at(1.0, note("first"))
    clock.at(1.0, note("second"))
    clock.at(2.0, lambda: clock.at(0.5, note("past")))
    clock.run()
    assert seen == [("first", 1.0), ("second", 1.0), ("past", 2.0), ("late", 5.0)]


def test_whoever_waits_wakes_when_all_of_a_moment_has_happened() -> None:
    clock, seen = VirtualClock(), []
    clock.at(1.0, lambda: seen.append("no news"))
    clock.at(2.0, clock.wake)
    clock.at(2.0, lambda: clock.at(2.0, lambda: seen.append("of the same moment")))
    clock.at(3.0, lambda: seen.append("later"))
    clock.wait()
    assert seen == ["no news", "of the same moment"] and clock.now() == 2.0
    with pytest.raises(AssertionError, match="waits for ever"):
        clock.wait()


# Costs.


def test_fit_finds_the_numbers_that_made_the_table() -> None:
    rows = [
        MeasuredStep(
            batch,
            draft,
            context,
            1e3 * COST.step(entries=batch * (draft + 1), cached=batch * context, drafting=draft > 0),
        )
        for batch in (1, 8, 64, 256)
        for draft in (0, 1, 4, 16)
        for context in (500, 2000)
    ]
    found = fit(rows)
    assert found.worst_error < 1e-9
    for name in ("fixed", "per_entry", "per_cached_token", "verify"):
        assert getattr(found.cost, name) == pytest.approx(getattr(COST, name), rel=1e-6)


@pytest.mark.parametrize(("shape", "mean_error"), [("7B", 0.06), ("1.5B", 0.12)])
def test_the_measured_table_is_a_roofline(shape: str, mean_error: float) -> None:
    found = fit(read_step_table(TABLE, shape))
    assert found.mean_error < mean_error
    # No card reads faster than its data sheet: what the fit says must be possible.
    served = MEASURED[shape]
    assert 0.3 < served.weight_bytes / MEASURED_ON.bandwidth / found.cost.fixed < 1
    assert 2 * served.active_parameters / MEASURED_ON.flops < found.cost.per_entry


def test_a_table_without_the_shape_is_refused() -> None:
    with pytest.raises(ValueError, match='for "70B"'):
        read_step_table(TABLE, "70B")


def test_costs_go_with_bytes_and_parameters() -> None:
    served = MEASURED["7B"]
    assert carry_over(COST, served, served, MEASURED_ON, 1) == COST
    halved = carry_over(COST, served, served, MEASURED_ON, 2)
    assert halved.fixed == pytest.approx(COST.fixed / 2)
    h20 = carry_over(COST, served, served, CARDS["H20"], 1)
    assert h20.fixed == pytest.approx(COST.fixed * 1.2)
    assert h20.per_entry == pytest.approx(COST.per_entry * 989 / 148)


# Workloads.


def test_lengths_have_the_mean_the_maximum_and_the_likeness_asked_for() -> None:
    work = Workload(groups=1, samples=8, mean_tokens=7615, max_tokens=40_960, correlation=0.84)
    problems = Problems(work, seed=0, step=0)
    lengths = np.array([problems[number].lengths for number in range(4000)])
    assert lengths.mean() == pytest.approx(7615, rel=0.03)
    assert lengths.min() >= 1 and 40_000 < lengths.max() <= 40_960
    ranks = lengths.ravel().argsort().argsort().reshape(lengths.shape)
    assert 0.78 < np.corrcoef(ranks[:, 0], ranks[:, 1])[0, 1] < 0.88  # of ranks: a little below 0.84


@pytest.mark.parametrize("mean", [0.02, 0.3, 0.5, 0.7])
def test_exponential_rate_gives_the_mean(mean: float) -> None:
    places = (np.arange(200_000) + 0.5) / 200_000
    density = np.exp(-exponential_rate(mean) * places)
    assert (places * density).sum() / density.sum() == pytest.approx(mean, rel=1e-4)


def test_groups_are_valid_as_often_as_asked() -> None:
    work = Workload(groups=1, samples=16, mean_tokens=10, max_tokens=100, valid_share=0.41)
    right = np.array([Problems(work, seed=3, step=0)[number].right for number in range(1500)])
    assert np.mean(right.any(axis=1) & ~right.all(axis=1)) == pytest.approx(0.41, abs=0.04)
    assert np.mean(right.all(axis=1)) == pytest.approx(0.295, abs=0.04)


def test_beta_width_of_equally_likely_chances_is_1() -> None:
    assert beta_width(7 / 9, 8) == pytest.approx(1)
    with pytest.raises(ValueError, match="out of reach"):
        beta_width(0.9, 2)


def test_a_group_does_not_depend_on_what_was_launched_before_it() -> None:
    work = Workload(groups=1, samples=4, mean_tokens=100, max_tokens=1000, valid_share=0.5)
    forwards, backwards = (Problems(work, seed=1, step=2) for _ in range(2))
    ahead = [forwards[number] for number in range(20)]
    behind = [backwards[number] for number in reversed(range(20))][::-1]
    assert ahead == behind
    assert Problems(work, seed=1, step=3)[0] != ahead[0]


# Drafts.


def test_drafts_gain_what_seer_measured_with_so_many_siblings() -> None:
    gain = DraftingGain(Speculation(max_draft=8))
    for references, tokens in ((0, 1.70), (1, 2.04), (3, 2.18), (15, 2.53), (40, 2.53)):
        assert gain.tokens(references, 8) == pytest.approx(tokens, abs=1e-6)
    assert gain.tokens(5, 0) == 1
    assert expected_tokens(0.5, 2) == 1.75


def test_drafts_are_long_where_the_batch_is_small_and_none_where_it_is_large() -> None:
    gain = DraftingGain(Speculation())
    drafts = [gain.best_draft({5: rows}, rows * 1000.0, COST) for rows in (1, 32, 128, 2048)]
    assert drafts[0] == 8 and drafts[-1] == 0
    assert drafts == sorted(drafts, reverse=True)


def some_spec(group: int, sample: int) -> SampleSpec:
    return SampleSpec(id=f"{group}.{sample}", group=group, sample=sample, prompt_tokens=5, max_tokens=400)


def test_references_are_siblings_that_ended_or_are_ahead() -> None:
    siblings, specs = GroupLengths(), [some_spec(0, sample) for sample in range(5)]
    generated = (100, 0, 300, 50, 200)
    for spec, tokens in zip(specs, generated, strict=True):
        if tokens:
            siblings.reported(spec, tokens, finished=tokens == 50)
    references = [siblings.references(spec, tokens) for spec, tokens in zip(specs, generated, strict=True)]
    assert references == [3, 4, 1, 3, 2]
    assert siblings.references(some_spec(1, 0), 0) == 0
