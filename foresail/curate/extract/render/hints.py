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
        lowered = [
            data.lower() + "\n" if name else "" for name, data in zip(page.names, page.data, strict=True)
        ]
        self.text = "".join(lowered)
        self.starts = [0, *accumulate(map(len, lowered))]

    def nodes(self, *words: str) -> set[int]:
        """Words are lower-case, whatever the page has."""
        text, starts, found = self.text, self.starts, set[int]()
        for word in words:
            at = text.find(word)
            while at >= 0:
                node = bisect_right(starts, at) - 1
                found.add(node)
                at = text.find(word, starts[node + 1])
        return found
