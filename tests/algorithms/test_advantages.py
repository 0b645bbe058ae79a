"""Advantages against numbers worked out by hand, and against one another."""

import math
from itertools import product
from typing import get_args

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from foresail.algorithms.advantages import ADVANTAGES, dr_grpo, gae, gdpo, grpo, rloo, whiten
from foresail.recipe.tables.parts import Advantage

reward_groups = st.lists(st.lists(st.floats(-2, 2, width=32), min_size=4, max_size=4), min_size=1, max_size=5)


def tensor(rows):
    return torch.tensor(rows, dtype=torch.float64)


def assert_close(actual, expected, tolerance=1e-6):
    torch.testing.assert_close(actual, tensor(expected), rtol=0, atol=tolerance)


def test_grpo_by_hand():
    # [1 0 0 1]: mean .5, variance 4 * .25 / 3 = 1/3, std .577350; .5 / .577350 = .866025
    # [3 1 1 1]: mean 1.5, variance (2.25 + 3 * .25) / 3 = 1, std 1; deviations 1.5, -.5, -.5, -.5
    expected = [[0.866025, -0.866025, -0.866025, 0.866025], [1.5, -0.5, -0.5, -0.5]]
    assert_close(grpo(tensor([[1, 0, 0, 1], [3, 1, 1, 1]])), expected, 3e-6)  # the 1e-6 beside the std


def test_dr_grpo_by_hand():
    assert_close(
        dr_grpo(tensor([[1, 0, 0, 1], [3, 1, 1, 1]])), [[0.5, -0.5, -0.5, 0.5], [1.5, -0.5, -0.5, -0.5]]
    )


def test_rloo_by_hand():
    # [3 1 1 1]: 3 - (1+1+1)/3 = 2;  1 - (3+1+1)/3 = -2/3
    assert_close(rloo(tensor([[3, 1, 1, 1]])), [[2, -2 / 3, -2 / 3, -2 / 3]])


def test_reinforce_plus_plus_whitens_over_tokens_by_hand():
    # Tokens 1, 0 0 0: mean 1/4, variance (9/16 + 3 * 1/16) / 3 = 1/4, std 1/2: .75 / .5 and -.25 / .5.
    # Over samples it would be +-.707.
    actual = ADVANTAGES["reinforce++"](tensor([[1, 0]]), torch.tensor([[1, 3]]))
    assert_close(actual, [[1.5, -0.5]])


def test_reinforce_plus_plus_baseline_by_hand():
    # Minus the group's mean: [.5 -.5] [1 -1]. Tokens .5, -.5, 1 1, -1: mean .2; deviations .3 -.7 .8 .8 -1.2,
    # squares .09 + .49 + .64 + .64 + 1.44 = 3.3; variance 3.3 / 4 = .825, std .908295.
    lengths = torch.tensor([[1, 1], [2, 1]])
    actual = ADVANTAGES["reinforce++_baseline"](tensor([[1, 0], [3, 1]]), lengths)
    assert_close(actual, [[0.330289, -0.770675], [0.880771, -1.321157]])


def test_gdpo_by_hand():
    # Rewards [1 0] and [0 100], weights 1 and 2: over their own spreads [.71 -.71] and [-.71 .71], in sum
    # [-.71 .71]; the batch's mean 0 and variance 1 leave it so. GRPO of the sums 1, 200 would say the same of
    # weights 1 and .002.
    rewards = tensor([[[1, 0]], [[0, 100]]])
    assert_close(gdpo(rewards, tensor([1, 2])), [[-0.707107, 0.707107]], 3e-6)
    assert_close(gdpo(rewards, tensor([1, 0.002])), [[0.707107, -0.707107]], 3e-5)


@given(
    st.lists(
        st.lists(
            st.lists(st.none() | st.floats(-2, 2, width=16), min_size=3, max_size=3), min_size=2, max_size=2
        ),
        min_size=1,
        max_size=3,
    )
)
def test_gdpo_is_what_loops_make_of_it(rows):
    """None: a reward that does not apply to a sample."""
    weights = [1.0, 0.5, -2.0][: len(rows)]
    rewards = tensor([[[math.nan if x is None else x for x in group] for group in part] for part in rows])

    def scaled(values):
        known = [value for value in values if value is not None]
        mean = sum(known) / max(1, len(known))
        spread = math.sqrt(sum((value - mean) ** 2 for value in known) / max(1, len(known) - 1))
        return [
            0.0 if value is None or spread <= 1e-6 else (value - mean) / (spread + 1e-6) for value in values
        ]

    by_group = [[scaled(group) for group in part] for part in rows]
    totals = [
        None
        if all(part[g][n] is None for part in rows)
        else sum(weight * part[g][n] for weight, part in zip(weights, by_group, strict=True))
        for g in range(2)
        for n in range(3)
    ]
    assert_close(gdpo(rewards, tensor(weights)).flatten(), scaled(totals), 1e-5)


def test_gdpo_of_equal_rewards_is_exactly_zero():
    for reward in (0.1, 0.3, 0.7):
        assert (gdpo(torch.full((2, 3, 8), reward), torch.ones(2)) == 0).all()


def test_table_has_the_recipe_s_kinds():
    assert {*ADVANTAGES, "gdpo", "gae"} == set(get_args(Advantage.model_fields["kind"].annotation))


