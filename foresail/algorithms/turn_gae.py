"""Generalised advantage estimates with turns as steps, from a critic's value before each turn.

Legend: M tokens with a loss, those of a sample side by side, K turns.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from foresail.algorithms.advantages import gae


@dataclass(frozen=True, kw_only=True, eq=False)
class TurnEstimates:
    """A turn's advantage and return, on each of its tokens; `first_M` is true where a turn begins.

    The estimates use only the value at `first_M`, which was read at the end of the environment's tokens.
    """

    advantages_M: Tensor
    returns_M: Tensor
    first_M: Tensor


def turn_gae(
    rewards_M: Tensor, values_M: Tensor, sequence_M: Tensor, turns_M: Tensor, *, gamma: float, lam: float
) -> TurnEstimates:
    """`gae` over turns: rewards are summed within one, its value is that before its first token.

    Two turns of two tokens, rewards [0, 0, 0, 1], values [.5, ?, .8, ?], gamma 1, lam .5: errors .3 and .2, so
    advantages [.4, .4, .2, .2]. A turn that the policy wrote nothing in is no step.
    """
    first_M = torch.ones_like(sequence_M, dtype=torch.bool)
    first_M[1:] = (sequence_M[1:] != sequence_M[:-1]) | (turns_M[1:] != turns_M[:-1])
    step_M = first_M.cumsum(dim=0) - 1
    values_K = values_M[first_M]
    rewards_K = torch.zeros_like(values_K).index_add(0, step_M, rewards_M)
    advantages_K = gae(rewards_K, values_K, sequence_M[first_M], gamma=gamma, lam=lam)
    return TurnEstimates(
        advantages_M=advantages_K[step_M],
        returns_M=(advantages_K + values_K)[step_M],
        first_M=first_M,
    )
