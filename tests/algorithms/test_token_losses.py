"""Per-token losses against hand numbers, finite differences and one another."""

import math

import pytest
import torch

from foresail.algorithms.losses import cispo, clipped, gspo, sapo

BOUNDS = {"low": 0.2, "high": 0.28}


def tensor(values):
    return torch.tensor(values, dtype=torch.float64)


def assert_close(actual, expected):
    torch.testing.assert_close(actual, tensor(expected), rtol=0, atol=1e-6)


def tokens(ratios):
    """New and old log-probabilities with these ratios; the old ones are log .25."""
    old = torch.full((len(ratios),), math.log(0.25), dtype=torch.float64)
    return (old + tensor(ratios).log()).requires_grad_(), old


def gradient(loss_M, logprobs_M):
    return torch.autograd.grad(loss_M.sum(), logprobs_M)[0]


def random_tokens(spread, seed=0, count=40):
    generator = torch.Generator().manual_seed(seed)
    old = -torch.rand(count, dtype=torch.float64, generator=generator) - 0.1
    new = old + spread * torch.randn(count, dtype=torch.float64, generator=generator)
    return new.requires_grad_(), old, torch.randn(count, dtype=torch.float64, generator=generator)


def test_clipped_by_hand():
    # A = 1: -min(r, clip(r, .8, 1.28)): .5 -> -.5, 1.2 -> -1.2, 2 -> -1.28.
    # A = -1: max(r, clip(r)): .5 -> .8, 1.2 -> 1.2, 5 -> 5.  A clipped token has no gradient, others -r A.
    new, old = tokens([0.5, 1.2, 2.0, 0.5, 1.2, 5.0])
    losses = clipped(new, old, tensor([1, 1, 1, -1, -1, -1]), **BOUNDS)
    assert_close(losses.loss_M, [-0.5, -1.2, -1.28, 0.8, 1.2, 5.0])
    assert losses.above_M.tolist() == [False, False, True, False, False, False]
    assert losses.below_M.tolist() == [False, False, False, True, False, False]
    assert_close(gradient(losses.loss_M, new), [-0.5, -1.2, 0.0, 0.0, 1.2, 5.0])


def test_dual_clip_by_hand():
    # A = -2, bound 3: 5 -> min(10, 6) = 6 and no gradient; 2 -> 4, below the bound. A = 1: inactive.
    new, old = tokens([5.0, 2.0, 5.0])
    losses = clipped(new, old, tensor([-2, -2, 1]), **BOUNDS, dual_clip=3.0)
    assert_close(losses.loss_M, [6.0, 4.0, -1.28])
    assert losses.dual_clipped_M.tolist() == [True, False, False]
    assert losses.above_M.tolist() == [False, False, True] and not losses.below_M.any()
    assert_close(gradient(losses.loss_M, new), [0.0, 4.0, 0.0])


def test_sapo_by_hand():
    # A = 1, t = 1: -4 sigmoid(r - 1): r 1 -> -2, r 2 -> -2.924234; the gradient -4 p (1 - p) r A: -1, -1.572895.
    # A = -1, t = 1.05: 4/1.05 sigmoid(1.05 (2 - 1)) = 2.820970, gradient 4 p (1 - p) 2 = 1.536252.
    new, old = tokens([1.0, 2.0, 2.0])
    losses = sapo(new, old, tensor([1, 1, -1]), temperature_pos=1.0, temperature_neg=1.05)
    gates = [1 / (1 + math.exp(-x)) for x in (0.0, 1.0, 1.05)]
    assert_close(losses.loss_M, [-4 * gates[0], -4 * gates[1], 4 / 1.05 * gates[2]])
    slopes = [4 * p * (1 - p) * ratio for p, ratio in zip(gates, (1.0, 2.0, 2.0), strict=True)]
    assert_close(gradient(losses.loss_M, new), [-slopes[0], -slopes[1], slopes[2]])
    assert not losses.clipped_M.any()


