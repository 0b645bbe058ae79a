"""The rollout engine: token ids in; ids, log-probabilities and policy versions out.

It runs the trainer's own model on a paged KV cache with continuous batching. Requests with equal prompts
share the prompt's pages and its forward pass. When pages run out the youngest row is put back and later
recomputed; since the noise is keyed by position, that changes no token. Knows neither text nor rewards.

    engine.add(request); while engine.busy: for completion in engine.step(): ...
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain

import numpy as np
import torch
from torch import Tensor

from foresail.engine.cache import DecodeAttention, KVCache, PrefillAttention
from foresail.engine.noise import uniforms
from foresail.engine.pages import PagePool
from foresail.engine.request import Completion, Request
from foresail.engine.sampling import sample
from foresail.engine.slots import Slots
from foresail.model.decoder import Decoder
from foresail.recipe import parts
from foresail.recipe.memory import kv_pages
from foresail.records import Finish, RunStopped


class NotANumber(RunStopped):
    """The model gave NaN, from which no token can be drawn."""


@dataclass
class Row:
    """A request on its way: its tokens so far, what was drawn of them, and the pages it owns."""

    request: Request
    context: tuple[int, ...]
    logprobs: list[float] = field(default_factory=list)
    versions: list[int] = field(default_factory=list)
    pages: list[int] = field(default_factory=list)

    def complete(self, finish: Finish) -> Completion:
        ids = list(self.context[len(self.request.prompt) :])
        return Completion(
            request=self.request, ids=ids, logprobs=self.logprobs, versions=self.versions, finish=finish
        )


@dataclass
class Prefix:
    """A context whose pages are filled, kept while rows wait for it; `logits_V` predict the next token."""

    pages: list[int]
    logits_V: Tensor | None = None


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
        self.cache = KVCache(model.shape, num_pages, page_size, model.dtype, model.device)
        self.slots = Slots(max_running, model.device)
        self.lengths_S = np.zeros(max_running, dtype=np.int64)  # the host's copy, read without a sync
        self.num_pages_S = np.zeros(max_running, dtype=np.int64)
        self.free_slots = list(range(max_running - 1, -1, -1))
        self.running: dict[int, Row] = {}  # slot -> row, oldest first
        self.waiting: deque[Row] = deque()
        self.wanted: Counter[tuple[int, ...]] = Counter()  # contexts of the waiting rows
        self.prefixes: dict[tuple[int, ...], Prefix] = {}
        self.num_truncating = 0  # running rows with top-k, top-p or min-p

    @property
    def busy(self) -> bool:
        return bool(self.running or self.waiting)

    def add(self, request: Request) -> None:
        longest = len(request.prompt) + request.sampling.max_new_tokens
        # One more: the half-filled last page of a prompt is held twice for a moment.
        pages = self._pages_for(longest) + 1
        if not request.prompt:
            raise ValueError(f"request {request.id} has an empty prompt; give it at least one token")
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
        self._wait(Row(request=request, context=request.prompt))

    def generate(self, requests: Iterable[Request]) -> Iterator[Completion]:
        """Add all, and yield completions as they end. Whoever stops listening cancels the rest."""
        added: list[str] = []
        try:
            for request in requests:
                self.add(request)
                added.append(request.id)
            while self.busy:
                yield from self.step()
        finally:
            for request_id in added:
                self.cancel(request_id)

    def cancel(self, request_id: str) -> Completion | None:
        """Stop a request; what it drew so far comes back. None if it is not here (any more)."""
        for slot, row in self.running.items():
            if row.request.id == request_id:
                self._unseat([slot])
                return row.complete("cancelled")
        for row in self.waiting:
            if row.request.id == request_id:
                self.waiting.remove(row)
                self._no_longer_wanted([row])
                return row.complete("cancelled")
        return None

    def weights_changed(self, version: int) -> None:
        """The model was updated in place: forget all keys and values; rows under way are recomputed."""
        self._put_back(list(self.running))
        self._drop_prefixes()
        self.version = version

    @torch.inference_mode()
    def step(self) -> list[Completion]:
        """Admit what fits, draw one token for every running row, return what ended."""
        self._make_room()
        logits = [self._decode()] if self.running else []
        logits += self._admit()
        if not self.running:
            return []
        slots = self._running_slots()
        rows_B = torch.from_numpy(slots).to(self.model.device)
        noise_B = uniforms(self.slots.keys_S[rows_B], self.slots.lengths_S[rows_B])
        settings = self.slots.settings[rows_B]
        tokens_B, logprobs_B = sample(torch.cat(logits), settings, noise_B, truncate=self.num_truncating > 0)
        ended_3B = self.slots.record(rows_B, tokens_B, logprobs_B)
        self.lengths_S[slots] += 1
        return self._finish(slots, ended_3B)

    # Forward passes.

    def _decode(self) -> Tensor:
        slots = self._running_slots()
        rows_B = torch.from_numpy(slots).to(self.model.device)
        lengths_B = self.slots.lengths_S[rows_B]
        width = self._pages_for(int(self.lengths_S[slots].max()))
        attend = DecodeAttention(self.cache, self.slots.tables_SP[rows_B, :width], lengths_B)
        return self.model.logits(self.model(self.slots.last_S[rows_B], lengths_B - 1, attend))

    def _prefill(self, contexts: list[tuple[int, ...]]) -> None:
        """Fill the pages of these contexts in one packed pass, and keep the logits after each."""
        device = self.model.device
        lengths = np.array([len(context) for context in contexts])
        starts = np.concatenate(([0], lengths.cumsum()))
        positions = np.arange(starts[-1]) - np.repeat(starts[:-1], lengths)
        pages = [np.repeat(self.prefixes[c].pages, self.page_size)[: len(c)] for c in contexts]
        places = np.concatenate(pages) * self.page_size + positions % self.page_size
        ids_T = torch.tensor(list(chain.from_iterable(contexts)), device=device)
        starts_S1 = torch.from_numpy(starts).to(device)
        attend = PrefillAttention(self.cache, starts_S1, torch.from_numpy(places).to(device))
        hidden_TD = self.model(ids_T, torch.from_numpy(positions).to(device), attend)
        for context, logits_V in zip(contexts, self.model.logits(hidden_TD[starts_S1[1:] - 1]), strict=True):
            self.prefixes[context].logits_V = logits_V

    # Who runs.

    def _admit(self) -> list[Tensor]:
        """Seat waiting rows while slots, pages and the prefill budget last; their next-token logits."""
        rows: list[Row] = []
        fresh: list[tuple[int, ...]] = []
        while self.waiting and len(rows) < len(self.free_slots):
            if not self._fits(self.waiting[0], rows, fresh):
                if rows or self.running or not self._drop_prefixes():
                    break
                continue
            row = self.waiting.popleft()
            if row.context not in self.prefixes:
                self.prefixes[row.context] = Prefix(pages=self.pool.take(self._pages_for(len(row.context))))
                fresh.append(row.context)
            self._fork(row)
            rows.append(row)
        if not rows:
            return []
        if fresh:
            self._prefill(fresh)
        self._copy_tails(rows)
        logits = torch.stack([self.prefixes[row.context].logits_V for row in rows])  # type: ignore[misc]
        self._seat(rows)
        self._no_longer_wanted(rows)
        return [logits]

    def _fits(self, row: Row, admitted: list[Row], fresh: list[tuple[int, ...]]) -> bool:
        length = len(row.context)
        known = row.context in self.prefixes
        need = (0 if known else self._pages_for(length)) + (length % self.page_size > 0)
        soon = len(self.running) + len(admitted)  # each of these may ask for a page before long
        within_budget = known or not fresh or length + sum(map(len, fresh)) <= self.prefill_tokens
        return within_budget and need + soon <= self.pool.num_free

    def _fork(self, row: Row) -> None:
        """Share the whole pages of the row's context; the last, half-filled one will be the row's own."""
        whole = len(row.context) // self.page_size
        shared = self.prefixes[row.context].pages[:whole]
        self.pool.share(shared)
        row.pages = shared + self.pool.take(int(len(row.context) % self.page_size > 0))

    def _copy_tails(self, rows: list[Row]) -> None:
        tails = [row for row in rows if len(row.context) % self.page_size]
        if tails:
            sources = [self.prefixes[row.context].pages[-1] for row in tails]
            self.cache.copy_pages(sources, [row.pages[-1] for row in tails])

    def _seat(self, rows: list[Row]) -> None:
        slots = [self.free_slots.pop() for _ in rows]
        lengths = [len(row.context) for row in rows]
        self.slots.seat(slots, [row.request for row in rows], lengths, [row.pages for row in rows])
        self.slots.reserve(max(row.request.sampling.max_new_tokens for row in rows))
        self.lengths_S[slots] = lengths
        self.num_pages_S[slots] = [len(row.pages) for row in rows]
        self.running.update(zip(slots, rows, strict=True))
        self.num_truncating += sum(row.request.sampling.truncates for row in rows)

    def _unseat(self, slots: list[int]) -> list[Row]:
        """Take rows out of their slots with all they drew there; their pages are free again."""
        rows = [self.running.pop(slot) for slot in slots]
        for row, (ids, logprobs) in zip(rows, self.slots.drawn(slots), strict=True):
            row.context += tuple(ids)
            row.logprobs += logprobs
            row.versions += [self.version] * len(ids)
            self.pool.release(row.pages)
            row.pages = []
        self.free_slots += slots
        self.num_truncating -= sum(row.request.sampling.truncates for row in rows)
        return rows

    def _finish(self, slots: np.ndarray, ended_3B: Tensor) -> list[Completion]:
        stopped, full, broken = ended_3B.cpu().numpy()
        if broken.any():
            name = self.running[int(slots[broken.argmax()])].request.id
            raise NotANumber(
                f"the model gave NaN for the next token of request {name}: its weights are damaged, or they "
                "overflow in this dtype; load another checkpoint, or set model.dtype"
            )
        ended = stopped | full
        if not ended.any():
            return []
        finishes: list[Finish] = ["stop" if stop else "length" for stop in stopped[ended]]
        rows = self._unseat(slots[ended].tolist())
        return [row.complete(finish) for row, finish in zip(rows, finishes, strict=True)]

    def _running_slots(self) -> np.ndarray:
        return np.fromiter(self.running, dtype=np.int64, count=len(self.running))

    # Pages.

    def _make_room(self) -> None:
        """Give every running row a page for the token it is about to cache, putting back the youngest."""
        while True:
            slots = self._running_slots()
            short = slots[self.lengths_S[slots] > self.num_pages_S[slots] * self.page_size].tolist()
            if len(short) <= self.pool.num_free:
                break
            if not self._drop_prefixes():
                self._put_back([next(reversed(self.running))])
        if short:
            pages = self.pool.take(len(short))
            self.slots.add_pages(short, self.num_pages_S[short].tolist(), pages)
            self.num_pages_S[short] += 1
            for slot, page in zip(short, pages, strict=True):
                self.running[slot].pages.append(page)

    def _put_back(self, slots: list[int]) -> None:
        for row in reversed(self._unseat(slots) if slots else []):
            self._wait(row, first=True)

    def _wait(self, row: Row, *, first: bool = False) -> None:
        self.waiting.insert(0 if first else len(self.waiting), row)
        self.wanted[row.context] += 1

    def _no_longer_wanted(self, rows: list[Row]) -> None:
        """These rows stopped waiting; a prefix nobody waits for any more gives its pages back."""
        for row in rows:
            self.wanted[row.context] -= 1
            if self.wanted[row.context] == 0:
                del self.wanted[row.context]
                if row.context in self.prefixes:
                    self.pool.release(self.prefixes.pop(row.context).pages)

    def _drop_prefixes(self) -> bool:
        """Give back what is only kept for rows that wait; they will compute it again."""
        for prefix in self.prefixes.values():
            self.pool.release(prefix.pages)
        dropped = bool(self.prefixes)
        self.prefixes.clear()
        return dropped

    def _pages_for(self, num_tokens: int) -> int:
        return -(-num_tokens // self.page_size)


def build_engine(model: Decoder, settings: parts.Engine, *, max_length: int) -> Engine:
    """An engine with the recipe's room, or room for all running rows at full length."""
    num_pages = kv_pages(settings, max_length)
    return Engine(model, num_pages=num_pages, page_size=settings.page_size, max_running=settings.max_running)
