"""Who waits and who enters: a row's way from the queue to the moment when all but its last token is cached.

A waiting row owns no page. It enters when a slot and pages are free for it, and gets its keys and values: from
the host, where it was parked or put back, or computed in chunks, once for all rows with the same prefix. Then it
is ready, and the engine seats it.
"""

from __future__ import annotations

from collections import deque

from foresail.engine.pages import PagePool, count_pages
from foresail.engine.prefixes import Prefixes
from foresail.engine.row import Row
from foresail.engine.runner import Runner


class Entrance:
    """queue, admit, leave; its length is the number of rows on their way."""

    def __init__(self, runner: Runner, pool: PagePool, page_size: int, prefill_tokens: int) -> None:
        self.runner, self.pool = runner, pool
        self.page_size, self.prefill_tokens = page_size, prefill_tokens
        self.prefixes = Prefixes(pool, page_size)
        self.waiting: deque[Row] = deque()
        self.entering: list[Row] = []  # they own pages and wait for their prefix to be filled

    def __len__(self) -> int:
        return len(self.waiting) + len(self.entering)

    @property
    def tokens_on_host(self) -> int:
        """Whose keys and values waiting rows have there."""
        return sum(row.saved.num_tokens for row in self.waiting if row.saved is not None)

    def queue(self, row: Row, *, first: bool = False) -> None:
        if first:
            self.waiting.appendleft(row)
        else:
            self.waiting.append(row)
        if row.saved is None:
            self.prefixes.want(row.prefix)

    def admit(self, *, free_slots: int, running: int) -> list[Row]:
        """Let waiting rows in while slots and pages last, fill a chunk of their prefixes; who is ready to run."""
        while self.waiting and len(self.entering) < free_slots:
            if not self._fits(self.waiting[0], running):
                if running or self.entering or not self.prefixes.spare():
                    break
                continue
            self._enter(self.waiting.popleft())
        if 0 < (missing := self.prefixes.num_missing) < self.runner.worth_filling:
            self._look_ahead(min(self.prefill_tokens, self.runner.worth_filling) - missing)
        chunks = self.prefixes.next_chunks(self.prefill_tokens)
        if chunks:
            self.runner.fill(chunks)
        ready = [row for row in self.entering if row.filling is None or row.filling.ready]
        if ready:
            self.entering = [row for row in self.entering if row.filling and not row.filling.ready]
            self._copy_tails(ready)
        return ready

    def stop_waiting(self, row: Row) -> None:
        """It runs, or is gone: its prefix need not be kept for it."""
        if row.filling is not None:
            self.prefixes.leave(row.filling)
            row.filling = None

    def leave(self, request_id: str) -> Row | None:
        """Take a request out. None if it is not here."""
        for row in self.entering:
            if row.request.id == request_id:
                self.entering.remove(row)
                self._step_back(row)
                return row
        for row in self.waiting:
            if row.request.id == request_id:
                self.waiting.remove(row)
                if row.saved is None:
                    self.prefixes.unwant(row.prefix)
                return row
        return None

    def clear(self) -> list[Row]:
        """Take all out, in the order in which they would have run; no prefix is kept."""
        rows = [*self.entering, *self.waiting]
        for row in self.entering:
            self._step_back(row)
        self.entering.clear()
        self.waiting.clear()
        self.prefixes.clear()
        return rows

    def _fits(self, row: Row, running: int) -> bool:
        if row.saved is None:
            need = self.prefixes.pages_needed(row.prefix)
        else:
            need = count_pages(len(row.prefix), self.page_size)
        soon = running + len(self.entering)  # each of these may ask for a page before long
        return need + soon <= self.pool.num_free

    def _enter(self, row: Row) -> None:
        """Give a row pages, and keys and values for all but its last token: saved ones, or soon computed."""
        if row.saved is not None:
            row.pages = self.pool.take(count_pages(len(row.prefix), self.page_size))
            self.runner.cache.load(row.saved, row.pages)
            row.saved = None
        else:
            row.filling, row.pages = self.prefixes.join(row.prefix)
        self.entering.append(row)

    def _look_ahead(self, tokens: int) -> None:
        """Begin prefixes of rows that still wait, so many tokens, in half of the pages that are free at most.

        On a GPU a pass over few tokens takes as long as one over thousands, and rows come in a few at a time.
        """
        pages = self.pool.num_free // 2
        for row in self.waiting:
            if row.saved is not None or row.prefix in self.prefixes:
                continue
            tokens -= len(row.prefix)
            pages -= count_pages(len(row.prefix), self.page_size)
            if tokens < 0 or pages < 0:
                break
            self.prefixes.begin(row.prefix)

    def _copy_tails(self, rows: list[Row]) -> None:
        """The half-filled last page of a shared prefix becomes each row's own."""
        filled = [row for row in rows if row.filling is not None and row.pages]
        tails = [(row.filling.pages[-1], row.pages[-1]) for row in filled]  # type: ignore[union-attr]
        tails = [(source, target) for source, target in tails if source != target]
        if tails:
            self.runner.cache.copy_pages(*map(list, zip(*tails, strict=True)))

    def _step_back(self, row: Row) -> None:
        """Out of those that enter, with no page left."""
        self.pool.release(row.pages)
        row.pages = []
        self.stop_waiting(row)