def test_sapo_starts_as_reinforce_and_fades_on_both_sides():
    new, old = tokens([1e-3, 0.5, 1.0, 2.0, 5.0])
    losses = sapo(new, old, tensor([1] * 5), temperature_pos=1.0, temperature_neg=1.05)
    pulls = [
        -pull / ratio
        for pull, ratio in zip(gradient(losses.loss_M, new).tolist(), (1e-3, 0.5, 1.0, 2.0, 5.0), strict=True)
    ]
    assert pulls[2] == pytest.approx(1.0) and max(pulls) == pulls[2]
    assert pulls[0] < pulls[1] and pulls[4] < pulls[3]


def test_gspo_by_hand():
    # Sequence 1 has log-ratios .1 and .3: exp(.2) = 1.2214, A = 2 -> -min(2.4428, 2 * 1.2) = -2.4, clipped.
    # Sequence 0 has -.05: exp = .951229, A = -1 -> .951229. Sequence 2 has 0 and -.4: exp(-.2) = .818731,
    # A = 1 -> -min(.818731, .9) = -.818731, with the whole ratio as each token's gradient.
    new, old = tokens([math.exp(x) for x in (0.1, -0.05, 0.3, 0.0, -0.4)])
    sequence = torch.tensor([1, 0, 1, 2, 2])
    losses = gspo(new, old, tensor([2, -1, 2, 1, 1]), sequence, num_sequences=4, low=0.1, high=0.2)
    assert_close(losses.loss_M, [-2.4, 0.951229, -2.4, -0.818731, -0.818731])
    assert losses.above_M.tolist() == [True, False, True, False, False] and not losses.below_M.any()
    assert_close(gradient(losses.loss_M, new), [0.0, 0.951229, 0.0, -0.818731, -0.818731])


def test_cispo_by_hand():
    # Ratio 2, old .25, so pi = .5 and log pi = -.693147: -1.28 * 1 * -.693147 = .887228.
    # Ratio .5: pi = .125, log pi = -2.079442, A = -1: -.8 * -1 * -2.079442 = -1.663553.
    # Ratio 1.2: pi = .3, log pi = -1.203973, A = 2: -1.2 * 2 * -1.203973 = 2.889535.
    new, old = tokens([2.0, 0.5, 1.2])
    losses = cispo(new, old, tensor([1, -1, 2]), **BOUNDS)
    assert_close(losses.loss_M, [0.887228, -1.663553, 2.889535])
    assert losses.above_M.tolist() == [True, False, False]
    assert losses.below_M.tolist() == [False, True, False]
    assert_close(gradient(losses.loss_M, new), [-1.28, 0.8, -2.4])


def test_equal_bounds_give_the_clip_of_ppo():
    new, old, advantages = random_tokens(0.5)
    ratios = [math.exp(a - b) for a, b in zip(new.tolist(), old.tolist(), strict=True)]
    ppo = [-min(r * a, max(0.8, min(r, 1.2)) * a) for r, a in zip(ratios, advantages.tolist(), strict=True)]
    losses = clipped(new, old, advantages, low=0.2, high=0.2)
    assert_close(losses.loss_M, ppo)
    higher = clipped(new, old, advantages, low=0.2, high=0.4)
    assert (higher.loss_M != losses.loss_M).any(), "no token between the two upper bounds"


def test_dual_clip_leaves_positive_advantages_alone():
    new, old, advantages = random_tokens(2.0)
    plain = clipped(new, old, advantages, **BOUNDS).loss_M
    dual = clipped(new, old, advantages, **BOUNDS, dual_clip=1.5).loss_M
    positive = advantages > 0
    assert torch.equal(dual[positive], plain[positive])
    assert (dual[~positive] < plain[~positive]).any()
    assert (dual[~positive] <= -1.5 * advantages[~positive]).all()


