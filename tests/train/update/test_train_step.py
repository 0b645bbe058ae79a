"""One update: its gradient against a plain unpacked computation, and what happens when a number is not one.

Legend: T tokens of one sequence, H query heads, K key/value heads, d head size, V vocabulary.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
import torch
from plain_attention import plain_attention
from small_training import TOLERANCE, Keeper, small_model, small_sequences, snapshot, update
from torch import Tensor

from foresail.algorithms.batch_losses import policy_loss, sft_loss
from foresail.data.packing import pack
from foresail.model.decoder import Decoder
from foresail.model.readouts import logits
from foresail.recipe.tables.parts import Optimizer
from foresail.recipe.tables.policy_loss import Loss
from foresail.records import PackedBatch, TrainSequence
from foresail.train.optim.master_adamw import MasterAdamW
from foresail.train.update.step import NonFiniteLoss

WEIGHT = 1 / 29


def packed(sequences: list[TrainSequence], max_tokens: int = 1000) -> list[PackedBatch]:
    return pack(sequences, [WEIGHT] * len(sequences), max_tokens=max_tokens)


def clip_loss(logprobs_M: Tensor, batch: PackedBatch, **settings: Any) -> tuple[Tensor, dict[str, Tensor]]:
    return policy_loss(logprobs_M, batch, Loss(**settings))


# The reference: one sequence at a time, attention written out, no packing.


def plain_logprobs(model: Decoder, sequence: TrainSequence, temperature: float) -> tuple[Tensor, list[int]]:
    """Log-probabilities of the tokens with a loss, and their places."""
    ids_T = torch.tensor(sequence.ids)
    logits_TV = model(ids_T, torch.arange(len(ids_T)), plain_attention, logits).value / temperature
    logprobs_TV = logits_TV - logits_TV.logsumexp(-1, keepdim=True)
    places = [place for place, in_loss in enumerate(sequence.loss_mask) if in_loss]
    return torch.stack([logprobs_TV[place - 1, sequence.ids[place]] for place in places]), places


def plain_sft(model: Decoder, sequence: TrainSequence, temperature: float) -> Tensor:
    return -WEIGHT * plain_logprobs(model, sequence, temperature)[0].sum()


def plain_clip(model: Decoder, sequence: TrainSequence, temperature: float) -> Tensor:
    logprobs, places = plain_logprobs(model, sequence, temperature)
    total = torch.zeros(())
    for logprob, place in zip(logprobs, places, strict=True):
        ratio = (logprob - sequence.old_logprobs[place]).exp()  # type: ignore[index]
        advantage = sequence.advantages[place]  # type: ignore[index]
        total = total - WEIGHT * torch.minimum(ratio * advantage, ratio.clamp(0.8, 1.28) * advantage)
    return total


Plain = Callable[[Decoder, TrainSequence, float], Tensor]


@pytest.mark.parametrize(("loss", "plain"), [(sft_loss, plain_sft), (clip_loss, plain_clip)])
@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_gradient_equals_a_plain_unpacked_computation(loss: Any, plain: Plain, temperature: float) -> None:
    model, sequences = small_model(), small_sequences()
    optimizer = Keeper(model)
    metrics = update(model, optimizer, packed(sequences), loss, temperature=temperature)

    model.zero_grad()
    expected = sum(plain(model, sequence, temperature) for sequence in sequences)
    expected.backward()  # type: ignore[union-attr]
    for found, weight in zip(optimizer.kept, model.parameters(), strict=True):
        torch.testing.assert_close(found, weight.grad, rtol=TOLERANCE, atol=TOLERANCE)
    norm = torch.cat([weight.grad.flatten() for weight in model.parameters()]).norm()  # type: ignore[union-attr]
    assert metrics["loss"] == pytest.approx(expected.item(), abs=1e-5)  # type: ignore[union-attr]
    assert metrics["grad_norm"] == pytest.approx(norm.item(), rel=1e-4)


def test_metrics_are_means_over_the_tokens_of_the_update() -> None:
    model, sequences = small_model(), small_sequences()
    with torch.no_grad():
        logprobs = torch.cat([plain_logprobs(model, sequence, 1.0)[0] for sequence in sequences])
    metrics = update(model, Keeper(model), packed(sequences, 20), sft_loss)
    assert metrics["sft/nll"] == pytest.approx(-logprobs.mean().item(), rel=1e-5)
    assert 0 < metrics["entropy"] < torch.tensor(float(model.shape.vocab_size)).log()


@pytest.mark.parametrize(
    "loss",
    [
        {},
        {"kind": "gspo"},
        {"kind": "cispo"},
        {"kind": "sapo"},
        {"dual_clip": 3.0},
        {"importance_mask": "sequence", "importance_range": (0.5, 2.0)},
        {"off_policy_mask_threshold": 0.1},
        None,
    ],
)
@pytest.mark.parametrize("max_tokens", [14, 20, 31])
def test_micro_batches_and_order_change_nothing_but_rounding(loss: dict | None, max_tokens: int) -> None:
    def measure(sequences: list[TrainSequence], max_tokens: int) -> tuple[dict[str, float], list[Tensor]]:
        optimizer, batches = Keeper(model), packed(sequences, max_tokens)
        assert (len(batches) == 1) == (max_tokens == 1000)
        chosen = sft_loss if loss is None else lambda m, b: clip_loss(m, b, **loss)
        return update(model, optimizer, batches, chosen), optimizer.kept

    model, sequences = small_model(), small_sequences()
    metrics, gradients = measure(sequences, 1000)
    random.Random(max_tokens).shuffle(sequences)
    others, other_gradients = measure(sequences, max_tokens)
    assert others == pytest.approx(metrics, rel=1e-4, abs=1e-6)
    for found, expected in zip(other_gradients, gradients, strict=True):
        torch.testing.assert_close(found, expected, rtol=TOLERANCE, atol=TOLERANCE)


def test_gradients_of_a_bfloat16_model_are_summed_in_float32() -> None:
    model, sequences = small_model(dtype=torch.bfloat16), small_sequences()
    expected = [torch.zeros_like(weight, dtype=torch.float32) for weight in model.parameters()]
    keeper = Keeper(model)
    for batch in packed(sequences, 14):
        update(model, keeper, [batch], sft_loss)
        expected = [total + share for total, share in zip(expected, keeper.kept, strict=True)]
    update(model, keeper, packed(sequences, 14), sft_loss)
    for found, total in zip(keeper.kept, expected, strict=True):
        assert found.dtype == torch.float32 and torch.equal(found, total)


def test_the_update_clips_to_the_norm_and_reports_what_it_was() -> None:
    model, sequences = small_model(), small_sequences()
    whole = Keeper(model)
    metrics = update(model, whole, packed(sequences), sft_loss)
    small = Keeper(model, clip_norm=metrics["grad_norm"] / 4)
    assert update(model, small, packed(sequences), sft_loss) == metrics
    for clipped, gradient in zip(small.kept, whole.kept, strict=True):
        torch.testing.assert_close(4 * clipped, gradient, rtol=1e-4, atol=1e-7)


# Numbers that are none.


def nan_in(name: str) -> Callable[[Tensor, PackedBatch], tuple[Tensor, dict[str, Tensor]]]:
    """The SFT loss, but NaN in the micro-batch that holds `name`."""
    return lambda logprobs_M, batch: (
        sft_loss(logprobs_M, batch)[0] * (float("nan") if name in batch.names else 1.0),
        {},
    )


def bad_slope_in(name: str) -> Callable[[Tensor, PackedBatch], tuple[Tensor, dict[str, Tensor]]]:
    """A finite loss whose gradient is not: the slope of a root at zero."""

    def loss(logprobs_M: Tensor, batch: PackedBatch) -> tuple[Tensor, dict[str, Tensor]]:
        value, metrics = sft_loss(logprobs_M, batch)
        return value + ((0 * logprobs_M.sum()).abs().sqrt() if name in batch.names else 0.0), metrics

    return loss


@pytest.mark.parametrize("make_loss", [nan_in, bad_slope_in])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_broken_number_names_its_batch_and_touches_nothing(make_loss: Any, dtype: torch.dtype) -> None:
    model, twin, sequences = small_model(dtype=dtype), small_model(dtype=dtype), small_sequences()
    optimizer, other = MasterAdamW(model, Optimizer(lr=0.1)), MasterAdamW(twin, Optimizer(lr=0.1))
    batches = packed(sequences, 20)
    update(model, optimizer, batches, sft_loss, learning_rate=0.1)
    update(twin, other, batches, sft_loss, learning_rate=0.1)
    before = snapshot(model, optimizer)
    assert len(before) > 30

    culprit = batches[-1].names[-1]  # the last micro-batch: gradients of the others are there already
    message = f"in the micro-batch of .*{culprit} .*not touched.*[Ll]ower optimizer.lr"
    with pytest.raises(NonFiniteLoss, match=message):
        update(model, optimizer, batches, make_loss(culprit), learning_rate=0.1)
    after = snapshot(model, optimizer)
    assert after.keys() == before.keys()
    assert all(torch.equal(after[name], before[name]) for name in before)

    # Nothing of the failed attempt is left in the gradients either.
    update(model, optimizer, batches, sft_loss, learning_rate=0.1)
    update(twin, other, batches, sft_loss, learning_rate=0.1)
    expected = snapshot(twin, other)
    assert all(torch.equal(value, expected[name]) for name, value in snapshot(model, optimizer).items())


def test_nan_log_probabilities_from_the_engine_are_caught() -> None:
    model, sequences = small_model(), small_sequences()
    sequences[2].old_logprobs[-1] = float("nan")  # type: ignore[index]
    with pytest.raises(NonFiniteLoss, match=r"loss is nan in the micro-batch of .*sequence 2"):
        update(model, Keeper(model), packed(sequences, 20), clip_loss)


def test_a_crowded_micro_batch_names_a_few_of_its_sequences() -> None:
    model = small_model()
    with pytest.raises(NonFiniteLoss, match=r"sequence \d, sequence \d, sequence \d, sequence \d and 2 more"):
        update(model, Keeper(model), packed(small_sequences()), nan_in("sequence 0"))
