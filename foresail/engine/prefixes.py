"""Prefixes on their way into the cache: begun once for all rows that share them, and filled in chunks.

A prefix is a context without its last token. What another request left in the cache is found by the names
of its pages and not computed again.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass
from itertools import count

from foresail.engine.drafts import MAX_DRAFT
from foresail.engine.pages import PagePool, count_pages, page_names
from foresail.engine.prefill import PrefillChunk


@dataclass(eq=False)
class Prefix:
    """Its tokens and pages, how much of it is computed, and how many rows hold pages of it and wait.

    It is `ready` when all of it is computed, and all of those before it, whose pages it may count on.
    """

    number: int
    tokens: tuple[int, ...]
    pages: list[int]
    filled: int
    next_token: int | None = None  # behind it, in the row that came first
    num_rows: int = 0
    ready: bool = False

    def is_full(self) -> bool:
        return self.filled == len(self.tokens)


class Prefixes:
    """Later prefixes may count on the pages of earlier ones, so they are filled in order.

    One that is filled stays while any row in the queue wants it.
    """

    def __init__(self, pool: PagePool, page_size: int) -> None:
        self.pool, self.page_size = pool, page_size
        self.by_tokens: dict[tuple[int, ...], Prefix] = {}
        self.unfilled: deque[Prefix] = deque()  # not full, or behind one that is not
        self.wanted: Counter[tuple[int, ...]] = Counter()
        self._numbers = count(1)

    def __contains__(self, tokens: tuple[int, ...]) -> bool:
        return tokens in self.by_tokens

    @property
    def num_missing(self) -> int:
        """Tokens to compute."""
        return sum(len(prefix.tokens) - prefix.filled for prefix in self.unfilled)

    def want(self, tokens: tuple[int, ...]) -> None:
        """A row has queued up that will run from this prefix."""
        self.wanted[tokens] += 1

    def unwant(self, tokens: tuple[int, ...]) -> None:
        """One of these rows runs, or is gone."""
        self.wanted[tokens] -= 1
        if not self.wanted[tokens]:
            del self.wanted[tokens]
            if tokens in self.by_tokens:
                self._drop_if_done(self.by_tokens[tokens])

    def pages_needed(self, tokens: tuple[int, ...]) -> int:
        """At most so many free pages are taken by joining; one is for the half-filled last page."""
        return 1 if tokens in self.by_tokens else count_pages(len(tokens), self.page_size) + 1

    def begin(self, tokens: tuple[int, ...], next_token: int | None = None) -> Prefix:
        """Find what is cached of a prefix already, and take pages for the rest.

        Its whole pages get their names at once: who comes later is filled later, or in the same pass.
        """
        names = page_names(tokens, self.page_size)
        known = self.pool.find(names)
        self.pool.share(known)
        pages = known + self.pool.take(count_pages(len(tokens), self.page_size) - len(known))
        self.pool.remember(pages[: len(names)], names)
        prefix = Prefix(next(self._numbers), tokens, pages, filled=len(known) * self.page_size)
        prefix.next_token = next_token
        self.by_tokens[tokens] = prefix
        self.unfilled.append(prefix)
        return prefix

    def join(self, tokens: tuple[int, ...], next_token: int | None = None) -> tuple[Prefix, list[int]]:
        """What to wait for, and one row's pages: whole ones are shared, the half-filled last one is its own."""
        prefix = self.by_tokens.get(tokens) or self.begin(tokens, next_token)
        prefix.num_rows += 1
        whole = prefix.pages[: len(tokens) // self.page_size]
        self.pool.share(whole)
        return prefix, whole + self.pool.take(len(prefix.pages) - len(whole))

    def leave(self, prefix: Prefix) -> None:
        """A row that joined runs, or is gone."""
        prefix.num_rows -= 1
        self.unwant(prefix.tokens)

    def next_chunks(self, budget: int) -> list[PrefillChunk]:
        """The next tokens to compute, at most so many; from here on they count as filled."""
        chunks = []
        for prefix in self.unfilled:
            tokens = prefix.tokens[prefix.filled : prefix.filled + budget]
            if tokens:
                start = prefix.filled
                prefix.filled += len(tokens)
                following = prefix.tokens[prefix.filled : prefix.filled + MAX_DRAFT]
                if prefix.next_token is not None:
                    following = (*following, prefix.next_token)
                chunks.append(
                    PrefillChunk(tokens=tokens, start=start, pages=prefix.pages, following=following)
                )
                budget -= len(tokens)
            if not budget:
                break
        while self.unfilled and self.unfilled[0].is_full():
            prefix = self.unfilled.popleft()
            prefix.ready = True
            self._drop_if_done(prefix)  # where all who wanted it were cancelled
        return chunks

    def release_unused(self) -> bool:
        """Give back what is only kept for rows in the queue; whether there was any."""
        idle = [prefix for prefix in self.by_tokens.values() if prefix.ready and not prefix.num_rows]
        for prefix in idle:
            self.pool.release(self.by_tokens.pop(prefix.tokens).pages)
        return bool(idle)

    def clear(self) -> None:
        """Forget all, who wants what as well."""
        for prefix in self.by_tokens.values():
            self.pool.release(prefix.pages)
        self.by_tokens.clear()
        self.unfilled.clear()
        self.wanted.clear()

    def _drop_if_done(self, prefix: Prefix) -> None:
        """A prefix that is filled and that nobody wants gives its pages back.

        One that is not yet filled stays until it is: others may count on its pages by their names.
        """
        if prefix.ready and prefix.tokens not in self.wanted:
            self.pool.release(self.by_tokens.pop(prefix.tokens).pages)
