"""The slots and pages of running rows, from a row's cached prefix until it leaves its slot.

A row in a slot is a line of the table. It owns pages for its cached tokens and those of the next step; when pages
run out the youngest row is preempted. A leaving row takes its sampled tokens along and frees slot and pages.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

import numpy as np

from foresail.engine.admission import Admission
from foresail.engine.drafts import Drafts
from foresail.engine.pages import PagePool, count_pages, page_names
from foresail.engine.request import SavedKV
from foresail.engine.row import NO_SLOT, EngineRow, EngineRows
from foresail.engine.runner import Runner
from foresail.engine.stop_strings import StopStrings
from foresail.engine.table import Table
from foresail.engine.thinking import stop_state


class Slots(Mapping[int, EngineRow]):
    """Running and resting rows by slot, oldest first: assign, add pages, free."""

    def __init__(
        self,
        rows: EngineRows,
        runner: Runner,
        pool: PagePool,
        page_size: int,
        table: Table,
        admission: Admission,
        stop_strings: StopStrings,
    ) -> None:
        self.rows, self.runner, self.pool, self.page_size = rows, runner, pool, page_size
        self.table, self.admission, self.stop_strings = table, admission, stop_strings
        self.by_slot: dict[int, EngineRow] = {}
        self.empty = list(range(len(table.lengths_S) - 1, -1, -1))
        self.changed: list[int] = []  # slots whose lines the runner must read again

    def __getitem__(self, slot: int) -> EngineRow:
        return self.by_slot[slot]

    def __iter__(self) -> Iterator[int]:
        return iter(self.by_slot)

    def __len__(self) -> int:
        return len(self.by_slot)

    def numbers(self) -> np.ndarray:
        return np.fromiter(self.by_slot, dtype=np.int64, count=len(self.by_slot))

    # Into a slot.

    def assign(self, ready: list[EngineRow], version: int) -> None:
        """Put these rows into slots, with weights of this version."""
        for row in ready:
            row.slot = slot = self.empty.pop()
            self.table.assign(slot, row.request, row.context, row.pages, row.limit())
            self.table.versions_S[slot] = version
            self.table.stop_states_S[slot] = stop_state(row.request, row.response, self.stop_strings)
            if row.prefix is not None:
                whole_pages = len(row.prefix.tokens) // self.page_size
                self.table.join(slot, row.prefix.number, whole_pages * self.page_size)
            self.by_slot[slot] = row
            self.changed.append(slot)
            self.admission.leave_prefix(row)
            self.rows.move(row, "running")

    def renew(self, row: EngineRow) -> None:
        """Continue in the same slot; all its steps have been read."""
        sampled = int(self.table.sampled_S[row.slot])
        self.table.renew(row.slot, row.limit(sampled))
        if (
            len(row.response) + sampled == row.request.sampling.thinking_budget
        ):  # after the budget it has other stop strings
            response = (*row.response, *self.table.sampled(row.slot)[0])
            self.table.stop_states_S[row.slot] = stop_state(row.request, response, self.stop_strings)
        self.changed.append(row.slot)

    def update_runner(self) -> None:
        """Let the runner read the lines that have changed since the last call."""
        if self.changed:
            self.runner.update_rows(np.array(self.changed))
            self.changed = []

    # Pages for a step. `unread`: the most tokens that a row may have sampled in unread steps with drafts.

    def have_pages(self, drafts: Drafts, unread: int) -> bool:
        """Whether `add_pages` needs no preemption; releases prefixes of queued rows if necessary."""
        short = len(self._short_of_pages(drafts, unread))
        if short > self.pool.num_free:
            self.admission.prefixes.release_unused()
        return short <= self.pool.num_free

    def add_pages(self, drafts: Drafts | None, unread: int) -> bool:
        """Give running rows pages for their next tokens; False, and none, if too few are free."""
        short = self._short_of_pages(drafts, unread)
        if len(short) > self.pool.num_free:
            return False
        if len(short):
            pages = self.pool.take(len(short))
            self.runner.add_pages(short, self.table.add_pages(short, pages), pages)
            for slot, page in zip(short.tolist(), pages, strict=True):
                self.by_slot[slot].pages.append(page)
        return True

    def _short_of_pages(self, drafts: Drafts | None, unread: int) -> np.ndarray:
        """Slots in ascending order, each as often as it lacks a page."""
        slots = np.sort(self.numbers())
        slots = slots[self.table.left_S[slots] > 0]
        cached = self.table.lengths_S[slots]
        if drafts is not None:
            last = cached + self.table.left_S[slots] - 1
            cached = np.minimum(cached + drafts.sizes_of(slots) + unread, last)
        missing = -(-cached // self.page_size) - self.table.num_pages_S[slots]
        return np.repeat(slots, np.maximum(missing, 0))

    def make_room(self) -> None:
        """Free some pages: prefixes of queued rows, else those of the youngest row.

        All steps must have been read.
        """
        if self.admission.prefixes.release_unused():
            return
        youngest = next(reversed(self.by_slot.values()))
        (self._park if youngest.state == "resting" else self._preempt)(youngest)

    # Out of a slot.

    def free(self, row: EngineRow) -> None:
        """Add the tokens sampled in its slot to the row, and free slot and pages."""
        slot = row.slot
        self._note_experts(row)
        row.extend(*self.table.sampled(slot), int(self.table.versions_S[slot]))
        names = page_names(row.prefix_tokens, self.page_size, self.pool.names(row.pages))
        self.pool.remember(row.pages[: len(names)], names)
        self.pool.release(row.pages)
        row.pages, row.slot = [], NO_SLOT
        self.table.reuses_S[slot] += 1
        del self.by_slot[slot]
        self.empty.append(slot)

    def clear(self) -> list[EngineRow]:
        """Free all slots; returns the running rows, oldest first. Resting rows are parked."""
        rows = [*self.by_slot.values()]
        for row in rows:
            self.free(row)
            if row.state == "resting":
                self.rows.move(row, "parked")
        return [row for row in rows if row.state == "running"]

    def park_resting(self, unreported: Collection[str]) -> None:
        """Free the slots of resting rows, except requests whose chunk's end is not reported yet."""
        if not self.rows.count["resting"]:
            return
        for row in [row for row in self.by_slot.values() if row.state == "resting"]:
            if row.request.id not in unreported:
                self._park(row)

    def _park(self, row: EngineRow) -> None:
        """Free the slot of a resting row."""
        row.saved = self.save(row)
        self.free(row)
        self.rows.move(row, "parked")

    def _preempt(self, row: EngineRow) -> None:
        """Free the slot of a running row, which waits again, first in the queue.

        Its keys and values go to the host if they fit there.
        """
        max_on_host = self.pool.num_pages * self.page_size  # as much as the device has
        fits = self.admission.tokens_on_host + self.table.lengths_S[row.slot] <= max_on_host
        row.saved = self.save(row) if fits else None
        self.free(row)
        self.admission.queue(row, first=True)

    # The state of a row in its slot.

    def so_far(self, row: EngineRow) -> EngineRow:
        """A copy of the row with the tokens sampled in its slot."""
        self._note_experts(row)
        copy = replace(row)
        copy.extend(*self.table.sampled(row.slot), int(self.table.versions_S[row.slot]))
        return copy

    def save(self, row: EngineRow) -> SavedKV | None:
        """Keys and values of a row whose steps have all been read."""
        cached = int(self.table.lengths_S[row.slot]) - 1
        pages = row.pages[: count_pages(cached, self.page_size)]
        return self.runner.cache.save(pages, cached) if pages else None

    def _note_experts(self, row: EngineRow) -> None:
        """Store the experts of its tokens, if recorded. Known ones stay: a recomputed prefix, perhaps with other
        weights, is not what the token's log-probability came from.
        """
        cache, known = self.runner.cache, len(row.experts)
        cached = len(row.context) + int(self.table.sampled_S[row.slot]) - 1
        if cache.routes is not None and known < cached:
            first = known // self.page_size
            pages = row.pages[first : count_pages(cached, self.page_size)]
            experts_TX = cache.routes.read(cache.indexes(pages), cached - first * self.page_size)
            row.experts = [*row.experts, *experts_TX[known - first * self.page_size :]]