@pytest.mark.parametrize("kind", ADVANTAGES)
def test_equal_rewards_give_exact_zeros(kind):
    """Also where their mean is another number, by rounding; of which CPUs have their own."""
    rounded = 0
    for reward, samples in product((0.1, 0.3, 0.7, 1.1), range(2, 17)):
        rewards = torch.full((1, samples), reward)
        rounded += int(rewards.mean() != rewards[0, 0])
        assert (ADVANTAGES[kind](rewards, torch.arange(1, samples + 1)[None]) == 0).all(), (reward, samples)
    assert rounded, "the rounding this guards against is gone from the examples"


@pytest.mark.parametrize("kind", ["grpo", "dr_grpo", "rloo", "reinforce++_baseline"])
def test_group_of_one_is_refused(kind):
    with pytest.raises(ValueError, match="samples_per_prompt"):
        ADVANTAGES[kind](tensor([[1.0], [0.0]]), torch.tensor([[3], [4]]))


@given(reward_groups)
def test_dr_grpo_over_std_is_grpo(rows):
    rewards = tensor(rows)
    torch.testing.assert_close(dr_grpo(rewards) / (rewards.std(dim=1, keepdim=True) + 1e-6), grpo(rewards))


@given(reward_groups)
def test_rloo_subtracts_the_mean_of_the_others(rows):
    others = [[r - (sum(row) - r) / (len(row) - 1) for r in row] for row in rows]
    assert_close(rloo(tensor(rows)), others, 1e-12)


@given(reward_groups, st.sampled_from(sorted(ADVANTAGES)), st.permutations(range(4)))
def test_order_of_samples_and_a_shift_of_all_rewards_do_not_matter(rows, kind, order):
    rewards, advantages = tensor(rows), ADVANTAGES[kind]
    lengths = torch.arange(1, rewards.numel() + 1).reshape(rewards.shape)
    plain = advantages(rewards, lengths)
    shuffled = advantages(rewards[:, order], lengths[:, order])
    torch.testing.assert_close(shuffled, plain[:, order], rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(advantages(rewards + 1, lengths), plain, rtol=1e-6, atol=1e-6)


def test_whitened_tokens_have_zero_mean_and_unit_variance():
    lengths = torch.tensor([[4, 1, 7], [2, 9, 3]])
    values = torch.randn(2, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    tokens = whiten(values, lengths).flatten().repeat_interleave(lengths.flatten())
    assert tokens.mean().abs() < 1e-12
    assert abs(tokens.var() - 1) < 1e-6


def test_gae_by_hand():
    # gamma .9, lam .5. Errors: 0 + .9*.5 - .2 = .25;  0 + .9*.8 - .5 = .22;  1 + 0 - .8 = .2.
    # Backwards: .2;  .22 + .45*.2 = .31;  .25 + .45*.31 = .3895. Another trajectory, of one token: -1 - .4.
    rewards, values = tensor([0, 0, 1, -1]), tensor([0.2, 0.5, 0.8, 0.4])
    actual = gae(rewards, values, torch.tensor([0, 0, 0, 1]), gamma=0.9, lam=0.5)
    assert_close(actual, [0.3895, 0.31, 0.2, -1.4], 1e-12)


def walk_back(rewards, values, gamma, lam):
    """One trajectory, token by token from its end."""
    advantages, later, next_value = [], 0.0, 0.0
    for reward, value in zip(reversed(rewards), reversed(values), strict=True):
        later = reward + gamma * next_value - value + gamma * lam * later
        next_value = value
        advantages.insert(0, later)
    return advantages


@given(
    st.lists(st.integers(1, 40), min_size=1, max_size=6),
    st.floats(0.5, 1),
    st.floats(0, 1),
    st.integers(0, 99),
)
def test_gae_of_packed_trajectories_is_a_walk_back_through_each(lengths, gamma, lam, seed):
    generator = torch.Generator().manual_seed(seed)
    rewards, values = torch.randn(2, sum(lengths), dtype=torch.float64, generator=generator)
    sequence = torch.repeat_interleave(torch.arange(len(lengths)), torch.tensor(lengths))
    each = zip(rewards.split(lengths), values.split(lengths), strict=True)
    expected = [a for r, v in each for a in walk_back(r.tolist(), v.tolist(), gamma, lam)]
    before = rewards.clone(), values.clone()
    assert_close(gae(rewards, values, sequence, gamma=gamma, lam=lam), expected, 1e-9)
    assert torch.equal(rewards, before[0]) and torch.equal(values, before[1])


def test_gae_ends_are_return_minus_value_and_td_error():
    generator = torch.Generator().manual_seed(1)
    rewards, values = torch.randn(2, 20, dtype=torch.float64, generator=generator)
    one = torch.zeros(20, dtype=torch.long)
    returns = [sum(rewards[t:].tolist()) for t in range(20)]
    torch.testing.assert_close(gae(rewards, values, one, gamma=1.0, lam=1.0), tensor(returns) - values)
    td_errors = [rewards[t] + 0.7 * (values[t + 1] if t < 19 else 0.0) - values[t] for t in range(20)]
    torch.testing.assert_close(gae(rewards, values, one, gamma=0.7, lam=0.0), torch.stack(td_errors))
