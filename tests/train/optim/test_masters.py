"""A master rounds to its weight, and small updates show in the weights as much as they should."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from foresail.recipe.tables.parts import Optimizer
from foresail.train.optim.master_adamw import MasterAdamW
from foresail.train.optim.masters import HALF, join, random_low_bits, split
from foresail.train.optim.optimizer import build_optimizer


def numbers(dtype: torch.dtype) -> torch.Tensor:
    """Of every size, powers of two and zeros of both signs among them."""
    drawn = torch.randn(20_000, generator=torch.Generator().manual_seed(0))
    sizes = torch.logspace(-38, 5, 20_000)
    powers = 2.0 ** torch.arange(-120, 120)
    found = torch.cat([drawn, drawn * sizes, powers, -powers, torch.tensor([0.0, -0.0])]).to(dtype)
    return found[found.isfinite()]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_master_rounds_to_its_weight(dtype):
    weight = numbers(dtype)
    master = join(weight, random_low_bits(weight, 0, "a"))
    assert torch.equal(master.to(dtype), weight)


def test_a_master_is_split_into_what_it_was_joined_of():
    weight = numbers(torch.bfloat16)
    high, low = split(join(weight, random_low_bits(weight, 0, "a")))
    assert torch.equal(high, weight) and torch.equal(low, random_low_bits(weight, 0, "a"))


@pytest.mark.parametrize(("dtype", "bits"), [(torch.bfloat16, 16), (torch.float16, 13)])
def test_masters_are_spread_evenly_between_the_neighbours(dtype, bits):
    low = random_low_bits(torch.ones(100_000, dtype=dtype), 1, "a").double() / 2**bits
    assert low.min() < -0.499 and low.max() > 0.499
    assert abs(low.mean()) < 0.005 and abs(low.std() - 12**-0.5) < 0.005


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_the_farthest_masters_round_to_their_weight_too(dtype):
    patterns = torch.arange(-(2**15), 2**15, dtype=torch.int32).to(torch.int16).view(dtype)
    weight = patterns[patterns.isfinite() & (patterns != 0)]
    low = random_low_bits(torch.ones(3_000_000, dtype=dtype), 0, "a")
    for farthest in (low.min(), low.max()):
        assert abs(farthest) == HALF[dtype] - 1
        assert torch.equal(join(weight, farthest.expand_as(weight)).to(dtype), weight)


def test_infinities_and_zeros_stay():
    weight = torch.tensor([0.0, -0.0, torch.inf, -torch.inf]).bfloat16()
    assert torch.equal(join(weight, random_low_bits(weight, 0, "a")), weight.float())


def test_bits_are_those_of_seed_name_and_content():
    ones = torch.ones(1000, dtype=torch.bfloat16)
    low = random_low_bits(ones, 3, "a")
    assert torch.equal(random_low_bits(ones, 3, "a"), low)
    for other in (
        random_low_bits(ones, 4, "a"),
        random_low_bits(ones, 3, "b"),
        random_low_bits(2 * ones, 3, "a"),
    ):
        assert (other == low).float().mean() < 0.01


@pytest.mark.parametrize("states", ["float32", "8bit"])
def test_every_weight_of_a_model_has_bits_of_its_own(states):
    model = nn.ModuleDict({name: nn.Linear(40, 40, bias=False) for name in "ab"}).bfloat16()
    nn.init.ones_(model["a"].weight)
    nn.init.ones_(model["b"].weight)
    optimizer = build_optimizer(model, Optimizer(states=states))
    one, other = optimizer.masters if isinstance(optimizer, MasterAdamW) else optimizer.lows
    assert (one == other).float().mean() < 0.01


@pytest.mark.parametrize("states", ["float32", "8bit"])
def test_an_update_far_below_a_bfloat16_s_step_shows_at_once(states):
    rate = 1e-5  # neighbours of 0.1 are 5e-4 apart
    model = nn.Linear(300, 300, bias=False).bfloat16()
    nn.init.constant_(model.weight, 0.1)
    before = model.weight.detach().double()
    optimizer = build_optimizer(model, Optimizer(lr=rate, weight_decay=0.0, states=states))
    model(torch.ones(1, 300, dtype=torch.bfloat16)).sum().backward()
    optimizer.clip()
    optimizer.update(rate)
    moved = (model.weight.detach().double() - before).mean().item()
    assert moved == pytest.approx(-rate, rel=0.15)  # by chance: its deviation is 0.022
