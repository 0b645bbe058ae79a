"""Scores a file of preference pairs with a reward model: each chosen answer's lead over the rejected one."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from foresail.data.preferences.encode import encode_pairs
from foresail.data.preferences.mixture import pair_limit
from foresail.data.preferences.scored_pairs import end_with_answers
from foresail.recipe.tables.reward import LearnedReward
from foresail.recipe.tables.sources import HeldOutPreferences
from foresail.records import TrainPair
from foresail.rewards.learned import ScoredIds, Scorer, open_scorer

PAIRS_AT_ONCE = 256


@dataclass(frozen=True, kw_only=True)
class PairLeads:
    """Leads of the scored pairs, in file order; `left_out` counts the others by reason."""

    leads: list[float]
    left_out: Mapping[str, int]


def score_leads(reward_model: Path, source: HeldOutPreferences, *, device: str = "auto") -> PairLeads:
    """Pairs that are longer than the model's context are an error, or left out, as the source says."""
    scorer = open_scorer(LearnedReward(path=str(reward_model)), device=device)
    encoded = encode_pairs(source, scorer.tokenizer)
    context = scorer.model.shape.max_context
    fitting = pair_limit(context).keep(encoded.entries, source.too_long, source.source)
    pairs = [end_with_answers(pair) for pair in fitting]
    left_out = dict(encoded.unusable)
    if len(fitting) < len(encoded.entries):
        left_out[f"longer than the model's context of {context}"] = len(encoded.entries) - len(fitting)
    parts = (pairs[first : first + PAIRS_AT_ONCE] for first in range(0, len(pairs), PAIRS_AT_ONCE))
    return PairLeads(leads=[lead for part in parts for lead in leads_of(part, scorer)], left_out=left_out)


def leads_of(pairs: Sequence[TrainPair], scorer: Scorer) -> list[float]:
    sequences = [sequence for pair in pairs for sequence in (pair.chosen, pair.rejected)]
    scores = scorer.score([ScoredIds(entry.ids, entry.loss_mask.index(1)) for entry in sequences])
    for sequence, score in zip(sequences, scores, strict=True):
        if not math.isfinite(score):
            raise ValueError(
                f"the reward model gave {score} for {sequence.name}, which is no score; its weights are broken, "
                "take another checkpoint"
            )
    return [chosen - rejected for chosen, rejected in zip(scores[::2], scores[1::2], strict=True)]
