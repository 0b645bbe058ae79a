"""How a request begins and ends: refusals, stop ids, limits, cancelling, and the versions of its tokens."""

from __future__ import annotations

import pytest
import torch
from small_engines import (
    TOLERANCE,
    VOCABULARY,
    ask,
    ask_group,
    assert_all_free,
    finish_all,
    full_logprobs,
    random_prompt,
    small_engine,
    small_model,
)

from foresail.engine.build import build_engine
from foresail.engine.engine import NotANumber
from foresail.recipe.tables import parts

MODEL = small_model()
PROMPT = random_prompt(6)


def endless(name: str, **options) -> list[int]:
    """What a request would draw if nothing stopped it."""
    return finish_all(small_engine(MODEL), [ask(name, PROMPT, stop_ids=(), **options)])[name].ids


# Stops and limits.


def test_the_first_stop_id_ends_a_request_and_is_its_last_token():
    drawn = endless("a")
    for stop_ids in [(drawn[4],), (drawn[9], drawn[4]), (drawn[12], drawn[7], drawn[3]), (drawn[0],)]:
        end = min(drawn.index(stop) for stop in stop_ids)
        completion = finish_all(small_engine(MODEL), [ask("a", PROMPT, stop_ids=stop_ids)])["a"]
        assert completion.ids == drawn[: end + 1]
        assert completion.finish == "stop"


def test_without_a_stop_the_limit_ends_a_request():
    for limit in (1, 2, 19):
        completion = finish_all(small_engine(MODEL), [ask("a", PROMPT, max_new_tokens=limit, stop_ids=())])[
            "a"
        ]
        assert completion.ids == endless("a")[:limit]
        assert completion.finish == "length"


def test_a_stop_id_on_the_last_place_counts_as_a_stop():
    drawn = endless("a")
    place = next(n for n in range(3, 20) if drawn.index(drawn[n]) == n)
    request = ask("a", PROMPT, stop_ids=(drawn[place],), max_new_tokens=place + 1)
    completion = finish_all(small_engine(MODEL), [request])["a"]
    assert completion.ids == drawn[: place + 1] and completion.finish == "stop"


def test_a_neighbour_with_more_stop_ids_adds_none_to_mine():
    """The table of stop ids grows for the neighbour; the new columns must hold no token, least of all token 0."""
    name = next(
        name for name in map(str, range(100)) if 0 in endless(name)[2:] and 0 not in endless(name)[:2]
    )
    drawn = endless(name)
    unused = next(token for token in range(VOCABULARY) if token not in drawn)
    engine = small_engine(MODEL)
    engine.add(ask(name, PROMPT, stop_ids=(unused,)))
    engine.step()
    engine.add(ask("neighbour", PROMPT, stop_ids=(1, 2, 3, 4, 5)))
    assert finish_all(engine)[name].ids == drawn


# Cancelling.


def test_cancel_returns_what_was_drawn():
    engine = small_engine(MODEL, max_running=2)
    for request in ask_group("a", PROMPT, 4, stop_ids=()):
        engine.add(request)
    for _ in range(3):
        engine.step()
    running = engine.cancel("a.0")
    assert running is not None and running.finish == "cancelled"
    assert running.ids == endless("a.0")[:3]
    assert len(running.logprobs) == len(running.versions) == 3
    waiting = engine.cancel("a.3")
    assert waiting is not None and waiting.finish == "cancelled"
    assert waiting.ids == waiting.logprobs == waiting.versions == []
    assert engine.cancel("nobody") is None
    assert engine.cancel("a.0") is None
    assert {name: c.ids for name, c in finish_all(engine).items()} == {
        name: endless(name) for name in ("a.1", "a.2")
    }
    assert engine.cancel("a.1") is None
    assert_all_free(engine)


def test_cancel_of_a_row_that_was_put_back_returns_what_it_drew_before():
    engine = small_engine(MODEL)
    engine.add(ask("a", PROMPT, stop_ids=()))
    for _ in range(4):
        engine.step()
    engine.weights_changed(1)
    cancelled = engine.cancel("a")
    assert cancelled is not None and cancelled.ids == endless("a")[:4] and cancelled.versions == [0] * 4
    assert_all_free(engine)


def test_a_request_cancelled_while_its_prompt_is_filled_leaves_nothing():
    engine = small_engine(MODEL, prefill_tokens=2)
    for request in ask_group("a", PROMPT, 2):
        engine.add(request)
    engine.step()
    assert engine.rows.count["filling"] == 2 and engine.admission.prefixes.by_tokens
    assert engine.cancel("a.0") is not None and engine.cancel("a.1") is not None
    assert_all_free(engine)
    assert finish_all(engine, [ask("b", PROMPT, stop_ids=())])["b"].ids == endless("b")
    assert_all_free(engine)


def test_of_two_requests_with_one_id_cancel_takes_one():
    engine = small_engine(MODEL)
    twins = ask("twin", PROMPT, stop_ids=())
    engine.add(twins)
    engine.add(twins)
    engine.step()
    assert engine.cancel("twin") is not None
    assert [completion.ids for completion in engine.generate([])] == [endless("twin")]
    assert_all_free(engine)


