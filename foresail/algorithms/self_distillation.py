"""On-policy self-distillation (OPSD): the teacher is the policy with the right answer in its prompt.

    A of a token: A + weight (log pi told the answer - log pi)

The added term, as an advantage, has the policy gradient of -KL(policy || teacher).

Legend: T tokens of a group, its samples one behind the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

import torch

from foresail.algorithms.evidence import ScoredSample, token_evidence


@dataclass(frozen=True, kw_only=True)
class Distilled:
    """A group's advantages, token by token; and the divergence's estimate, a sum over so many tokens."""

    advantages: list[list[float]]
    divergence: float
    tokens: int


def distill_with_hint(
    group: Sequence[ScoredSample], advantages: Sequence[float], *, weight: float, clamp: float
) -> Distilled:
    """Teacher -1 and -3, student -2 and -2, A .5, weight .1: [.6, .4]. What could not be scored keeps A."""
    tokens = token_evidence(group, clamp=clamp)
    known_T = tokens.counted_T & ~tokens.gains_T.isnan()
    gains_T = torch.where(known_T, tokens.gains_T, 0.0)
    added = iter((weight * gains_T).tolist())
    return Distilled(
        advantages=[
            [advantage + more for more in islice(added, size)]
            for advantage, size in zip(advantages, tokens.sizes, strict=True)
        ],
        divergence=-gains_T.sum().item(),
        tokens=int(known_T.sum()),
    )
