"""Drafts change how many tokens a step draws, never which."""

from __future__ import annotations

import random

import numpy as np
import pytest
from small_engines import (
    VOCABULARY,
    Completion,
    Engine,
    ask,
    ask_group,
    assert_all_free,
    assert_same,
    finish_all,
    mixed_requests,
    random_prompt,
    small_engine,
    small_model,
)

from foresail.engine.drafts import Draft, Drafts
from foresail.engine.entries import plan_entries
from foresail.engine.request import Request

MODEL = small_model("qwen3")


def finish_with_drafts(engine: Engine, requests: list[Request], guess) -> tuple[dict[str, Completion], int]:
    """All completions, and how many steps they took; `guess(request, tokens)` is asked before every step."""
    found, steps = {}, 0
    for request in requests:
        engine.add(request)
    while engine.busy:
        drafts = {
            request.id: guess(request, tokens)
            for request in requests
            if (tokens := engine.tokens(request.id)) is not None
        }
        found |= {
            completion.request.id: completion for completion in engine.step(engine.drafts_by_slot(drafts))
        }
        steps += 1
    return found, steps


@pytest.fixture(scope="module")
def plain() -> dict[str, Completion]:
    return finish_all(small_engine(MODEL), mixed_requests())


def true_rest(plain: dict[str, Completion], request: Request, tokens: tuple[int, ...]) -> list[int]:
    return plain[request.id].ids[len(tokens) - len(request.prompt) :]


@pytest.mark.parametrize("length", [1, 4, 16])
def test_right_guesses_are_all_taken(length, plain):
    def guess(request, tokens):
        return Draft(tokens=tuple(true_rest(plain, request, tokens)[:length]))

    engine = small_engine(MODEL)
    found, steps = finish_with_drafts(engine, mixed_requests(), guess)
    assert_same(found, plain)
    assert_all_free(engine)
    longest = max(len(completion.ids) for completion in plain.values())
    assert steps == 1 + -(-(longest - 1) // (length + 1))  # the first step admits, without drafts


@pytest.mark.parametrize("seed", range(4))
def test_drafts_of_every_kind_change_no_token(seed, plain):
    """Drafts that are right up to some place, in a tight cache."""
    numbers = random.Random(seed)

    def guess(request, tokens):
        rest = true_rest(plain, request, tokens)[: numbers.randint(0, 6)]
        if numbers.random() < 0.5:
            rest[numbers.randint(0, 6) :] = [
                numbers.randrange(VOCABULARY) for _ in range(numbers.randint(1, 9))
            ]
        return Draft(tokens=tuple(rest))

    engine = small_engine(MODEL, num_pages=60, max_running=9)
    found, _ = finish_with_drafts(engine, mixed_requests(), guess)
    assert_same(found, plain)
    assert_all_free(engine)


def test_a_stop_id_inside_a_draft_ends_the_request_there(plain):
    request = next(c.request for c in plain.values() if c.finish == "stop" and len(c.ids) > 3)

    def guess(_, tokens):
        rest = true_rest(plain, request, tokens)
        return Draft(tokens=(*rest, 1, 2)[:16])

    found, _ = finish_with_drafts(small_engine(MODEL), [request], guess)
    assert found[request.id].ids == plain[request.id].ids and found[request.id].finish == "stop"


def test_a_draft_beyond_the_limit_or_for_nobody_is_harmless():
    requests = ask_group("a", random_prompt(5), 2, stop_ids=(), max_new_tokens=4)
    plain = finish_all(small_engine(MODEL), requests)

    def guess(request, tokens):
        return Draft(tokens=(*true_rest(plain, request, tokens), 3, 3, 3, 3))

    found, _ = finish_with_drafts(small_engine(MODEL), requests, guess)
    assert_same(found, plain)
    engine = small_engine(MODEL)
    engine.add(ask("a", random_prompt(5), max_new_tokens=2))
    engine.step(engine.drafts_by_slot({"nobody": Draft(tokens=(1, 2))}))
    engine.step(engine.drafts_by_slot({"a": Draft(tokens=())}))
    assert not engine.busy


def test_entries_of_rows_with_and_without_drafts():
    drafts = Drafts.of({3: Draft(tokens=(5, 9, 7)), 8: Draft(tokens=(6, 2))})
    slots, offsets, tokens = plan_entries(np.array([4, 3, 8]), drafts)
    assert slots.tolist() == [4, 3, 3, 3, 3, 8, 8, 8]
    assert offsets.tolist() == [0, 0, 1, 2, 3, 0, 1, 2]
    assert tokens.tolist() == [0, 0, 5, 9, 7, 0, 6, 2]


def test_drafts_are_cut():
    drafts = Drafts.of(dict.fromkeys(range(3), Draft(tokens=(1, 2, 3))))
    cut = drafts.cut(np.array([2, -1, 9]))
    assert cut.sizes_R.tolist() == [2, 0, 3] and cut.taken_RK[0, :4].tolist() == [True, True, False, False]
    assert cut.only(np.array([True, False, True])).sizes_R.tolist() == [2, 3]


def test_drafts_at_the_very_end_of_the_context():
    request = ask("a", random_prompt(90), stop_ids=(), max_new_tokens=6)
    plain = finish_all(small_engine(MODEL), [request])

    def guess(_, tokens):
        return Draft(tokens=(*true_rest(plain, request, tokens), *range(16))[:16])

    engine = small_engine(MODEL, num_pages=25)  # just room for the request
    found, _ = finish_with_drafts(engine, [request], guess)
    assert_same(found, plain)
    assert_all_free(engine)


def test_a_draft_that_is_too_long_is_refused():
    with pytest.raises(ValueError, match="17 tokens; the most is 16"):
        Draft(tokens=tuple(range(17)))
