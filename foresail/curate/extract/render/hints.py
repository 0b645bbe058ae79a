"""Which elements of a page have one of some words in their attributes, found in one pass over all attributes.

Hints(page).nodes("katex", "mathjax") -> {17, 18, 40}

Searching each element's attributes with a pattern took half of the time of rendering.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate

from foresail.curate.extract.page import Page


class Hints:
    def __init__(self, page: Page) -> None:
        data = page.data
        self.elements = [node for node, name in enumerate(page.names) if name and data[node]]
        lowered = [data[node].lower() + "\n" for node in self.elements]
        self.text = "".join(lowered)
        self.starts = [0, *accumulate(map(len, lowered))]

    def nodes(self, *words: str) -> set[int]:
        """Words are lower-case, whatever the page has."""
        text, starts, nodes = self.text, self.starts, set[int]()
        for word in words:
            at = text.find(word)
            while at >= 0:
                place = bisect_right(starts, at)
                nodes.add(self.elements[place - 1])
                at = text.find(word, starts[place])
        return nodes
