"""Losses of preference pairs against numbers that were worked out by hand, and against cutting into batches."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from foresail.algorithms.preference_losses import KINDS, preference_loss
from foresail.data.preferences.packing import good_tokens, pack_answers, plan_answers
from foresail.recipe.tables.preferences import PreferenceLoss
from foresail.records import TrainPair, TrainSequence


def log_sigmoid(z: float) -> float:
    return -math.log(1 + math.exp(-z))


# Chosen: 2 tokens, log-probability -3, the reference's -4. Rejected: 4 tokens, -6, the reference's -5.
# Log-ratios 1 and -1, by the token 1/2 and -1/4; log-probabilities by the token -3/2 and -3/2.
SMOOTH = -0.8 * log_sigmoid(1.0) - 0.2 * log_sigmoid(-1.0)
BY_HAND: list[tuple[dict[str, Any], float]] = [
    ({"kind": "sigmoid", "beta": 0.5}, 0.31326168751822286),
    ({"kind": "sigmoid", "beta": 0.5, "label_smoothing": 0.2}, SMOOTH),
    ({"kind": "sigmoid_norm", "beta": 2.0}, -log_sigmoid(1.5)),
    ({"kind": "ipo", "beta": 0.25}, (0.75 - 2.0) ** 2),
    ({"kind": "hinge", "beta": 0.25}, 0.5),
    ({"kind": "hinge", "beta": 1.0}, 0.0),
    (
        {"kind": "robust", "beta": 0.5, "label_smoothing": 0.2},
        (-0.8 * log_sigmoid(1.0) + 0.2 * log_sigmoid(-1.0)) / 0.6,
    ),
    ({"kind": "simpo", "beta": 2.0, "gamma": 0.5}, -log_sigmoid(-0.5)),
    ({"kind": "sigmoid", "beta": 0.5, "sft_weight": 0.1}, 0.31326168751822286 + 0.1 * 3 / 2),
]


def pair(
    chosen: int, rejected: int, prompt: int = 3, name: str = "", refs: tuple[float, float] = (0.0, 0.0)
) -> TrainPair:
    def sequence(answer: int, first: int) -> TrainSequence:
        ids = [*range(prompt), *range(first, first + answer)]
        return TrainSequence(name=name, ids=ids, loss_mask=[0] * prompt + [1] * answer)

    return TrainPair(
        name=name, chosen=sequence(chosen, 10), rejected=sequence(rejected, 30), ref_logprobs=refs
    )


def loss_of(
    pairs: list[TrainPair],
    logprobs: list[tuple[Tensor, Tensor]],
    settings: PreferenceLoss,
    *,
    max_tokens: int,
) -> tuple[Tensor, dict[str, float]]:
    """Summed over micro-batches of at most so many tokens; the logprobs are those of each answer's tokens."""
    total, sums = torch.zeros(()), {}
    for plan in plan_answers(pairs, max_tokens=max_tokens, share_from=0.0):
        batch = pack_answers(pairs, plan, count=len(pairs), good=good_tokens(pairs), device="cpu")
        in_order = [answer for number in plan.members for answer in logprobs[number]]
        loss, terms = preference_loss(torch.cat(in_order), batch, settings)
        total = total + loss
        sums = {name: sums.get(name, 0.0) + float(value) for name, value in terms.items()}
    return total, sums


@pytest.mark.parametrize(("settings", "expected"), BY_HAND)
def test_a_pair_has_the_loss_that_is_worked_out_by_hand(settings: dict[str, Any], expected: float) -> None:
    logprobs = [(torch.tensor([-1.0, -2.0]), torch.tensor([-1.0, -2.0, -0.5, -2.5]))]
    pairs = [pair(2, 4, refs=(-4.0, -5.0))]
    loss, _ = loss_of(pairs, logprobs, PreferenceLoss(**settings), max_tokens=100)
    assert loss.item() == pytest.approx(expected, abs=1e-6)


def test_metrics_are_those_of_the_definition() -> None:
    logprobs = [(torch.tensor([-1.0, -2.0]), torch.tensor([-1.0, -2.0, -0.5, -2.5]))]
    pairs = [pair(2, 4, refs=(-4.0, -5.0))]
    _, found = loss_of(pairs, logprobs, PreferenceLoss(beta=0.5), max_tokens=100)
    assert found == pytest.approx(
        {
            "rewards/chosen": 0.5,
            "rewards/rejected": -0.5,
            "rewards/margins": 1.0,
            "rewards/accuracies": 1.0,
            "logps/chosen": -3.0,
            "logps/rejected": -6.0,
            "dpo/loss": 0.31326168751822286,
        }
    )


@pytest.mark.parametrize("kind", KINDS)
def test_micro_batches_change_neither_the_loss_nor_its_gradient(kind: str) -> None:
    smoothing = 0.1 if kind == "robust" else 0.0
    settings = PreferenceLoss(kind=kind, beta=0.3, sft_weight=0.5, label_smoothing=smoothing)  # type: ignore[arg-type]
    generator = torch.Generator().manual_seed(0)
    sizes = [(2, 4), (5, 1), (1, 1), (7, 3), (4, 6)]
    pairs = [pair(c, r, prompt=2 + n, name=str(n), refs=(-1.0 - n, -2.0)) for n, (c, r) in enumerate(sizes)]
    leaves = [torch.nn.Parameter(-torch.rand(n, generator=generator)) for size in sizes for n in size]
    found = []
    for max_tokens in (1000, 25, 16):
        both = list(zip(leaves[::2], leaves[1::2], strict=True))
        loss, _ = loss_of(pairs, both, settings, max_tokens=max_tokens)
        found.append((loss, *torch.autograd.grad(loss, leaves)))
    for other in found[1:]:
        for one, two in zip(found[0], other, strict=True):
            torch.testing.assert_close(one, two, rtol=1e-5, atol=1e-6)


def test_at_the_reference_dpo_moves_both_answers_by_half_of_beta() -> None:
    """The gradient of -log σ(0) is -β/2 for the chosen answer's tokens and +β/2 for the rejected one's."""
    answers = (torch.tensor([-1.0, -2.0], requires_grad=True), torch.tensor([-3.0], requires_grad=True))
    loss, _ = loss_of([pair(2, 1, refs=(-3.0, -3.0))], [answers], PreferenceLoss(beta=0.2), max_tokens=100)
    chosen, rejected = torch.autograd.grad(loss, answers)
    assert chosen.tolist() == pytest.approx([-0.1, -0.1]) and rejected.tolist() == pytest.approx([0.1])
