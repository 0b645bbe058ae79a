"""Entries find their place, and rows move on by the drafts that came true, as a walk in plain Python says.

Without a GPU the kernels run in Triton's interpreter.
"""

from __future__ import annotations

import math
import os
import random
from dataclasses import dataclass, field

import pytest
import torch
from torch import Tensor

from foresail.engine.entries import Entries

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
if DEVICE == "cpu":
    os.environ["TRITON_INTERPRET"] = "1"  # read when triton is first imported
pytest.importorskip("triton", reason="the kernels need triton")

from foresail.engine.kernels.rows import advance, locate  # noqa: E402

SLOTS = 9  # the last one is scratch
MOST_NODES = 17
VOCABULARY = 5  # few, so that drafts often come true


@dataclass
class Batch:
    """Entries as lists, and what the model is said to have drawn at each."""

    slots: list[int] = field(default_factory=list)
    nodes: list[int] = field(default_factory=list)
    depths: list[int] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)
    drafts: list[int] = field(default_factory=list)
    sights: list[int] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)

    def add(self, slot: int, parents: list[int], drafts: list[int], tokens: list[int]) -> None:
        depths, sights = [0], [1]
        for node, parent in enumerate(parents[1:], 1):
            depths.append(depths[parent] + 1)
            sights.append(sights[parent] | 1 << node)
        self.slots += [slot] * len(parents)
        self.nodes += range(len(parents))
        self.depths += depths
        self.parents += parents
        self.drafts += drafts
        self.sights += sights
        self.tokens += tokens
        self.logprobs += [-0.25 * (1 + len(self.logprobs) + node) for node in range(len(parents))]

    def entries(self) -> Entries:
        columns = (self.slots, self.nodes, self.depths, self.parents, self.drafts, self.sights)
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
    """Trees of all shapes whose siblings differ; some of the tokens drawn at a node are drafted below it."""
    batch = Batch()
    for slot in random.sample(range(SLOTS - 1), rows):
        parents, drafts = [-1], [-7]
        for _ in range(random.choice((0, 1, 4, 16, 16))):
            parent = random.choice((len(parents) - 1, random.randrange(len(parents))))
            draft = random.randrange(VOCABULARY)
            if (parent, draft) not in zip(parents, drafts, strict=True):
                parents.append(parent)
                drafts.append(draft)
        tokens = []
        for node in range(len(parents)):
            below = [draft for parent, draft in zip(parents, drafts, strict=True) if parent == node]
            follow = below and random.random() < 0.9
            tokens.append(random.choice(below) if follow else random.randrange(VOCABULARY))
        batch.add(slot, parents, drafts, tokens)
    for _ in range(padding):
        batch.add(SLOTS - 1, [-1], [0], [random.randrange(VOCABULARY)])
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
        numbers(batch.tokens),
        numbers(batch.logprobs).float(),
    )
    assert drawn.dtype == torch.int32
    moved = State(last.tolist(), lengths.tolist(), limits.tolist(), state.stops)
    return drawn.tolist(), moved


def walk(batch: Batch, state: State) -> tuple[list[list[int]], State]:
    """What `advance` must give, node by node."""
    drawn = [[0] * len(batch.slots) for _ in range(5)]
    last, lengths, limits = [*state.last], [*state.lengths], [*state.limits]
    for root, slot in enumerate(batch.slots):
        if batch.nodes[root] or slot == SLOTS - 1:
            continue
        size = 1
        while root + size < len(batch.nodes) and batch.nodes[root + size]:
            size += 1
        node, count, ending = 0, 0, 0
        while node is not None:
            token, logprob = batch.tokens[root + node], batch.logprobs[root + node]
            drawn[0][root + count] = token
            drawn[1][root + count] = bits(logprob)
            drawn[2][root + count] = node
            count += 1
            if math.isnan(logprob):
                ending = 3
            elif token in state.stops[slot]:
                ending = 1
            elif count >= state.limits[slot]:
                ending = 2
            children = [n for n in range(1, size) if batch.parents[root + n] == node]
            children = [n for n in children if batch.drafts[root + n] == token]
            node = children[0] if children and not ending else None
        drawn[3][root], drawn[4][root] = count, ending
        last[slot] = token
        lengths[slot] += count
        limits[slot] -= count
    return drawn, State(last, lengths, limits, state.stops)


