"""Log-probabilities and entropies chunk by chunk, against the whole of the logits at once.

The kernels are compiled on a GPU; elsewhere they run in Triton's interpreter, whose bfloat16 is not to be trusted.

Legend: M tokens, D hidden size, V vocabulary.
"""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from foresail.model import likelihood
from foresail.model.kernels import available
from foresail.model.likelihood import token_likelihood

TOKENS, WIDTH, WORDS = 37, 12, 29
CUDA = torch.cuda.is_available()
KERNEL_DEVICE = "cuda" if CUDA else "cpu"


@pytest.fixture(params=["plain", "kernels"])
def device(request, monkeypatch) -> str:
    """Where to compute, with or without the kernels."""
    if request.param == "plain":
        return "cpu"
    pytest.importorskip("triton_interpreter", reason="the kernels need triton")
    monkeypatch.setattr(available, "can_fuse", lambda x: True)
    return KERNEL_DEVICE


def make_inputs(device: str, dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(3)
    hidden_MD = torch.randn(TOKENS, WIDTH, generator=generator)
    weight_VD = torch.randn(WORDS, WIDTH, generator=generator)
    ids_M = torch.randint(WORDS, (TOKENS,), generator=generator)
    return (
        hidden_MD.to(device, dtype).requires_grad_(),
        weight_VD.to(device, dtype).requires_grad_(),
        ids_M.to(device),
    )


def whole(hidden_MD: Tensor, weight_VD: Tensor, ids_M: Tensor, temperature: float) -> tuple[Tensor, Tensor]:
    logprobs_MV = ((hidden_MD.float() @ weight_VD.float().t()) / temperature).log_softmax(-1)
    entropy_M = -(logprobs_MV.exp() * logprobs_MV).sum(-1)
    return logprobs_MV.gather(1, ids_M[:, None]).squeeze(1), entropy_M


@pytest.fixture(params=[5, 37, 1000], ids=lambda tokens: f"chunks of {tokens}")
def chunked(request, monkeypatch) -> None:
    monkeypatch.setattr(likelihood, "MOST_LOGITS", dict.fromkeys(("cpu", "cuda"), request.param * WORDS))


@pytest.mark.parametrize("temperature", [1.0, 0.6])
@pytest.mark.parametrize("asked", ["logprobs", "entropy", "both"])
def test_chunks_change_nothing(chunked, device, temperature, asked):
    hidden_MD, weight_VD, ids_M = make_inputs(device)
    upstream_M = torch.linspace(-1, 2, TOKENS, device=device)

    def gradients(logprobs_M: Tensor, entropy_M: Tensor) -> tuple[Tensor, ...]:
        losses = {"logprobs": logprobs_M * upstream_M, "entropy": entropy_M * upstream_M.flip(0)}
        loss_M = sum(losses.values()) if asked == "both" else losses[asked]
        return torch.autograd.grad(loss_M.sum(), (hidden_MD, weight_VD))

    found = token_likelihood(hidden_MD, weight_VD, ids_M, temperature)
    expected = whole(hidden_MD, weight_VD, ids_M, temperature)
    torch.testing.assert_close(
        [*found, *gradients(*found)], [*expected, *gradients(*expected)], rtol=1e-5, atol=2e-5
    )


@pytest.mark.gpu
@pytest.mark.skipif(not CUDA, reason="needs a CUDA device")
def test_cuda_16_bit_inputs_give_what_their_float32_copies_give(chunked):
    hidden_MD, weight_VD, ids_M = make_inputs("cuda", torch.bfloat16)
    found = token_likelihood(hidden_MD, weight_VD, ids_M, 0.7)
    torch.testing.assert_close(found, whole(hidden_MD, weight_VD, ids_M, 0.7), rtol=1e-5, atol=2e-5)
    gradients = torch.autograd.grad((found[0] + found[1]).sum(), (hidden_MD, weight_VD))
    wide = [x.detach().float().requires_grad_() for x in (hidden_MD, weight_VD)]
    expected = torch.autograd.grad(sum(whole(*wide, ids_M, 0.7)).sum(), wide)
    for gradient, exact in zip(gradients, expected, strict=True):
        assert (gradient.float() - exact).norm() < 0.01 * exact.norm()


def test_a_frozen_head_gets_no_gradient():
    hidden_MD, weight_VD, ids_M = make_inputs("cpu")
    logprobs_M, _ = token_likelihood(hidden_MD, weight_VD.detach(), ids_M)
    logprobs_M.sum().backward()
    assert hidden_MD.grad is not None and weight_VD.grad is None


def test_certain_and_impossible_words_stay_finite(device):
    hidden_MD = torch.tensor([[1000.0], [-1000.0]], device=device)
    weight_VD = torch.tensor([[1.0], [-1.0], [0.0]], device=device)
    logprobs_M, entropy_M = token_likelihood(hidden_MD, weight_VD, torch.tensor([0, 0], device=device))
    assert logprobs_M.tolist() == [0.0, -2000.0]
    torch.testing.assert_close(entropy_M, torch.zeros_like(entropy_M))


def test_certain_words_have_a_finite_gradient_of_entropy(device):
    hidden_MD = torch.tensor([[1000.0], [-1000.0]], device=device, requires_grad=True)
    weight_VD = torch.tensor([[1.0], [-1.0], [0.0]], device=device)
    _, entropy_M = token_likelihood(hidden_MD, weight_VD, torch.tensor([0, 0], device=device))
    entropy_M.sum().backward()
    assert hidden_MD.grad is not None and hidden_MD.grad.tolist() == [[0.0], [0.0]]
