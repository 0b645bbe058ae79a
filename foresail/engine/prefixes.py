"""Prefixes on their way into the cache: begun once for all rows that share them, and filled in chunks.

A prefix is a context without its last token. What another request left in the cache is found by the names
of its pages and not computed again.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field
from itertools import count, takewhile

from foresail.engine.drafts import MAX_DRAFT
from foresail.engine.pages import PagePool, count_pages, page_names
from foresail.engine.prefill import PrefillChunk


@dataclass(eq=False)
class Prefix:
    """Its tokens and pages, how much of it is computed, and how many rows hold pages of it and wait.

    It is `ready` when it is filled to its `goal`, and so are all before it, whose pages it may count on.
    """

    number: int
    tokens: tuple[int, ...]
    pages: list[int]
    filled: int
    next_token: int | None = None  # behind it, in the row that came first
    num_rows: int = 0
    ready: bool = False
    goal: int = field(init=False)  # all tokens; fewer, where only others want the first pages

    def __post_init__(self) -> None:
        self.goal = len(self.tokens)

    def is_full(self) -> bool:
        return self.filled >= self.goal


class Prefixes:
    """Later prefixes may count on the pages of earlier ones, so they are filled in order.

    One stays while any row in the queue wants it. Of one that was given up before it was filled, the pages stay on
    which later ones count.
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
        return sum(max(0, prefix.goal - prefix.filled) for prefix in self.unfilled)

    def want(self, tokens: tuple[int, ...]) -> None:
        """A row has queued up that will run from this prefix."""
        self.wanted[tokens] += 1

    def unwant(self, tokens: tuple[int, ...]) -> None:
        """One of these rows runs, or is gone."""
        self.wanted[tokens] -= 1
        if not self.wanted[tokens]:
            del self.wanted[tokens]
            prefix = self.by_tokens.pop(tokens, None)
            if prefix is not None and prefix.ready:
                self.pool.release(prefix.pages)
            elif prefix is not None:
                self._trim()

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
            tokens = prefix.tokens[prefix.filled : min(prefix.filled + budget, prefix.goal)]
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
            if self.by_tokens.get(prefix.tokens) is not prefix:  # given up, and filled for others
                self.pool.release(prefix.pages)
        return chunks

    def release_unused(self) -> bool:
        """Give back what is only kept for rows in the queue; whether there was any."""
        idle = [prefix for prefix in self.by_tokens.values() if prefix.ready and not prefix.num_rows]
        for prefix in idle:
            self.pool.release(self.by_tokens.pop(prefix.tokens).pages)
        return bool(idle)

    def clear(self) -> None:
        """Forget all, who wants what as well."""
        for prefix in dict.fromkeys([*self.by_tokens.values(), *self.unfilled]):
            self.pool.release(prefix.pages)
        self.by_tokens.clear()
        self.unfilled.clear()
        self.wanted.clear()

    def _trim(self) -> None:
        """Free what was given up, but for the pages on which later prefixes count."""
        shared: set[int] = set()  # pages of later prefixes
        remaining: deque[Prefix] = deque()
        for prefix in reversed(self.unfilled):
            if self.by_tokens.get(prefix.tokens) is not prefix:
                num_shared = sum(1 for _ in takewhile(shared.__contains__, prefix.pages))
                prefix.goal = num_shared * self.page_size
                unshared = prefix.pages[0 if prefix.is_full() else num_shared :]
                # Nobody may count on pages that will never be filled.
                self.pool.forget_names(prefix.pages[max(num_shared, prefix.filled // self.page_size) :])
                self.pool.release(unshared)
                if prefix.is_full():
                    continue
                del prefix.pages[num_shared:]
            shared.update(prefix.pages)
            remaining.appendleft(prefix)
        self.unfilled = remaining
