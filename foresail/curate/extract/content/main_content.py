"""The main content of a page: without navigation, advertisements, footers and what else stands around it.

find_main_content(read_page(html), "https://a.org/") -> MainContent(root=17, dropped={30, 52}, page_type="article")

Blocks of text are measured (`features.py`), scored by a trained model (`model.py`) and chosen so that the expected
F1 of words is greatest (`decide.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from foresail.curate.extract.content.around import block_ranges
from foresail.curate.extract.content.blocks import cut_page
from foresail.curate.extract.content.decide import choose, even_out_tables, find_dropped
from foresail.curate.extract.content.hints import read_hints
from foresail.curate.extract.content.model import PAGE_TYPES, load_model
from foresail.curate.extract.content.noscript import open_noscript
from foresail.curate.extract.content.scan import WORDS
from foresail.curate.extract.page import Page

LEAST = 0.2  # probability of the likeliest block


@dataclass(frozen=True, slots=True)
class MainContent:
    """The subtree of `root` without those of `dropped`."""

    root: int
    dropped: frozenset[int]
    page_type: str


def find_main_content(page: Page, url: str = "") -> MainContent | None:
    """None: the page has none."""
    open_noscript(page)
    blocks = cut_page(page)
    if not len(blocks):
        return None
    model = load_model()
    hints, page_words = read_hints(page, url)
    page_types = model.page_types(page_words)
    probability = model.score(blocks, hints, page_types)
    words = blocks.counts[:, WORDS]
    if probability.max() < LEAST:
        return None
    first, stop = block_ranges(blocks.block_of, blocks.ends, len(blocks))
    chosen = choose(even_out_tables(blocks, first, stop, probability), words)
    root, dropped = find_dropped(blocks.block_of, blocks.parents, blocks.ends, chosen)
    return MainContent(int(root), frozenset(dropped.tolist()), PAGE_TYPES[int(np.argmax(page_types))])