def test_gspo_of_one_token_sequences_is_the_clip():
    new, old, advantages = random_tokens(0.5)
    sequence = torch.randperm(40, generator=torch.Generator().manual_seed(3))
    whole = gspo(new, old, advantages, sequence, num_sequences=40, **BOUNDS)
    token = clipped(new, old, advantages, **BOUNDS)
    torch.testing.assert_close(whole.loss_M, token.loss_M)
    assert torch.equal(whole.clipped_M, token.clipped_M) and token.clipped_M.any()
    torch.testing.assert_close(gradient(whole.loss_M, new), gradient(token.loss_M, new))


def test_at_ratio_one_every_loss_has_the_gradient_of_reinforce():
    new, old, advantages = random_tokens(0.0)
    sequence = torch.arange(40) // 7
    kinds = [
        clipped(new, old, advantages, **BOUNDS),
        clipped(new, old, advantages, **BOUNDS, dual_clip=3.0),
        gspo(new, old, advantages, sequence, num_sequences=6, **BOUNDS),
        cispo(new, old, advantages, **BOUNDS),
    ]
    for losses in kinds:
        torch.testing.assert_close(gradient(losses.loss_M, new), -advantages)
        assert not losses.clipped_M.any()


@pytest.mark.parametrize("dual_clip", [None, 1.5])
def test_clipped_gradient_matches_finite_differences(dual_clip):
    new, old, advantages = random_tokens(0.8)
    assert torch.autograd.gradcheck(
        lambda x: clipped(x, old, advantages, **BOUNDS, dual_clip=dual_clip).loss_M, (new,)
    )


def test_gspo_gradient_is_that_of_the_sequence_objective():
    """The paper's objective has one term per sequence: the mean over tokens of the token form's gradient."""
    new, old, _ = random_tokens(0.4)
    sequence, sizes = torch.arange(40) // 8, 8
    advantages_S = tensor([1.0, -1.0, 0.5, -2.0, 1.5])

    def objective(logprobs):
        s = (logprobs - old).reshape(5, sizes).mean(dim=1).exp()
        return -torch.minimum(s * advantages_S, s.clamp(0.9, 1.1) * advantages_S).sum()

    losses = gspo(new, old, advantages_S[sequence], sequence, num_sequences=5, low=0.1, high=0.1)
    steps = 1e-6 * torch.eye(40, dtype=torch.float64)
    with torch.no_grad():
        slopes = torch.stack([(objective(new + h) - objective(new - h)) / 2e-6 for h in steps])
    torch.testing.assert_close(gradient(losses.loss_M, new) / sizes, slopes, rtol=1e-6, atol=1e-8)
    assert 0 < losses.clipped_M.sum() < 40


def test_cispo_gradient_takes_the_weight_as_a_constant_and_silences_no_token():
    new, old, advantages = random_tokens(0.5)
    slopes = gradient(cispo(new, old, advantages, **BOUNDS).loss_M, new)
    torch.testing.assert_close(slopes, -(new.detach() - old).exp().clamp(0.8, 1.28) * advantages)
    silent = gradient(clipped(new, old, advantages, **BOUNDS).loss_M, new) == 0
    assert silent.any() and (slopes[silent] != 0).all()


@pytest.mark.parametrize("gap", [-1000.0, 1000.0])
def test_absurd_ratios_stay_finite(gap):
    old = torch.tensor([-1.0, -1.0])
    new = (old + gap).requires_grad_()
    advantages, sequence = torch.tensor([1.0, -1.0]), torch.tensor([0, 1])
    for losses in (
        clipped(new, old, advantages, **BOUNDS),
        gspo(new, old, advantages, sequence, num_sequences=2, **BOUNDS),
        cispo(new, old, advantages, **BOUNDS),
    ):
        assert losses.loss_M.isfinite().all()
        assert gradient(losses.loss_M, new).isfinite().all()
