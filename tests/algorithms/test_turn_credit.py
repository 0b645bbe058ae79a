"""PBSD's credit: by hand, by a search over broken and odd groups, and on a planted world."""

import json
import math
import random
import struct
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_episodes import episode, with_gains

from foresail.algorithms.advantages import uniform_credit
from foresail.algorithms.evidence import ScoredSample
from foresail.algorithms.turn_credit import SampleCredit, pbsd_credit
from foresail.recipe.tables.credit import Credit

UNFILTERED = {"min_snr": 0.0, "min_tokens": 1}
FORMS = ("weights", "raw", "additive")
LEVELS = ("turn", "token")
HALF = math.sqrt(0.5)


def pbsd(**settings: Any) -> Credit:
    return Credit(kind="pbsd", **settings)


def credit(
    group: list[ScoredSample], advantages: list[float], *, strength: float = 1.0, **settings: Any
) -> list[SampleCredit]:
    return pbsd_credit(group, advantages, pbsd(**settings), strength=strength)


def bits(values: list[float]) -> bytes:
    return struct.pack(f"{len(values)}d", *values)


# By hand.


def test_weights_by_hand():
    """Two turns of two tokens with evidence 4 and 0 in all, so z = 1 and -1, weights e and 1/e."""
    group = [with_gains(episode((1, 2), (1, 2)), [2.0, 2.0, 0.0, 0.0])]
    (found,) = credit(group, [0.5], **UNFILTERED)
    up, down = math.e, 1 / math.e
    scale = 2 / (up + down)
    expected = [0.5, *[0.5 * up * scale] * 2, 0.5, *[0.5 * down * scale] * 2]
    assert found.advantages == pytest.approx(expected, rel=1e-5)
    (half,) = credit(group, [0.5], strength=0.5, **UNFILTERED)
    assert half.advantages == pytest.approx([(0.5 + a) / 2 for a in expected], rel=1e-5)
    (blamed,) = credit(group, [-0.5], **UNFILTERED)  # the turn that speaks for the answer is blamed less
    assert blamed.advantages[1:3] == pytest.approx([-a for a in expected[4:]], rel=1e-5)


def test_longer_turns_weigh_more_in_what_is_conserved():
    group = [with_gains(episode((0, 9), (0, 1)), [0.0] * 9 + [3.0])]
    (found,) = credit(group, [1.0], low=0.5, high=2.0, **UNFILTERED)
    assert found.advantages == pytest.approx([0.5 / 0.65] * 9 + [2.0 / 0.65])


def test_bounds_of_the_weights_hold_before_credit_is_conserved():
    group = [with_gains(episode(*[(0, 1)] * 10), [0.0] * 9 + [5.0])]
    (found,) = credit(group, [1.0], conserve=False, low=0.9, high=1.5, **UNFILTERED)
    assert max(found.advantages) == 1.5 and min(found.advantages) == 0.9


def test_a_turn_whose_evidence_is_noise_weighs_as_if_unknown():
    """Turn 1 adds up to little beside its own spread, turn 2 has three tokens."""
    sample = episode((0, 4), (0, 4), (0, 3))
    gains = [1.0, 1.0, 1.0, 1.0, 2.0, -2.0, 2.0, -1.0, 2.0, 2.0, 2.0]
    (found,) = credit([with_gains(sample, gains)], [1.0])
    assert [turn.used for turn in found.turns] == [True, False, False]
    assert found.turns[1].weight == pytest.approx(found.turns[2].weight)
    (added,) = credit([with_gains(sample, gains)], [1.0], form="additive")
    assert added.advantages[4:] == [1.0] * 7 and added.advantages[0] != 1.0
    (all_used,) = credit([with_gains(sample, gains)], [1.0], **UNFILTERED)
    assert [turn.used for turn in all_used.turns] == [True, True, True]
    assert all_used.turns[2].weight > 2 * all_used.turns[1].weight


