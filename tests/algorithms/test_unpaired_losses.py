"""Losses of judged answers, against loops over answers written apart, and against cutting into batches."""

from __future__ import annotations

import math
import random
from typing import Any, get_args

import pytest
import torch
from torch import Tensor

from foresail.algorithms.unpaired_losses import KINDS, kl_of, unpaired_loss
from foresail.data.preferences.packing import good_tokens, pack_answers, plan_answers
from foresail.recipe.tables.preferences import UnpairedLoss
from foresail.records import TrainAnswer, TrainSequence

SETTINGS = [
    {"kind": "kto", "beta": 0.5},
    {"kind": "kto", "beta": 0.3, "desirable_weight": 2.0, "undesirable_weight": 0.5},
    {"kind": "apo_zero_unpaired", "beta": 0.5, "desirable_weight": 0.0},
]


def answer(tokens: int, *, good: bool, prompt: int = 3, name: str = "", ref: float = 0.0) -> TrainAnswer:
    sequence = TrainSequence(
        name=name,
        ids=[*range(prompt), *range(10, 10 + tokens)],
        loss_mask=[0] * prompt + [1] * tokens,
    )
    return TrainAnswer(name=name, answer=sequence, desirable=good, ref_logprobs=(ref, -99.0))


def loss_of(
    answers: list[TrainAnswer], logprobs: list[Tensor], settings: UnpairedLoss, kl: float, max_tokens: int
) -> tuple[Tensor, dict[str, float]]:
    """Summed over micro-batches of at most so many tokens."""
    total, sums = torch.zeros(()), {}
    for plan in plan_answers(answers, max_tokens=max_tokens, share_from=0.0):
        batch = pack_answers(answers, plan, count=len(answers), good=good_tokens(answers), device="cpu")
        own = torch.cat([logprobs[number] for number in plan.members])
        loss, terms = unpaired_loss(own, batch, settings, kl)
        total = total + loss
        sums = {name: sums.get(name, 0.0) + float(value) for name, value in terms.items()}
    return total, sums


def reckon(
    answers: list[TrainAnswer], logprobs: list[list[float]], settings: UnpairedLoss, kl: float
) -> float:
    """From the papers' formulas, an answer at a time."""

    def sigmoid(x: float) -> float:
        return 1 / (1 + math.exp(-x))

    losses = []
    for one, own in zip(answers, logprobs, strict=True):
        assert one.ref_logprobs is not None
        ratio, beta = sum(own) - one.ref_logprobs[0], settings.beta
        if settings.kind == "kto":
            loss = 1 - sigmoid(beta * (ratio - kl)) if one.desirable else 1 - sigmoid(beta * (kl - ratio))
        else:
            loss = 1 - sigmoid(beta * ratio) if one.desirable else sigmoid(beta * ratio)
        losses.append(loss * (settings.desirable_weight if one.desirable else settings.undesirable_weight))
    return sum(losses) / len(losses)


def test_a_good_and_a_bad_answer_by_hand() -> None:
    # Log-ratios -3 + 4 = 1 and -6 + 5 = -1, beta .5, KL .4: 1 - σ(.3) = .425557 and 1 - σ(.5 (.4 + 1)) = .331812
    logprobs = [torch.tensor([-1.0, -2.0]), torch.tensor([-1.0, -2.0, -3.0])]
    answers = [answer(2, good=True, ref=-4.0), answer(3, good=False, ref=-5.0)]
    loss, found = loss_of(answers, logprobs, UnpairedLoss(beta=0.5), 0.4, max_tokens=100)
    assert loss.item() == pytest.approx((0.425557 + 0.331812) / 2, abs=1e-6)
    assert found == pytest.approx(
        {
            "kto/loss": 0.425557 + 0.331812,
            "rewards/chosen": 0.5,
            "rewards/rejected": -0.5,
            "logps/chosen": -3.0,
            "logps/rejected": -6.0,
        },
        abs=1e-6,
    )


@pytest.mark.parametrize("given", SETTINGS)
@pytest.mark.parametrize("seed", range(3))
def test_an_update_is_what_loops_make_of_it_however_it_is_cut(given: dict[str, Any], seed: int) -> None:
    settings, numbers = UnpairedLoss(**given), random.Random(seed)
    sizes = [numbers.randint(1, 9) for _ in range(8)]
    answers = [
        answer(
            size, good=numbers.random() < 0.5, prompt=2 + number, name=str(number), ref=-numbers.uniform(1, 9)
        )
        for number, size in enumerate(sizes)
    ]
    values = [[-numbers.random() for _ in range(size)] for size in sizes]
    leaves = [torch.nn.Parameter(torch.tensor(row)) for row in values]
    expected = reckon(answers, values, settings, 0.7)
    found = []
    for max_tokens in (1000, 30, 19):
        loss, _ = loss_of(answers, leaves, settings, 0.7, max_tokens)
        assert loss.item() == pytest.approx(expected, rel=1e-5)
        found.append(torch.autograd.grad(loss, leaves))
    for other in found[1:]:
        for one, two in zip(found[0], other, strict=True):
            torch.testing.assert_close(one, two, rtol=1e-5, atol=1e-7)


def test_the_kl_is_a_mean_that_never_lies_below_zero() -> None:
    assert kl_of([-3.0, -5.0], [-4.0, -5.0]) == 0.5
    assert kl_of([-4.0, -5.0], [-3.0, -5.0]) == 0.0 == kl_of([], [])


def test_answers_that_imitate_are_the_good_ones() -> None:
    answers = [answer(2, good=True), answer(3, good=False), answer(4, good=True)]
    (plan,) = plan_answers(answers, max_tokens=100, share_from=None)
    batch = pack_answers(answers, plan, count=3, good=good_tokens(answers), device="cpu")
    assert good_tokens(answers) == 6 and batch.weights_M.sum().item() == pytest.approx(1.0)
    labels = {int(sum(batch.sequence_M == s)): bool(g) for s, g in enumerate(batch.answers.desirable_P)}  # type: ignore[union-attr, arg-type]
    assert labels == {2: True, 3: False, 4: True}


def test_table_has_the_recipes_kinds() -> None:
    assert set(KINDS) == set(get_args(UnpairedLoss.model_fields["kind"].annotation))
