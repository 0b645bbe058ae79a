"""The rollout engine: token ids in; ids, log-probabilities and policy versions out.

It runs the trainer's own model on a paged KV cache with continuous batching. A context is filled into the cache up
to its last token, in chunks that requests with equal prompts share. Decode steps then sample every token; a step
takes the last token of each running row and its draft. When pages run out the youngest row is preempted, and its
keys and values are saved on the host. Since the noise is keyed by position, that changes no token. Knows neither
text nor rewards.

    engine.add(request); while engine.busy: for completion in engine.step(): ...

This file schedules the steps. `row` has the states of a row, `admission` admits rows, `slots` gives them slots and
pages, `runner_cpu` and `runner_cuda` do the forward passes.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch

from foresail.engine.admission import Admission
from foresail.engine.advance import BROKEN, GOES_ON, STOPPED, SampledTokens
from foresail.engine.drafts import MAX_DRAFT, Draft, Drafts, OwnDrafts
from foresail.engine.entries import plan_entries
from foresail.engine.pages import PagePool, count_pages
from foresail.engine.request import Completion, Parked, Request, check
from foresail.engine.row import NO_SLOT, EngineRow, EngineRows
from foresail.engine.runner import open_runner
from foresail.engine.slots import Slots
from foresail.engine.stop_strings import StopStrings
from foresail.engine.table import Table
from foresail.engine.thinking import check_closing, closing_due, put_closing
from foresail.model.decoder import Decoder
from foresail.records import Finish, RunStopped


class NotANumber(RunStopped):
    """The model's logits are NaN, so no token can be sampled."""


@dataclass(frozen=True)
class PendingStep:
    """A launched decode step: its rows, their first entries, and the function that reads its tokens.

    The table counts the tokens of a plain step at its launch, those of a step with drafts when it is read.
    """

    slots_R: np.ndarray
    reuses_R: np.ndarray
    firsts_R: np.ndarray
    longest_draft: int
    read: Callable[[], SampledTokens]