def test_who_stops_listening_cancels_the_rest():
    engine = small_engine(MODEL, max_running=3)
    requests = [ask(f"{n}", PROMPT, max_new_tokens=n + 1, stop_ids=()) for n in range(8)]
    for completion in engine.generate(requests):
        assert completion.request.id == "0"
        break
    assert_all_free(engine)


# Refusals.


def test_an_empty_prompt_is_refused():
    with pytest.raises(ValueError, match="request a has an empty prompt"):
        small_engine(MODEL).add(ask("a", ()))


def test_a_request_beyond_the_context_is_refused():
    context = MODEL.shape.max_context
    engine = small_engine(MODEL)
    engine.add(ask("fits", random_prompt(context - 20)))
    with pytest.raises(ValueError, match=r"77 prompt tokens \+ 20 new ones exceed the model's context of 96"):
        engine.add(ask("a", random_prompt(context - 19)))
    assert engine.rows.count["waiting"] == 1


def test_a_request_for_more_pages_than_there_are_is_refused():
    # 10 + 20 tokens are 8 pages of 4, and one for the copy of the prompt's half-filled page.
    with pytest.raises(
        ValueError, match=r"needs 9 KV pages and the engine has 8; raise engine.kv_tokens .* 36"
    ):
        small_engine(MODEL, num_pages=8).add(ask("a", random_prompt(10)))
    small_engine(MODEL, num_pages=9).add(ask("a", random_prompt(10)))


@pytest.mark.parametrize("token", [-1, VOCABULARY])
def test_a_token_the_model_does_not_know_is_refused(token):
    with pytest.raises(ValueError, match=rf"request a holds token {token}, and the model knows 0 to 30"):
        small_engine(MODEL).add(ask("a", (1, token, 2)))


def test_too_many_stop_ids_are_refused():
    with pytest.raises(ValueError, match="request a has 17 stop ids; the most is 16"):
        small_engine(MODEL).add(ask("a", PROMPT, stop_ids=tuple(range(17))))


def test_the_engine_survives_a_refusal():
    engine = small_engine(MODEL, num_pages=9)
    engine.add(ask("good", PROMPT, stop_ids=()))
    engine.step()
    for prompt in ((), random_prompt(95), random_prompt(40)):
        with pytest.raises(ValueError, match="request bad"):
            engine.add(ask("bad", prompt))
    assert finish_all(engine)["good"].ids == endless("good")
    with pytest.raises(ValueError, match="request bad"):
        finish_all(engine, [ask("good", PROMPT), ask("bad", ())])
    assert_all_free(engine)  # the good one before it does not haunt the next batch


def test_weights_that_give_nan_are_named_not_sampled():
    model = small_model(seed=1)
    engine = small_engine(model)
    engine.add(ask("a", PROMPT, stop_ids=()))
    engine.step()
    with torch.no_grad():
        model.norm.weight[3] = torch.nan
    with pytest.raises(NotANumber, match="NaN for the next token of request a"):
        engine.step()


# Versions.


def test_each_token_names_the_weights_that_drew_it():
    model = small_model()
    engine = small_engine(model)
    requests = ask_group("a", PROMPT, 3, stop_ids=(), max_new_tokens=9)
    for request in requests:
        engine.add(request)
    for _ in range(4):
        engine.step()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1.5)
    engine.weights_changed(5)
    late = ask("late", PROMPT, stop_ids=(), max_new_tokens=3)
    completions = finish_all(engine, [late])
    for request in requests:
        completion = completions[request.id]
        assert completion.versions == [0] * 4 + [5] * 5
        assert completion.ids[:4] == endless(request.id)[:4]
        assert completion.ids != endless(request.id)[:9]
        after = full_logprobs(model, completion)[
            4:
        ]  # under the new weights, keys and values of the prompt included
        torch.testing.assert_close(torch.tensor(completion.logprobs[4:]), after, rtol=0, atol=TOLERANCE)
        before = full_logprobs(MODEL, completion)[:4]
        torch.testing.assert_close(torch.tensor(completion.logprobs[:4]), before, rtol=0, atol=TOLERANCE)
    assert completions["late"].versions == [5] * 3


def test_a_prompt_kept_for_those_that_wait_is_forgotten_with_the_old_weights():
    model = small_model()
    engine = small_engine(model, max_running=1)
    for request in ask_group("a", PROMPT, 2, stop_ids=(), max_new_tokens=3):
        engine.add(request)
    engine.step()
    with torch.no_grad():
        model.embed.weight.mul_(0.5)
    engine.weights_changed(1)
    second = finish_all(engine)["a.1"]
    torch.testing.assert_close(
        torch.tensor(second.logprobs), full_logprobs(model, second), rtol=0, atol=TOLERANCE
    )


# Building.


def test_the_recipe_says_how_many_pages():
    roomy = build_engine(MODEL, parts.Engine(max_running=3, page_size=8), max_length=33)
    assert roomy.num_pages == 3 * (5 + 1)
    tight = build_engine(MODEL, parts.Engine(page_size=8, kv_tokens=100), max_length=33)
    assert tight.num_pages == 12
    requests = [ask(f"{n}", random_prompt(13), stop_ids=()) for n in range(4)]
    assert finish_all(roomy, requests).keys() == finish_all(tight, requests).keys()
