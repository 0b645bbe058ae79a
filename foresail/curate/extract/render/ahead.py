"""What lies ahead in a page: whether a subtree holds an element of some names, without looking twice at any node.

tables = Ahead(page, frozenset(["table"])); tables.within(3) -> 7, or None

Asked of nodes in the order of the page, as a walk does, all answers together cost one pass, however deep it is.
"""

from __future__ import annotations

from foresail.curate.extract.page import Page


class Ahead:
    def __init__(self, page: Page, names: frozenset[str]) -> None:
        self.page = page
        self.names = names
        self.asked = len(page.names)  # the node from which `place` is the next one
        self.place = -1

    def within(self, node: int) -> int | None:
        """The first such element inside of the node."""
        if not self.asked <= node < self.place:
            names, wanted = self.page.names, self.names
            at, last = node + 1, len(names)
            while at < last and names[at] not in wanted:
                at += 1
            self.asked, self.place = node, at
        return self.place if self.place < self.page.ends[node] else None
