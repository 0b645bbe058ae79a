"""Pages and slots are never lost, never given twice, whatever the order of calls."""

from __future__ import annotations

import random

import pytest
from ahead_of_the_host import run_ahead
from page_accounts import check_accounts
from small_engines import (
    VOCABULARY,
    Completion,
    ask,
    assert_all_free,
    finish_all,
    random_prompt,
    small_engine,
    small_model,
)

from foresail.engine.drafts import Draft
from foresail.engine.pages import PagePool, page_names
from foresail.engine.row import NEXT_STATES, EngineRow, EngineRows

PROMPTS = [random_prompt(length) for length in (1, 3, 4, 6, 8, 9, 18)]
PROMPTS += [PROMPTS[6][:9], (*PROMPTS[6][:14], 1, 2)]  # which share pages with the longest
MODEL = small_model()


def random_request(name: str, numbers: random.Random):
    return ask(
        name,
        numbers.choice(PROMPTS),
        max_new_tokens=numbers.randint(1, 20),
        top_k=numbers.choice([0, 0, 3]),
        stop_ids=numbers.choice([(), (7,), (1, 2, 3)]),
    )


def random_draft(numbers: random.Random) -> Draft:
    """Mostly wrong."""
    return Draft(tokens=tuple(numbers.sample(range(VOCABULARY), numbers.randint(0, 5))))


@pytest.mark.parametrize("ahead", [False, True])
@pytest.mark.parametrize(("seed", "num_pages", "page_size"), [(0, 12, 4), (1, 40, 1), (2, 9, 5), (3, 60, 4)])
def test_a_random_walk_leaks_nothing_and_changes_no_token(seed, num_pages, page_size, ahead):
    numbers = random.Random(seed)
    engine = small_engine(
        MODEL,
        num_pages=num_pages,
        page_size=page_size,
        max_running=6,
        prefill_tokens=numbers.choice([3, 20]),
    )
    if ahead:
        run_ahead(engine)
    requests, ended, resting = {}, {}, []

    def collect(completions: list[Completion]) -> None:
        for completion in completions:
            name = completion.request.id
            assert name not in ended
            if completion.finish == "chunk":
                assert name not in resting
                resting.append(name)
            else:
                ended[name] = completion

    def go_on(name: str) -> None:
        resting.remove(name)
        if name not in ended:
            engine.go_on(name, chunk_tokens=numbers.choice([None, 1, 5]))

    for turn in range(1000):
        alive = [name for name in requests if name not in ended]
        actions = ["add", "step", "cancel", "park", "update", "draft", "go on"]
        match numbers.choices(actions, [30, 45, 8, 8, 2, 15, 30])[0]:
            case "add" if len(alive) < 15:
                name = f"{seed}-{turn}"
                requests[name] = random_request(name, numbers)
                engine.add(requests[name], chunk_tokens=numbers.choice([None, 1, 4]))
            case "cancel" if requests:
                name = numbers.choice(list(requests))
                cancelled = engine.cancel(name)
                assert (
                    name in ended or cancelled is not None or ahead
                )  # it may have ended in a step under way
                collect([cancelled] if cancelled else [])
            case "park" if alive and (name := numbers.choice(alive)) not in resting:
                parked = engine.park(name)
                if parked is not None:
                    engine.resume(parked)
            case "go on" if resting:
                go_on(numbers.choice(resting))
            case "draft":
                collect(engine.step(engine.drafts_by_slot({name: random_draft(numbers) for name in alive})))
            case "update":
                engine.weights_changed(turn)
            case _:
                collect(engine.step())
        check_accounts(engine)
    while engine.busy or resting:
        for name in [*resting]:
            go_on(name)
        collect(engine.step())
    assert_all_free(engine)

    assert ended.keys() == requests.keys()
    assert {completion.finish for completion in ended.values()} == {"stop", "length", "cancelled"}
    expected = finish_all(small_engine(MODEL, num_pages=3000), requests.values())
    for name, completion in ended.items():
        count = len(completion.ids) if completion.finish == "cancelled" else None
        assert completion.ids == expected[name].ids[:count]
        assert len(completion.logprobs) == len(completion.versions) == len(completion.ids)


def test_the_walk_above_would_see_a_leak():
    engine = small_engine(MODEL, num_pages=12)
    engine.add(ask("a", PROMPTS[3]))
    engine.step()
    check_accounts(engine)
    engine.slots[next(iter(engine.slots))].pages.pop()
    with pytest.raises(AssertionError):
        check_accounts(engine)


def test_a_row_changes_its_state_only_as_the_table_says():
    for before, allowed in NEXT_STATES.items():
        for after in NEXT_STATES:
            rows, row = EngineRows(), EngineRow(request=ask("a", PROMPTS[0]), context=PROMPTS[0])
            rows.add(row)
            row.state = before
            if after in allowed:
                rows.move(row, after)
                assert row.state == after and (rows.find("a") is row) == (after != "done")
            else:
                with pytest.raises(AssertionError, match=f"a was {before} and cannot be {after}"):
                    rows.move(row, after)


def test_a_page_is_free_when_its_last_owner_leaves():
    pool = PagePool(3)
    pages = pool.take(2)
    assert sorted(pages) == [0, 1] and pool.num_free == 1
    pool.share(pages[:1])
    pool.release(pages)
    assert pool.num_free == 2
    pool.release(pages[:1])
    assert pool.num_free == 3
    assert sorted(pool.take(3)) == [0, 1, 2]


def test_pages_cannot_be_taken_when_none_is_free():
    pool = PagePool(1)
    pool.take(1)
    with pytest.raises(AssertionError, match="frees pages"):
        pool.take(1)


def test_an_engine_with_the_fewest_possible_pages_gets_through():
    """One row at a time fits; the group still ends, and its tokens are the same."""
    requests = [ask(f"{n}", PROMPTS[5], stop_ids=(), max_new_tokens=11) for n in range(5)]
    expected = finish_all(small_engine(MODEL), requests)
    engine = small_engine(MODEL, num_pages=6, page_size=4)  # 9 + 11 tokens are 5 pages, and one for the copy
    found = finish_all(engine, requests)
    assert {name: c.ids for name, c in found.items()} == {name: c.ids for name, c in expected.items()}
    assert_all_free(engine)


@pytest.mark.parametrize("known", [0, 1, 3])
def test_names_go_on_from_those_that_are_known(known):
    names = page_names(range(14), 4)
    assert len(set(names)) == 3 and page_names(range(14), 4, names[:known]) == names


def test_leading_pages_with_names():
    pool = PagePool(4)
    pages = pool.take(4)
    pool.remember(pages[:2] + pages[3:], [b"a", b"b", b"d"])
    assert pool.names(pages) == [b"a", b"b"] and pool.names(pages[2:]) == []
