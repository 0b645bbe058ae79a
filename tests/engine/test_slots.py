"""Slots on their own: a row has pages for the next step, and not one more."""

from __future__ import annotations

import random

import numpy as np
import pytest
from small_engines import ask, random_prompt, small_engine, small_model

from foresail.engine.drafts import MAX_DRAFT, Drafts
from foresail.engine.pages import count_pages
from foresail.engine.row import EngineRow

MODEL = small_model()


def random_drafts(slots: np.ndarray, numbers: random.Random) -> Drafts | None:
    if numbers.random() < 0.4:
        return None
    sizes_R = np.array([numbers.randint(0, 5) for _ in slots], dtype=np.int64)
    return Drafts(slots_R=slots, sizes_R=sizes_R, tokens_RK=np.zeros((len(slots), MAX_DRAFT), np.int64))


@pytest.mark.parametrize(("seed", "page_size"), [(0, 4), (1, 1), (2, 5)])
def test_rows_own_as_many_pages_as_the_next_step_can_fill(seed, page_size):
    numbers = random.Random(seed)
    engine = small_engine(MODEL, num_pages=80 // page_size, page_size=page_size, max_running=5)
    slots, pool, table = engine.slots, engine.pool, engine.table
    most_owned: dict[int, int] = {}  # by slot: pages for all the row was ever about to cache there
    refused = 0

    def seat(name: str) -> None:
        request = ask(name, random_prompt(numbers.randint(1, 9)), max_new_tokens=numbers.randint(1, 30))
        row = EngineRow(request=request, context=request.prompt)
        pages = count_pages(len(row.prefix_tokens), page_size)
        if not slots.empty or pages > pool.num_free:
            return
        engine.rows.add(row)
        engine.rows.move(row, "filling")
        row.pages = pool.take(pages)
        slots.assign([row], version=seed)
        most_owned[row.slot] = pages

    def end(row: EngineRow) -> None:
        drawn = table.sampled(row.slot)[0]
        slots.free(row)
        engine.rows.move(row, "done")
        assert row.sampled == drawn and row.versions == [seed] * len(drawn)

    for turn in range(400):
        seat(f"{seed}-{turn}")
        drafts, unread = random_drafts(slots.numbers(), numbers), numbers.choice([0, 0, 3])
        while not slots.add_pages(drafts, unread):
            refused += 1
            assert {slot: len(row.pages) for slot, row in slots.items()} == {s: most_owned[s] for s in slots}
            slots.make_room()
        for slot, row in slots.items():
            places = int(table.lengths_S[slot])
            if drafts is not None:
                last = places + int(table.left_S[slot]) - 1  # its last token is drawn, not cached
                places = min(places + int(drafts.sizes_of(np.array([slot]))[0]) + unread, last)
            pages = {place // page_size for place in range(places)}
            most_owned[slot] = max(most_owned[slot], len(pages))
            assert len(row.pages) == table.num_pages_S[slot] == most_owned[slot]
        owned = [page for row in slots.values() for page in row.pages]
        assert len(set(owned)) == len(owned) == pool.num_pages - pool.num_free
        running = slots.numbers()
        table.record(running, np.ones_like(running), running, np.zeros(len(running), dtype=np.float32))
        table.move(running, 1)
        for row in [*slots.values()]:
            if not table.left_S[row.slot] or numbers.random() < 0.05:
                end(row)
    for row in [*slots.values()]:
        end(row)
    assert refused and pool.num_free == pool.num_pages and sorted(slots.empty) == list(range(5))
