"""Fills shared prefixes into the cache, once for all rows that share them, in chunks.

A prefix is a context without its last token. Pages that another request left in the cache are found by their names
and not computed again.
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
    """A prefix's tokens and pages, how much is computed, and how many waiting rows hold its pages.

    It is `ready` when it and all before it, whose pages it may use, are filled to their `goal`.
    """

    number: int
    tokens: tuple[int, ...]
    pages: list[int]
    filled: int
    next_token: int | None = None  # after it, in the first row
    num_rows: int = 0
    ready: bool = False
    goal: int = field(init=False)  # all tokens; fewer if only other prefixes need its first pages

    def __post_init__(self) -> None:
        self.goal = len(self.tokens)

    def is_full(self) -> bool:
        return self.filled >= self.goal


class Prefixes:
    """Prefixes are filled in order, since later ones may use the pages of earlier ones.

    A prefix stays while a queued row needs it. Of an unfilled one without rows, the pages that later ones use stay.
    """

    def __init__(self, pool: PagePool, page_size: int) -> None:
        self.pool, self.page_size = pool, page_size
        self.by_tokens: dict[tuple[int, ...], Prefix] = {}
        self.unfilled: deque[Prefix] = deque()  # not full, or after one that is not
        self.num_queued: Counter[tuple[int, ...]] = Counter()
        self._numbers = count(1)

    def __contains__(self, tokens: tuple[int, ...]) -> bool:
        return tokens in self.by_tokens

    @property
    def num_missing(self) -> int:
        """Tokens to compute."""
        return sum(max(0, prefix.goal - prefix.filled) for prefix in self.unfilled)

    def want(self, tokens: tuple[int, ...]) -> None:
        """Count a queued row with this prefix."""
        self.num_queued[tokens] += 1

    def unwant(self, tokens: tuple[int, ...]) -> None:
        """Discount a row that runs or was removed."""
        self.num_queued[tokens] -= 1
        if not self.num_queued[tokens]:
            del self.num_queued[tokens]
            prefix = self.by_tokens.pop(tokens, None)
            if prefix is not None and prefix.ready:
                self.pool.release(prefix.pages)
            elif prefix is not None:
                self._trim()

    def pages_needed(self, tokens: tuple[int, ...]) -> int:
        """The most free pages that joining takes, with one for the half-filled last page."""
        return 1 if tokens in self.by_tokens else count_pages(len(tokens), self.page_size) + 1

    def begin(self, tokens: tuple[int, ...], next_token: int | None = None) -> Prefix:
        """Find a prefix's cached pages, and take pages for the rest.

        Its whole pages get their names immediately, since later prefixes are filled later or in the same pass.
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
        """The prefix to wait for, and a row's pages: shared whole ones, and its own half-filled last one."""
        prefix = self.by_tokens.get(tokens) or self.begin(tokens, next_token)
        prefix.num_rows += 1
        whole = prefix.pages[: len(tokens) // self.page_size]
        self.pool.share(whole)
        return prefix, whole + self.pool.take(len(prefix.pages) - len(whole))

    def leave(self, prefix: Prefix) -> None:
        """Discount a joined row that runs or was removed."""
        prefix.num_rows -= 1
        self.unwant(prefix.tokens)

    def next_chunks(self, budget: int) -> list[PrefillChunk]:
        """The next chunks of at most `budget` tokens; they count as filled."""
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
            if self.by_tokens.get(prefix.tokens) is not prefix:  # without rows: filled for later prefixes
                self.pool.release(prefix.pages)
        return chunks

    def release_unused(self) -> bool:
        """Release full prefixes that only queued rows need; whether there were any."""
        idle = [prefix for prefix in self.by_tokens.values() if prefix.ready and not prefix.num_rows]
        for prefix in idle:
            self.pool.release(self.by_tokens.pop(prefix.tokens).pages)
        return bool(idle)

    def clear(self) -> None:
        """Forget all prefixes and queued rows."""
        for prefix in dict.fromkeys([*self.by_tokens.values(), *self.unfilled]):
            self.pool.release(prefix.pages)
        self.by_tokens.clear()
        self.unfilled.clear()
        self.num_queued.clear()

    def _trim(self) -> None:
        """Free prefixes without rows, except the pages that later prefixes use."""
        shared: set[int] = set()  # pages of later prefixes
        remaining: deque[Prefix] = deque()
        for prefix in reversed(self.unfilled):
            if self.by_tokens.get(prefix.tokens) is not prefix:
                num_shared = sum(1 for _ in takewhile(shared.__contains__, prefix.pages))
                prefix.goal = num_shared * self.page_size
                unshared = prefix.pages[0 if prefix.is_full() else num_shared :]
                # These pages will never be filled, so they lose their names.
                self.pool.forget_names(prefix.pages[max(num_shared, prefix.filled // self.page_size) :])
                self.pool.release(unshared)
                if prefix.is_full():
                    continue
                del prefix.pages[num_shared:]
            shared.update(prefix.pages)
            remaining.appendleft(prefix)
        self.unfilled = remaining
