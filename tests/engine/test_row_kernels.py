"""Entries find their place, and rows move on by the drafts that came true, as a walk in plain Python says.

Without a GPU the kernels run in Triton's interpreter.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field

import pytest
import torch
import triton_interpreter  # noqa: F401
from torch import Tensor

from foresail.engine.drafts import MAX_DRAFT, UNREAD
from foresail.engine.entries import Entries
from foresail.engine.kernels.rows import advance, locate

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
SLOTS = 9  # the last one is scratch
MAX_ENTRIES = 1 + MAX_DRAFT
VOCABULARY = 5  # few, so that drafts often come true


@dataclass
class Batch:
    """Entries as lists, and what the model is said to have drawn at each."""

    slots: list[int] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)
    drafts: list[int] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)

    def add(self, slot: int, drafts: list[int], tokens: list[int]) -> None:
        self.logprobs += [-0.25 * (1 + len(self.logprobs) + offset) for offset in range(len(tokens))]
        self.slots += [slot] * len(tokens)
        self.offsets += range(len(tokens))
        self.drafts += drafts
        self.tokens += tokens

    def entries(self) -> Entries:
        columns = (self.slots, self.offsets, self.drafts)
        return Entries(*torch.tensor(columns, dtype=torch.int32, device=DEVICE))


@dataclass
class State:
    last: list[int]
    lengths: list[int]
    limits: list[int]
    stops: list[list[int]]


def make_state(limit: int = 100, stops: tuple[int, ...] = ()) -> State:
    return State(
        last=[100 + slot for slot in range(SLOTS)],
        lengths=[3 + 5 * slot for slot in range(SLOTS - 1)] + [1],
        limits=[limit] * SLOTS,
        stops=[[*stops, -1] for _ in range(SLOTS)],
    )


def random_batch(random: random.Random, rows: int, padding: int) -> Batch:
    """Drafts of all lengths; most tokens that are drawn were drafted next."""
    batch = Batch()
    for slot in random.sample(range(SLOTS - 1), rows):
        drafts = [-7, *random.choices(range(VOCABULARY), k=random.choice((0, 1, 4, 16, 16)))]
        tokens = [
            draft if random.random() < 0.8 else random.randrange(VOCABULARY) for draft in (*drafts[1:], 0)
        ]
        batch.add(slot, drafts, tokens)
    for _ in range(padding):
        batch.add(SLOTS - 1, [0], [random.randrange(VOCABULARY)])
    return batch


def run(batch: Batch, state: State) -> tuple[list[list[int]], State]:
    def numbers(values: list) -> Tensor:
        return torch.tensor(values, device=DEVICE)

    last, lengths, limits = numbers(state.last), numbers(state.lengths), numbers(state.limits)
    drawn = advance(
        last,
        lengths,
        limits,
        numbers(state.stops),
        batch.entries(),
        numbers(batch.drafts),
        numbers(batch.tokens),
        numbers(batch.logprobs).float(),
    )
    assert drawn.dtype == torch.int32
    moved = State(last.tolist(), lengths.tolist(), limits.tolist(), state.stops)
    return drawn.tolist(), moved


def walk(batch: Batch, state: State) -> tuple[list[list[int]], State]:
    """What `advance` must give, token by token."""
    drawn = [[0] * len(batch.slots) for _ in range(4)]
    last, lengths, limits = [*state.last], [*state.lengths], [*state.limits]
    for first, slot in enumerate(batch.slots):
        if batch.offsets[first] or slot == SLOTS - 1 or state.limits[slot] <= 0:
            continue
        count, ending, stands = 0, 0, True
        while stands:
            entry = first + count
            token, logprob = batch.tokens[entry], batch.logprobs[entry]
            drawn[0][entry], drawn[1][entry] = token, bits(logprob)
            count += 1
            if math.isnan(logprob):
                ending = 3
            elif token in state.stops[slot]:
                ending = 1
            elif count >= state.limits[slot]:
                ending = 2
            is_next = entry + 1 < len(batch.slots) and batch.offsets[entry + 1] > 0
            stands = is_next and not ending and batch.drafts[entry + 1] == token
        drawn[2][first], drawn[3][first] = count, ending
        last[slot] = token
        lengths[slot] += count
        limits[slot] -= count
    return drawn, State(last, lengths, limits, state.stops)


def bits(number: float) -> int:
    return torch.tensor(number, dtype=torch.float32).view(torch.int32).item()


def test_random_drafts_advance_as_the_walk_does():
    chance = random.Random(0)
    counts, endings = [], []
    for trial in range(24):
        batch = random_batch(chance, rows=chance.randrange(1, SLOTS - 1), padding=trial % 3)
        stops = ((), (3,), (1, 4))[trial % 3]
        state = make_state(stops=stops)
        state.limits = [chance.choice((0, 1, 3, 100, 100)) for _ in range(SLOTS)]
        if trial % 4 == 0:
            for entry in chance.sample(range(len(batch.logprobs)), 1 + len(batch.logprobs) // 8):
                batch.logprobs[entry] = math.nan
        found, expected = run(batch, state), walk(batch, state)
        assert found == expected
        counts += [count for count in found[0][2] if count]
        endings += [how for count, how in zip(*found[0][2:], strict=True) if count]
    assert max(counts) > 5 and set(endings) == {0, 1, 2, 3}  # the trials saw what they were made to see


def test_plain_rows_draw_one_token_each():
    batch = Batch()
    for slot in (4, 0, 7):
        batch.add(slot, [slot + 20], [slot + 10])
    drawn, state = run(batch, make_state())
    assert drawn == [[14, 10, 17], [bits(x) for x in batch.logprobs], [1, 1, 1], [0, 0, 0]]
    assert state.last == [10, 101, 102, 103, 14, 105, 106, 17, 108]
    assert state.lengths == [4, 8, 13, 18, 24, 28, 33, 39, 1]
    assert state.limits == [99, 100, 100, 100, 99, 100, 100, 99, 100]


def test_a_long_draft_comes_true_to_its_end():
    batch = Batch()
    chain = list(range(50, 50 + MAX_ENTRIES))
    batch.add(2, [0, *chain[:-1]], chain)
    batch.add(3, [0], [9])
    drawn, state = run(batch, make_state())
    assert drawn[0] == [*chain, 9]
    assert drawn[2] == [MAX_ENTRIES, *[0] * (MAX_ENTRIES - 1), 1]
    assert (state.last[2], state.lengths[2], state.limits[2]) == (
        chain[-1],
        13 + MAX_ENTRIES,
        100 - MAX_ENTRIES,
    )


@pytest.mark.parametrize(
    ("limit", "stops", "nan_at", "count", "ending"),
    [
        (100, (), None, 3, 0),
        (100, (12,), None, 2, 1),
        (2, (), None, 2, 2),
        (2, (12,), None, 2, 1),  # a stop id at the limit: the text is complete
        (3, (12,), 1, 2, 3),  # whatever was drawn from NaN is no token
        (1, (13,), 2, 1, 2),  # what comes after the end does not matter
    ],
)
def test_what_ends_a_row(limit, stops, nan_at, count, ending):
    batch = Batch()
    batch.add(5, [0, 11, 12, 99], [11, 12, 13, 0])  # 99 is not what was drawn before it
    if nan_at is not None:
        batch.logprobs[nan_at] = math.nan
    drawn, state = run(batch, make_state(limit, stops))
    assert drawn[0] == [11, 12, 13][:count] + [0] * (4 - count)
    assert drawn[2:] == [[count, 0, 0, 0], [ending, 0, 0, 0]]
    assert (state.last[5], state.lengths[5], state.limits[5]) == (10 + count, 28 + count, limit - count)


def test_padding_changes_nothing():
    batch, padded = (random_batch(random.Random(4), rows=5, padding=padding) for padding in (0, 40))
    state = make_state(stops=(2,))
    (drawn, moved), (drawn_padded, moved_padded) = run(batch, state), run(padded, state)
    entries = len(batch.slots)
    assert moved == moved_padded
    assert [line[:entries] for line in drawn_padded] == drawn
    assert not any(any(line[entries:]) for line in drawn_padded)
    assert run(Batch(**{k: v[entries:] for k, v in vars(padded).items()}), state)[1] == state


@pytest.mark.parametrize("padding", [0, 200])
def test_entries_find_their_ids_positions_and_places(padding):
    page_size, chance = 4, random.Random(1)
    batch, state = random_batch(chance, rows=7, padding=padding), make_state()
    state.limits = [*chance.choices((0, 1, 3, 100), k=SLOTS - 1), 0]
    ahead = [[200 + 20 * slot + place for place in range(MAX_DRAFT)] for slot in range(SLOTS)]
    for entry, offset in enumerate(batch.offsets):
        if offset and chance.random() < 0.5:
            batch.drafts[entry] = UNREAD
    pages = chance.sample(range(1000), SLOTS * 16)
    tables = [pages[16 * slot : 16 * slot + 16] for slot in range(SLOTS)]
    ids, positions, places, contexts = locate(
        torch.tensor(state.last, device=DEVICE),
        torch.tensor(state.lengths, device=DEVICE),
        torch.tensor(state.limits, device=DEVICE),
        torch.tensor(ahead, device=DEVICE),
        torch.tensor(tables, dtype=torch.int32, device=DEVICE),
        batch.entries(),
        page_size=page_size,
    )
    assert (ids.dtype, positions.dtype, places.dtype, contexts.dtype) == (*[torch.int64] * 3, torch.int32)
    for entry, (slot, offset) in enumerate(zip(batch.slots, batch.offsets, strict=True)):
        allowed = offset < state.limits[slot]
        position = state.lengths[slot] - 1 + offset if allowed else 0
        assert (positions[entry], contexts[entry]) == (position, position + 1)
        draft = ahead[slot][offset - 1] if batch.drafts[entry] == UNREAD else batch.drafts[entry]
        assert ids[entry] == (state.last[slot] if offset == 0 else draft)
        table = tables[slot if allowed else SLOTS - 1]
        assert places[entry] == table[position // page_size] * page_size + position % page_size
