"""A reward model on a file of preference pairs: by how much it puts every chosen answer above the rejected one."""

from __future__ import annotations

from pathlib import Path

from foresail.data.pairs import encode_pairs, pair_limit
from foresail.data.scored_pairs import end_with_answers
from foresail.recipe.reward import LearnedReward
from foresail.recipe.sources import HeldOutPreferences
from foresail.rewards.learned import ScoredIds, open_scorer

PAIRS_AT_ONCE = 256


def score_leads(reward_model: Path, source: HeldOutPreferences, *, device: str = "auto") -> list[float]:
    """In the order of the file; pairs that are longer than the model's context are an error, or left out."""
    scorer = open_scorer(LearnedReward(path=str(reward_model)), device=device)
    encoded = encode_pairs(source, scorer.tokenizer).entries
    context = scorer.model.shape.max_context
    pairs = [
        end_with_answers(pair) for pair in pair_limit(context).keep(encoded, source.too_long, source.source)
    ]
    leads: list[float] = []
    for first in range(0, len(pairs), PAIRS_AT_ONCE):
        some = pairs[first : first + PAIRS_AT_ONCE]
        sequences = [sequence for pair in some for sequence in (pair.chosen, pair.rejected)]
        scores = scorer.score([ScoredIds(entry.ids, entry.loss_mask.index(1)) for entry in sequences])
        leads += [chosen - rejected for chosen, rejected in zip(scores[::2], scores[1::2], strict=True)]
    return leads
