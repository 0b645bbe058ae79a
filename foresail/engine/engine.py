"""The rollout engine: token ids in; ids, log-probabilities and policy versions out.

It runs the trainer's own model on a paged KV cache with continuous batching. A context is filled into the
cache up to its last token, in chunks that requests with equal prompts share; every token is then sampled by a
decode step, which takes the last token of each running row and whatever was drafted after it. When pages run
out the youngest row is preempted, its keys and values saved on the host; since the noise is keyed by position,
that changes no token. Knows neither text nor rewards.

    engine.add(request); while engine.busy: for completion in engine.step(): ...

This file schedules the steps; `row` has the states of a row, `admission` says who comes in, `slots` who has a slot
and which pages, `runner_cpu` and `runner_cuda` do the forward passes.
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
    """The model gave NaN, from which no token can be sampled."""


@dataclass(frozen=True)
class PendingStep:
    """A decode step that was launched: its rows, their first entries, and how to read what they sampled.

    The table counts the token of a plain step when it is launched, those of a step with drafts when it is read.
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
        completions have the experts of all tokens in their `side`, but for the last one, which was only sampled.
        `mtp`: the model's MTP layers follow every step, so that they can draft.
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
        self.took_drafts = False  # whether the last step checked the drafts it was given
        self.ended: list[Completion] = []  # for the next step to return

    @property
    def busy(self) -> bool:
        count = self.rows.count
        return bool(count["waiting"] or count["filling"] or count["running"] or self.ended)

    def add(self, request: Request, *, chunk_tokens: int | None = None) -> None:
        """Queue a request. After `chunk_tokens` new tokens there is a completion by "chunk", and the row rests.

        Until the next step it keeps its slot, and `go_on` costs nothing; `park` takes it out, then or later.
        """
        self._add(EngineRow(request=request, context=request.prompt, chunk_tokens=chunk_tokens))

    def resume(self, parked: Parked, *, chunk_tokens: int | None = None) -> None:
        """Go on with a request that was parked, here or in another engine of the same weights."""
        self._add(EngineRow.of(parked, self.version, chunk_tokens))

    def _add(self, row: EngineRow) -> None:
        check(row.request, self.model.shape, self.num_pages, self.page_size)
        self.stop_strings.state(row.request.sampling.stop, ())  # refused here, if they cannot be found
        check_closing(row.request, self.stop_strings.vocabulary)
        self.rows.add(row)
        self._queue(row)

    def holds(self, request_id: str) -> bool:
        """Whether `go_on` can be said to a request."""
        return self.rows.find(request_id, "resting", "parked") is not None

    def go_on(self, request_id: str, *, chunk_tokens: int | None = None) -> None:
        """Begin the next chunk of a request: in its slot, if no step was taken since the last chunk ended."""
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
        """Add all, and yield completions as they end. Whoever stops listening cancels the rest."""
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
        """Stop a request; what it sampled so far comes back. None if it is not here (any more)."""
        row = self.rows.find(request_id)
        return None if row is None else self._remove(row).complete("cancelled")

    def park(self, request_id: str) -> Parked | None:
        """Take a request out, with its keys and values on the host. None if it is not here (any more)."""
        if self.rows.find(request_id, "resting") is None:  # of a row that rests all is known
            self.read_pending()
        row = self.rows.find(request_id)
        if row is None:
            return None
        if row.slot != NO_SLOT:
            row.saved = self.slots.save(row)
        return self._remove(row).park(self.version)

    def _remove(self, row: EngineRow) -> EngineRow:
        """Take a row out, whatever its state. That its chunk has ended concerns nobody any more."""
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
        """Prompt and response of a running request as far as sampled: what a draft for it must continue."""
        self.read_pending()
        row = self.rows.find(request_id, "running", "resting")
        return None if row is None else (*row.context, *self.table.sampled(row.slot)[0])

    def sampled(self, request_id: str, first: int = 0) -> tuple[list[int], list[float]]:
        """Tokens of a request's response from the `first` on, as far as steps are read, and log-probabilities."""
        row = self.rows.find(request_id)
        if row is None:
            return [], []
        ids, logprobs = row.context[len(row.request.prompt) + first :], row.logprobs[first:]
        if row.slot == NO_SLOT:
            return [*ids], [*logprobs]
        new_ids, new_logprobs = self.table.sampled(row.slot, max(0, first - len(row.logprobs)))
        return [*ids, *new_ids], [*logprobs, *new_logprobs]

    def weights_changed(self, version: int) -> None:
        """The model was updated in place: forget all keys and values; rows under way are recomputed."""
        self.read_pending()
        under_way = self.slots.clear() + self.admission.clear()
        for row in self.rows:
            row.saved = None
        for row in under_way:
            self.admission.queue(row)
        self.pool.forget()
        self.version = version

    def give_back_memory(self) -> None:
        """Free the cache for others, the trainer say; rows under way will be recomputed."""
        self.weights_changed(self.version)
        self.runner.give_back_memory()

    def take_memory(self) -> None:
        """Take the cache's memory again, at the same address."""
        self.runner.take_memory()

    @property
    def cache_bytes(self) -> int:
        """Of the device's memory, beside what PyTorch allocates, while the engine is at work."""
        return self.runner.cache_bytes

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """The cache has its memory inside; afterwards the trainer has it."""
        self.take_memory()
        try:
            yield
        finally:
            self.give_back_memory()

    def drafts_by_slot(self, drafts: Mapping[str, Draft]) -> Drafts:
        """Drafts by request id, each of what follows `tokens(id)`; without those of requests that have no slot."""
        self.read_pending()
        rows = {name: self.rows.find(name, "running", "resting") for name in drafts}
        return Drafts.of({row.slot: drafts[name] for name, row in rows.items() if row is not None})

    def ask_for_drafts(self, enabled: bool = True) -> None:
        """Whether MTP layers say, with every step from now on, what they think comes next; see `mtp_drafts`."""
        assert self.own_drafts is not None or not enabled, "an engine without MTP layers"
        self.runner.propose = enabled

    def mtp_drafts(self) -> Drafts:
        """What MTP layers think that rows sample in the next step; none for rows they were not asked about."""
        assert self.own_drafts is not None, "an engine without MTP layers"
        self.read_pending()
        return self.own_drafts.of(self.slots.numbers(), self.table)

    def unread_drafts(self) -> Drafts:
        """The same, whatever it is, of all rows: a step that checks it need not wait for the last to be read."""
        assert self.own_drafts is not None, "an engine without MTP layers"
        return Drafts.unread(self.slots.numbers(), self.own_drafts.num_layers)

    @torch.inference_mode()
    def step(self, drafts: Drafts | None = None) -> list[Completion]:
        """Admit what fits, sample at least one token for every running row, return what ended.

        Drafts change no token, only how many a step samples. The device may be one step ahead of what is returned.
        """
        if drafts is not None and not drafts.is_unread:
            self.read_pending()  # they continue what is known
        self.slots.park_resting(untold={end.request.id for end in self.ended})
        ready = self.admission.admit(free_slots=len(self.slots.empty), running=len(self.slots))
        self.slots.assign(ready, self.version)
        self.slots.tell_runner()
        drafts = None if drafts is None else self._usable(drafts)
        self.took_drafts = drafts is not None
        if drafts is None and any(step.longest_draft for step in self.pending):
            self.read_pending()  # the table must know how far rows got
        self._add_pages(drafts)
        self.slots.tell_runner()  # rows may have passed their thinking budget meanwhile
        launched = self._launch(drafts)
        self.read_pending(self.runner.steps_ahead if launched else 0)
        ended, self.ended = self.ended, []
        return ended

    # One decode step, from launch to reading what it sampled.

    def _usable(self, drafts: Drafts) -> Drafts | None:
        """Cut to what each row may still sample; none where their pages would drive out a row."""
        drafts = drafts.cut(self.table.left_S[drafts.slots_R] - 1)
        if not drafts.sizes_R.any():
            return None
        return drafts if self.slots.have_pages(drafts, self._unread_tokens()) else None

    def _add_pages(self, drafts: Drafts | None) -> None:
        """Give every running row pages for the tokens it is about to cache; the youngest makes way for others."""
        while not self.slots.add_pages(drafts, self._unread_tokens()):
            if self.pending:
                self.read_pending()  # some may end, and what they sampled must be known before one is preempted
            else:
                self.slots.make_room()

    def _unread_tokens(self) -> int:
        """How many tokens, at most, a row has sampled in steps with drafts that are not read."""
        return sum(step.longest_draft + 1 for step in self.pending if step.longest_draft)

    def _launch(self, drafts: Drafts | None) -> bool:
        """Start a step for all rows that may sample another token; whether there were any."""
        slots_R = self.slots.numbers()
        slots_R = slots_R[self.table.left_S[slots_R] > 0]  # the others wait for their last token to be read
        if not len(slots_R):
            return False
        # Siblings side by side: what they share is then read once.
        slots_R = slots_R[np.argsort(self.table.groups_S[slots_R], kind="stable")]
        block = plan_entries(slots_R, drafts)
        firsts_R = np.flatnonzero(block[1] == 0)
        longest_draft, read = int(block[1].max()), self.runner.decode(block)
        self.pending.append(PendingStep(slots_R, self.table.reuses_S[slots_R], firsts_R, longest_draft, read))
        if not longest_draft:
            self.table.move(slots_R, 1)
        return True

    def read_pending(self, steps_ahead: int = 0) -> None:
        """Read the oldest steps until no more than so many are pending; drafts can only follow what is read."""
        while len(self.pending) > steps_ahead:
            self._read(self.pending.popleft())
        if not self.slots:
            self.pending.clear()  # of rows that are gone

    def _read(self, step: PendingStep) -> None:
        sampled = step.read()
        # else the row ended a step before, or had sampled all it may
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
        """Of a row that met no stop id or string and has not sampled all it may, only a chunk has ended."""
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
        """What is to be put behind a row's tokens, before it may sample another one."""
        if row.request.sampling.thinking_budget is None:
            return ()
        sampled = self.table.sampled(row.slot)[0] if row.slot != NO_SLOT else []
        return closing_due(row.request, (*row.context, *sampled), self.stop_strings.vocabulary)

    def _pass_budget(self, row: EngineRow) -> None:
        """A running row has reached it: its thinking is closed, or it goes on in its slot."""
        if self._closing(row):
            self.slots.free(row)
            self._queue(row, first=True)
        else:
            self.slots.renew(row)

    def _queue(self, row: EngineRow, *, first: bool = False) -> None:
        """Wait for a slot, with what closes its thinking put in: it is computed as a prompt is."""
        finish = put_closing(row, self._closing(row), self.version, self.stop_strings)
        if finish is None:
            self.admission.queue(row, first=first)
        else:
            self._end(row, finish)

    def _end(self, row: EngineRow, finish: Finish) -> None:
        """Of a row without a slot, all of whose room was taken by what was put in."""
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
