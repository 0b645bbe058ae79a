"""A thinking budget: what closes thinking is put in at the budget, whatever the engine does meanwhile."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from ahead_of_the_host import run_ahead
from small_engines import VOCABULARY, ask, assert_same, finish_all, random_prompt, small_engine
from thinking_cases import MODEL, PIECES, check_forced, random_cases, reference, run

SEEDS = (0, 1, 2, 26, 34)  # of 100 that were tried; in the last two a chunk ends at the budget


@pytest.fixture(scope="module", params=SEEDS)
def case(request):
    vocabulary, requests = random_cases(request.param)
    return request.param, vocabulary, requests, {r.id: reference(vocabulary, r) for r in requests}


def test_thinking_is_closed_at_its_budget_however_the_engine_gets_there(case):
    seed, vocabulary, requests, expected = case
    numbers = random.Random(seed)
    for number in range(4):
        mtp = numbers.random() < 0.5
        engines = [
            small_engine(MODEL, vocabulary=vocabulary, num_pages=numbers.choice([20, 200]), mtp=mtp)
            for _ in range(numbers.randint(1, 2))
        ]
        if numbers.random() < 0.5:
            engines = [*map(run_ahead, engines)]
        for engine in engines:
            engine.ask_for_drafts(engine.own_drafts is not None)
        found = run(engines, requests, numbers=numbers, chunks=number % 2 == 1, drafts=number > 1)
        assert_same(found, expected)
        for completion in found.values():
            check_forced(completion)


def test_some_are_closed_some_close_in_time_some_think_again_and_some_never_do():
    """The search above reaches all cases."""
    forced, closed, without, again = 0, 0, 0, 0
    for seed in SEEDS:
        vocabulary, requests = random_cases(seed)
        with_budget = [r for r in requests if r.sampling.thinking_budget is not None]
        for completion in finish_all(small_engine(MODEL, vocabulary=vocabulary), with_budget).values():
            passed = len(completion.ids) > completion.request.sampling.thinking_budget
            prompt, said = (
                b"".join(vocabulary[token] for token in ids)
                for ids in (completion.request.prompt, completion.ids)
            )
            forced += bool(completion.forced)
            closed += passed and not completion.forced and b"<think>" in prompt[-9:] + said
            without += not completion.forced and b"<think>" not in prompt + said
            again += passed and completion.finish == "stop" and said.endswith(b"<think>")
    assert min(forced, closed, without, again) >= 3


def test_rows_that_close_in_time_lose_no_token_to_the_budget():
    vocabulary = [b"a", b"</think>", *[b"a"] * (VOCABULARY - 2)]
    without = [ask(f"{n}", (*random_prompt(5, n), 1), stop_ids=(), max_new_tokens=20) for n in range(6)]
    with_budget = [
        replace(request, closing=(1,), sampling=request.sampling.model_copy(update={"thinking_budget": 0}))
        for request in without
    ]
    plain = finish_all(small_engine(MODEL, vocabulary=vocabulary), without)
    assert_same(finish_all(small_engine(MODEL, vocabulary=vocabulary), with_budget), plain)


def test_a_budget_that_could_not_be_held_is_refused():
    request = ask("a", (1, 2), thinking_budget=3)
    with pytest.raises(ValueError, match="no vocabulary"):
        small_engine(MODEL).add(replace(request, closing=(1,)))
    engine = small_engine(MODEL, vocabulary=PIECES)
    with pytest.raises(ValueError, match="hold no </think>"):
        engine.add(request)
    with pytest.raises(ValueError, match="hold a <think>"):
        engine.add(replace(request, closing=(1, 0)))
    with pytest.raises(ValueError, match="stop id 7"):
        engine.add(replace(request, closing=(1, 7)))
