"""PBSD's credit: a sample's advantage, divided among its turns by their evidence for the verified answer.

    z  evidence / sqrt(tokens), compared with all turns of the group     (`evidence.py`)
    w  clip(exp(sign(A) z / temperature), low, high); 1 where evidence is unknown, too noisy or of too few tokens
    w  scaled, so that a sample's tokens have the same credit in sum
    A  of a token: A [1 + strength (w - 1)]

Where A > 0, turns that speak for the answer get more of it; where A < 0, they are blamed less. No sign flips.
The decomposition into turns is the paper's, the weights are our reconstruction: docs/pbsd.md.

Legend: N samples of a group, T their tokens, U their units: turns, or tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any

import torch
from torch import Tensor

from foresail.algorithms.evidence import (
    Evidence,
    ScoredSample,
    TokenEvidence,
    by_token,
    by_turn,
    fade,
    repeat,
    standardize,
    token_evidence,
)
from foresail.recipe.tables.credit import Credit

LARGEST_ADVANTAGE = 1e30  # beyond, products would leave float32


@dataclass(frozen=True, kw_only=True)
class TurnCredit:
    """One turn's credit, for the log: its tokens with a loss, the counted ones, and evidence, signal-to-noise
    ratio and z, None where unknown. `weight` is before `strength`, `advantage` is the tokens'; at token level
    these and z are means over the turn.
    """

    tokens: int
    counted: int
    evidence: float | None
    snr: float | None
    z: float | None
    used: bool
    weight: float
    advantage: float


@dataclass(frozen=True, kw_only=True)
class SampleCredit:
    """An advantage for each token, and the credit of each turn."""

    advantages: list[float]
    turns: tuple[TurnCredit, ...]

    def to_row(self) -> dict[str, list[Any]]:
        """Columns for the run log: {"evidence": [3.1, None], "weight": [1.2, .8], …}"""
        rows = [asdict(turn) for turn in self.turns]
        return {name: [row[name] for row in rows] for name in TurnCredit.__dataclass_fields__}


def pbsd_credit(
    group: Sequence[ScoredSample], advantages: Sequence[float], settings: Credit, *, strength: float
) -> list[SampleCredit]:
    """Credit for all samples of one problem, which are compared with one another.

    `strength` is the settings' own, at this step. Two turns of equal length, A = 1, z = [log 2, -log 2],
    strength 1: weights [2, .5], conserved [1.6, .4], and those are the tokens' advantages.
    """
    check_advantages(advantages)
    if not group:
        return []
    tokens = token_evidence(group, clamp=settings.clamp)
    turns = by_turn(tokens)
    units = turns if settings.level == "turn" else by_token(tokens)
    units = fade(units) if settings.fade else units
    z_U = units.evidence_U if settings.form == "raw" else standardize(units)
    return share_out(torch.tensor(advantages, dtype=z_U.dtype), tokens, turns, units, z_U, settings, strength)


def check_advantages(advantages: Sequence[float]) -> None:
    for number, advantage in enumerate(advantages):
        if not abs(advantage) <= LARGEST_ADVANTAGE:  # so NaN is refused as well
            raise ValueError(f"the advantage of sample {number} is {advantage}; look at the group's rewards")


def share_out(
    advantages_N: Tensor,
    tokens: TokenEvidence,
    turns: Evidence,
    units: Evidence,
    z_U: Tensor,
    settings: Credit,
    strength: float,
) -> list[SampleCredit]:
    """Divides each advantage by the weights; a sample of fewer than two units with a loss keeps its own."""
    advantages_U, used_U = advantages_N[units.samples_U], is_used(units, settings)
    several_U = total((units.loss_tokens_U > 0).to(z_U), units) > 1
    weights_U = torch.ones_like(z_U)
    if settings.form == "additive":
        added_U = strength * settings.additive_weight * torch.where(used_U, z_U, 0.0)
        shares_U = torch.where(added_U == 0, advantages_U, advantages_U + added_U)  # -0.0 stays as it is
    else:
        weights_U = torch.where(several_U, weigh(units, used_U, z_U, advantages_U, settings), weights_U)
        shares_U = advantages_U * (1 + strength * (weights_U - 1))  # exactly A where one of the factors is 0
    shares_U = torch.where(several_U, shares_U, advantages_U)
    shares_T = torch.where(tokens.loss_T, shares_U[units.units_T], repeat(advantages_N, tokens.sizes))
    columns = torch.stack([z_U, used_U.to(z_U), weights_U, shares_U]).index_select(1, units.units_T)
    shares, credits = iter(shares_T.tolist()), iter(turn_credits(tokens, turns, columns))
    return [
        SampleCredit(advantages=[*islice(shares, size)], turns=tuple(islice(credits, num_turns)))
        for size, num_turns in zip(tokens.sizes, tokens.num_turns, strict=True)
    ]


def total(values_U: Tensor, units: Evidence) -> Tensor:
    """For each unit the sum over all units of its sample."""
    sums_N = torch.zeros(len(units.sizes), dtype=values_U.dtype)
    return sums_N.index_add(0, units.samples_U, values_U)[units.samples_U]


def is_used(units: Evidence, settings: Credit) -> Tensor:
    """Known and, for a turn, clear enough; a single token has no noise to compare with."""
    if settings.level == "token":
        return units.known_U
    return units.known_U & (units.snr_U >= settings.min_snr) & (units.counted_U >= settings.min_tokens)


def weigh(units: Evidence, used_U: Tensor, z_U: Tensor, advantages_U: Tensor, settings: Credit) -> Tensor:
    weights_U = (advantages_U.sign() * z_U / settings.temperature).exp().clamp(settings.low, settings.high)
    weights_U = torch.where(used_U, weights_U, 1.0)
    return conserve(weights_U, units) if settings.conserve else weights_U


def conserve(weights_U: Tensor, units: Evidence) -> Tensor:
    """Scaled to a mean of 1 over a sample's tokens: weights [2, .5] of 10 tokens each -> [1.6, .4]."""
    tokens_U = units.loss_tokens_U
    return weights_U * (total(tokens_U, units) / total(tokens_U * weights_U, units))


def turn_credits(tokens: TokenEvidence, turns: Evidence, columns_CT: Tensor) -> list[TurnCredit]:
    """Every turn of the group. `columns_CT` are z, whether it was used, weight and advantage of each token; a turn
    has their means.
    """
    among_CT = torch.stack([tokens.counted_T, *[tokens.loss_T] * 3])
    counts_CU = torch.stack([turns.counted_U, *[turns.loss_tokens_U] * 3])
    sums_CU = torch.zeros_like(counts_CU).index_add(1, tokens.turns_T, columns_CT * among_CT)
    columns = zip(
        turns.loss_tokens_U.tolist(),
        turns.counted_U.tolist(),
        turns.known_U.tolist(),
        turns.evidence_U.tolist(),
        turns.snr_U.tolist(),
        *(sums_CU / counts_CU.clamp(min=1)).tolist(),
        strict=True,
    )
    return [
        TurnCredit(
            tokens=int(loss_tokens),
            counted=int(counted),
            evidence=evidence if known else None,
            snr=snr if known else None,
            z=z if known else None,
            used=used > 0,
            weight=weight,
            advantage=share,
        )
        for loss_tokens, counted, known, evidence, snr, z, used, weight, share in columns
    ]
