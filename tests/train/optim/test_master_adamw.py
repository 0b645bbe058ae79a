"""The optimiser against PyTorch's own, in float32 and through bfloat16."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from small_training import SHAPE, small_model, snapshot
from torch import Tensor

from foresail.model.decoder import Decoder
from foresail.recipe.tables.parts import Optimizer
from foresail.train.optim.master_adamw import MasterAdamW
from foresail.train.optim.optimizer import build_optimizer

SETTINGS = Optimizer(lr=1e-2, beta1=0.8, beta2=0.95, eps=1e-7, weight_decay=0.1, clip_norm=0.5)
RATES = [1e-2, 2e-2, 5e-3, 1e-2, 1e-3]
DTYPES = [torch.float32, torch.bfloat16, torch.float16]


def random_gradients(model: Decoder, step: int) -> Iterator[Tensor]:
    generator = torch.Generator().manual_seed(step)
    return (torch.randn(weight.shape, generator=generator).to(weight.dtype) for weight in model.parameters())


def update(model: Decoder, optimizer: MasterAdamW, step: int, rate: float) -> None:
    torch.autograd.backward(list(model.parameters()), list(random_gradients(model, step)))
    optimizer.clip()
    optimizer.update(rate)


def reference(weights: list[Tensor], *, fused: bool) -> torch.optim.AdamW:
    """AdamW as anyone would set it up: decay on matrices only."""
    groups = [
        {"params": [weight], "weight_decay": SETTINGS.weight_decay if weight.ndim > 1 else 0.0}
        for weight in weights
    ]
    betas = (SETTINGS.beta1, SETTINGS.beta2)
    return torch.optim.AdamW(groups, lr=1.0, betas=betas, eps=SETTINGS.eps, fused=fused)


def reference_update(adam: torch.optim.AdamW, model: Decoder, step: int, rate: float) -> None:
    weights = [group["params"][0] for group in adam.param_groups]
    for group, gradient in zip(adam.param_groups, random_gradients(model, step), strict=True):
        group["params"][0].grad = gradient.float()
        group["lr"] = rate
    torch.nn.utils.clip_grad_norm_(weights, SETTINGS.clip_norm)
    adam.step()


@pytest.mark.parametrize(("fused", "tolerance"), [(True, 0.0), (False, 1e-6)])
def test_float32_equals_torch_adamw(fused: bool, tolerance: float) -> None:
    model, plain = small_model(), small_model()
    optimizer, adam = MasterAdamW(model, SETTINGS), reference(list(plain.parameters()), fused=fused)
    for step, rate in enumerate(RATES):
        update(model, optimizer, step, rate)
        reference_update(adam, model, step, rate)
        for found, expected in zip(model.parameters(), plain.parameters(), strict=True):
            torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance)
    assert not torch.equal(model.embed.weight, small_model().embed.weight)


def test_bfloat16_weights_are_their_float32_masters_rounded() -> None:
    model = small_model(dtype=torch.bfloat16)
    optimizer = MasterAdamW(model, SETTINGS)
    masters = [torch.nn.Parameter(master.clone()) for master in optimizer.masters]
    adam = reference(masters, fused=True)  # type: ignore[arg-type]
    for step, rate in enumerate(RATES):
        update(model, optimizer, step, rate)
        reference_update(adam, model, step, rate)
        for weight, found, expected in zip(model.parameters(), optimizer.masters, masters, strict=True):
            assert torch.equal(found, expected)
            assert weight.dtype == torch.bfloat16 and torch.equal(weight, expected.bfloat16())


def test_updates_too_small_for_bfloat16_add_up() -> None:
    model = small_model(dtype=torch.bfloat16)
    with torch.no_grad():
        model.norm.weight.fill_(1.0)
    optimizer = MasterAdamW(model, Optimizer(lr=1e-4))
    for _ in range(100):  # bfloat16 next to 1.0 moves in steps of 4e-3: each of these alone is lost
        torch.autograd.backward(list(model.parameters()), [torch.ones_like(w) for w in model.parameters()])
        optimizer.update(1e-4)
    expected = torch.full_like(model.norm.weight, 0.99).float()
    torch.testing.assert_close(model.norm.weight.float(), expected, atol=4e-3, rtol=0)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_float32_model_is_its_own_master(dtype: torch.dtype) -> None:
    optimizer = MasterAdamW(small_model(dtype=dtype), SETTINGS)
    pairs = zip(optimizer.weights, optimizer.masters, strict=True)
    assert {weight is master for weight, master in pairs} == {dtype == torch.float32}
    assert any(name.startswith("master:") for name in optimizer.state()) == (dtype != torch.float32)


@pytest.mark.parametrize("dtype", DTYPES)
def test_state_put_into_a_fresh_optimizer_goes_on_bit_for_bit(dtype: torch.dtype) -> None:
    model = small_model(dtype=dtype)
    optimizer = MasterAdamW(model, SETTINGS)
    for step in range(3):
        update(model, optimizer, step, 1e-2)
    fresh = small_model(seed=1, dtype=dtype)
    fresh.load_state_dict(model.state_dict())
    resumed = MasterAdamW(fresh, SETTINGS)
    resumed.load_state({name: tensor.clone() for name, tensor in optimizer.state().items()})
    for step in range(3, 6):
        update(model, optimizer, step, 1e-2)
        update(fresh, resumed, step, 1e-2)
    found, expected = snapshot(fresh, resumed), snapshot(model, optimizer)
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[name], expected[name]) for name in expected)


@pytest.mark.parametrize("name", ["adamw", "muon"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_weight_that_had_no_gradient_yet_goes_on_as_well(dtype: torch.dtype, name: str) -> None:
    """MTP layers whose loss weighs 0 until later in the run."""
    shape, settings = SHAPE.model_copy(update={"mtp": 1}), SETTINGS.model_copy(update={"name": name})
    model, other = small_model(dtype=dtype, shape=shape), small_model(dtype=dtype, shape=shape)
    optimizer, resumed = build_optimizer(model, settings), build_optimizer(other, settings)
    main = [weight for name, weight in model.named_parameters() if not name.startswith("mtp.")]
    torch.autograd.backward(main, [torch.ones_like(weight) for weight in main])
    optimizer.update(1e-2)
    resumed.load_state({name: tensor.clone() for name, tensor in optimizer.state().items()})
    other.load_state_dict(model.state_dict())
    for its, one in ((model, optimizer), (other, resumed)):
        torch.autograd.backward(list(its.parameters()), list(random_gradients(its, 0)))
        one.update(1e-2)
    assert all(map(torch.equal, model.parameters(), other.parameters()))


@pytest.mark.parametrize("dtype", DTYPES)
def test_forgotten_gradients_are_gone(dtype: torch.dtype) -> None:
    model = small_model(dtype=dtype)
    optimizer = MasterAdamW(model, SETTINGS)
    torch.autograd.backward(list(model.parameters()), [torch.ones_like(w) for w in model.parameters()])
    assert optimizer.gradients[0] is not None
    optimizer.zero_grad()
    assert all(optimizer.gradients[number] is None for number in range(len(optimizer.weights)))
