"""The rollout engine: token ids in; ids, log-probabilities and policy versions out.

It runs the trainer's own model on a paged KV cache with continuous batching. A context is filled into the
cache up to its last token, in chunks that requests with equal prompts share; every token is then drawn by a
decode step, which takes the last token of each running row and whatever was drafted after it. When pages run
out the youngest row is put back, its keys and values on the host; since the noise is keyed by position, that
changes no token. Knows neither text nor rewards.

    engine.add(request); while engine.busy: for completion in engine.step(): ...

Here is who runs and which pages they own; `entrance` says who comes in, `runner_cpu` and `runner_cuda` do the
forward passes.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
import torch

from foresail.engine.advance import BROKEN, GOES_ON, STOPPED, Drawn
from foresail.engine.entrance import Entrance
from foresail.engine.entries import plan_entries
from foresail.engine.guesses import Guesses
from foresail.engine.pages import PagePool, count_pages, page_names
from foresail.engine.request import MAX_DRAFT, Completion, Draft, Parked, Request, SavedKV, check
from foresail.engine.row import Row, unpark
from foresail.engine.runner import open_runner
from foresail.engine.table import Table
from foresail.model.decoder import Decoder
from foresail.recipe import parts
from foresail.recipe.memory import kv_pages
from foresail.records import RunStopped


class NotANumber(RunStopped):
    """The model gave NaN, from which no token can be drawn."""


@dataclass(frozen=True)
class Flight:
    """A decode step under way: whose it is, and where its outcome can be read."""

    slots_R: np.ndarray
    seats_R: np.ndarray
    roots_R: np.ndarray
    drafted: bool
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
        fp8_kv: bool = False,
        batch_invariant: bool = False,
    ) -> None:
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
        )
        self.entrance = Entrance(self.runner, self.pool, page_size, prefill_tokens)
        self.free_slots = list(range(max_running - 1, -1, -1))
        self.running: dict[int, Row] = {}  # slot -> row, oldest first
        self.slots: dict[str, list[int]] = {}  # request id -> slots of the running rows with that id
        self.resting: dict[str, int] = {}  # request id -> slot of a row whose chunk has ended
        self.overdue: list[str] = []  # requests whose chunk's end was told by the last step
        self.parked: dict[str, Parked] = {}  # rows that rested and were not asked to go on before the next
        self.renewed: list[int] = []  # slots of rows that rested and go on
        self.flights: deque[Flight] = deque()
        self.guessed = False  # whether the last step took its guesses
        self.done: list[Completion] = []

    @property
    def busy(self) -> bool:
        return bool(len(self.running) > len(self.resting) or self.entrance or self.done)

    def add(self, request: Request, *, chunk_tokens: int | None = None) -> None:
        """Queue a request. After `chunk_tokens` new tokens there is a completion by "chunk", and the row rests.

        Until the next step it keeps its place, and `go_on` costs nothing; `park` takes it out, then or later.
        """
        check(request, self.model.shape, self.num_pages, self.page_size)
        self.entrance.queue(Row(request=request, context=request.prompt, chunk_tokens=chunk_tokens))

    def resume(self, parked: Parked, *, chunk_tokens: int | None = None) -> None:
        """Go on with a request that was parked, here or in another engine of the same weights."""
        check(parked.request, self.model.shape, self.num_pages, self.page_size)
        self.entrance.queue(unpark(parked, self.version, chunk_tokens))

    def holds(self, request_id: str) -> bool:
        """Whether `go_on` can be said to a request."""
        return request_id in self.resting or request_id in self.parked

    def go_on(self, request_id: str, *, chunk_tokens: int | None = None) -> None:
        """Let a row that rests draw on."""
        if request_id in self.parked:
            self.resume(self.parked.pop(request_id), chunk_tokens=chunk_tokens)
            return
        slot = self.resting.pop(request_id)
        row, drawn = self.running[slot], int(self.table.drawn_S[slot])
        row.chunk_tokens = None if chunk_tokens is None else drawn + chunk_tokens
        self.table.renew(slot, row.limit - drawn)
        self.renewed.append(slot)

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
        parked = self.parked.pop(request_id, None)
        row = self._leave(request_id) if parked is None else unpark(parked, self.version, None)
        self._drop_news(request_id)
        return None if row is None else row.complete("cancelled")

    def park(self, request_id: str) -> Parked | None:
        """Take a request out, with its keys and values on the host. None if it is not here (any more)."""
        if request_id not in self.resting:  # of who rests, all is known
            self.land()
        parked = self.parked.pop(request_id, None) or self._take_out(request_id)
        self._drop_news(request_id)
        return parked

    def tokens(self, request_id: str) -> tuple[int, ...] | None:
        """Prompt and response of a running request as far as drawn: what a draft for it must continue."""
        self.land()
        slot = self._slot_of(request_id)
        return None if slot is None else (*self.running[slot].context, *self.table.drawn(slot)[0])

    def weights_changed(self, version: int) -> None:
        """The model was updated in place: forget all keys and values; rows under way are recomputed."""
        self.land()
        self._set_aside(self.resting)
        self.parked = {name: parked.without_kv() for name, parked in self.parked.items()}
        for row in [*self._unseat([*self.running]), *self.entrance.clear()]:
            row.saved = None
            self.entrance.queue(row)
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

    def guess(self, drafts: Mapping[str, Draft]) -> Guesses:
        """Drafts by request id, each of what follows `tokens(id)`; without those of requests that do not run."""
        self.land()
        return Guesses.of(
            {self.slots[name][0]: draft for name, draft in drafts.items() if name in self.slots}
        )

    @torch.inference_mode()
    def step(self, guesses: Guesses | None = None) -> list[Completion]:
        """Admit what fits, draw at least one token for every running row, return what ended.

        Guesses change no token, only how many a step draws. The device may be one step ahead of what is returned.
        """
        if guesses is not None or any(flight.drafted for flight in self.flights):
            self.land()  # how far rows got must be known, to guess on and to give out pages
        self._set_aside(self.overdue)
        if self.renewed:
            self.runner.seat(np.array(self.renewed))
            self.renewed = []
        self._seat(self.entrance.admit(free_slots=len(self.free_slots), running=len(self.running)))
        guesses = None if guesses is None else self._usable(guesses)
        self.guessed = guesses is not None
        self._make_room(guesses)
        launched = self._launch(guesses)
        self.land(self.runner.steps_ahead if launched else 0)
        done, self.done = self.done, []
        self.overdue = [completion.request.id for completion in done if completion.finish == "chunk"]
        return done

    # One decode step, from launch to landing.

    def _usable(self, guesses: Guesses) -> Guesses | None:
        """Cut to what each row may still draw; none where they would drive out a row.

        Where the runner cannot take a tree, that row goes without.
        """
        guesses = guesses.cut(self.table.left_S[guesses.slots_R] - 1)
        if not self.runner.takes_trees:
            guesses = guesses.only(guesses.paths_R)
        if not guesses.sizes_R.any():
            return None
        short = len(self._short_of_pages(guesses))
        if short > self.pool.num_free:
            self.entrance.prefixes.spare()
        return guesses if short <= self.pool.num_free else None

    def _launch(self, guesses: Guesses | None) -> bool:
        """Start a step for all rows that may draw another token; whether there were any."""
        slots_R = self._running_slots()
        slots_R = slots_R[self.table.left_S[slots_R] > 0]  # the others wait for their last token to land
        if not len(slots_R):
            return False
        # Siblings side by side: what they share is then read once.
        slots_R = slots_R[np.argsort(self.table.groups_S[slots_R], kind="stable")]
        block = plan_entries(slots_R, guesses)
        roots_R = np.flatnonzero(block[1] == 0)
        read = self.runner.decode(block)
        self.flights.append(Flight(slots_R, self.table.seats_S[slots_R], roots_R, guesses is not None, read))
        self.table.lengths_S[slots_R] += 1
        self.table.left_S[slots_R] -= 1
        return True

    def land(self, steps_ahead: int = 0) -> None:
        """Read the oldest steps until no more than so many are under way; guesses can only follow what is read."""
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
        counts_R = drawn.counts_E[roots_R].astype(np.int64)
        places_N, within_N = drawn.places(roots_R)
        self.table.record(slots_R, counts_R, drawn.tokens_E[places_N], drawn.logprobs_E[places_N])
        if len(places_N) > len(slots_R):
            self._close_gaps(np.repeat(slots_R, counts_R), within_N, drawn.nodes_E[places_N])
            self.table.lengths_S[slots_R] += counts_R - 1
            self.table.left_S[slots_R] -= counts_R - 1
        ends_R = drawn.ends_E[roots_R]
        if (ends_R == BROKEN).any():
            self._stop_at_nan(slots_R[ends_R == BROKEN])
        for row in np.flatnonzero(ends_R != GOES_ON):
            self._finish(int(slots_R[row]), stopped=ends_R[row] == STOPPED)

    def _close_gaps(self, slots_N: np.ndarray, depths_N: np.ndarray, nodes_N: np.ndarray) -> None:
        """Where a path through a draft tree left out nodes, its keys and values move up."""
        gap_N = nodes_N != depths_N
        if gap_N.any():
            slots = slots_N[gap_N]
            bases = self.table.lengths_S[slots] - 2  # the launch has counted this step's first token already
            sources = self._places(slots, bases + nodes_N[gap_N])
            targets = self._places(slots, bases + depths_N[gap_N])
            self.runner.cache.move(sources.tolist(), targets.tolist())

    def _finish(self, slot: int, *, stopped: bool) -> None:
        """Of a row that met no stop id and has not drawn all it may, only a chunk has ended."""
        row = self.running[slot]
        drawn = len(row.drawn) + int(self.table.drawn_S[slot])
        chunk_ended = not stopped and drawn < row.request.sampling.max_new_tokens
        if chunk_ended:
            self.resting[row.request.id] = slot
            so_far = replace(row)
            so_far.draw(*self.table.drawn(slot), self.version)
            self.done.append(so_far.complete("chunk"))
        else:
            self._unseat([slot])
            self.done.append(row.complete("stop" if stopped else "length"))

    def _stop_at_nan(self, slots: np.ndarray) -> None:
        name = self.running[int(slots[0])].request.id
        raise NotANumber(
            f"the model gave NaN for the next token of request {name}: its weights are damaged, or they "
            "overflow in this dtype; load another checkpoint, or set model.dtype"
        )

    # Who runs.

    def _seat(self, rows: list[Row]) -> None:
        """From here on they are decoded."""
        if not rows:
            return
        slots = [self.free_slots.pop() for _ in rows]
        for slot, row in zip(slots, rows, strict=True):
            self.table.seat(slot, row.request, row.context, row.pages, row.limit)
            if row.filling is not None:
                whole_pages = len(row.filling.prefix) // self.page_size
                self.table.join(slot, row.filling.number, whole_pages * self.page_size)
            self.running[slot] = row
            self.slots.setdefault(row.request.id, []).append(slot)
            self.entrance.stop_waiting(row)
        self.runner.seat(np.array(slots))

    def _unseat(self, slots: list[int]) -> list[Row]:
        """Take rows out of their slots, with what they drew there."""
        rows = [self.running.pop(slot) for slot in slots]
        for slot, row in zip(slots, rows, strict=True):
            row.draw(*self.table.drawn(slot), self.version)
            cached = len(row.context) - 1
            names = page_names(row.context[:cached], self.page_size, self.pool.names(row.pages))
            self.pool.remember(row.pages[: len(names)], names)
            self.pool.release(row.pages)
            row.pages = []
            self.table.seats_S[slot] += 1
            self._forget_slot(row.request.id, slot)
        self.free_slots += slots
        return rows

    def _leave(self, request_id: str) -> Row | None:
        """Take a request out, wherever it stands."""
        self.resting.pop(request_id, None)
        slot = self._slot_of(request_id)
        return self.entrance.leave(request_id) if slot is None else self._unseat([slot])[0]

    def _set_aside(self, requests: Iterable[str]) -> None:
        """Those of them that rest give their places to others."""
        for request_id in [name for name in requests if name in self.resting]:
            parked = self._take_out(request_id)
            assert parked is not None, "who rests is here"
            self.parked[request_id] = parked

    def _take_out(self, request_id: str) -> Parked | None:
        slot = self._slot_of(request_id)
        if slot is not None:
            self.running[slot].saved = self._save(slot)
        row = self._leave(request_id)
        return None if row is None else row.park(self.version)

    def _drop_news(self, request_id: str) -> None:
        """That a chunk has ended concerns nobody when the request has been taken out since."""
        self.done = [done for done in self.done if (done.request.id, done.finish) != (request_id, "chunk")]

    def _running_slots(self) -> np.ndarray:
        return np.fromiter(self.running, dtype=np.int64, count=len(self.running))

    def _slot_of(self, request_id: str) -> int | None:
        slots = self.slots.get(request_id)
        return None if slots is None else slots[0]

    def _forget_slot(self, request_id: str, slot: int) -> None:
        self.slots[request_id].remove(slot)
        if not self.slots[request_id]:
            del self.slots[request_id]

    # Pages.

    def _make_room(self, guesses: Guesses | None) -> None:
        """Give every running row pages for the tokens it is about to cache, putting back the youngest."""
        while True:
            short = self._short_of_pages(guesses)
            if len(short) <= self.pool.num_free:
                break
            self.land()  # some may end, and what they drew must be known before one is put back
            if len(self._short_of_pages(guesses)) > self.pool.num_free and not self.entrance.prefixes.spare():
                self._make_way(next(reversed(self.running)))
        if len(short):
            pages = self.pool.take(len(short))
            self.runner.add_pages(short, self.table.add_pages(short, pages), pages)
            for slot, page in zip(short.tolist(), pages, strict=True):
                self.running[slot].pages.append(page)

    def _short_of_pages(self, guesses: Guesses | None) -> np.ndarray:
        """Slots in ascending order, each as often as it lacks a page."""
        slots = np.sort(self._running_slots())
        slots = slots[self.table.left_S[slots] > 0]
        cached = self.table.lengths_S[slots]
        if guesses is not None:
            cached = cached + guesses.sizes_of(slots)
        missing = -(-cached // self.page_size) - self.table.num_pages_S[slots]
        return np.repeat(slots, np.maximum(missing, 0))

    def _make_way(self, slot: int) -> None:
        """For others: who rests is parked, who runs waits again."""
        name = self.running[slot].request.id
        if name in self.resting:
            self._set_aside([name])
        else:
            self._put_back(slot)

    def _put_back(self, slot: int) -> None:
        """Let a row wait again, first in the queue, with its keys and values on the host if they fit there."""
        most = self.num_pages * self.page_size  # as much as the device has
        fits = self.entrance.tokens_on_host + self.table.lengths_S[slot] <= most
        saved = self._save(slot) if fits else None
        (row,) = self._unseat([slot])
        row.saved = saved
        self.entrance.queue(row, first=True)

    def _save(self, slot: int) -> SavedKV | None:
        """Keys and values of a row whose steps have all landed."""
        cached = int(self.table.lengths_S[slot]) - 1
        pages = self.running[slot].pages[: count_pages(cached, self.page_size)]
        return self.runner.cache.save(pages, cached) if pages else None

    def _places(self, slots: np.ndarray, indexes: np.ndarray) -> np.ndarray:
        pages = self.table.pages_SP[slots, indexes // self.page_size].astype(np.int64)
        return pages * self.page_size + indexes % self.page_size


def build_engine(model: Decoder, settings: parts.Engine, *, max_length: int) -> Engine:
    """An engine with the recipe's room, or room for all running rows at full length."""
    return Engine(
        model,
        num_pages=kv_pages(settings, max_length),
        page_size=settings.page_size,
        max_running=settings.max_running,
        prefill_tokens=settings.prefill_tokens,
        fp8_kv=settings.kv_dtype == "fp8",
        batch_invariant=settings.batch_invariant,
    )
