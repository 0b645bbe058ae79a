"""chrF: how alike two texts are by their character n-grams, from 0 to 1; 1 for texts of the same characters.

    chrf("He has two cats.", "He has 2 cats.") -> 0.51

Popović 2015: the F-score (recall weighs four times as much) of the n-grams of 1 to 6 characters without spaces,
each length's precision and recall averaged.
"""

from __future__ import annotations

from collections import Counter

ORDER, BETA = 6, 2.0
MOST_CHARS = 20_000  # of each text


def chrf(hypothesis: str, reference: str) -> float:
    """0 where one of them is empty and the other is not."""
    said, right = squeeze(hypothesis), squeeze(reference)
    if said == right:
        return 1.0
    precisions, recalls = [], []
    for order in range(1, ORDER + 1):
        ours, theirs = n_grams(said, order), n_grams(right, order)
        if not ours or not theirs:
            break
        common = (ours & theirs).total()
        precisions.append(common / ours.total())
        recalls.append(common / theirs.total())
    if not precisions:
        return 0.0
    precision, recall = sum(precisions) / len(precisions), sum(recalls) / len(recalls)
    weight = BETA**2
    return (1 + weight) * precision * recall / (weight * precision + recall) if precision + recall else 0.0


def squeeze(text: str) -> str:
    return "".join(text.split())[:MOST_CHARS]


def n_grams(text: str, order: int) -> Counter[str]:
    return Counter(text[place : place + order] for place in range(len(text) - order + 1))
