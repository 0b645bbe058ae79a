"""What experts run on a GPU against plain PyTorch in float64: sorting, sums of pairs, routing and grouped products.

Compiled on a GPU; elsewhere in Triton's interpreter, whose bfloat16 is not to be trusted.

Legend: T tokens, A experts of a token, P pairs, E experts, D hidden size, I inner width, N outputs, K inputs.
"""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
import triton_interpreter  # noqa: F401
from torch import Tensor

from foresail.model import experts as plain
from foresail.model.kernels import available, grouped, pairs, routing
from foresail.model.linear import batch_invariant
from foresail.model.mixture import MixtureOfExperts
from foresail.model.recomputed import not_recomputed
from foresail.recipe.shape.model_shape import Experts

CUDA = torch.cuda.is_available()
DEVICE = "cuda" if CUDA else "cpu"
DTYPES = [torch.float32, torch.float16] + [torch.bfloat16] * CUDA
COUNTS = [[3, 0, 5, 1], [0, 0, 0, 9], [1, 1, 1, 1], [70, 2, 0, 40]]  # of four experts


def noise(*sizes: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*sizes, generator=generator).to(DEVICE, dtype)


def choices(tokens: int, active: int, experts: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(tokens, experts, generator=generator).topk(active).indices.to(DEVICE)


@pytest.mark.parametrize("seed", range(8))
def test_pairs_are_sorted_as_a_stable_sort_does(seed, monkeypatch):
    monkeypatch.setattr(pairs, "SCANNED", 16)
    numbers = torch.Generator().manual_seed(seed)
    tokens, experts = (int(torch.randint(1, most, (1,), generator=numbers)) for most in (40, 20))
    active = min(experts, 1 + seed % 4)
    experts_TA = choices(tokens, active, experts, seed)
    order, place, ends = pairs.sort_pairs(experts_TA, experts)
    sorted_P, expected = experts_TA.flatten().sort(stable=True)
    assert order.tolist() == expected.tolist()
    assert place[order.long()].tolist() == list(range(tokens * active))
    each = torch.arange(experts, device=DEVICE)
    assert ends.tolist() == torch.searchsorted(sorted_P, each, right=True).tolist()


@pytest.mark.parametrize("width", [1, 40, 130])
def test_tokens_are_spread_and_summed_with_their_gradients(width, monkeypatch):
    monkeypatch.setattr(pairs, "COLUMNS", 64)
    experts_TA = choices(7, 3, 5)
    found = pairs.sort_pairs(experts_TA, 5)
    inputs = noise(7, width), noise(7, 3, seed=1)
    ours = [x.clone().requires_grad_() for x in inputs]
    theirs = [x.double().requires_grad_() for x in inputs]
    spread = pairs.spread(ours[0], *found[:2], 3)
    out = pairs.combine(spread * spread, ours[1], *found[:2])
    by_expert = plain.ByExpert(*(x.long() for x in found))
    rows = theirs[0][by_expert.order_P // 3]
    expected = ((rows * rows)[by_expert.place_P].unflatten(0, (7, 3)) * theirs[1].unsqueeze(-1)).sum(1)
    torch.testing.assert_close(out.double(), expected, atol=1e-5, rtol=1e-5)
    slopes = noise(7, width, seed=2)
    out.backward(slopes)
    expected.backward(slopes.double())
    for x, y in zip(ours, theirs, strict=True):
        torch.testing.assert_close(x.grad.double(), y.grad, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("normalized", [False, True])
@pytest.mark.parametrize(
    ("tokens", "experts", "active", "width"), [(1, 4, 1, 20), (37, 48, 4, 300), (3, 17, 17, 128)]
)
def test_a_route_is_the_routers(tokens, experts, active, width, normalized):
    x, weight, correction = (
        noise(tokens, width),
        noise(experts, width, seed=1) * 0.1,
        noise(1, experts, seed=2),
    )
    for bias in (None, correction * 0.1):
        chosen, weights, logits = routing.route(x, weight, bias, active, normalized, least=1e-12)
        exact = x.double() @ weight.double().t()
        scores = exact.softmax(-1)
        wanted = scores if bias is None else scores + bias.double()
        expected = wanted.topk(active).indices
        assert torch.equal(chosen.long(), expected)
        wanted_weights = scores.gather(1, expected)
        if normalized:
            wanted_weights = wanted_weights / wanted_weights.sum(-1, keepdim=True)
        torch.testing.assert_close(weights.double(), wanted_weights, atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(logits.double(), exact, atol=1e-4, rtol=1e-5)


def grouped_exactly(x_PK: Tensor, weight_ENK: Tensor, counts: list[int]) -> Tensor:
    rows = zip(x_PK.double().split(counts), weight_ENK.double().unbind(0), strict=True)
    return torch.cat([row @ weight.t() for row, weight in rows])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("counts", COUNTS)
def test_each_row_meets_its_experts_matrix(counts, dtype):
    x, weight = noise(sum(counts), 70, dtype=dtype), noise(4, 90, 70, seed=1, dtype=dtype) * 0.1
    ends = torch.tensor(counts, device=DEVICE).cumsum(0).int()
    exact = grouped_exactly(x, weight, counts)
    limit = 0.51 * torch.finfo(dtype).eps * exact.abs().max().item() + 1e-4
    tiles = [None] if dtype == torch.float32 else [*grouped.TILES, grouped.INVARIANT]
    for tile in tiles if CUDA else tiles[:2]:
        out = grouped.products(x, weight, ends, tile)
        torch.testing.assert_close(out.double(), exact, atol=limit, rtol=0)


def test_a_matrix_may_begin_anywhere_in_memory():
    x, anywhere = noise(6, 72), noise(1 + 3 * 20 * 72, seed=1)
    weight = anywhere[1:].unflatten(0, (3, 20, 72))
    out = grouped.products(x, weight, torch.tensor([1, 1, 6], device=DEVICE).int())
    torch.testing.assert_close(out.double(), grouped_exactly(x, weight, [1, 0, 5]), atol=1e-4, rtol=0)


@pytest.mark.parametrize("dtype", DTYPES)
def test_gate_and_up_meet_in_one_kernel(dtype):
    experts_TA, x = choices(19, 2, 4), noise(19, 70, dtype=dtype)
    weight = noise(4, 2 * 50, 70, seed=1, dtype=dtype) * 0.2
    order, _, ends = pairs.sort_pairs(experts_TA, 4)
    counts = ends.diff(prepend=ends.new_zeros(1)).tolist()
    gate, up = grouped_exactly(x[order.long() // 2], weight, counts).to(dtype).double().chunk(2, dim=-1)
    exact = F.silu(gate) * up
    out = grouped.gated_products(x, weight, order, ends, 2)
    limit = 3 * torch.finfo(dtype).eps * exact.abs().max().item() + 1e-4
    torch.testing.assert_close(out.double(), exact, atol=limit, rtol=0)


def test_gradients_of_invariant_products():
    counts = [3, 0, 5, 1]
    x, weight = noise(9, 20).requires_grad_(), noise(4, 30, 20, seed=1).requires_grad_()
    ends = torch.tensor(counts, device=DEVICE).cumsum(0).int()
    slopes = noise(9, 30, seed=2)
    grouped.invariant_products(x, weight, ends).backward(slopes)
    ours = x.grad.clone(), weight.grad.clone()
    x.grad = weight.grad = None
    rows = zip(x.split(counts), weight.unbind(0), strict=True)
    torch.cat([row @ matrix.t() for row, matrix in rows]).backward(slopes)
    for mine, theirs in zip(ours, (x.grad, weight.grad), strict=True):
        torch.testing.assert_close(mine, theirs, atol=1e-5, rtol=1e-5)


EXPERTS = Experts(routed=6, active=2, inner_size=24, shared=1, correction=True)


def layer(dtype: torch.dtype) -> MixtureOfExperts:
    found = MixtureOfExperts(32, EXPERTS).to(DEVICE, dtype)
    with torch.no_grad():
        for number, parameter in enumerate(found.parameters()):
            parameter.copy_(noise(*parameter.shape, seed=number) * parameter.shape[-1] ** -0.5)
    return found


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("invariant", [False, True])
def test_a_mixture_of_kernels_is_that_of_plain_pytorch(grad, invariant, monkeypatch):
    mixture, x, normed = layer(torch.float32), noise(9, 32), noise(9, 32, seed=5).requires_grad_()

    def run() -> list[Tensor]:
        mixture.zero_grad()
        normed.grad = None
        with torch.set_grad_enabled(grad), batch_invariant(invariant):
            out = mixture(x.clone(), normed, not_recomputed).value
        if grad:
            out.square().sum().backward()
        grads = [normed, *mixture.parameters()] if grad else []
        return [out.detach(), *(each.grad for each in grads if each.grad is not None)]

    monkeypatch.setattr(available, "can_fuse", lambda x: False)
    monkeypatch.setattr(available, "has_triton", lambda: False)
    expected = run()
    monkeypatch.setattr(available, "can_fuse", lambda x: True)
    for mine, theirs in zip(run(), expected, strict=True):
        torch.testing.assert_close(mine, theirs, atol=2e-5, rtol=2e-5)


@pytest.mark.skipif(not CUDA, reason="needs a GPU")
@pytest.mark.gpu
def test_a_row_of_a_mixture_is_the_same_bits_in_any_batch():
    mixture, x, normed = layer(torch.bfloat16), noise(70, 32), noise(70, 32, seed=5, dtype=torch.bfloat16)
    with torch.no_grad(), batch_invariant():
        whole = mixture(x.clone(), normed, not_recomputed).value
        alone = torch.cat(
            [mixture(x[i : i + 1].clone(), normed[i : i + 1], not_recomputed).value for i in range(70)]
        )
    assert torch.equal(whole, alone)
