"""Figures of shop_lab.py: accuracy with intervals by split, form and language, and how much training raised it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from foresail.evaluation.interval import unbounded_interval
from foresail.evaluation.results import figure

SPLITS = ("train", "test-products", "test-templates", "test")
SHOWN = {
    "train": "products and phrases\nof training, new rows",
    "test-products": "held-out\nproducts",
    "test-templates": "held-out\nphrases",
    "test": "both\nheld out",
}
LABELS = {
    "start": "before",
    "constant": "most frequent answer",
    "shuffled": "trained on shuffled answers",
    "trained": "trained",
    "rl": "trained, then RL",
}


@dataclass(frozen=True, kw_only=True)
class Outcomes:
    """Whether each row was answered correctly: right["test"]["extraction.value/en"] = [True, False]."""

    seed: int
    arm: str
    right: Mapping[str, Mapping[str, Sequence[bool]]]

    def of(self, split: str, cell: str) -> list[float]:
        """Of one cell, or of "all"."""
        cells = self.right[split]
        every = cells.values() if cell == "all" else [cells.get(cell, ())]
        return [float(one) for rows in every for one in rows]


def results_of(outcomes: Sequence[Outcomes]) -> dict[str, Any]:
    """results["all"]["test"]["accuracy"]["trained"], and ["rise"]["start"]: how much higher than that arm.

    Intervals are over the rows of all seeds; `by_seed` shows how far models differ.
    """
    cells = ["all", *dict.fromkeys(cell for one in outcomes for of in one.right.values() for cell in of)]
    return {
        cell: {
            split: {"accuracy": accuracy, "rise": rises(outcomes, split, cell)}
            for split in SPLITS
            if (accuracy := accuracies(outcomes, split, cell))
        }
        for cell in cells
        if outcomes
    }


def accuracies(outcomes: Sequence[Outcomes], split: str, cell: str) -> dict[str, Any]:
    by_arm = {}
    for arm in dict.fromkeys(one.arm for one in outcomes):
        by_seed = [scores for one in outcomes if one.arm == arm and (scores := one.of(split, cell))]
        if by_seed:
            pooled = rounded(figure([score for scores in by_seed for score in scores]))
            by_arm[arm] = pooled | {"by_seed": [round(fmean(scores), 3) for scores in by_seed]}
    return by_arm


def rises(outcomes: Sequence[Outcomes], split: str, cell: str) -> dict[str, Any]:
    """Of the trained model over each other arm, row by row, in seeds that have both."""
    scores = {(one.arm, one.seed): one.of(split, cell) for one in outcomes}
    seeds = [seed for arm, seed in scores if arm == "trained"]
    by_arm = {}
    for arm in dict.fromkeys(arm for arm, _ in scores if arm != "trained"):
        pairs = [
            after - before
            for seed in seeds
            if (arm, seed) in scores
            for after, before in zip(scores["trained", seed], scores[arm, seed], strict=True)
        ]
        if len(pairs) > 1:
            low, high = unbounded_interval(pairs)
            by_arm[arm] = rounded({"value": fmean(pairs), "low": low, "high": high})
    return by_arm


def rounded(figures: Mapping[str, float]) -> dict[str, float]:
    return {name: round(value, 3) for name, value in figures.items()}


def totals_of(results: Mapping[str, Any]) -> dict[str, Any]:
    """Over all forms and languages. `rises`: the intervals over all controls lie above zero."""
    if not results:
        return {}
    every = results["all"]
    return {
        "accuracy": {split: of["accuracy"] for split, of in every.items()},
        "rise": {split: of["rise"] for split, of in every.items()},
        "rises": {
            split: bool(rise) and all(over["low"] > 0 for arm, over in rise.items() if arm != "rl")
            for split, of in every.items()
            for rise in (of["rise"],)
        },
    }


def draw(results: Mapping[str, Any], picture: Path) -> None:
    """Bars of each split, an arm each, with intervals."""
    from foresail.runlog.canvas import CORAL, FAINT, GOLD, INK, NAVY, TEAL, new_figure, quiet, save_figure

    colours = dict(zip(LABELS, (FAINT, GOLD, CORAL, NAVY, TEAL), strict=True))
    every = results["all"]
    arms = [arm for arm in LABELS if any(arm in of["accuracy"] for of in every.values())]
    with new_figure((7.6, 3.4)) as image:
        axes = image.add_subplot()
        for number, arm in enumerate(arms):
            bars = [of["accuracy"][arm] for of in every.values()]
            places = [group + (number - (len(arms) - 1) / 2) * 0.8 / len(arms) for group in range(len(every))]
            heights = [bar["value"] for bar in bars]
            below = [bar["value"] - bar["low"] for bar in bars]
            above = [bar["high"] - bar["value"] for bar in bars]
            axes.bar(
                places,
                heights,
                width=0.7 / len(arms),
                color=colours[arm],
                label=LABELS[arm],
                yerr=[below, above],
                ecolor=INK,
                error_kw={"linewidth": 0.8},
            )
        axes.set_xticks(range(len(every)), labels=[SHOWN[split] for split in every])
        quiet(axes, title="Right answers, greedy, new rows")
        axes.legend(frameon=False, labelcolor=INK, fontsize=8)
    save_figure(image, picture)