def test_raw_weights_are_the_likelihood_ratio_itself():
    """No comparison, no root: w = exp(e), and of A < 0 exp(-e)."""
    group = [with_gains(episode((0, 2), (0, 1)), [0.5, 0.25, -1.0])]
    options: dict[str, Any] = {"form": "raw", "conserve": False, **UNFILTERED}
    (up,), (down,) = credit(group, [2.0], **options), credit(group, [-2.0], **options)
    assert up.advantages == pytest.approx([2 * math.exp(0.75)] * 2 + [2 * math.exp(-1)])
    assert down.advantages == pytest.approx([-2 * math.exp(-0.75)] * 2 + [-2 * math.exp(1)])
    (conserved,) = credit(group, [2.0], form="raw", **UNFILTERED)
    assert math.fsum(conserved.advantages) == pytest.approx(6.0)


def test_raw_at_token_level_is_rlsd():
    rng = np.random.default_rng(0)
    samples = [episode((2, 5), (3, 4)), episode((1, 6))]
    gains = [rng.normal(0, 0.3, 9).tolist(), rng.normal(0, 0.3, 6).tolist()]
    group = [with_gains(sample, gain) for sample, gain in zip(samples, gains, strict=True)]
    options: dict[str, Any] = {"level": "token", "form": "raw", "conserve": False, "low": 0.8, "high": 1.2}
    found = credit(group, [0.7, -1.1], strength=0.5, **options)
    for one, sample, gain, a in zip(found, samples, gains, (0.7, -1.1), strict=True):
        policy = [share for share, bit in zip(one.advantages, sample.loss_mask, strict=True) if bit]
        expected = [a * (0.5 + 0.5 * min(max(math.exp(math.copysign(1, a) * d), 0.8), 1.2)) for d in gain]
        assert policy == pytest.approx(expected, rel=1e-12)


def test_additive_evidence_teaches_where_the_outcome_does_not():
    group = [with_gains(episode((0, 1), (0, 1)), [1.0, 3.0])]
    (found,) = credit(group, [0.0], strength=0.5, form="additive", additive_weight=0.2, **UNFILTERED)
    assert found.advantages == pytest.approx([-0.1, 0.1], abs=1e-5)


def test_token_level_tells_tokens_of_one_turn_apart():
    (found,) = credit([with_gains(episode((1, 2)), [1.0, 3.0])], [1.0], level="token")
    assert found.advantages[1] < 0.5 and found.advantages[2] > 1.5 and found.advantages[0] == 1.0


def test_faded_evidence_blames_the_turn_that_went_astray_and_none_behind_it():
    gains = [1.0, -4.0, 1.0, -3.0]
    group = [with_gains(episode(*[(0, 1)] * 4), gains)]
    (plain,), (faded,) = (credit(group, [-1.0], fade=fade, **UNFILTERED) for fade in (False, True))
    assert plain.turns[3].weight > plain.turns[0].weight * 2  # as if it had been a fault of its own
    assert faded.turns[3].weight == pytest.approx(faded.turns[2].weight, rel=0.3)
    assert faded.turns[1].weight > 2 * max(turn.weight for turn in faded.turns if turn is not faded.turns[1])
    assert [turn.evidence for turn in faded.turns] == gains  # the log has what was found


def test_temperature_makes_less_of_evidence():
    group = [with_gains(episode((0, 1), (0, 1)), [1.0, 3.0])]
    (found,) = credit(group, [1.0], temperature=2.0, conserve=False, **UNFILTERED)
    assert found.advantages == pytest.approx([math.exp(-0.5), math.exp(0.5)], rel=1e-5)


def test_the_record_of_a_sample_by_hand():
    sample = episode((1, 2), (1, 2), (1, 2))
    group = [with_gains(sample, [2.0, 2.0, 0.0, 0.0, 0.0, math.nan], ignored=[0, 0, 0, 0, 0, 1, 0, 0, 0])]
    (found,) = credit(group, [1.0], strength=0.5, **UNFILTERED)
    row = json.loads(json.dumps(found.to_row(), allow_nan=False))
    assert row["tokens"] == [2, 2, 2] and row["counted"] == [2, 1, 2]
    assert row["evidence"] == [4.0, 0.0, None] and row["used"] == [True, True, False]
    assert row["snr"] == pytest.approx([math.sqrt(2), 0.0, None], abs=1e-6)
    assert row["z"] == pytest.approx([1.0, -1.0, None], abs=1e-5)
    scale = 3 / (math.e + 1 / math.e + 1)
    assert row["weight"] == pytest.approx([math.e * scale, scale / math.e, scale], rel=1e-5)
    assert row["advantage"] == pytest.approx([0.5 + 0.5 * w for w in row["weight"]])


