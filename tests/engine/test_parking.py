"""A request can stop after a chunk and go on anywhere, with its keys and values or without."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from small_engines import (
    Completion,
    Tally,
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

MODEL = small_model("qwen2")
PROMPT = random_prompt(10)


@pytest.fixture(scope="module")
def whole() -> dict[str, Completion]:
    return finish_all(small_engine(MODEL), mixed_requests())


@pytest.mark.parametrize("chunk", [1, 3, 7])
def test_division_does_not_matter(chunk, whole):
    """Every request in chunks, each chunk on the other of two engines."""
    engines = [small_engine(MODEL, num_pages=200), small_engine(MODEL, num_pages=90)]
    found: dict[str, Completion] = {}
    for request in mixed_requests():
        engines[0].add(request, chunk_tokens=chunk)
    while any(engine.busy for engine in engines):
        for place, engine in enumerate(engines):
            for completion in engine.step():
                if completion.finish == "chunk":
                    parked = engine.park(completion.request.id)
                    assert parked is not None and len(parked.ids) % chunk == 0
                    engines[1 - place].resume(parked, chunk_tokens=chunk)
                else:
                    found[completion.request.id] = completion
    assert_same(found, whole)
    for engine in engines:
        assert_all_free(engine)


@pytest.mark.parametrize("chunk", [1, 4])
def test_a_row_that_rests_goes_on_in_its_place(chunk):
    request = ask("a", PROMPT, stop_ids=(), max_new_tokens=12)
    plain = finish_all(small_engine(MODEL), [request])
    engine = small_engine(MODEL)
    tally = Tally(engine)
    engine.add(request, chunk_tokens=chunk)
    found, chunks = {}, 0
    while engine.busy:
        for completion in engine.step():
            if completion.finish == "chunk":
                assert completion.ids == plain["a"].ids[: len(completion.ids)] and not engine.busy
                engine.go_on("a", chunk_tokens=chunk)
                chunks += 1
            else:
                found["a"] = completion
    assert_same(found, plain)
    assert chunks == (12 - 1) // chunk
    assert tally.prefilled == [9] and tally.decoded == [1] * 12
    assert_all_free(engine)


def test_a_row_that_is_left_resting_gives_its_place_away(whole):
    """Two slots and a tight cache; every chunk goes on only when the others have had their turn."""
    engine, found, left = small_engine(MODEL, num_pages=60, max_running=2), {}, []
    for request in mixed_requests():
        engine.add(request, chunk_tokens=3)
    while engine.busy or left:
        if not engine.busy:
            engine.go_on(left.pop(0), chunk_tokens=3)
        for completion in engine.step():
            if completion.finish == "chunk":
                left.append(completion.request.id)
            else:
                found[completion.request.id] = completion
    assert_same(found, whole)
    assert_all_free(engine)
    assert not engine.holds("nobody")


def test_a_row_put_back_in_the_middle_of_a_chunk_draws_only_the_rest_of_it():
    requests = ask_group("a", PROMPT, 4, stop_ids=(), max_new_tokens=30)
    engine, lengths = small_engine(MODEL, num_pages=14, max_running=4), {}
    for request in requests:
        engine.add(request, chunk_tokens=17)
    while engine.busy:
        for completion in engine.step():
            lengths[completion.request.id] = len(completion.ids)
            engine.park(completion.request.id)
    assert set(lengths.values()) == {17} and len(lengths) == 4


def test_who_rests_can_be_cancelled():
    for steps_later in (0, 1):
        engine = small_engine(MODEL)
        engine.add(ask("a", PROMPT, stop_ids=(), max_new_tokens=6), chunk_tokens=2)
        while engine.busy:
            engine.step()
        for _ in range(steps_later):
            engine.step()
        cancelled = engine.cancel("a")
        assert cancelled is not None and len(cancelled.ids) == 2 and cancelled.finish == "cancelled"
        assert engine.cancel("a") is None
        assert_all_free(engine)


def test_going_on_elsewhere_computes_nothing_twice():
    model = small_model()
    request = ask("a", PROMPT, stop_ids=(), max_new_tokens=12)
    plain = finish_all(small_engine(model), [request])
    here, there = small_engine(model), small_engine(model)
    tallies = [Tally(engine) for engine in (here, there)]
    here.add(request)
    for _ in range(5):
        here.step()
    parked = here.park("a")
    assert parked is not None and len(parked.ids) == 5
    assert_all_free(here)
    there.resume(parked)
    assert_same(finish_all(there), plain)
    assert [tally.prefilled for tally in tallies] == [[9], []]
    assert [tally.decoded for tally in tallies] == [[1] * 5, [1] * 7]


def test_without_keys_and_values_they_are_computed_again():
    request = ask("a", PROMPT, stop_ids=(), max_new_tokens=12)
    plain = finish_all(small_engine(MODEL), [request])
    engine = small_engine(MODEL)
    engine.add(request)
    for _ in range(4):
        engine.step()
    parked = engine.park("a")
    assert parked is not None
    engine.resume(replace(parked, kv=None))
    assert_same(finish_all(engine), plain)


@pytest.mark.parametrize("drawn", [3, 4])
def test_a_request_that_comes_back_with_a_longer_prompt_computes_only_what_is_new(drawn):
    """A second turn: prompt, answer and what was said to it; siblings that come without keys and values join it."""
    first = small_engine(MODEL)
    first.add(ask("a", PROMPT, stop_ids=(), max_new_tokens=12))
    for _ in range(drawn):
        first.step()
    parked = first.park("a")
    assert parked is not None and parked.kv is not None
    turns = ask_group("b", (*PROMPT, *parked.ids, *random_prompt(9, seed=1)), 3, stop_ids=())
    expected = finish_all(small_engine(MODEL), turns)
    engine = small_engine(MODEL, prefill_tokens=5)
    tally = Tally(engine)
    engine.resume(replace(parked, request=turns[0], ids=[], logprobs=[], versions=[]))
    for request in turns[1:]:
        engine.add(request)
    assert_same(finish_all(engine), expected)
    assert tally.prefilled == [5, 4]  # the last token of the answer, and all but the last of what is new
    assert_all_free(engine)


def test_of_a_saved_beginning_what_is_cached_here_is_not_loaded():
    engine = small_engine(MODEL)
    engine.add(ask("a", PROMPT, stop_ids=(), max_new_tokens=12))
    for _ in range(7):
        engine.step()
    parked = engine.park("a")
    longer = ask("b", (*PROMPT, *parked.ids, 3, 1, 4), stop_ids=())
    expected = finish_all(small_engine(MODEL), [longer])
    loaded, load = [], engine.runner.cache.load
    engine.runner.cache.load = lambda saved, pages: (loaded.append(len(pages)), load(saved, pages))
    tally = Tally(engine)
    engine.resume(replace(parked, request=longer, ids=[], logprobs=[], versions=[]))
    assert_same(finish_all(engine), expected)
    assert not loaded and tally.prefilled == [3]  # 16 tokens are four whole pages, which are still here


def test_under_other_weights_the_saved_keys_are_left_aside():
    model = small_model()
    engine = small_engine(model)
    engine.add(ask("a", PROMPT, stop_ids=(), max_new_tokens=8))
    for _ in range(4):
        engine.step()
    parked = engine.park("a")
    assert parked is not None
    with torch.no_grad():
        model.embed.weight.mul_(0.5)
    engine.weights_changed(1)
    engine.resume(parked)
    resumed = finish_all(engine)["a"]
    fresh = small_engine(model)
    fresh.resume(replace(parked, kv=None))
    assert resumed.ids == finish_all(fresh)["a"].ids
    assert resumed.versions == [0] * 4 + [1] * 4


def test_parking_who_waits_or_is_not_there():
    engine = small_engine(MODEL, max_running=1)
    for request in ask_group("a", PROMPT, 2, stop_ids=(), max_new_tokens=6):
        engine.add(request)
    engine.step()
    waiting = engine.park("a.1")
    assert waiting is not None and waiting.kv is None and waiting.ids == []
    assert engine.park("nobody") is None
    assert finish_all(engine).keys() == {"a.0"}


def test_memory_lent_and_taken_back_changes_no_token(whole):
    engine, found = small_engine(MODEL), {}
    for request in mixed_requests():
        engine.add(request)
    for _ in range(30):
        found |= {completion.request.id: completion for completion in engine.step()}
        engine.give_back_memory()
        engine.take_memory()
    found |= finish_all(engine)
    assert_same(found, whole)
    assert_all_free(engine)
