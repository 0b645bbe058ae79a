"""The rollout engine: token ids in; ids, log-probabilities and policy versions out.

It runs the trainer's own model on a paged KV cache with continuous batching. A context is filled into the
cache up to its last token, in chunks that requests with equal prompts share; every token is then drawn by a
decode step, which takes the last token of each running row and whatever was drafted after it. When pages run
out the youngest row is put back, its keys and values on the host; since the noise is keyed by position, that
changes no token. Knows neither text nor rewards.

    engine.add(request); while engine.busy: for completion in engine.step(): ...

Here is who runs and which pages they own; `runner_cpu` and `runner_cuda` do the forward passes.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import takewhile

import numpy as np
import torch

from foresail.engine.advance import BROKEN, GOES_ON, STOPPED, Drawn
from foresail.engine.chunk import Chunk
from foresail.engine.entries import plan_entries
from foresail.engine.pages import PagePool, page_names
from foresail.engine.request import MAX_DRAFT, Completion, Draft, Parked, Request, SavedKV
from foresail.engine.runner import open_runner
from foresail.engine.table import MAX_STOPS, Table
from foresail.model.decoder import Decoder
from foresail.recipe import parts
from foresail.recipe.memory import kv_pages
from foresail.records import Finish, RunStopped


class NotANumber(RunStopped):
    """The model gave NaN, from which no token can be drawn."""


@dataclass
class Filling:
    """A prefix on its way into the cache, and how many rows wait to run from it."""

    prefix: tuple[int, ...]
    pages: list[int]
    filled: int
    num_rows: int = 0

    def is_full(self) -> bool:
        return self.filled == len(self.prefix)


@dataclass
class Row:
    """A request on its way: its tokens so far, what was drawn of them, and the pages it owns."""

    request: Request
    context: tuple[int, ...]
    chunk_tokens: int | None = None
    logprobs: list[float] = field(default_factory=list)
    versions: list[int] = field(default_factory=list)
    pages: list[int] = field(default_factory=list)
    filling: Filling | None = None
    saved: SavedKV | None = None

    @property
    def limit(self) -> int:
        """How many tokens it may draw from here on."""
        left = len(self.request.prompt) + self.request.sampling.max_new_tokens - len(self.context)
        return left if self.chunk_tokens is None else min(left, self.chunk_tokens)

    @property
    def drawn(self) -> list[int]:
        return list(self.context[len(self.request.prompt) :])

    def complete(self, finish: Finish, parked: Parked | None = None) -> Completion:
        return Completion(
            request=self.request,
            ids=self.drawn,
            logprobs=self.logprobs,
            versions=self.versions,
            finish=finish,
            parked=parked,
        )


@dataclass(frozen=True)
class Flight:
    """A decode step under way: whose it is, and where its outcome can be read."""

    slots_R: np.ndarray
    seats_R: np.ndarray
    roots_R: np.ndarray
    read: Callable[[], Drawn]


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
    ) -> None:
        self.model, self.page_size = model, page_size
        self.num_pages, self.prefill_tokens = num_pages, prefill_tokens
        self.version = 0
        self.pool = PagePool(num_pages)
        self.table = Table(max_running, self._pages_for(model.shape.max_context + MAX_DRAFT))
        self.runner = open_runner(model, self.table, num_pages=num_pages, page_size=page_size)
        self.free_slots = list(range(max_running - 1, -1, -1))
        self.waiting: deque[Row] = deque()
        self.entering: list[Row] = []  # they own pages and wait for their prefix to be filled
        self.filling: dict[tuple[int, ...], Filling] = {}  # by prefix, oldest first
        self.running: dict[int, Row] = {}  # slot -> row, oldest first
        self.flights: deque[Flight] = deque()
        self.done: list[Completion] = []

    @property
    def busy(self) -> bool:
        return bool(self.running or self.entering or self.waiting or self.done)

    def add(self, request: Request, *, chunk_tokens: int | None = None) -> None:
        """Queue a request. After `chunk_tokens` new tokens it comes back parked, as a completion by "chunk"."""
        self._check(request)
        self.waiting.append(Row(request=request, context=request.prompt, chunk_tokens=chunk_tokens))

    def resume(self, parked: Parked, *, chunk_tokens: int | None = None) -> None:
        """Go on with a request that was parked, here or in another engine of the same weights."""
        self._check(parked.request)
        fresh = parked.policy_version == self.version
        self.waiting.append(
            Row(
                request=parked.request,
                context=(*parked.request.prompt, *parked.ids),
                chunk_tokens=chunk_tokens,
                logprobs=list(parked.logprobs),
                versions=list(parked.versions),
                saved=parked.kv if fresh else None,
            )
        )

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
        """Stop a request; what it drew so far comes back. None if it is not here (any more)."""
        row = self._leave(request_id)
        return None if row is None else row.complete("cancelled")

    def park(self, request_id: str) -> Parked | None:
        """Take a request out, with its keys and values on the host. None if it is not here (any more)."""
        self._land()
        slot = self._slot_of(request_id)
        if slot is not None:
            self.running[slot].saved = self._save(slot)
        row = self._leave(request_id)
        return None if row is None else self._parked(row)

    def tokens(self, request_id: str) -> tuple[int, ...] | None:
        """Prompt and response of a running request as far as drawn: what a draft for it must continue."""
        self._land()
        slot = self._slot_of(request_id)
        return None if slot is None else (*self.running[slot].context, *self.table.drawn(slot)[0])

    def weights_changed(self, version: int) -> None:
        """The model was updated in place: forget all keys and values; rows under way are recomputed."""
        self._land()
        back = [*self._unseat([*self.running]), *self.entering]
        for row in self.entering:
            self._step_back(row)
        self.entering.clear()
        self.waiting.extendleft(reversed(back))
        for filling in self.filling.values():
            self.pool.release(filling.pages)
        self.filling.clear()
        for row in self.waiting:
            row.saved = None
        self.pool.forget()
        self.version = version

    def give_back_memory(self) -> None:
        """Free the cache for others, the trainer say; rows under way will be recomputed."""
        self.weights_changed(self.version)
        self.runner.give_back_memory()

    def take_memory(self) -> None:
        """Take the cache's memory again, at the same address."""
        self.runner.take_memory()

    @torch.inference_mode()
    def step(self, drafts: Mapping[str, Draft] | None = None) -> list[Completion]:
        """Admit what fits, draw at least one token for every running row, return what ended.

        `drafts` are guesses, by request id, at what follows `tokens(id)`; they change no token, only how many
        a step draws. Without them the device may be one step ahead of what is returned.
        """
        self._admit()
        guesses = self._by_slot(drafts) if drafts else {}
        self._make_room(guesses)
        launched = self._launch(guesses)
        self._land(self.runner.steps_ahead if launched and not guesses else 0)
        done, self.done = self.done, []
        return done

    # One decode step, from launch to landing.

    def _launch(self, guesses: Mapping[int, Draft]) -> bool:
        """Start a step for all rows that may draw another token; whether there were any."""
        slots_R = self._running_slots()
        slots_R = slots_R[self.table.left_S[slots_R] > 0]  # the others wait for their last token to land
        if not len(slots_R):
            return False
        block = plan_entries(slots_R, guesses)
        roots_R = np.flatnonzero(block[1] == 0)
        read = self.runner.decode(block)
        self.flights.append(Flight(slots_R, self.table.seats_S[slots_R], roots_R, read))
        self.table.lengths_S[slots_R] += 1
        self.table.left_S[slots_R] -= 1
        return True

    def _land(self, steps_ahead: int = 0) -> None:
        """Read the oldest steps until no more than so many are under way."""
        while len(self.flights) > steps_ahead:
            self._read(self.flights.popleft())
        if not self.running:
            self.flights.clear()  # of rows that are gone

    def _read(self, flight: Flight) -> None:
        drawn = flight.read()
        here_R = self.table.seats_S[flight.slots_R] == flight.seats_R  # else the row ended a step before
        slots_R, roots_R = flight.slots_R[here_R], flight.roots_R[here_R]
        if not len(slots_R):
            return
        counts_R, tokens_N, logprobs_N = drawn.kept(roots_R)
        self.table.record(slots_R, counts_R, tokens_N, logprobs_N)
        if counts_R.max() > 1:
            self._keep_paths(slots_R, roots_R, drawn)
            self.table.lengths_S[slots_R] += counts_R - 1
            self.table.left_S[slots_R] -= counts_R - 1
        ends_R = drawn.ends_E[roots_R]
        if (ends_R == BROKEN).any():
            self._stop_at_nan(slots_R[ends_R == BROKEN])
        for slot, end in zip(
            slots_R[ends_R != GOES_ON].tolist(), ends_R[ends_R != GOES_ON].tolist(), strict=True
        ):
            self._finish(slot, stopped=end == STOPPED)

    def _keep_paths(self, slots_R: np.ndarray, roots_R: np.ndarray, drawn: Drawn) -> None:
        """Where a path through a draft tree left out nodes, close the gaps in the cache."""
        sources, targets = [], []
        for slot, root in zip(slots_R.tolist(), roots_R.tolist(), strict=True):
            base = int(self.table.lengths_S[slot]) - 2  # lengths counts this step's first token already
            nodes = drawn.nodes_E[root : root + drawn.counts_E[root]].tolist()
            for depth, node in enumerate(nodes):
                if depth != node:
                    sources.append(self._place(slot, base + node))
                    targets.append(self._place(slot, base + depth))
        if sources:
            self.runner.cache.move(sources, targets)

    def _finish(self, slot: int, *, stopped: bool) -> None:
        row = self.running[slot]
        left = row.limit
        chunk_ended = row.chunk_tokens is not None and not stopped
        if chunk_ended:
            row.saved = self._save(slot)
        self._unseat([slot])
        whole = len(row.drawn) == row.request.sampling.max_new_tokens
        if stopped or whole:
            row.saved = None
            self.done.append(row.complete("stop" if stopped else "length"))
        else:
            assert left == row.chunk_tokens, "a row ends by a stop id, its limit or its chunk"
            self.done.append(row.complete("chunk", self._parked(row)))

    def _stop_at_nan(self, slots: np.ndarray) -> None:
        name = self.running[int(slots[0])].request.id
        raise NotANumber(
            f"the model gave NaN for the next token of request {name}: its weights are damaged, or they "
            "overflow in this dtype; load another checkpoint, or set model.dtype"
        )

    # Who runs.

    def _admit(self) -> None:
        """Let waiting rows in while slots and pages last, fill a chunk of their prefixes, seat who is ready."""
        while self.waiting and len(self.entering) < len(self.free_slots) and self._fits(self.waiting[0]):
            self._enter(self.waiting.popleft())
        if self.filling:
            self._fill()
        # Later prefixes may count on the pages of earlier ones, so they are ready in order.
        filled = {id(filling) for filling in takewhile(Filling.is_full, self.filling.values())}
        ready = [row for row in self.entering if row.filling is None or id(row.filling) in filled]
        if ready:
            self.entering = [row for row in self.entering if row.filling and id(row.filling) not in filled]
            self._seat(ready)

    def _fits(self, row: Row) -> bool:
        prefix = row.context[:-1]
        shared = row.saved is None and prefix in self.filling
        need = (0 if shared else self._pages_for(len(prefix))) + 1
        soon = len(self.running) + len(self.entering)  # each of these may ask for a page before long
        return need + soon <= self.pool.num_free

    def _enter(self, row: Row) -> None:
        """Give a row its pages: those of its prefix are shared, but the half-filled last one is its own."""
        prefix = row.context[:-1]
        if row.saved is not None:
            row.pages = self.pool.take(self._pages_for(len(prefix)))
            self.runner.cache.load(row.saved, row.pages)
            row.saved = None
        elif prefix:
            if prefix not in self.filling:
                self.filling[prefix] = self._begin_filling(prefix)
            row.filling = filling = self.filling[prefix]
            filling.num_rows += 1
            whole = filling.pages[: len(prefix) // self.page_size]
            self.pool.share(whole)
            row.pages = whole + self.pool.take(len(filling.pages) - len(whole))
        self.entering.append(row)

    def _begin_filling(self, prefix: tuple[int, ...]) -> Filling:
        """Find what is cached of a prefix already, and take pages for the rest.

        Its whole pages get their names at once: who comes later is filled later, or in the same pass.
        """
        names = page_names(prefix, self.page_size)
        known = self.pool.find(names)
        self.pool.share(known)
        pages = known + self.pool.take(self._pages_for(len(prefix)) - len(known))
        self.pool.remember(pages[: len(names)], names)
        return Filling(prefix=prefix, pages=pages, filled=len(known) * self.page_size)

    def _fill(self) -> None:
        """Compute the next tokens of the prefixes on their way, oldest first, up to the budget of a step."""
        chunks, budget = [], self.prefill_tokens
        for filling in self.filling.values():
            tokens = filling.prefix[filling.filled : filling.filled + budget]
            if tokens:
                chunks.append(Chunk(tokens=tokens, start=filling.filled, pages=filling.pages))
                filling.filled += len(tokens)
                budget -= len(tokens)
            if not budget:
                break
        if chunks:
            self.runner.fill(chunks)
        for filling in [filling for filling in self.filling.values() if filling.num_rows == 0]:
            self._drop_if_done(filling)  # all who wanted it were cancelled

    def _seat(self, rows: list[Row]) -> None:
        """From here on they are decoded."""
        self._copy_tails(rows)
        slots = [self.free_slots.pop() for _ in rows]
        for slot, row in zip(slots, rows, strict=True):
            self.table.seat(slot, row.request, row.context, row.pages, row.limit)
            self.running[slot] = row
            self._leave_filling(row)
        self.runner.seat(np.array(slots))

    def _copy_tails(self, rows: list[Row]) -> None:
        """The half-filled last page of a shared prefix becomes each row's own."""
        tails = [(row.filling.pages[-1], row.pages[-1]) for row in rows if row.filling is not None]
        tails = [(source, target) for source, target in tails if source != target]
        if tails:
            self.runner.cache.copy_pages(*map(list, zip(*tails, strict=True)))

    def _step_back(self, row: Row) -> None:
        """Out of the queue of those that enter, with no page left."""
        self.pool.release(row.pages)
        row.pages = []
        self._leave_filling(row)

    def _leave_filling(self, row: Row) -> None:
        if row.filling is not None:
            row.filling.num_rows -= 1
            self._drop_if_done(row.filling)
            row.filling = None

    def _drop_if_done(self, filling: Filling) -> None:
        """A prefix that is filled and that nobody waits for gives its pages back.

        One that is not yet filled stays until it is: others may count on its pages by their names.
        """
        if filling.num_rows == 0 and filling.is_full():
            self.pool.release(self.filling.pop(filling.prefix).pages)

    def _unseat(self, slots: list[int]) -> list[Row]:
        """Take rows out of their slots, with what they drew there."""
        rows = [self.running.pop(slot) for slot in slots]
        for slot, row in zip(slots, rows, strict=True):
            tokens, logprobs = self.table.drawn(slot)
            row.context += tuple(tokens)
            row.logprobs += logprobs
            row.versions += [self.version] * len(tokens)
            cached = len(row.context) - 1
            names = page_names(row.context[:cached], self.page_size)
            self.pool.remember(row.pages[: len(names)], names)
            self.pool.release(row.pages)
            row.pages = []
            self.table.seats_S[slot] += 1
        self.free_slots += slots
        return rows

    def _leave(self, request_id: str) -> Row | None:
        """Take a request out, wherever it stands."""
        slot = self._slot_of(request_id)
        if slot is not None:
            return self._unseat([slot])[0]
        for row in self.entering:
            if row.request.id == request_id:
                self.entering.remove(row)
                self._step_back(row)
                return row
        for row in self.waiting:
            if row.request.id == request_id:
                self.waiting.remove(row)
                return row
        return None

    def _parked(self, row: Row) -> Parked:
        return Parked(
            request=row.request,
            ids=row.drawn,
            logprobs=row.logprobs,
            versions=row.versions,
            policy_version=self.version,
            kv=row.saved,
        )

    def _running_slots(self) -> np.ndarray:
        return np.fromiter(self.running, dtype=np.int64, count=len(self.running))

    def _slot_of(self, request_id: str) -> int | None:
        return next((slot for slot, row in self.running.items() if row.request.id == request_id), None)

    def _by_slot(self, drafts: Mapping[str, Draft]) -> dict[int, Draft]:
        """Guesses of rows that run, cut to what each may still draw; none where they would drive out a row."""
        self._land()
        slots = {row.request.id: slot for slot, row in self.running.items()}
        known = ((slots[name], draft) for name, draft in drafts.items() if name in slots)
        cut = ((slot, draft.cut(int(self.table.left_S[slot]) - 1)) for slot, draft in known)
        guesses = {slot: draft for slot, draft in cut if draft.tokens}
        return guesses if len(self._short_of_pages(guesses)) <= self.pool.num_free else {}

    # Pages.

    def _make_room(self, guesses: Mapping[int, Draft]) -> None:
        """Give every running row pages for the tokens it is about to cache, putting back the youngest."""
        while True:
            short = self._short_of_pages(guesses)
            if len(short) <= self.pool.num_free:
                break
            self._land()  # some may end, and what they drew must be known before one is put back
            if len(self._short_of_pages(guesses)) > self.pool.num_free:
                self._put_back(next(reversed(self.running)))
        if len(short):
            pages = self.pool.take(len(short))
            self.runner.add_pages(short, self.table.add_pages(short, pages), pages)
            for slot, page in zip(short.tolist(), pages, strict=True):
                self.running[slot].pages.append(page)

    def _short_of_pages(self, guesses: Mapping[int, Draft]) -> np.ndarray:
        """Slots in ascending order, each as often as it lacks a page."""
        slots = np.sort(self._running_slots())
        slots = slots[self.table.left_S[slots] > 0]
        cached = self.table.lengths_S[slots]
        if guesses:
            cached = cached + [len(guesses[s].tokens) if s in guesses else 0 for s in slots.tolist()]
        missing = -(-cached // self.page_size) - self.table.num_pages_S[slots]
        return np.repeat(slots, np.maximum(missing, 0))

    def _put_back(self, slot: int) -> None:
        """Let a row wait again, first in the queue, with its keys and values on the host."""
        saved = self._save(slot)
        (row,) = self._unseat([slot])
        row.saved = saved
        self.waiting.appendleft(row)

    def _save(self, slot: int) -> SavedKV | None:
        """Keys and values of a row whose steps have all landed."""
        cached = int(self.table.lengths_S[slot]) - 1
        pages = self.running[slot].pages[: self._pages_for(cached)]
        return self.runner.cache.save(pages, cached) if pages else None

    def _place(self, slot: int, index: int) -> int:
        return self.running[slot].pages[index // self.page_size] * self.page_size + index % self.page_size

    def _pages_for(self, num_tokens: int) -> int:
        return -(-num_tokens // self.page_size)

    def _check(self, request: Request) -> None:
        """Refuse what could never run."""
        longest = len(request.prompt) + request.sampling.max_new_tokens
        # One more: the half-filled last page of a prompt is held twice for a moment.
        pages = self._pages_for(longest) + 1
        if not request.prompt:
            raise ValueError(f"request {request.id} has an empty prompt; give it at least one token")
        if len(request.stop_ids) > MAX_STOPS:
            raise ValueError(
                f"request {request.id} has {len(request.stop_ids)} stop ids; the most is {MAX_STOPS}"
            )
        if longest > self.model.shape.max_context:
            raise ValueError(
                f"request {request.id}: {len(request.prompt)} prompt tokens + "
                f"{request.sampling.max_new_tokens} new ones exceed the model's context of "
                f"{self.model.shape.max_context}; "
                "shorten the prompt or lower sampling.max_new_tokens"
            )
        if pages > self.num_pages:
            raise ValueError(
                f"request {request.id} needs {pages} KV pages and the engine has {self.num_pages}; "
                f"raise engine.kv_tokens to at least {pages * self.page_size}"
            )


def build_engine(model: Decoder, settings: parts.Engine, *, max_length: int) -> Engine:
    """An engine with the recipe's room, or room for all running rows at full length."""
    num_pages = kv_pages(settings, max_length)
    return Engine(model, num_pages=num_pages, page_size=settings.page_size, max_running=settings.max_running)