def test_at_token_level_the_record_has_the_means_of_a_turn():
    """z over the tokens that count, weight and advantage over those with a loss."""
    sample = episode((1, 3), (1, 1))
    group = [with_gains(sample, [1.0, 3.0, 9.0, 2.0], ignored=[0, 0, 0, 1, 0, 0])]
    (found,) = credit(group, [1.0], level="token", conserve=False)
    unit = math.sqrt(1.5)
    assert [turn.z for turn in found.turns] == pytest.approx([0.0, 0.0], abs=1e-5)
    assert found.turns[0].evidence == 4.0 and found.turns[0].counted == 2
    assert found.turns[0].weight == pytest.approx((math.exp(-unit) + math.exp(unit) + 1) / 3, rel=1e-5)
    (lone,) = credit(
        [with_gains(sample, [1.0, 1.0, 9.0, 3.0], ignored=[0, 0, 0, 1, 0, 0])], [1.0], level="token"
    )
    assert [turn.z for turn in lone.turns] == pytest.approx([-HALF, 2 * HALF], abs=1e-5)


def test_nan_advantages_are_refused():
    group = [with_gains(episode((0, 1)), [0.0])]
    for wrong in (math.nan, math.inf, -1e31):
        with pytest.raises(ValueError, match="the advantage of sample 0 is"):
            credit(group, [wrong])


# By a search: any group, as broken as it can be, from a seed.

ODD = (0.0, -1.0, -1e-300, -5.0, 7.5, -1e308, 1e308, math.nan, math.inf, -math.inf, None)
seeds = st.integers(0, 2**32)


def any_column(rng: random.Random, size: int) -> list[float | None] | None:
    """Sound, broken at some tokens, broken everywhere, or not there."""
    odd = rng.choice([0, 0, 0, 0.1, 1])
    column = [rng.choice(ODD) if rng.random() < odd else rng.uniform(-8, 0) for _ in range(size)]
    return column if rng.random() < 0.9 else None


def any_sample(rng: random.Random) -> ScoredSample:
    """With turns in which the policy or nobody says anything, or of no tokens at all."""
    sample = episode(*[(rng.randrange(3), rng.randrange(7)) for _ in range(rng.randrange(6))])
    size = len(sample.ids)
    return ScoredSample(
        sample=sample,
        teachers=[any_column(rng, size) for _ in range(rng.choice([0, 1, 1, 1, 2, 3]))],
        student=any_column(rng, size),
        ignored=[rng.randrange(2) for _ in range(size)] if rng.random() < 0.3 else None,
    )


def any_group(rng: random.Random) -> tuple[list[ScoredSample], list[float]]:
    group = [any_sample(rng) for _ in range(rng.randrange(5))]
    return group, [rng.choice([0.0, -0.0, 1.0, -1.0, 1e30, -1e30, rng.uniform(-3, 3)]) for _ in group]


def any_settings(rng: random.Random, *forms: str) -> Credit:
    form, level = rng.choice(forms), rng.choice(LEVELS)
    given: dict[str, Any] = {"form": form, "level": level, "clamp": rng.choice([0.1, 5.0, 1000.0])}
    given |= {"fade": rng.random() < 0.3}
    if form == "additive":
        given |= {"additive_weight": rng.choice([0.1, 1.0])}
    else:
        given |= {"low": rng.choice([0.001, 0.25, 0.9]), "high": rng.choice([1.1, 4.0, 1000.0])}
        given |= {"temperature": rng.choice([1e-300, 0.5, 1.0, 1e300]), "conserve": rng.random() < 0.8}
    if level == "turn":
        given |= {"min_snr": rng.choice([0.0, 1.0]), "min_tokens": rng.randrange(1, 5)}
    return pbsd(**given)


def any_strength(rng: random.Random) -> float:
    return rng.choice([0.0, 0.5, 1.0, rng.random()])


@given(seeds)
def test_nan_and_infinity_never_leave(seed):
    rng = random.Random(seed)
    group, advantages = any_group(rng)
    found = pbsd_credit(group, advantages, any_settings(rng, *FORMS), strength=any_strength(rng))
    for one, scored in zip(found, group, strict=True):
        assert len(one.advantages) == len(scored.sample.ids)
        assert all(map(math.isfinite, one.advantages))
        json.dumps(one.to_row(), allow_nan=False)  # raises at NaN
        assert len(one.turns) == max(scored.sample.turns, default=-1) + 1


