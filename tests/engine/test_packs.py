"""Packs: entries that read the same pages, found from groups and drafts."""

from __future__ import annotations

import numpy as np
from small_engines import ask_group, random_prompt, small_engine, small_model

from foresail.engine.drafts import Draft, Drafts
from foresail.engine.entries import plain_entries, plan_entries
from foresail.engine.packs import plan_packs, tokens_saved
from foresail.engine.table import Table


def table_of(groups: list[int], shared: list[int], lengths: list[int]) -> Table:
    table = Table(len(groups), 8)
    table.groups_S[:], table.shared_S[:], table.lengths_S[:] = groups, shared, lengths
    return table


def test_siblings_side_by_side_are_packed():
    table = table_of([1, 1, 1, 2, 3, 3], [8, 8, 8, 8, 0, 0], [11] * 6)
    firsts, sizes, shared = plan_packs(table, plain_entries(np.arange(6)), max_entries=9, page_size=4)
    assert firsts.tolist() == [0, 0, 0, 0, 0, 0] and sizes.tolist() == [3, 0, 0, 0, 0, 0]
    assert shared.tolist() == [
        8,
        8,
        8,
        0,
        0,
        0,
    ]  # one of a group alone shares nothing, nor does a short prompt


def test_large_groups_are_cut():
    table = table_of([5] * 7, [4] * 7, [9] * 7)
    firsts, sizes, shared = plan_packs(table, plain_entries(np.arange(7)), max_entries=3, page_size=4)
    assert firsts[:2].tolist() == [0, 3] and sizes[:3].tolist() == [3, 3, 0]
    assert shared.tolist() == [4] * 6 + [0]


def test_the_entries_of_a_draft_share_their_rows_whole_pages():
    table = table_of([1, 1, 1], [8, 8, 8], [18, 20, 30])
    block = plan_entries(np.array([0, 1, 2]), Drafts.of({1: Draft(tokens=(3, 4))}))
    lines = plan_packs(table, block, max_entries=9, page_size=4)
    assert lines[0, :1].tolist() == [1] and lines[1].tolist() == [3, 0, 0, 0, 0]
    assert lines[2].tolist() == [0, 16, 16, 16, 0]  # 19 tokens are cached: four whole pages
    assert tokens_saved(lines) == 32


def test_the_engine_tells_which_rows_are_siblings():
    engine = small_engine(small_model(), page_size=4)
    for request in [*ask_group("a", random_prompt(10), 3), *ask_group("b", random_prompt(6), 2)]:
        engine.add(request)
    engine.step()
    slots = np.array(list(engine.slots))
    lines = plan_packs(engine.table, plain_entries(slots), max_entries=9, page_size=4)
    assert lines[1].tolist() == [3, 2, 0, 0, 0] and lines[2].tolist() == [8, 8, 8, 4, 4]
    pages = engine.table.pages_SP[slots]
    for first, size in zip(lines[0][:2], lines[1][:2], strict=True):
        shared = lines[2][first] // 4
        assert (pages[first : first + size, :shared] == pages[first, :shared]).all()
