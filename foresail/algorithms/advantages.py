"""Advantages from rewards: how much better a sample is than its baseline.

The reward comes at the end without a discount, so all tokens of a sample share one advantage, and a step's rewards
are a matrix with a row per problem. `ADVANTAGES` holds the kinds a recipe may name, with one signature. `gae`
needs a critic's value of every token.

Legend: G groups (problems), N samples of each, M tokens with a loss, those of a sample side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from foresail.records import Sample
from foresail.world import ONE_PROCESS, World

if TYPE_CHECKING:  # the rollout controller uses `has_spread`, and does not import torch
    from torch import Tensor

ROUNDING = 1e-6


def has_spread(rewards: Sequence[float]) -> bool:
    """Whether a group teaches: where all samples got the same reward, every advantage is zero.

    [1, 0, 1] -> True; [1, 1, 1] -> False; [.1 + .2, .3] -> False, for that difference is rounding.
    """
    return len(rewards) > 0 and max(rewards) - min(rewards) > ROUNDING


def dr_grpo(rewards_GN: Tensor) -> Tensor:
    """Reward minus the group's mean: [1, 0, 0, 1] -> [.5, -.5, -.5, .5]."""
    if rewards_GN.shape[1] < 2:
        raise ValueError("a group of one sample has nothing to be compared with; set samples_per_prompt >= 2")
    # Shifted first, so that equal rewards give exact zeros: the float32 mean of eight 0.7s is not 0.7,
    # and `grpo` would make advantages of .06 out of that rounding.
    shifted_GN = rewards_GN - rewards_GN[:, :1]
    return shifted_GN - shifted_GN.mean(dim=1, keepdim=True)


def grpo(rewards_GN: Tensor) -> Tensor:
    """In units of the group's standard deviation: [1, 0, 0, 1] -> [.87, -.87, -.87, .87]."""
    centred_GN = dr_grpo(rewards_GN)
    return centred_GN / (centred_GN.std(dim=1, keepdim=True, correction=1) + 1e-6)


def rloo(rewards_GN: Tensor) -> Tensor:
    """Reward minus the mean of the *other* samples: [1, 0, 0, 1] -> [2/3, -2/3, -2/3, 2/3].

    This only scales the distance to the group's mean by N / (N - 1).
    """
    num_samples = rewards_GN.shape[1]
    return dr_grpo(rewards_GN) * num_samples / (num_samples - 1)


def gdpo(rewards_KGN: Tensor, weights_K: Tensor) -> Tensor:
    """Of several rewards: each as `grpo`, then their sum by weights, in units of its spread over the whole batch.

    So no reward dominates by its range. NaN: it does not apply to a sample, and counts nothing there.
    """
    known_KGN = ~rewards_KGN.isnan()
    total_GN = (weights_K[:, None, None] * standardize(rewards_KGN, known_KGN, (2,))).sum(0)
    return standardize(total_GN, known_KGN.any(0), (0, 1))


def standardize(values: Tensor, known: Tensor, dims: tuple[int, ...]) -> Tensor:
    """Zero mean and unit variance over `dims` of the values that are `known`; 0 elsewhere, and for equal values.

    Values [1, 3, NaN] -> [-.71, .71, 0].
    """
    counts = known.sum(dims, keepdim=True)
    means = values.masked_fill(~known, 0.0).sum(dims, keepdim=True) / counts.clamp(min=1)
    centred = (values - means).masked_fill(~known, 0.0)
    spread = ((centred**2).sum(dims, keepdim=True) / (counts - 1).clamp(min=1)).sqrt()
    # differences that are rounding are not blown up into a signal
    return (centred / (spread + 1e-6)).masked_fill(spread <= ROUNDING, 0.0)


def reinforce_plus_plus(rewards_GN: Tensor, lengths_GN: Tensor) -> Tensor:
    """Whitened over the whole batch, groups ignored. The KL penalty of the paper's reward is left out."""
    return whiten(rewards_GN, lengths_GN)


def reinforce_plus_plus_baseline(rewards_GN: Tensor, lengths_GN: Tensor) -> Tensor:
    """The group's mean is the baseline, the batch's spread the unit."""
    return whiten(dr_grpo(rewards_GN), lengths_GN)


def whiten(values_GN: Tensor, lengths_GN: Tensor, world: World = ONE_PROCESS) -> Tensor:
    """Zero mean and unit variance over *tokens*: a sample of 100 tokens counts a hundred times, as in verl.

    values [1, 0] with lengths [1, 3]: mean 1/4, variance (9/16 + 3/16) / 3 = 1/4 -> [1.5, -.5].
    """
    counts_GN = lengths_GN.to(values_GN.dtype)
    total = world.sum(counts_GN.sum()).clamp(min=1)
    # As in `dr_grpo`, equal values give exact zeros: all ranks shift by the first value of rank 0.
    shifted_GN = values_GN - world.sum(values_GN[:1, :1].sum() * (world.rank == 0))
    centred_GN = shifted_GN - world.sum((counts_GN * shifted_GN).sum()) / total
    variance = world.sum((counts_GN * centred_GN**2).sum()) / (total - 1).clamp(min=1)
    return centred_GN * (variance + 1e-8).rsqrt()


# One signature for all: rewards_GN and the number of loss tokens of each sample. Every rank has all groups.
ADVANTAGES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "grpo": lambda rewards_GN, lengths_GN: grpo(rewards_GN),
    "dr_grpo": lambda rewards_GN, lengths_GN: dr_grpo(rewards_GN),
    "rloo": lambda rewards_GN, lengths_GN: rloo(rewards_GN),
    "reinforce++": reinforce_plus_plus,
    "reinforce++_baseline": reinforce_plus_plus_baseline,
}


def gae(rewards_M: Tensor, values_M: Tensor, sequence_M: Tensor, *, gamma: float, lam: float) -> Tensor:
    """Generalised advantage estimates of packed trajectories; the critic's targets are these plus `values_M`.

    `values_M` is the expected reward before each token, and 0 after a trajectory's last one.
    rewards [0, 1], values [.5, .5] of one trajectory, gamma 1, lam .5: errors [0, .5] -> [.25, .5].

    Each entry depends on the one after it, but there is no loop over tokens: once an entry sums the errors of the
    next 1, 2, 4, … tokens, one addition doubles that.
    """
    sums_M = rewards_M - values_M
    inside = sequence_M[1:] == sequence_M[:-1]
    sums_M[:-1] += gamma * values_M[1:] * inside
    reach = 1
    while inside.any():  # some trajectory is longer than that
        sums_M[:-reach] += (gamma * lam) ** reach * sums_M[reach:] * inside
        reach *= 2
        inside = sequence_M[reach:] == sequence_M[:-reach]
    return sums_M


def uniform_credit(sample: Sample, advantage: float) -> list[float]:
    """Every token the same, for the reward came at the end: three tokens and .5 -> [.5, .5, .5]."""
    return [advantage] * len(sample.ids)