@given(seeds)
def test_credit_is_conserved_and_no_sign_flips(seed):
    rng = random.Random(seed)
    (group, advantages), how = any_group(rng), any_settings(rng, "weights", "raw")
    found = pbsd_credit(group, advantages, how, strength=any_strength(rng))
    for one, scored, a in zip(found, group, advantages, strict=True):
        assert all(math.copysign(1, x) == math.copysign(1, a) for x in one.advantages)
        assert all(x != 0 for x in one.advantages if a)
        policy = [x for x, bit in zip(one.advantages, scored.sample.loss_mask, strict=True) if bit]
        if how.conserve:
            assert math.fsum(policy) == pytest.approx(a * len(policy), rel=1e-9)
            weights = math.fsum(turn.tokens * turn.weight for turn in one.turns)
            assert weights == pytest.approx(len(policy), rel=1e-9)


@given(seeds)
def test_strength_zero_is_uniform_credit_bit_for_bit(seed):
    rng = random.Random(seed)
    group, advantages = any_group(rng)
    found = pbsd_credit(group, advantages, any_settings(rng, *FORMS), strength=0.0)
    for one, scored, a in zip(found, group, advantages, strict=True):
        assert bits(one.advantages) == bits(uniform_credit(scored.sample, a))


@given(seeds)
def test_what_is_said_of_the_world_s_and_of_ignored_tokens_has_no_influence(seed):
    rng = random.Random(seed)
    (group, advantages), how, strength = any_group(rng), any_settings(rng, *FORMS), any_strength(rng)
    before = pbsd_credit(group, advantages, how, strength=strength)
    changed = [perturb(scored, rng) for scored in group]
    assert pbsd_credit(changed, advantages, how, strength=strength) == before


def perturb(scored: ScoredSample, rng: random.Random) -> ScoredSample:
    """Anything at all in place of what does not count."""
    ignored = scored.ignored or [0] * len(scored.sample.ids)
    counts = [bit and not out for bit, out in zip(scored.sample.loss_mask, ignored, strict=True)]

    def column(values: list[float | None] | None) -> list[float | None] | None:
        if values is None:
            return None
        return [
            x if c else rng.choice([*ODD, rng.uniform(-9, 0)]) for x, c in zip(values, counts, strict=True)
        ]

    return replace(
        scored, teachers=[column(teacher) for teacher in scored.teachers], student=column(scored.student)
    )


@given(seeds)
def test_the_order_of_the_samples_changes_the_order_alone(seed):
    rng = random.Random(seed)
    (group, advantages), how, strength = any_group(rng), any_settings(rng, *FORMS), any_strength(rng)
    order = rng.sample(range(len(group)), len(group))
    plain = pbsd_credit(group, advantages, how, strength=strength)
    moved = pbsd_credit([group[i] for i in order], [advantages[i] for i in order], how, strength=strength)
    assert moved == [plain[i] for i in order]


@pytest.mark.parametrize("form", ["weights", "additive"])
def test_the_order_of_many_samples_changes_no_bit(form):
    """Sums over a large group round differently in every order, unless that is taken care of."""
    rng = random.Random(0)
    group = [with_gains(episode(*[(0, 2)] * 6), [rng.gauss(0, 1) for _ in range(12)]) for _ in range(24)]
    plain = credit(group, [0.7] * 24, form=form, **UNFILTERED)
    for _ in range(5):
        order = rng.sample(range(24), 24)
        moved = credit([group[i] for i in order], [0.7] * 24, form=form, **UNFILTERED)
        assert moved == [plain[i] for i in order]


@given(seeds)
def test_one_turn_is_uniform_credit_exactly(seed):
    """Also beside samples of many turns, and where tools have spoken before or after it."""
    rng = random.Random(seed)
    (group, advantages), form, strength = any_group(rng), rng.choice(FORMS), any_strength(rng)
    sample = rng.choice([episode((2, 5)), episode((2, 5), (3, 0)), episode((2, 0), (1, 5))])
    group = [*group, with_gains(sample, [rng.uniform(-3, 3) for _ in range(5)])]
    *_, found = pbsd_credit(group, [*advantages, 0.3], pbsd(form=form, **UNFILTERED), strength=strength)
    assert bits(found.advantages) == bits(uniform_credit(sample, 0.3))
    assert [turn.weight for turn in found.turns if turn.tokens] == [1.0]


