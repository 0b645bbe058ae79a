"""The trained scorer: how likely every block of a page belongs to its main content, and which type the page has.

The weights lie beside this file. benchmarks/curate/train_content_scorer.py trains new ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from foresail.curate.extract.content.blocks import Blocks
from foresail.curate.extract.content.features import (
    Hints,
    hash_blocks,
    measure,
    path_scores,
    read_tree,
    text_scores,
)
from foresail.curate.extract.content.scan import Array
from foresail.curate.extract.content.trees import Trees

WEIGHTS = Path(__file__).with_name("weights.npz")
PAGE_TYPES = ("article", "collection", "documentation", "forum", "listing", "product", "service")


@dataclass(frozen=True, slots=True)
class Model:
    text: Array
    path: Array
    page: Array  # [type, bucket]
    page_bias: Array
    trees: Trees

    def page_types(self, words: Array) -> Array:
        """Probabilities in the order of PAGE_TYPES."""
        scores = self.page[:, words].sum(1) + self.page_bias
        scores = np.exp(scores - scores.max())
        return scores / scores.sum()

    def score(self, blocks: Blocks, hints: Hints, page_types: Array) -> Array:
        """Of every block the probability that it belongs to the main content."""
        hashed = hash_blocks(blocks)
        text, path = text_scores(hashed, self.text), path_scores(hashed, self.path)
        _, matrix = measure(blocks, read_tree(blocks), hints, text, path, page_types)
        return self.trees.probability(matrix)


@cache
def load_model() -> Model:
    with np.load(WEIGHTS) as file:
        arrays = dict(file)
    scaled = {
        name: arrays[name].astype(np.float32) * arrays[f"{name}_scale"] for name in ("text", "path", "page")
    }
    trees = Trees(*(arrays[name] for name in Trees.__slots__))
    return Model(**scaled, page_bias=arrays["page_bias"], trees=trees)
