"""AdamW with moments of one byte: what is exact, what is fair, and how near it stays to the float32 one."""

from __future__ import annotations

import pytest
import torch
from small_training import small_model, snapshot
from torch import Tensor

from foresail.model.kernels import available
from foresail.recipe.tables.parts import Optimizer
from foresail.train.optim import compact_adamw
from foresail.train.optim.compact_adamw import CompactAdamW
from foresail.train.optim.master_adamw import MasterAdamW
from foresail.train.optim.masters import join, split
from foresail.train.optim.moments import (
    BLOCK,
    MEAN,
    SQUARE,
    Rates,
    dequantize,
    quantize,
    rounding_bits,
    zero_moments,
)

SETTINGS = Optimizer(lr=1e-2, beta1=0.9, beta2=0.95, weight_decay=0.1)
RATES = Rates(step=1, rate=0.01, decay=0.999, beta1=0.9, beta2=0.95, eps=1e-8, square_correction=20.0)


def random_values(count: int, seed: int = 0) -> Tensor:
    """Of many sizes, as gradients are."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(count, generator=generator) * 10 ** torch.randn(count, generator=generator)


# Masters.


def test_a_master_is_a_bfloat16_and_what_it_lacks():
    master_N = torch.cat([random_values(10_000), torch.tensor([0.0, -0.0, 1.00390625, -1.00390625, 3e38])])
    high_N, low_N = split(master_N)
    assert torch.equal(join(high_N, low_N), master_N)
    far = (high_N.float() - master_N).abs() > (master_N.bfloat16().float() - master_N).abs()
    assert not far.any()  # no other bfloat16 is nearer


def test_updates_too_small_for_bfloat16_add_up():
    model = small_model(dtype=torch.bfloat16)
    with torch.no_grad():
        model.norm.weight.fill_(1.0)
    optimizer = CompactAdamW(model, Optimizer(lr=1e-4))
    for _ in range(100):
        torch.autograd.backward(list(model.parameters()), [torch.ones_like(w) for w in model.parameters()])
        optimizer.update(1e-4)
    torch.testing.assert_close(
        model.norm.weight.float(), torch.full_like(model.norm.weight, 0.99).float(), atol=4e-3, rtol=0
    )


# Moments.


@pytest.mark.parametrize("moment", [MEAN, SQUARE])
def test_a_moment_comes_back_within_an_eighth(moment):
    values_N = random_values(20 * BLOCK + 3)
    values_N = values_N.square() if moment == SQUARE else values_N
    found_N = dequantize(*quantize(values_N, moment, step=5), moment)
    greatest_N = torch.nn.functional.pad(values_N, (0, BLOCK - 3)).view(-1, BLOCK).abs().amax(1)
    greatest_N = greatest_N.repeat_interleave(BLOCK)[: len(values_N)]
    inside = values_N.abs() > greatest_N * 2.0 ** (-15 if moment == MEAN else -31)
    assert inside.float().mean() > 0.9
    error_N = (found_N - values_N).abs() / values_N.abs()
    assert error_N[inside].max() <= 0.126
    assert ((found_N == 0) | (found_N.sign() == values_N.sign())).all()
    assert moment == MEAN or (found_N > 0).all()  # else a step would be divided by nothing


def test_rounding_is_fair():
    values_N = torch.full((200 * BLOCK,), 1.2)
    values_N[::BLOCK] = 1.875  # the scale is 1: 1.2 lies between the codes of 1.125 and 1.25
    means = [dequantize(*quantize(values_N, MEAN, step), MEAN).mean().item() for step in range(8)]
    expected = values_N.mean().item()
    assert all(abs(mean - expected) < 2e-3 for mean in means)
    assert len(set(means)) == len(means)  # every step has its own bits


def test_rounding_bits_are_even_and_of_their_own_place_step_and_moment():
    bits_N = rounding_bits(0, 1 << 16, MEAN, 3, torch.device("cpu"))
    assert bits_N.min() >= 0 and bits_N.max() < 1 << 20
    assert abs(bits_N.float().mean() / (1 << 20) - 0.5) < 5e-3
    for moment, step in ((SQUARE, 3), (MEAN, 4)):
        other = rounding_bits(0, 1 << 16, moment, step, bits_N.device)
        assert abs(torch.corrcoef(torch.stack([bits_N.double(), other.double()]))[0, 1]) < 0.02


# Updates.


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_it_stays_near_the_float32_optimizer(dtype):
    model, twin = small_model(dtype=dtype), small_model(dtype=dtype)
    compact, exact = CompactAdamW(model, SETTINGS), MasterAdamW(twin, SETTINGS)
    start = torch.cat([weight.detach().float().flatten() for weight in model.parameters()])
    for step in range(30):
        generator = torch.Generator().manual_seed(step)
        shapes = [weight.shape for weight in model.parameters()]
        gradients = [0.3 + torch.randn(shape, generator=generator) for shape in shapes]
        for owner, optimizer in ((model, compact), (twin, exact)):
            torch.autograd.backward(list(owner.parameters()), [g.to(dtype) for g in gradients])
            optimizer.clip()
            optimizer.update(1e-2)
    ends = [torch.cat([w.detach().float().flatten() for w in m.parameters()]) - start for m in (model, twin)]
    assert torch.nn.functional.cosine_similarity(*ends, dim=0) > 0.99
    assert abs(ends[0].norm() / ends[1].norm() - 1) < 0.03


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_state_put_into_a_fresh_optimizer_goes_on_bit_for_bit(dtype):
    def update(model, optimizer, seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        gradients = [torch.randn(w.shape, generator=generator).to(dtype) for w in model.parameters()]
        torch.autograd.backward(list(model.parameters()), gradients)
        optimizer.clip()
        optimizer.update(1e-2)

    model = small_model(dtype=dtype)
    optimizer = CompactAdamW(model, SETTINGS)
    for step in range(3):
        update(model, optimizer, step)
    fresh = small_model(seed=1, dtype=dtype)
    fresh.load_state_dict(model.state_dict())
    resumed = CompactAdamW(fresh, SETTINGS)
    resumed.load_state({name: tensor.clone() for name, tensor in optimizer.state().items()})
    for step in range(3, 6):
        update(model, optimizer, step)
        update(fresh, resumed, step)
    found, expected = snapshot(fresh, resumed), snapshot(model, optimizer)
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[name], expected[name]) for name in expected)


def test_states_of_another_kind_are_refused():
    optimizer = CompactAdamW(small_model(), SETTINGS)
    with pytest.raises(ValueError, match=r"of other optimizer\.states"):
        optimizer.load_state(MasterAdamW(small_model(), SETTINGS).state())


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("count", "offset"), [(7, 0), (BLOCK, 3 * BLOCK), (20 * BLOCK + 13, 0)])
def test_the_kernel_does_what_the_plain_functions_do(count, offset, dtype, monkeypatch):
    """Compiled on a GPU; elsewhere in Triton's interpreter."""
    pytest.importorskip("triton_interpreter", reason="the kernel needs triton")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    weight = random_values(count, 1).to(device, dtype)
    low = None if dtype == torch.float32 else torch.zeros_like(weight, dtype=torch.int16)
    gradients = [random_values(count, seed).to(device) for seed in range(3)]
    results = []
    for fused in (True, False):
        monkeypatch.setattr(available, "can_fuse", lambda x, fused=fused: fused)
        ours, ours_low = weight.clone(), None if low is None else low.clone()
        moments = zero_moments(ours)
        for gradient in gradients:
            compact_adamw.apply(ours, ours_low, gradient, moments, RATES, offset)
        master = ours if ours_low is None else join(ours, ours_low)
        results.append(
            (master, dequantize(moments.mean_N, moments.mean_scale_B, MEAN), moments.square_N.int())
        )
    (master, mean, square), (plain_master, plain_mean, plain_square) = results
    torch.testing.assert_close(master, plain_master, rtol=1e-5, atol=1e-6)
    # a product rounded otherwise may tip the rounding of few numbers at the edge
    tipped = ~torch.isclose(mean, plain_mean, rtol=1e-5, atol=0.0)
    assert tipped.float().mean() < 1e-2 and (square != plain_square).float().mean() < 1e-2