def test_the_search_meets_groups_that_evidence_tells_apart():
    apart = unknown = 0
    for seed in range(200):
        rng = random.Random(seed)
        group, advantages = any_group(rng)
        for one in pbsd_credit(group, advantages, any_settings(rng, *FORMS), strength=1.0):
            apart += len(set(one.advantages)) > 1
            unknown += any(turn.evidence is None for turn in one.turns)
    assert apart > 50 and unknown > 50


# Nothing known.


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("form", FORMS)
def test_without_an_answer_credit_is_uniform_exactly(form, level):
    sample = episode((1, 5), (1, 5))
    told = with_gains(episode((1, 5), (1, 5)), [1.0, 2.0, 1.0, 2.0, 1.0, -1.0, 0.0, 0.0, 0.0, 0.0])
    untold = ScoredSample(sample=sample, teachers=[], student=[-1.0] * 12)
    found = credit([told, untold], [0.3, 0.3], form=form, level=level)
    assert bits(found[1].advantages) == bits([0.3] * 12)
    assert found[0].advantages != [0.3] * 12


# A planted world: which turns decide is known.


def ranks(values: np.ndarray) -> np.ndarray:
    """Ties share their mean rank."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = counts.cumsum()
    return ((ends - counts + ends - 1) / 2)[inverse]


def rank_correlation(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.corrcoef(ranks(a), ranks(b))[0, 1])


def planted(seed: int, *, shuffled: bool = False) -> dict[bool, list[float]]:
    """Rank correlations of weights with true contributions, by success.

    Of twelve turns three decide: there one of four actions is right, and the teacher gives it 7/10. What a turn
    contributed is by how much it raised the log-probability of success; a wrong action ends all hope.
    """
    rng = np.random.default_rng(seed)
    turns, actions, samples, mix = 12, 4, 64, 0.7
    good = rng.integers(actions, size=turns)
    policy = (np.eye(actions)[good] + rng.dirichlet(np.ones(actions), size=turns)) / 2
    keys = rng.permutation(np.arange(turns) < 3)
    taught = np.where(keys[:, None], mix * np.eye(actions)[good] + (1 - mix) * policy, policy)
    if shuffled:  # the answer of another problem: other turns seem to decide
        other = rng.permutation(turns)
        taught = np.where(
            keys[other, None],
            mix * np.eye(actions)[rng.integers(actions, size=turns)] + (1 - mix) * policy,
            policy,
        )
    chosen = np.stack([[rng.choice(actions, p=row) for row in policy] for _ in range(samples)])
    right = chosen == good
    success = np.where(keys, right, True).all(1)
    at = lambda table: np.log(table[np.arange(turns), chosen])  # noqa: E731
    gains = at(taught) - at(policy)
    group = [with_gains(episode(*[(1, 1)] * turns), row.tolist()) for row in gains]
    advantages = np.where(success, 1.0, -1.0)
    found = credit(group, advantages.tolist(), **UNFILTERED)
    contributions = np.where(keys, np.where(right, -at(policy), -10.0), 0.0)
    result: dict[bool, list[float]] = {True: [], False: []}
    for one, contribution, won in zip(found, contributions, success, strict=True):
        weights = np.round([turn.weight for turn in one.turns], 9)
        result[bool(won)].append(rank_correlation(weights, contribution))
    return result


def test_weights_rank_planted_turns_by_what_they_contributed():
    found = [planted(seed) for seed in range(6)]
    won = [r for one in found for r in one[True]]
    lost = [r for one in found for r in one[False]]
    assert len(won) > 10 and len(lost) > 100
    assert np.mean(won) > 0.95 and min(won) > 0.8
    assert np.mean(lost) < -0.95  # there a weight is blame


def test_with_another_problem_s_answer_weights_rank_nothing():
    won = [r for seed in range(6) for r in planted(seed, shuffled=True)[True]]
    assert len(won) > 10 and abs(np.mean(won)) < 0.2
