"""What is computed anew in the backward pass gives the gradients of what is saved, to the last bit."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from foresail.model.attention import PackedAttention
from foresail.model.decoder import Block, Decoder
from foresail.model.hf import build_model
from foresail.model.kernels import available
from foresail.model.readouts import logits
from foresail.model.recomputed import not_recomputed, recomputed
from foresail.recipe.shape.model_shape import ModelShape

CUDA = torch.cuda.is_available()
DEVICE = "cuda" if CUDA else "cpu"
SHAPE = ModelShape(
    family="qwen3",
    vocab_size=23,
    hidden_size=16,
    intermediate_size=24,
    num_layers=3,
    num_heads=4,
    num_kv_heads=2,
    head_dim=4,
    max_context=40,
    qk_norm=True,
)


def gradients(model: Decoder) -> list[Tensor]:
    ids_T = torch.arange(12, device=DEVICE)
    positions_T = torch.cat((torch.arange(5), torch.arange(7))).to(DEVICE)
    output = model(ids_T, positions_T, PackedAttention(torch.tensor([0, 5, 12])), logits)
    output.value.log_softmax(-1)[:, 3].sum().backward()
    found = [weight.grad.clone() for weight in model.parameters() if weight.grad is not None]
    model.zero_grad()
    return found


def assert_same(found: list[Tensor], expected: list[Tensor]) -> None:
    assert len(found) == len(expected) > 0
    assert all(torch.equal(ours, theirs) for ours, theirs in zip(found, expected, strict=True))


def test_recomputed_blocks_have_the_same_gradients():
    model = build_model(SHAPE, seed=0).to(DEVICE)
    expected = gradients(model)
    model.recompute_blocks()
    assert_same(gradients(model), expected)


def test_remade_tensors_have_the_same_gradients(monkeypatch):
    pytest.importorskip("triton_interpreter", reason="on a CPU its interpreter runs the kernels")
    monkeypatch.setattr(available, "can_fuse", lambda tensor: True)
    model = build_model(SHAPE, seed=0).to(DEVICE)
    found = gradients(model)
    for block in model.blocks:
        assert isinstance(block, Block) and block.recomputed is recomputed
        block.recomputed = not_recomputed
    assert_same(found, gradients(model))


def test_what_is_remade_is_not_kept(monkeypatch):
    monkeypatch.setattr(available, "can_fuse", lambda tensor: True)
    calls = []

    def double(x: Tensor) -> Tensor:
        calls.append(x)
        return 2 * x

    source = torch.ones(3, requires_grad=True)
    weight = torch.full((3,), 5.0, requires_grad=True)
    doubled = double(source)
    with recomputed(doubled, double, source):
        out = doubled * weight
    with torch.no_grad():
        doubled.fill_(100.0)  # nobody looks at it any more
    out.sum().backward()
    assert len(calls) == 2
    assert weight.grad is not None and weight.grad.tolist() == [2.0, 2.0, 2.0]


def test_without_gradients_or_kernels_nothing_is_remade():
    x = torch.ones(2)
    with torch.no_grad():
        assert not hasattr(recomputed(x, torch.neg, x), "pack_hook")
    assert not hasattr(recomputed(x, torch.neg, x), "pack_hook")
