"""Admits waiting rows and fills their prefixes: all of a row's tokens but the last must be cached before it runs.

A waiting row owns no page. It is admitted when a slot and pages are free. Its keys and values are copied from the
host, if it was parked or preempted, or computed in chunks, once for all rows with the same prefix.
"""

from __future__ import annotations

from collections import deque

from foresail.engine.pages import PagePool, count_pages
from foresail.engine.prefixes import Prefixes
from foresail.engine.row import EngineRow, EngineRows
from foresail.engine.runner import Runner


class Admission:
    """queue, admit, remove."""

    def __init__(
        self, rows: EngineRows, runner: Runner, pool: PagePool, page_size: int, prefill_tokens: int
    ) -> None:
        self.rows, self.runner, self.pool = rows, runner, pool
        self.page_size, self.prefill_tokens = page_size, prefill_tokens
        self.prefixes = Prefixes(pool, page_size)
        self.waiting: deque[EngineRow] = deque()  # in the order of admission
        self.filling: list[EngineRow] = []

    @property
    def tokens_on_host(self) -> int:
        """How many tokens of waiting rows have keys and values on the host."""
        return sum(row.saved.num_tokens for row in self.waiting if row.saved is not None)

    def queue(self, row: EngineRow, *, first: bool = False) -> None:
        if row.state != "waiting":
            self.rows.move(row, "waiting")
        if first:
            self.waiting.appendleft(row)
        else:
            self.waiting.append(row)
        if not row.all_saved:
            self.prefixes.want(row.prefix_tokens)

    def admit(self, *, free_slots: int, running: int) -> list[EngineRow]:
        """Admit rows while slots and pages last and fill a chunk of prefixes; returns the rows ready to run."""
        while self.waiting and len(self.filling) < free_slots:
            if not self._fits(self.waiting[0], running):
                if running or self.filling or not self.prefixes.release_unused():
                    break
                continue
            self._begin(self.waiting.popleft())
        if 0 < (missing := self.prefixes.num_missing) < self.runner.efficient_prefill_tokens:
            self._look_ahead(min(self.prefill_tokens, self.runner.efficient_prefill_tokens) - missing)
        chunks = self.prefixes.next_chunks(self.prefill_tokens)
        if chunks:
            self.runner.fill(chunks)
        ready = [row for row in self.filling if row.prefix is None or row.prefix.ready]
        if ready:
            self.filling = [row for row in self.filling if row.prefix and not row.prefix.ready]
            self._copy_tails(ready)
        return ready

    def leave_prefix(self, row: EngineRow) -> None:
        """Release a row's prefix when it runs or is removed."""
        if row.prefix is not None:
            self.prefixes.leave(row.prefix)
            row.prefix = None

    def remove(self, row: EngineRow) -> None:
        """Remove a waiting or filling row."""
        if row.state == "filling":
            self.filling.remove(row)
            self._release(row)
            return
        self.waiting.remove(row)
        if not row.all_saved:
            self.prefixes.unwant(row.prefix_tokens)

    def clear(self) -> list[EngineRow]:
        """Remove all rows, in the order in which they would have run, and all prefixes."""
        rows = [*self.filling, *self.waiting]
        for row in self.filling:
            self._release(row)
        self.filling.clear()
        self.waiting.clear()
        self.prefixes.clear()
        return rows

    def _fits(self, row: EngineRow, running: int) -> bool:
        if row.all_saved:
            need = count_pages(len(row.prefix_tokens), self.page_size)
        else:
            need = self.prefixes.pages_needed(row.prefix_tokens)
        soon = running + len(self.filling)  # each of these may need a page soon
        return need + soon <= self.pool.num_free

    def _begin(self, row: EngineRow) -> None:
        """Give a row pages, and saved keys and values or a prefix to compute."""
        self.rows.move(row, "filling")
        if row.all_saved:
            row.pages = self.pool.take(count_pages(len(row.prefix_tokens), self.page_size))
            self._load(row, row.pages)
        else:
            row.prefix, row.pages = self.prefixes.join(row.prefix_tokens, row.context[-1])
            if row.saved is not None and row.prefix.filled < row.saved.num_tokens:
                self._load(row, row.prefix.pages, row.prefix.filled // self.page_size)
        row.saved = None
        self.filling.append(row)

    def _load(self, row: EngineRow, pages: list[int], first: int = 0) -> None:
        """Copy a row's saved keys and values into its pages, from the `first` on."""
        assert row.saved is not None
        end = count_pages(row.saved.num_tokens, self.page_size)
        self.runner.cache.load(row.saved.from_page(first), pages[first:end])
        if row.prefix is not None:
            row.prefix.filled = row.saved.num_tokens

    def _look_ahead(self, tokens: int) -> None:
        """Begin up to `tokens` tokens of prefixes of waiting rows, in at most half of the free pages.

        On a GPU a pass over few tokens takes as long as one over thousands, and rows are admitted a few at a time.
        """
        pages = self.pool.num_free // 2
        for row in self.waiting:
            if row.saved is not None or row.prefix_tokens in self.prefixes:
                continue
            tokens -= len(row.prefix_tokens)
            pages -= count_pages(len(row.prefix_tokens), self.page_size)
            if tokens < 0 or pages < 0:
                break
            self.prefixes.begin(row.prefix_tokens, row.context[-1])

    def _copy_tails(self, rows: list[EngineRow]) -> None:
        """Copy a shared prefix's half-filled last page for each row."""
        filled = [row for row in rows if row.prefix is not None and row.pages]
        tails = [(row.prefix.pages[-1], row.pages[-1]) for row in filled]  # type: ignore[union-attr]
        tails = [(source, target) for source, target in tails if source != target]
        if tails:
            self.runner.cache.copy_pages(*map(list, zip(*tails, strict=True)))

    def _release(self, row: EngineRow) -> None:
        """Release the pages of a filling row."""
        self.pool.release(row.pages)
        row.pages = []
        self.leave_prefix(row)
