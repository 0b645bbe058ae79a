"""KL estimators: hand numbers, and their means by exact enumeration of a three-token policy."""

import math
from typing import get_args

import pytest
import torch

from foresail.algorithms.kl import ESTIMATORS, k1, k3, k3_unbiased
from foresail.recipe.tables.policy_loss import Loss

POLICY = torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64)
REFERENCE = torch.tensor([0.2, 0.3, 0.5], dtype=torch.float64)


def test_estimators_by_hand():
    # pi = .5, ref = .25: log 2 = .693147;  d = -log 2, .5 + .693147 - 1 = .193147
    new, ref = torch.tensor([0.5]).log(), torch.tensor([0.25]).log()
    assert k1(new, ref).item() == pytest.approx(0.693147, abs=1e-6)
    assert k3(new, ref).item() == pytest.approx(0.193147, abs=1e-6)


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_mean_over_the_policy_is_the_kl(kind):
    # .5 log(.5/.2) + .3 log 1 + .2 log(.2/.5) = .3 log 2.5 = .274887
    mean = (POLICY * ESTIMATORS[kind](POLICY.log(), REFERENCE.log(), POLICY.log())).sum().item()
    assert mean == pytest.approx(0.3 * math.log(2.5), abs=1e-12)
    assert mean == pytest.approx(0.274887, abs=1e-6)


def test_k3_is_never_negative_and_k1_is():
    generator = torch.Generator().manual_seed(0)
    new, ref = 3 * torch.randn(2, 1000, generator=generator)
    assert (k3(new, ref) >= 0).all()
    assert (k1(new, ref) < 0).any()


def test_k3_is_clamped():
    # d = 30 -> exp(20) - 21 -> 10;  d = -30 -> exp(-20) + 20 - 1 = 19 -> 10;  d = 2: e^2 - 3 = 4.389056
    far = k3(torch.tensor([-30.0, 30.0, -2.0]), torch.zeros(3))
    assert far.tolist() == pytest.approx([10.0, 10.0, 4.389056], abs=1e-5)


APART = (POLICY / REFERENCE).log()
TOWARDS = POLICY * (APART - (POLICY * APART).sum())  # the gradient of KL(pi || ref)


@pytest.mark.parametrize(
    ("kind", "expected"), [("k1", torch.zeros(3)), ("k3", POLICY - REFERENCE), ("k3_unbiased", TOWARDS)]
)
def test_mean_gradient_as_a_loss(kind, expected):
    """k1 pulls nowhere; k3 has the gradient of KL(ref || pi), which by the logits is pi - ref."""
    logits = POLICY.log().requires_grad_()
    logprobs = logits.log_softmax(0)
    (POLICY * ESTIMATORS[kind](logprobs, REFERENCE.log(), POLICY.log())).sum().backward()
    torch.testing.assert_close(logits.grad, expected.double(), rtol=0, atol=1e-12)


def test_the_unbiased_estimator_has_the_kls_gradient_for_tokens_of_an_older_policy_too():
    drawn_from = torch.tensor([0.4, 0.4, 0.2], dtype=torch.float64)
    logits = POLICY.log().requires_grad_()
    values = k3_unbiased(logits.log_softmax(0), REFERENCE.log(), drawn_from.log())
    (drawn_from * values).sum().backward()
    torch.testing.assert_close(logits.grad, TOWARDS, rtol=0, atol=1e-12)
    assert (drawn_from * values).sum().item() == pytest.approx((POLICY * APART).sum().item(), abs=1e-12)


def test_table_has_the_recipe_s_kinds():
    assert set(ESTIMATORS) == set(get_args(Loss.model_fields["kl"].annotation))
