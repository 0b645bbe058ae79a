"""Prefixes on their way into the cache: begun once for all rows that share them, and filled in chunks.

A prefix is a context without its last token. What another request left in the cache is found by the names
of its pages and not computed again.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass
from itertools import count

from foresail.engine.chunk import Chunk
from foresail.engine.pages import PagePool, count_pages, page_names


@dataclass(eq=False)
class Filling:
    """A prefix, its pages, how much of it is computed, and how many rows hold pages of it and wait.

    It is `ready` when all of it is computed, and all of those before it, whose pages it may count on.
    """

    number: int
    prefix: tuple[int, ...]
    pages: list[int]
    filled: int
    num_entering: int = 0
    ready: bool = False

    def is_full(self) -> bool:
        return self.filled == len(self.prefix)


class Prefixes:
    """Later prefixes may count on the pages of earlier ones, so they are filled in order.

    One that is filled stays while any row in the queue wants it.
    """

    def __init__(self, pool: PagePool, page_size: int) -> None:
        self.pool, self.page_size = pool, page_size
        self.filling: dict[tuple[int, ...], Filling] = {}
        self.unfilled: deque[Filling] = deque()  # not full, or behind one that is not
        self.wanted: Counter[tuple[int, ...]] = Counter()
        self._numbers = count(1)

    def __contains__(self, prefix: tuple[int, ...]) -> bool:
        return prefix in self.filling

    @property
    def num_missing(self) -> int:
        """Tokens to compute."""
        return sum(len(filling.prefix) - filling.filled for filling in self.unfilled)

    def want(self, prefix: tuple[int, ...]) -> None:
        """A row has queued up that will run from this prefix."""
        self.wanted[prefix] += 1

    def unwant(self, prefix: tuple[int, ...]) -> None:
        """One of these rows runs, or is gone."""
        self.wanted[prefix] -= 1
        if not self.wanted[prefix]:
            del self.wanted[prefix]
            if prefix in self.filling:
                self._drop_if_done(self.filling[prefix])

    def pages_needed(self, prefix: tuple[int, ...]) -> int:
        """At most so many free pages are taken by joining; one is for the half-filled last page."""
        return 1 if prefix in self.filling else count_pages(len(prefix), self.page_size) + 1

    def begin(self, prefix: tuple[int, ...]) -> Filling:
        """Find what is cached of a prefix already, and take pages for the rest.

        Its whole pages get their names at once: who comes later is filled later, or in the same pass.
        """
        names = page_names(prefix, self.page_size)
        known = self.pool.find(names)
        self.pool.share(known)
        pages = known + self.pool.take(count_pages(len(prefix), self.page_size) - len(known))
        self.pool.remember(pages[: len(names)], names)
        filling = Filling(next(self._numbers), prefix, pages, filled=len(known) * self.page_size)
        self.filling[prefix] = filling
        self.unfilled.append(filling)
        return filling

    def join(self, prefix: tuple[int, ...]) -> tuple[Filling, list[int]]:
        """What to wait for, and one row's pages: whole ones are shared, the half-filled last one is its own."""
        filling = self.filling.get(prefix) or self.begin(prefix)
        filling.num_entering += 1
        whole = filling.pages[: len(prefix) // self.page_size]
        self.pool.share(whole)
        return filling, whole + self.pool.take(len(filling.pages) - len(whole))

    def leave(self, filling: Filling) -> None:
        """A row that joined runs, or is gone."""
        filling.num_entering -= 1
        self.unwant(filling.prefix)

    def next_chunks(self, budget: int) -> list[Chunk]:
        """The next tokens to compute, at most so many; from here on they count as filled."""
        chunks = []
        for filling in self.unfilled:
            tokens = filling.prefix[filling.filled : filling.filled + budget]
            if tokens:
                chunks.append(Chunk(tokens=tokens, start=filling.filled, pages=filling.pages))
                filling.filled += len(tokens)
                budget -= len(tokens)
            if not budget:
                break
        while self.unfilled and self.unfilled[0].is_full():
            filling = self.unfilled.popleft()
            filling.ready = True
            self._drop_if_done(filling)  # where all who wanted it were cancelled
        return chunks

    def spare(self) -> bool:
        """Give back what is only kept for rows in the queue; whether there was any."""
        idle = [filling for filling in self.filling.values() if filling.ready and not filling.num_entering]
        for filling in idle:
            self.pool.release(self.filling.pop(filling.prefix).pages)
        return bool(idle)

    def clear(self) -> None:
        """Forget all, who wants what as well."""
        for filling in self.filling.values():
            self.pool.release(filling.pages)
        self.filling.clear()
        self.unfilled.clear()
        self.wanted.clear()

    def _drop_if_done(self, filling: Filling) -> None:
        """A prefix that is filled and that nobody wants gives its pages back.

        One that is not yet filled stays until it is: others may count on its pages by their names.
        """
        if filling.ready and filling.prefix not in self.wanted:
            self.pool.release(self.filling.pop(filling.prefix).pages)