class Engine:
    """add, step, cancel; `weights_changed` after every update of the model."""

    def __init__(
        self,
        model: Decoder,
        *,
        num_pages: int,
        page_size: int = 16,
        max_running: int = 512,
        prefill_tokens: int = 16_384,
        fp8_kv: bool = False,
        batch_invariant: bool = False,
        replay_routing: bool = False,
        mtp: bool = False,
        vocabulary: Sequence[bytes] = (),
    ) -> None:
        """`vocabulary` has the bytes of every token, for requests with stop strings. With `replay_routing`
        completions have the experts of all tokens but the last in their `side`. `mtp`: the model's MTP layers
        follow every step, so that they can draft.
        """
        self.model, self.num_pages, self.page_size = model, num_pages, page_size
        self.batch_invariant = batch_invariant
        self.version = 0
        self.pool = PagePool(num_pages)
        self.table = Table(max_running, count_pages(model.shape.max_context + MAX_DRAFT, page_size))
        self.runner = open_runner(
            model,
            self.table,
            num_pages=num_pages,
            page_size=page_size,
            fp8_kv=fp8_kv,
            batch_invariant=batch_invariant,
            replay_routing=replay_routing,
            mtp=mtp,
        )
        self.own_drafts = OwnDrafts(max_running, model.shape.mtp) if mtp else None
        unnamed = (b"",) * (model.shape.vocab_size - len(vocabulary)) if vocabulary else ()
        self.stop_strings = StopStrings((*vocabulary, *unnamed))
        self.rows = EngineRows()
        self.admission = Admission(self.rows, self.runner, self.pool, page_size, prefill_tokens)
        self.slots = Slots(
            self.rows, self.runner, self.pool, page_size, self.table, self.admission, self.stop_strings
        )
        self.pending: deque[PendingStep] = deque()
        self.took_drafts = False  # whether the last step checked its drafts
        self.ended: list[Completion] = []  # for the next step to return

    @property
    def busy(self) -> bool:
        count = self.rows.count
        return bool(count["waiting"] or count["filling"] or count["running"] or self.ended)

    def add(self, request: Request, *, chunk_tokens: int | None = None) -> None:
        """Queue a request. After `chunk_tokens` new tokens it is completed with "chunk", and the row rests.

        Until the next step it keeps its slot, and `go_on` costs nothing; `park` removes it at any time.
        """
        self._add(EngineRow(request=request, context=request.prompt, chunk_tokens=chunk_tokens))

    def resume(self, parked: Parked, *, chunk_tokens: int | None = None) -> None:
        """Continue a request that was parked here or in another engine with the same weights."""
        self._add(EngineRow.of(parked, self.version, chunk_tokens))

    def _add(self, row: EngineRow) -> None:
        check(row.request, self.model.shape, self.num_pages, self.page_size)
        self.stop_strings.state(row.request.sampling.stop, ())  # raises an error for unsupported stop strings
        check_closing(row.request, self.stop_strings.vocabulary)
        self.rows.add(row)
        self._queue(row)

    def holds(self, request_id: str) -> bool:
        """Whether `go_on` is possible for a request."""
        return self.rows.find(request_id, "resting", "parked") is not None

    def go_on(self, request_id: str, *, chunk_tokens: int | None = None) -> None:
        """Begin a request's next chunk, in its slot if no step was taken since the last chunk."""
        row = self.rows.find(request_id, "resting", "parked")
        assert row is not None, f"{request_id} has no chunk that has ended"
        if row.slot == NO_SLOT:
            row.chunk_tokens = chunk_tokens
            self._queue(row)
            return
        sampled = int(self.table.sampled_S[row.slot])
        row.chunk_tokens = None if chunk_tokens is None else sampled + chunk_tokens
        if self._closing(row):
            self.slots.free(row)
            self.rows.move(row, "parked")
            self._queue(row)
            return
        self.slots.renew(row)
        self.rows.move(row, "running")

    def generate(self, requests: Iterable[Request]) -> Iterator[Completion]:
        """Add all requests and yield completions as they end; closing the iterator cancels the rest."""
        added: Counter[str] = Counter()
        try:
            for request in requests:
                self.add(request)
                added[request.id] += 1
            while self.busy:
                for completion in self.step():
                    added[completion.request.id] -= 1
                    yield completion
        finally:
            for request_id in (+added).elements():
                self.cancel(request_id)

    def cancel(self, request_id: str) -> Completion | None:
        """Cancel a request and return what it sampled so far; None if it is not here."""
        row = self.rows.find(request_id)
        return None if row is None else self._remove(row).complete("cancelled")

    def park(self, request_id: str) -> Parked | None:
        """Remove a request and return it with its keys and values on the host; None if it is not here."""
        if self.rows.find(request_id, "resting") is None:  # all steps of a resting row are read
            self.read_pending()
        row = self.rows.find(request_id)
        if row is None:
            return None
        if row.slot != NO_SLOT:
            row.saved = self.slots.save(row)
        return self._remove(row).park(self.version)

    def _remove(self, row: EngineRow) -> EngineRow:
        """Remove a row in any state, and its unreported chunk end."""
        if row.slot != NO_SLOT:
            self.slots.free(row)
        elif row.state != "parked":
            self.admission.remove(row)
        if not self.slots:
            self.pending.clear()  # of rows that are gone
        self.rows.move(row, "done")
        self.ended = [end for end in self.ended if (end.request.id, end.finish) != (row.request.id, "chunk")]
        return row

    def tokens(self, request_id: str) -> tuple[int, ...] | None:
        """Prompt and response so far of a running request, which a draft must continue."""
        self.read_pending()
        row = self.rows.find(request_id, "running", "resting")
        return None if row is None else (*row.context, *self.table.sampled(row.slot)[0])

    def sampled(self, request_id: str, first: int = 0) -> tuple[list[int], list[float]]:
        """Tokens of a response from the `first` on, as far as steps are read, and log-probabilities."""
        row = self.rows.find(request_id)
        if row is None:
            return [], []
        ids, logprobs = row.context[len(row.request.prompt) + first :], row.logprobs[first:]
        if row.slot == NO_SLOT:
            return [*ids], [*logprobs]
        new_ids, new_logprobs = self.table.sampled(row.slot, max(0, first - len(row.logprobs)))
        return [*ids, *new_ids], [*logprobs, *new_logprobs]

    def weights_changed(self, version: int) -> None:
        """The model was updated in place: drop all keys and values; running rows are recomputed."""
        self.read_pending()
        under_way = self.slots.clear() + self.admission.clear()
        for row in self.rows:
            row.saved = None
        for row in under_way:
            self.admission.queue(row)
        self.pool.forget()
        self.version = version

    def give_back_memory(self) -> None:
        """Free the cache's memory, for the trainer; running rows will be recomputed."""
        self.weights_changed(self.version)
        self.runner.give_back_memory()

    def take_memory(self) -> None:
        """Take the cache's memory back, at the same address."""
        self.runner.take_memory()

    @property
    def cache_bytes(self) -> int:
        """Device memory that the cache holds inside `at_work`, besides PyTorch's own."""
        return self.runner.cache_bytes

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """The cache has its memory inside the block; afterwards the trainer has it."""
        self.take_memory()
        try:
            yield
        finally:
            self.give_back_memory()

    def drafts_by_slot(self, drafts: Mapping[str, Draft]) -> Drafts:
        """Drafts by slot, from drafts by request id, which continue `tokens(id)`; only for requests with a slot."""
        self.read_pending()
        rows = {name: self.rows.find(name, "running", "resting") for name in drafts}
        return Drafts.of({row.slot: drafts[name] for name, row in rows.items() if row is not None})

    def ask_for_drafts(self, enabled: bool = True) -> None:
        """Let MTP layers draft with every step from now on, or not; see `mtp_drafts`."""
        assert self.own_drafts is not None or not enabled, "an engine without MTP layers"
        self.runner.propose = enabled

    def mtp_drafts(self) -> Drafts:
        """The MTP layers' drafts for the next step; none for rows without."""
        assert self.own_drafts is not None, "an engine without MTP layers"
        self.read_pending()
        return self.own_drafts.of(self.slots.numbers(), self.table)

    def unread_drafts(self) -> Drafts:
        """The MTP layers' drafts of all rows, unread: a step with them need not wait for the last to be read."""
        assert self.own_drafts is not None, "an engine without MTP layers"
        return Drafts.unread(self.slots.numbers(), self.own_drafts.num_layers)

    @torch.inference_mode()
    def step(self, drafts: Drafts | None = None) -> list[Completion]:
        """Admit waiting rows, sample at least one token for every running row, return completions.

        Drafts change how many tokens a step samples, never which. The device may be one step ahead of the
        completions.
        """
        if drafts is not None and not drafts.is_unread:
            self.read_pending()  # drafts continue tokens that are read
        self.slots.park_resting(unreported={end.request.id for end in self.ended})
        ready = self.admission.admit(free_slots=len(self.slots.empty), running=len(self.slots))
        self.slots.assign(ready, self.version)
        self.slots.update_runner()
        drafts = None if drafts is None else self._usable(drafts)
        self.took_drafts = drafts is not None
        if drafts is None and any(step.longest_draft for step in self.pending):
            self.read_pending()  # the table needs the rows' lengths
        self._add_pages(drafts)
        self.slots.update_runner()  # rows may have reached their thinking budget
        launched = self._launch(drafts)
        self.read_pending(self.runner.steps_ahead if launched else 0)
        ended, self.ended = self.ended, []
        return ended

    # One decode step, from launch to reading.

    def _usable(self, drafts: Drafts) -> Drafts | None:
        """Drafts within each row's limit; None if their pages would preempt a row."""
        drafts = drafts.cut(self.table.left_S[drafts.slots_R] - 1)
        if not drafts.sizes_R.any():
            return None
        return drafts if self.slots.have_pages(drafts, self._unread_tokens()) else None

    def _add_pages(self, drafts: Drafts | None) -> None:
        """Give every running row pages for its next tokens; if too few are free the youngest row is preempted."""
        while not self.slots.add_pages(drafts, self._unread_tokens()):
            if self.pending:
                self.read_pending()  # rows may end, and a preempted row's tokens must be read
            else:
                self.slots.make_room()

    def _unread_tokens(self) -> int:
        """The largest number of tokens that a row has sampled in unread steps with drafts."""
        return sum(step.longest_draft + 1 for step in self.pending if step.longest_draft)

    def _launch(self, drafts: Drafts | None) -> bool:
        """Launch a step for all rows that may sample another token; whether there were any."""
        slots_R = self.slots.numbers()
        slots_R = slots_R[self.table.left_S[slots_R] > 0]  # the others wait for their last token to be read
        if not len(slots_R):
            return False
        # Siblings are neighbours, so that shared keys are read once.
        slots_R = slots_R[np.argsort(self.table.groups_S[slots_R], kind="stable")]
        block = plan_entries(slots_R, drafts)
        firsts_R = np.flatnonzero(block[1] == 0)
        longest_draft, read = int(block[1].max()), self.runner.decode(block)
        self.pending.append(PendingStep(slots_R, self.table.reuses_S[slots_R], firsts_R, longest_draft, read))
        if not longest_draft:
            self.table.move(slots_R, 1)
        return True

    def read_pending(self, steps_ahead: int = 0) -> None:
        """Read the oldest steps until at most `steps_ahead` are pending."""
        while len(self.pending) > steps_ahead:
            self._read(self.pending.popleft())
        if not self.slots:
            self.pending.clear()  # of rows that are gone

    def _read(self, step: PendingStep) -> None:
        sampled = step.read()
        # else the row ended a step before, or was at its limit
        here_R = (self.table.reuses_S[step.slots_R] == step.reuses_R) & (sampled.counts_E[step.firsts_R] > 0)
        slots_R, firsts_R = step.slots_R[here_R], step.firsts_R[here_R]
        if not len(slots_R):
            return
        ahead_RK = None if sampled.ahead_RK is None else sampled.ahead_RK[: len(here_R)][here_R]
        self.table.stop_states_S[slots_R], sampled = self.stop_strings.cut(
            self.table.stop_states_S[slots_R], sampled, firsts_R
        )
        counts_R = sampled.counts_E[firsts_R].astype(np.int64)
        places_N = sampled.places(firsts_R)
        self.table.record(slots_R, counts_R, sampled.tokens_E[places_N], sampled.logprobs_E[places_N])
        if step.longest_draft:
            self.table.move(slots_R, counts_R)
        if self.own_drafts is not None and ahead_RK is not None:
            self.own_drafts.note(slots_R, ahead_RK, self.table)
        ends_R = sampled.ends_E[firsts_R]
        if (ends_R == BROKEN).any():
            self._stop_at_nan(slots_R[ends_R == BROKEN])
        for place in np.flatnonzero(ends_R != GOES_ON):
            self._finish(self.slots[int(slots_R[place])], stopped=ends_R[place] == STOPPED)

    def _finish(self, row: EngineRow, *, stopped: bool) -> None:
        """End a row that stopped or is at its limit; of any other row only the chunk ends."""
        sampled = len(row.sampled) + int(self.table.sampled_S[row.slot])
        if not stopped and row.limit(int(self.table.sampled_S[row.slot])) > 0:
            self._pass_budget(row)
        elif not stopped and sampled < row.request.sampling.max_new_tokens:
            self.rows.move(row, "resting")
            self.ended.append(self.slots.so_far(row).complete("chunk"))
        else:
            self.slots.free(row)
            self.rows.move(row, "done")
            self.ended.append(row.complete("stop" if stopped else "length"))

    # The budget of thinking tokens.

    def _closing(self, row: EngineRow) -> tuple[int, ...]:
        """Tokens to insert after a row's tokens, before it samples another."""
        if row.request.sampling.thinking_budget is None:
            return ()
        sampled = self.table.sampled(row.slot)[0] if row.slot != NO_SLOT else []
        return closing_due(row.request, (*row.context, *sampled), self.stop_strings.vocabulary)

    def _pass_budget(self, row: EngineRow) -> None:
        """Close the thinking of a running row at its budget, or let it continue in its slot."""
        if self._closing(row):
            self.slots.free(row)
            self._queue(row, first=True)
        else:
            self.slots.renew(row)

    def _queue(self, row: EngineRow, *, first: bool = False) -> None:
        """Queue a row, after inserting the tokens that close its thinking; they are computed like a prompt."""
        finish = put_closing(row, self._closing(row), self.version, self.stop_strings)
        if finish is None:
            self.admission.queue(row, first=first)
        else:
            self._end(row, finish)

    def _end(self, row: EngineRow, finish: Finish) -> None:
        """End a row without a slot, whose limit was reached by inserted tokens."""
        if row.state not in ("waiting", "parked"):
            self.rows.move(row, "waiting")
        if finish != "chunk":
            self.rows.move(row, "done")
        elif row.state != "parked":
            self.rows.move(row, "parked")
        self.ended.append(row.complete(finish))

    def _stop_at_nan(self, slots: np.ndarray) -> None:
        name = self.slots[int(slots[0])].request.id
        raise NotANumber(
            f"the model gave NaN for the next token of request {name}: its weights are damaged, or they "
            "overflow in this dtype; load another checkpoint, or set model.dtype"
        )
