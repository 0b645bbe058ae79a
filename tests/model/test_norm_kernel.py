"""The norm's kernels against float64 and PyTorch's own norm; compiled on a GPU, else in Triton's interpreter.

Legend: T tokens, D hidden size.
"""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
import triton_interpreter  # noqa: F401
from torch import Tensor

from foresail.model.kernels import available, norm
from foresail.model.norm import RMSNorm

CUDA = torch.cuda.is_available()
DEVICE = "cuda" if CUDA else "cpu"
DTYPES = [torch.float32, torch.float16] + [torch.bfloat16] * CUDA
EPS = 1e-3


def noise(*sizes: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*sizes, generator=generator).to(DEVICE, dtype)


def plain_norm(x_TD: Tensor, weight_D: Tensor) -> Tensor:
    return x_TD / (x_TD.square().mean(-1, keepdim=True) + EPS).sqrt() * weight_D


def rows_of_all_sizes(width: int, dtype: torch.dtype) -> Tensor:
    """One so small that eps rules it, one of zeros, and one whose squares leave float16."""
    x_TD = noise(5, width, dtype=dtype)
    return x_TD * torch.tensor([1, 1e-3, 0, 1000, 3], device=DEVICE, dtype=dtype)[:, None]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", [1, 24, 1536, 3584])
def test_the_norm_rounds_once(width, dtype):
    x_TD, weight_D = rows_of_all_sizes(width, dtype), noise(width, seed=1, dtype=dtype)
    exact = plain_norm(x_TD.double(), weight_D.double())
    out = norm.rms_norm(x_TD, weight_D, EPS).double()
    # half of the last place where it is rounded, and a few of float32's before
    limit = 0.5 * torch.finfo(dtype).eps + 4 * torch.finfo(torch.float32).eps
    subnormal = torch.finfo(dtype).smallest_normal * torch.finfo(dtype).eps
    torch.testing.assert_close(out, exact, rtol=limit, atol=subnormal)
    if dtype != torch.float32:  # PyTorch's own: one that rounded twice would differ in many places
        assert (out == F.rms_norm(x_TD, (width,), weight_D, EPS)).double().mean() > 0.99


@pytest.mark.parametrize("programs", [1, 3, 512])
def test_gradients(programs, monkeypatch):
    """A program with all rows, programs with unequal numbers of them, and one for every row."""
    monkeypatch.setattr(norm, "ALL_WARPS", programs)  # one warp is enough for so narrow a row
    x_TD, weight_D, slopes_TD = noise(7, 40) * 3, noise(40, seed=1), noise(7, 40, seed=2)
    ours = [x_TD.clone().requires_grad_(), weight_D.clone().requires_grad_()]
    theirs = [x_TD.double().requires_grad_(), weight_D.double().requires_grad_()]
    norm.rms_norm(*ours, EPS).backward(slopes_TD)
    plain_norm(*theirs).backward(slopes_TD.double())
    for x, y in zip(ours, theirs, strict=True):
        assert y.grad.abs().max() > 0.1
        torch.testing.assert_close(x.grad.double(), y.grad, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("after", [lambda x, y: x.sin() * y, lambda x, y: y.sin(), lambda x, y: x.sin()])
@pytest.mark.parametrize("dtype", DTYPES)
def test_gradients_of_what_goes_on_and_of_its_norm_add_up(dtype, after):
    """Where both are used, and where one is; the stream may be wider than the weight."""
    x_TD, weight_D = noise(7, 40), noise(40, seed=1, dtype=dtype)
    ours = [x_TD.clone().requires_grad_(), weight_D.clone().requires_grad_()]
    theirs = [x_TD.double().requires_grad_(), weight_D.double().requires_grad_()]
    stream_TD, normed_TD = norm.branch(*ours, EPS)
    assert torch.equal(stream_TD, x_TD) and stream_TD.data_ptr() == ours[0].data_ptr()
    after(stream_TD, normed_TD.float()).sum().backward()
    after(theirs[0], plain_norm(*theirs)).sum().backward()
    close = 1e-5 if dtype == torch.float32 else 16 * torch.finfo(dtype).eps
    torch.testing.assert_close(ours[0].grad.double(), theirs[0].grad, atol=close, rtol=close)
    if theirs[1].grad is None:
        assert ours[1].grad is None
    else:
        torch.testing.assert_close(ours[1].grad.double(), theirs[1].grad, atol=close, rtol=close)


@pytest.mark.parametrize("programs", [1, 512])
@pytest.mark.parametrize("dtype", DTYPES[1:])
def test_the_weights_gradient_is_summed_in_float32(dtype, programs, monkeypatch):
    """A slope so large that in 16 bits none of the eight ones after it would move the sum."""
    monkeypatch.setattr(norm, "ALL_WARPS", programs)  # one warp is enough for so narrow a row
    large = 2 / torch.finfo(dtype).eps
    weight_D = torch.ones(2, device=DEVICE, dtype=dtype, requires_grad=True)
    out_TD = norm.rms_norm(torch.ones(9, 2, device=DEVICE, dtype=dtype), weight_D, 0.0)
    out_TD.backward(torch.tensor([large] + [1.0] * 8, device=DEVICE, dtype=dtype)[:, None].expand(9, 2))
    assert weight_D.grad.dtype == dtype and weight_D.grad.tolist() == [large + 8, large + 8]


def test_slopes_may_be_views_and_batches_empty():
    x_TD, weight_D = noise(3, 8).requires_grad_(), noise(8, seed=1).requires_grad_()
    out_TD = norm.rms_norm(x_TD, weight_D, EPS)
    one_slope = torch.ones((), device=DEVICE).expand(3, 8)
    expected = torch.autograd.grad(plain_norm(x_TD, weight_D), (x_TD, weight_D), one_slope)
    for ours, theirs in zip(torch.autograd.grad(out_TD, (x_TD, weight_D), one_slope), expected, strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)
    norm.rms_norm(x_TD[:0], weight_D, EPS).sum().backward()
    assert x_TD.grad.abs().sum() == 0 and weight_D.grad.abs().sum() == 0


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_row_has_the_same_bits_in_any_batch(dtype):
    x_TD, weight_D = noise(70, 96, dtype=dtype), noise(96, seed=1, dtype=dtype)
    together = norm.rms_norm(x_TD, weight_D, EPS)
    for start, stop in [(0, 1), (7, 8), (3, 67)]:
        assert torch.equal(norm.rms_norm(x_TD[start:stop], weight_D, EPS), together[start:stop])


def test_the_module_asks_which_way(monkeypatch):
    calls = []
    monkeypatch.setattr(norm, "rms_norm", lambda x, weight, eps: calls.append((weight, eps)))
    module, x_TD = RMSNorm(8, EPS).to(DEVICE), noise(3, 8)
    monkeypatch.setattr(available, "can_fuse", lambda x: False)
    torch.testing.assert_close(module(x_TD), plain_norm(x_TD, torch.ones(8, device=DEVICE)))
    assert not calls
    monkeypatch.setattr(available, "can_fuse", lambda x: x is x_TD)
    module(x_TD)
    assert calls == [(module.weight, EPS)]
