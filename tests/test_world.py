"""Two ranks, each with half of the data or of the weights, compute what one process does with all of it."""

from __future__ import annotations

import pytest
import torch
from two_ranks import RankWorld, run_ranks

from foresail.algorithms.advantages import whiten
from foresail.recipe.tables.parts import Optimizer
from foresail.train.optim.gradients import GradientSums
from foresail.train.optim.master_adamw import MasterAdamW
from foresail.train.optim.masters import Shard, random_low_bits
from foresail.train.optim.moments import BLOCK
from foresail.train.optim.optimizer import AdamW, build_optimizer
from foresail.world import ONE_PROCESS


def random(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def test_one_process_is_a_world_of_its_own() -> None:
    value = torch.ones(3)
    assert (ONE_PROCESS.rank, ONE_PROCESS.size) == (0, 1)
    assert ONE_PROCESS.sum(value) is value and ONE_PROCESS.max(5) == 5


# Data.


def test_values_are_whitened_over_all_ranks() -> None:
    values_GN, lengths_GN = random(6, 4) + 3, torch.arange(24).view(6, 4)

    def half(world: RankWorld) -> torch.Tensor:
        rows = slice(0, 4) if world.rank == 0 else slice(4, 6)
        return whiten(values_GN[rows], lengths_GN[rows], world)

    torch.testing.assert_close(torch.cat(run_ranks(half)), whiten(values_GN, lengths_GN))


def test_equal_values_on_all_ranks_give_exact_zeros() -> None:
    def half(world: RankWorld) -> torch.Tensor:
        return whiten(torch.full((3, 2), 0.7), torch.full((3, 2), 5), world)

    assert not torch.cat(run_ranks(half)).any()


# Gradients.


def test_the_norm_is_that_of_all_shards() -> None:
    gradient = random(8, 6)

    def clip(rows: slice, world=ONE_PROCESS) -> tuple[float, torch.Tensor]:
        weight = torch.nn.Parameter(torch.zeros(8, 6)[rows])
        sums = GradientSums([weight], world)
        sums.add((weight * gradient[rows]).sum())
        norm = sums.clip(0.5)
        assert weight.grad is not None
        return norm, weight.grad

    halves = run_ranks(lambda world: clip(slice(0, 3) if world.rank == 0 else slice(3, 8), world))
    norm, clipped = clip(slice(0, 8))
    assert [found for found, _ in halves] == pytest.approx([norm, norm])
    torch.testing.assert_close(torch.cat([half for _, half in halves]), clipped)


def test_an_infinity_on_one_rank_lowers_the_loss_scale_of_both() -> None:
    """Rank 0's gradient is too large for float16 at first, rank 1's never."""

    def rounds(world: RankWorld) -> tuple[int, float]:
        weight = torch.nn.Parameter(torch.zeros(4, dtype=torch.float16))
        sums = GradientSums([weight], world)
        assert sums.scale is not None
        for number in range(9):
            sums.add((weight * (4.0 if world.rank == 0 else 0.5)).sum())
            if torch.isfinite(torch.tensor(sums.clip(1e9))):
                return number, sums.scale.factor
            sums.scale.lower()
            sums.zero_grad()
        raise AssertionError("never finite")

    assert run_ranks(rounds) == [(1, 2.0**12), (1, 2.0**12)]


# Random bits.


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_low_bits_of_shards_are_those_of_the_whole(dtype: torch.dtype) -> None:
    weight = random(10, 12).to(dtype)

    def half(world: RankWorld) -> torch.Tensor:
        rows, offset = (weight[:4], 0) if world.rank == 0 else (weight[4:], 4 * 12)
        return random_low_bits(rows, 3, "a", Shard(offset, weight.numel()), world)

    assert torch.equal(torch.cat(run_ranks(half)), random_low_bits(weight, 3, "a"))


@pytest.mark.parametrize("states", ["8bit", "float32"])
def test_shards_updated_apart_are_the_whole(states: str) -> None:
    settings = Optimizer(lr=1e-2, clip_norm=1e9, states=states)  # type: ignore[arg-type]
    start, gradients = random(8, BLOCK).bfloat16(), [random(8, BLOCK, seed=step) for step in range(1, 4)]

    def train(rows: slice, world=ONE_PROCESS) -> tuple[torch.Tensor, AdamW]:
        model = torch.nn.ParameterDict({"a": start[rows].clone()})
        shards = {"a": Shard(rows.start * BLOCK, start.numel())}
        optimizer = build_optimizer(model, settings, 7, world, shards)
        for gradient in gradients:
            optimizer.gradients.add((model["a"] * gradient[rows]).sum())
            optimizer.clip()
            optimizer.update(1e-2)
        return model["a"].detach(), optimizer

    halves = run_ranks(lambda world: train(slice(0, 3) if world.rank == 0 else slice(3, 8), world))
    weight, optimizer = train(slice(0, 8))
    assert torch.equal(torch.cat([half for half, _ in halves]), weight)
    if isinstance(optimizer, MasterAdamW):
        return
    for name, whole in optimizer.state().items():
        if name != "steps":
            assert torch.equal(torch.cat([half.state()[name] for _, half in halves]), whole), name
