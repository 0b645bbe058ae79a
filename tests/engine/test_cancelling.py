"""A request that is cancelled frees its slot and pages at once, wherever it is; its siblings do not notice."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from ahead_of_the_host import run_ahead
from page_accounts import check_accounts
from small_engines import (
    ask,
    ask_group,
    assert_all_free,
    finish_all,
    random_prompt,
    small_engine,
    small_model,
)

from foresail.engine.engine import Engine

MODEL = small_model()
PROMPT = random_prompt(22)  # five pages of 4 and a half
EXPECTED = {
    name: completion.ids
    for name, completion in finish_all(
        small_engine(MODEL), [ask(name, PROMPT, stop_ids=()) for name in ("a", "b")]
    ).items()
}


def waits(engine: Engine) -> None:
    """No step was taken."""


def fills(engine: Engine) -> None:
    engine.step()
    assert engine.rows.count["filling"] == 1


def runs(engine: Engine) -> None:
    while not engine.rows.count["running"]:
        engine.step()
    engine.step()


def is_preempted(engine: Engine) -> None:
    runs(engine)
    engine.read_pending()
    engine.slots.make_room()
    assert engine.rows.count["waiting"] == 1


def waits_again(engine: Engine) -> None:
    runs(engine)
    engine.weights_changed(0)
    assert engine.rows.count["waiting"] == 1


@pytest.mark.parametrize("ahead", [False, True])
@pytest.mark.parametrize("until", [waits, fills, runs, is_preempted, waits_again])
def test_a_cancelled_request_leaves_slot_and_pages_at_once(
    until: Callable[[Engine], None], ahead: bool
) -> None:
    engine = small_engine(MODEL, num_pages=40, prefill_tokens=6)
    if ahead:
        run_ahead(engine)
    engine.add(ask("a", PROMPT, stop_ids=()))
    until(engine)
    if until in (fills, runs):
        assert engine.pool.num_free < 40
    assert engine.cancel("a") is not None
    assert engine.pool.num_free == 40 and not engine.busy and not engine.slots
    check_accounts(engine)
    assert finish_all(engine, [ask("b", PROMPT, stop_ids=())])["b"].ids == EXPECTED["b"]
    assert_all_free(engine)


@pytest.mark.parametrize("chunk", ["resting", "parked"])
def test_a_request_whose_chunk_has_ended_leaves_nothing(chunk: str) -> None:
    engine = small_engine(MODEL, num_pages=40)
    engine.add(ask("a", PROMPT, stop_ids=()), chunk_tokens=2)
    while not engine.rows.count["resting"]:
        engine.step()
    if chunk == "parked":
        engine.step()
    assert engine.rows.count[chunk] == 1  # type: ignore[index]
    assert engine.cancel("a") is not None
    assert_all_free(engine)


@pytest.mark.parametrize("steps", [0, 1, 2, 3, 4, 5, 6, 9])
@pytest.mark.parametrize("first", ["a", "b"])
def test_a_sibling_keeps_the_pages_that_it_shares(steps: int, first: str) -> None:
    engine = small_engine(MODEL, num_pages=40, prefill_tokens=6)
    for name in ("a", "b"):
        engine.add(ask(name, PROMPT, stop_ids=()))
    for _ in range(steps):
        engine.step()
    before = engine.pool.num_free
    assert engine.cancel(first) is not None
    assert engine.pool.num_free >= before
    check_accounts(engine)
    (other,) = {"a", "b"} - {first}
    assert finish_all(engine)[other].ids == EXPECTED[other]
    assert_all_free(engine)


LONG = (*PROMPT[:14], *random_prompt(20, 1))  # shares three whole pages with PROMPT


@pytest.mark.parametrize("steps", [1, 2, 3, 4, 5, 6, 7])
def test_pages_that_a_later_prompt_counts_on_are_still_filled(steps: int) -> None:
    """The longer one was to fill them: cancelled, it fills these and no more."""
    alone = finish_all(small_engine(MODEL), [ask("a", PROMPT, stop_ids=())])["a"].ids
    engine = small_engine(MODEL, num_pages=60, prefill_tokens=2)
    for request in (ask("long", LONG), ask("a", PROMPT, stop_ids=())):
        engine.add(request)
    for _ in range(steps):
        engine.step()
    shared = set(engine.rows.by_id["long"][0].pages) & set(engine.rows.by_id["a"][0].pages)
    assert len(shared) == 3
    assert engine.cancel("long") is not None
    check_accounts(engine)
    owned = {page for page, count in enumerate(engine.pool._owners) if count}
    assert (
        shared
        <= owned
        == set(engine.rows.by_id["a"][0].pages)
        | {page for prefix in engine.admission.prefixes.by_tokens.values() for page in prefix.pages}
    )
    tokens = engine.admission.prefixes.num_missing
    assert tokens <= len(PROMPT) - 1
    assert finish_all(engine)["a"].ids == alone
    assert_all_free(engine)


def test_when_the_later_prompt_is_cancelled_as_well_nothing_is_filled() -> None:
    engine = small_engine(MODEL, num_pages=60, prefill_tokens=2)
    for request in (ask("long", LONG), ask("a", PROMPT, stop_ids=())):
        engine.add(request)
    engine.step()
    engine.cancel("long")
    engine.cancel("a")
    assert_all_free(engine)
    assert not engine.admission.prefixes.unfilled and not engine.pool._names


def test_whoever_waits_comes_in_where_one_was_cancelled() -> None:
    engine = small_engine(MODEL, num_pages=12, max_running=4)  # for one of them
    first, second = ask_group("a", PROMPT, 2, stop_ids=())
    other = ask("b", random_prompt(22, 3), stop_ids=())
    engine.add(first)
    engine.step()
    engine.add(other)
    engine.step()
    assert engine.rows.count["waiting"] == 1
    engine.cancel(first.id)
    engine.step()
    assert engine.rows.count["waiting"] == 0 and engine.rows.find("b", "running") is not None
    engine.cancel("b")
    engine.add(second)
    assert finish_all(engine).keys() == {second.id}
    assert_all_free(engine)
