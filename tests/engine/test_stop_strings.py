"""Stop strings: a response ends with the token that completes one, whatever the engine does meanwhile."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
import torch
from ahead_of_the_host import run_ahead
from small_engines import (
    VOCABULARY,
    Completion,
    Engine,
    Request,
    ask,
    assert_all_free,
    assert_same,
    finish_all,
    random_prompt,
    small_engine,
    small_model,
)

from foresail.engine.drafts import Draft
from foresail.engine.stop_strings import FOUND, StopStrings
from foresail.rollout.groups import continue_request

MODEL = small_model("qwen3")
LETTERS = ["a", "b", "c", "é", "数", " "]


def random_vocabulary(numbers: random.Random) -> list[bytes]:
    """Tokens that begin and end anywhere, inside characters too; some say nothing."""
    text = "".join(numbers.choice(LETTERS) for _ in range(300)).encode()
    starts = [numbers.randrange(len(text) - 6) for _ in range(VOCABULARY)]
    return [text[start : start + numbers.choice([0, 1, 1, 2, 3, 6])] for start in starts]


def random_strings(numbers: random.Random) -> tuple[str, ...]:
    return tuple(
        "".join(numbers.choice(LETTERS) for _ in range(numbers.randint(1, 4)))
        for _ in range(numbers.randint(1, 3))
    )


def first_end(tokens: list[int], strings: tuple[str, ...], vocabulary: list[bytes]) -> int | None:
    """How many tokens there are when a string is complete; None: never."""
    text = b""
    for count, token in enumerate(tokens, start=1):
        text += vocabulary[token]
        if any(string.encode() in text for string in strings):
            return count
    return None


@pytest.mark.parametrize("seed", range(300))
def test_the_automaton_finds_what_a_search_in_the_text_finds(seed: int) -> None:
    numbers = random.Random(seed)
    vocabulary, strings = random_vocabulary(numbers), random_strings(numbers)
    stops = StopStrings(vocabulary)
    stops.state(random_strings(numbers), ())  # other strings before them in the table
    for _ in range(20):
        tokens = [numbers.randrange(VOCABULARY) for _ in range(30)]
        end = first_end(tokens, strings, vocabulary)
        last = end or len(tokens)
        states = [stops.state(strings, tokens[:count]) for count in range(last + 1)]
        assert [state == FOUND for state in states] == [count == end for count in range(last + 1)]
        assert [*map(stops.next_KV.__getitem__, zip(states[:-1], tokens, strict=False))] == states[1:]


# In the engine. The reference is what a request draws without stop strings, cut by a search in its text.


def cases(seed: int) -> tuple[list[bytes], list[Request], dict[str, Completion]]:
    """A vocabulary, requests of which some have stop strings, and how each must end."""
    numbers = random.Random(f"engine {seed}")
    vocabulary = random_vocabulary(numbers)
    requests = [
        ask(
            f"{number}",
            random_prompt(numbers.choice([3, 4, 9])),
            stop_ids=numbers.choice([(), (7,)]),
            stop=numbers.choice([(), random_strings(numbers)]),
            temperature=numbers.choice([0.0, 1.0, 2.0]),
        )
        for number in range(12)
    ]
    expected = {}
    for name, whole in finish_all(small_engine(MODEL), map(without_strings, requests)).items():
        request = requests[int(name)]
        end = first_end(list(whole.ids), request.sampling.stop, vocabulary)
        expected[name] = replace(
            whole,
            ids=whole.ids[:end],
            logprobs=whole.logprobs[:end],
            finish=whole.finish if end is None else "stop",
        )
    return vocabulary, requests, expected


def without_strings(request: Request) -> Request:
    return replace(request, sampling=request.sampling.model_copy(update={"stop": ()}))


def plainly(
    engine: Engine, requests: list[Request], expected: dict[str, Completion]
) -> dict[str, Completion]:
    return finish_all(engine, requests)


def in_chunks(
    engine: Engine, requests: list[Request], expected: dict[str, Completion]
) -> dict[str, Completion]:
    """Parked after every chunk and put back, as when a chunk runs elsewhere."""
    found = {}
    for request in requests:
        engine.add(request, chunk_tokens=3)
    while engine.busy:
        for completion in engine.step():
            if completion.finish != "chunk":
                found[completion.request.id] = completion
                continue
            parked = engine.park(completion.request.id)
            assert parked is not None
            engine.resume(parked, chunk_tokens=3)
    return found


def with_drafts(
    engine: Engine, requests: list[Request], expected: dict[str, Completion]
) -> dict[str, Completion]:
    """Of right guesses, which go on behind the stop string too."""
    endless = finish_all(small_engine(MODEL), map(without_strings, requests))
    found = {}
    for request in requests:
        engine.add(request)
    while engine.busy:
        drafts = {}
        for request in requests:
            if (tokens := engine.tokens(request.id)) is not None:
                rest = endless[request.id].ids[len(tokens) - len(request.prompt) :]
                drafts[request.id] = Draft(tokens=tuple(rest[:5]))
        ended = engine.step(engine.drafts_by_slot(drafts))
        found |= {completion.request.id: completion for completion in ended}
    return found


def as_longer_prompts(
    engine: Engine, requests: list[Request], expected: dict[str, Completion]
) -> dict[str, Completion]:
    """Taken out in the middle, to go on as a request of its own: a string may lie across the border."""
    found, begun = {}, {}
    for request in requests:
        engine.add(request)
    for _ in range(4):
        found |= {completion.request.id: completion for completion in engine.step()}
    for request in requests:
        if (parked := engine.park(request.id)) is not None:
            begun[request.id] = parked
            engine.add(continue_request(parked))
    for name, rest in finish_all(engine).items():
        ids, logprobs = (begun[name].ids, begun[name].logprobs) if name in begun else ([], [])
        found[name] = replace(rest, ids=[*ids, *rest.ids], logprobs=[*logprobs, *rest.logprobs])
    return found


WAYS = [plainly, in_chunks, with_drafts, as_longer_prompts]


@pytest.mark.parametrize("ahead", [False, True])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("pages", [400, 45])  # with few, rows are preempted
def test_a_response_ends_with_the_token_that_completes_a_string(way, ahead: bool, pages: int) -> None:
    for seed in range(6):
        vocabulary, requests, expected = cases(seed)
        engine = small_engine(MODEL, num_pages=pages, max_running=6, vocabulary=vocabulary)
        if ahead:
            run_ahead(engine)
        assert_same(way(engine, requests, expected), expected)
        assert_all_free(engine)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("way", WAYS)
def test_cuda_ends_responses_where_the_cpu_does(way) -> None:
    model = small_model("qwen3", device="cuda")
    for seed in range(6):
        vocabulary, requests, expected = cases(seed)
        engine = small_engine(model, num_pages=45, max_running=6, vocabulary=vocabulary)
        assert_same(way(engine, requests, expected), expected, tolerance=1e-4)
        assert_all_free(engine)


def test_the_cases_hold_strings_of_every_kind_of_end() -> None:
    ends = [
        completion.finish for seed in range(6) for completion in cases(seed)[2].values() if completion.ids
    ]
    assert min(ends.count("stop"), ends.count("length")) > 10


def test_what_a_tool_says_completes_no_string() -> None:
    """In `appended` text a string may stand: it is not the model's."""
    vocabulary = [b"ab"] * VOCABULARY
    engine = small_engine(MODEL, vocabulary=vocabulary)
    first = finish_all(engine, [ask("a", random_prompt(4), stop=("bab",), stop_ids=())])["a"]
    assert first.finish == "stop" and len(first.ids) == 2
    again = continue_request(first, appended=(1, 2, 3))
    assert again.begun == 0
    assert len(finish_all(engine, [again])["a"].ids) == 2


def test_a_model_with_more_rows_than_the_tokenizer_has_tokens() -> None:
    request = ask("a", random_prompt(4), stop=("a",), stop_ids=(), temperature=2.0)
    drawn = finish_all(small_engine(MODEL), [without_strings(request)])["a"].ids
    last = min(drawn)
    engine = small_engine(MODEL, vocabulary=[b""] * last + [b"a"])
    assert finish_all(engine, [request])["a"].ids == drawn[: drawn.index(last) + 1]


def test_without_a_vocabulary_strings_are_refused_when_the_request_is_added() -> None:
    engine = small_engine(MODEL)
    with pytest.raises(ValueError, match="no vocabulary"):
        engine.add(ask("a", random_prompt(4), stop=("a",)))
    assert_all_free(engine)


def test_tables_are_made_once_for_equal_strings() -> None:
    stops = StopStrings([b"a", b"b"])
    first = stops.state(("ab",), ())
    table = stops.next_KV
    assert stops.state(("ab",), ()) == first and stops.next_KV is table
    assert np.array_equal(table[:2], [[0, 0], [1, 1]])
