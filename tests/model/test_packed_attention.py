"""Packing changes nothing: each sequence's logits and gradients are as if it were alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from small_models import packed_logits, random_ids, random_model

from foresail.model.attention import PackedAttention
from foresail.model.hf import load_model

ROOT = Path(__file__).parents[2]
SEQUENCES = [random_ids(length, seed=length) for length in (7, 1, 23, 12)]


@pytest.fixture(params=["llama3 rope", "qwen2", "qwen3"])
def model(request, tmp_path):
    random_model(request.param).save_pretrained(tmp_path)
    return load_model(tmp_path, dtype=torch.float32, device="cpu")


def test_packed_logits_equal_each_sequence_alone(model):
    alone = torch.cat([packed_logits(model, [ids]) for ids in SEQUENCES])
    torch.testing.assert_close(packed_logits(model, SEQUENCES), alone, atol=1e-5, rtol=0)


def test_later_tokens_and_neighbours_do_not_matter(model):
    before = packed_logits(model, SEQUENCES)
    changed = [ids.clone() for ids in SEQUENCES]
    changed[2][15:] = (changed[2][15:] + 1) % 67
    after = packed_logits(model, changed)
    start = 7 + 1 + 15
    assert torch.equal(before[:start], after[:start]) and torch.equal(before[31:], after[31:])
    assert not torch.allclose(before[start:31], after[start:31], atol=1e-2)


def test_packed_gradients_equal_the_sum_of_each_alone(model):
    packed = gradients(model, [SEQUENCES])
    alone = gradients(model, [[ids] for ids in SEQUENCES])
    for name, gradient in packed.items():
        assert gradient.abs().max() > 0, name
        torch.testing.assert_close(gradient, alone[name], atol=1e-4, rtol=1e-4)


def gradients(model, batches):
    model.zero_grad()
    for sequences in batches:
        packed_logits(model, sequences).log_softmax(-1)[:, 3].sum().backward()
    return {name: parameter.grad.clone() for name, parameter in model.named_parameters()}


def test_the_compiler_and_triton_are_not_imported_for_the_cpu():
    """torch._dynamo takes a second, which every command would pay; triton need not be there."""
    code = (
        "import sys, torch; from foresail.model.attention import PackedAttention; "
        "attend = PackedAttention(torch.tensor([0, 3])); attend(0, *torch.zeros(3, 3, 1, 8)); "
        "print('torch._dynamo' in sys.modules); from foresail.model.decoder import Decoder; "
        "from foresail.recipe.shape.model_shape import ModelShape; "
        "shape = ModelShape(vocab_size=9, hidden_size=8, intermediate_size=8, num_layers=1, num_heads=2, "
        "num_kv_heads=1, head_dim=4, max_context=8); model = Decoder(shape); ids = torch.arange(3); "
        "model(ids, ids, lambda layer, q, k, v: q, lambda hidden, head: hidden); print('triton' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout == "False\nFalse\n", done.stderr


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("head_dim", [8, 16, 64, 12])
def test_the_flash_kernel_agrees_with_padding(head_dim):
    torch.manual_seed(0)
    starts_S1 = torch.tensor([0, 7, 8, 31, 200], device="cuda")
    attend = PackedAttention(starts_S1)
    heads = [torch.randn(200, n, head_dim, device="cuda") for n in (8, 2, 2)]
    half = [x.bfloat16().requires_grad_() for x in heads]
    full = [x.detach().float().requires_grad_() for x in half]
    out, expected = attend(0, *half), attend(0, *full)
    torch.testing.assert_close(out.float(), expected, atol=2e-2, rtol=2e-2)
    out.float().square().sum().backward()
    expected.square().sum().backward()
    for x, y in zip(half, full, strict=True):
        assert (x.grad.float() - y.grad).norm() < 0.02 * y.grad.norm()
