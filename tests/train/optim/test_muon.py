"""Muon against a float64 reference, and what it takes for a matrix."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as some
from small_training import SHAPE, WITH_EXPERTS, small_model, small_sequences
from torch import Tensor, nn

from foresail.algorithms.batch_losses import sft_loss
from foresail.data.packing import pack
from foresail.model.decoder import Decoder
from foresail.recipe.shape.model_shape import ModelShape
from foresail.recipe.tables.parts import Optimizer
from foresail.train.learner import Learner
from foresail.train.optim.muon import Muon, matrix_rows
from foresail.train.optim.optimizer import build_optimizer
from foresail.train.optim.orthogonal import COEFFICIENTS, orthogonalize
from foresail.train.update.step import token_loss, train_step

SETTINGS = Optimizer(
    name="muon", lr=1e-2, momentum=0.9, weight_decay=0.1, matrix_rate=2.0, embedding_rate=0.5, clip_norm=1e9
)


def reference(matrix: Tensor) -> Tensor:
    """By singular values, one number at a time: what five steps of the polynomial make of each."""
    u, singular, v = torch.linalg.svd(matrix.double(), full_matrices=False)
    values = singular / singular.square().sum().sqrt().clamp(min=1e-7)
    a, b, c = COEFFICIENTS
    for _ in range(5):
        values = a * values + b * values**3 + c * values**5
    return u @ torch.diag(values) @ v


@settings(max_examples=25)
@given(
    count=some.integers(1, 3),
    rows=some.integers(1, 20),
    columns=some.integers(1, 20),
    seed=some.integers(0, 99),
)
def test_each_matrix_is_orthogonalised_by_itself(count: int, rows: int, columns: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    matrices = torch.randn(count, rows, columns, generator=generator) * 10.0 ** (seed % 9 - 4)
    found = orthogonalize(matrices)
    for ours, matrix in zip(found, matrices, strict=True):
        torch.testing.assert_close(ours.double(), reference(matrix), rtol=0, atol=2e-4)
        singular = torch.linalg.svdvals(ours)
        assert singular.max() < 1.25
        if torch.linalg.cond(matrix) < 100:
            assert singular.min() > 0.6
    assert torch.equal(orthogonalize(torch.zeros(1, rows, columns)), torch.zeros(1, rows, columns))


def test_projections_and_experts_are_matrices_of_their_own() -> None:
    dense, sparse = matrix_rows(small_model()), matrix_rows(small_model(shape=WITH_EXPERTS))
    assert dense["blocks.0.attention.qkv.weight"] == [16, 8, 8]
    assert dense["blocks.1.mlp.gate_up.weight"] == [24, 24]
    assert sparse["blocks.0.mlp.experts.gate_up"] == [12] * 10
    assert sparse["blocks.0.mlp.experts.down"] == [16] * 5
    assert sparse["blocks.1.mlp.shared.gate_up.weight"] == [12, 12]
    for rows, model in ((dense, small_model()), (sparse, small_model(shape=WITH_EXPERTS))):
        inside = {name for name, weight in model.blocks.named_parameters(prefix="blocks") if weight.ndim == 2}
        assert rows.keys() == {name for name in inside if ".router." not in name}
        assert all(sum(counts) == len(model.get_parameter(name)) for name, counts in rows.items())
    with pytest.raises(ValueError, match=r"muon.*is for decoders"):
        build_optimizer(nn.Linear(2, 2), SETTINGS)


def train(model: Decoder, optimizer: Muon, updates: int) -> list[dict[str, Tensor]]:
    """The gradients of each update."""
    learner = Learner(name="policy", model=model, optimizer=optimizer)
    batches = pack(small_sequences(), [0.02] * 6, max_tokens=64)
    seen: list[dict[str, Tensor]] = []
    update = optimizer.update

    def noted(rate: float) -> None:
        seen.append({n: optimizer.gradients[i].clone() for i, n in enumerate(optimizer.names)})  # type: ignore[union-attr]
        update(rate)

    optimizer.update = noted  # type: ignore[method-assign]
    for _ in range(updates):
        train_step(learner, batches, partial(token_loss, loss=sft_loss), learning_rate=1e-2)
    return seen


@pytest.mark.parametrize("shape", [SHAPE, WITH_EXPERTS], ids=["dense", "experts"])
def test_three_updates_are_those_of_a_float64_reference(shape: ModelShape) -> None:
    model = small_model(shape=shape)
    before = {name: weight.detach().double() for name, weight in model.named_parameters()}
    optimizer = build_optimizer(model, SETTINGS)
    assert isinstance(optimizer, Muon)
    gradients, rows = train(model, optimizer, 3), matrix_rows(model)
    after = dict(model.named_parameters())
    for name, weight in before.items():
        if name not in gradients[0]:
            assert torch.equal(after[name].double(), weight), "frozen"
            continue
        mean, square = torch.zeros_like(weight), torch.zeros_like(weight)
        for step, found in enumerate(gradients, start=1):
            gradient = found[name].double()
            if name in rows:
                mean = 0.9 * mean + 0.1 * gradient
                ahead = 0.1 * gradient + 0.9 * mean
                parts = [0.2 * max(part.shape) ** 0.5 * reference(part) for part in ahead.split(rows[name])]
                weight = weight * (1 - 2e-2 * 0.1) - 2e-2 * torch.cat(parts)
                continue
            rate = 1e-2 * (0.5 if name == "embed.weight" else 1.0)
            mean, square = 0.9 * mean + 0.1 * gradient, 0.95 * square + 0.05 * gradient**2
            decay = 0.1 if weight.ndim > 1 else 0.0
            root = (square / (1 - 0.95**step)).sqrt() + 1e-8
            weight = weight * (1 - rate * decay) - rate * mean / (1 - 0.9**step) / root
        torch.testing.assert_close(after[name].detach().double(), weight, rtol=0, atol=3e-5, msg=name)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_it_goes_on_bit_for_bit(dtype: torch.dtype) -> None:
    whole, optimizer = small_model(dtype=dtype), None
    optimizer = build_optimizer(whole, SETTINGS)
    assert isinstance(optimizer, Muon)
    fresh = {name: tensor.clone() for name, tensor in optimizer.state().items()}
    train(whole, optimizer, 2)
    state = {name: tensor.clone() for name, tensor in optimizer.state().items()}
    other = small_model(dtype=dtype)
    again = build_optimizer(other, SETTINGS)
    assert isinstance(again, Muon)
    again.load_state(fresh)
    again.load_state(state)
    other.load_state_dict(whole.state_dict())
    for model, its in ((whole, optimizer), (other, again)):
        train(model, its, 1)
    for ours, theirs in zip(whole.parameters(), other.parameters(), strict=True):
        assert torch.equal(ours, theirs)
    with pytest.raises(ValueError, match=r"another optimizer.name"):
        again.load_state({"step:x": torch.zeros(1)})