def bits(number: float) -> int:
    return torch.tensor(number, dtype=torch.float32).view(torch.int32).item()


def test_random_trees_advance_as_the_walk_does():
    chance = random.Random(0)
    counts, endings = [], []
    for trial in range(24):
        batch = random_batch(chance, rows=chance.randrange(1, SLOTS - 1), padding=trial % 3)
        stops = ((), (3,), (1, 4))[trial % 3]
        state = make_state(stops=stops)
        state.limits = [chance.choice((1, 3, 100, 100)) for _ in range(SLOTS)]
        if trial % 4 == 0:
            for entry in chance.sample(range(len(batch.logprobs)), 1 + len(batch.logprobs) // 8):
                batch.logprobs[entry] = math.nan
        found, expected = run(batch, state), walk(batch, state)
        assert found == expected
        counts += [count for count in found[0][3] if count]
        endings += [how for count, how in zip(*found[0][3:], strict=True) if count]
    assert max(counts) > 5 and set(endings) == {0, 1, 2, 3}  # the trials saw what they were made to see


def test_plain_rows_draw_one_token_each():
    batch = Batch()
    for slot in (4, 0, 7):
        batch.add(slot, [-1], [slot + 20], [slot + 10])
    drawn, state = run(batch, make_state())
    assert drawn == [[14, 10, 17], [bits(x) for x in batch.logprobs], [0, 0, 0], [1, 1, 1], [0, 0, 0]]
    assert state.last == [10, 101, 102, 103, 14, 105, 106, 17, 108]
    assert state.lengths == [4, 8, 13, 18, 24, 28, 33, 39, 1]
    assert state.limits == [99, 100, 100, 100, 99, 100, 100, 99, 100]


def test_a_long_path_comes_true_to_its_end():
    batch = Batch()
    chain = list(range(50, 50 + MOST_NODES))
    batch.add(2, list(range(-1, MOST_NODES - 1)), [0, *chain[:-1]], chain)
    batch.add(3, [-1], [0], [9])
    drawn, state = run(batch, make_state())
    assert drawn[0] == [*chain, 9] and drawn[2] == [*range(MOST_NODES), 0]
    assert drawn[3] == [MOST_NODES, *[0] * (MOST_NODES - 1), 1]
    assert (state.last[2], state.lengths[2], state.limits[2]) == (
        chain[-1],
        13 + MOST_NODES,
        100 - MOST_NODES,
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
    batch.add(5, [-1, 0, 0, 2], [0, 99, 11, 12], [11, 0, 12, 13])  # path: nodes 0, 2, 3
    if nan_at is not None:
        batch.logprobs[[0, 2, 3][nan_at]] = math.nan
    drawn, state = run(batch, make_state(limit, stops))
    assert drawn[0] == [11, 12, 13][:count] + [0] * (4 - count)
    assert drawn[2] == [0, 2, 3][:count] + [0] * (4 - count)
    assert drawn[3:] == [[count, 0, 0, 0], [ending, 0, 0, 0]]
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
    pages = chance.sample(range(1000), SLOTS * 16)
    tables = [pages[16 * slot : 16 * slot + 16] for slot in range(SLOTS)]
    ids, positions, places, bases = locate(
        torch.tensor(state.last, device=DEVICE),
        torch.tensor(state.lengths, device=DEVICE),
        torch.tensor(tables, dtype=torch.int32, device=DEVICE),
        batch.entries(),
        page_size=page_size,
    )
    assert (ids.dtype, positions.dtype, places.dtype, bases.dtype) == (*[torch.int64] * 3, torch.int32)
    for entry, (slot, node) in enumerate(zip(batch.slots, batch.nodes, strict=True)):
        base = state.lengths[slot] - 1
        page, offset = tables[slot][(base + node) // page_size], (base + node) % page_size
        assert bases[entry] == base
        assert ids[entry] == (state.last[slot] if node == 0 else batch.drafts[entry])
        assert positions[entry] == base + batch.depths[entry]
        assert places[entry] == page * page_size + offset
