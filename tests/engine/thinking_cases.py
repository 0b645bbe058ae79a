"""Requests with thinking budgets, what they should draw, and engines that draw them in pieces and with drafts."""

from __future__ import annotations

import random
from dataclasses import replace

from mtp_models import MTP_MODELS
from small_engines import (
    VOCABULARY,
    Completion,
    Engine,
    Request,
    ask,
    assert_all_free,
    finish_all,
    random_prompt,
    small_engine,
)

from foresail.engine.drafts import Draft
from foresail.model.decoder import Decoder
from foresail.rollout.groups import continue_request, to_sample

MODEL = MTP_MODELS[2]
PIECES = [b"<think>", b"</think>", b"<th", b"ink>", b"</", b"think>", b"\n", b"a", b"b</", b"> c", b""]


def random_cases(seed: int) -> tuple[list[bytes], list[Request]]:
    """Tags in one token and in several; prompts that open thinking, close it, or leave it to the model."""
    numbers = random.Random(f"thinking {seed}")
    vocabulary = [*PIECES, *numbers.choices(PIECES, k=VOCABULARY - len(PIECES))]
    endings = [(0,), (0, 6), (0, 1), (1, 6, 6), (7,)]
    requests = []
    for number in range(10):
        closing = tuple(numbers.choice([(1,), (6, 1, 6), (4, 5), (7, 7, 7, 4, 5, 6)]))
        request = ask(
            f"{number}",
            random_prompt(numbers.randint(1, 9), number % 3) + numbers.choice(endings),
            stop_ids=(29, 30),
            max_new_tokens=numbers.randint(8, 24),
            thinking_budget=numbers.choice([0, 0, 1, 3, 4, 7, 9, None]),
            temperature=numbers.choice([0.0, 0.7, 1.0]),
            stop=numbers.choice([(), ("c\n",), ("k>\n",)]),
        )
        requests.append(replace(request, closing=closing))
    return vocabulary, requests


def is_open(prompt: bytes, said: bytes) -> bool:
    """By reading all text up to here, tag by tag."""
    if not said:
        return not prompt.rstrip().endswith(b"</think>")
    thinking, text = prompt.rstrip().endswith(b"<think>"), said
    while text:
        if text.startswith((b"<think>", b"</think>")):
            thinking = text.startswith(b"<think>")
        text = text[1:]
    return thinking


def reference(vocabulary: list[bytes], request: Request, model: Decoder = MODEL) -> Completion:
    """Drawn in two parts, each by a request without a budget: up to it, and behind what closes thinking."""
    budget, limit = request.sampling.thinking_budget, request.sampling.max_new_tokens
    engine = small_engine(model, vocabulary=vocabulary)
    plain = replace(
        request, closing=(), sampling=request.sampling.model_copy(update={"thinking_budget": None})
    )
    if budget is None:
        return finish_all(engine, [plain])[request.id]
    first = Completion(request=plain, ids=[], logprobs=[], versions=[], finish="length")
    if budget:
        short = plain.sampling.model_copy(update={"max_new_tokens": min(budget, limit)})
        first = finish_all(engine, [replace(plain, sampling=short)])[request.id]
    if first.finish == "stop" or budget >= limit:
        return first
    spelled = [b"".join(vocabulary[token] for token in ids) for ids in (request.prompt, first.ids)]
    closing = request.closing[: limit - budget] if is_open(*spelled) else ()
    spoken, stopped = spelled[1], False
    for count, token in enumerate(closing, start=1):
        spoken += vocabulary[token]
        if stopped := any(text.encode() in spoken for text in request.sampling.stop):
            closing = closing[:count]
            break
    before = replace(first, request=plain, ids=[*first.ids, *closing])
    logprobs = [*first.logprobs, *[0.0] * len(closing)]
    if stopped or len(before.ids) == limit:
        return replace(before, logprobs=logprobs, finish="stop" if stopped else "length")
    rest = finish_all(engine, [continue_request(before)])[request.id]
    whole = replace(rest, ids=[*before.ids, *rest.ids], logprobs=[*logprobs, *rest.logprobs])
    return cut_at_reopening(vocabulary, whole, len(before.ids))


def cut_at_reopening(vocabulary: list[bytes], whole: Completion, bounded_from: int) -> Completion:
    """It ends with the token of these that completes an opening tag."""
    for count in range(bounded_from + 1, len(whole.ids) + 1):
        before, now = (
            b"".join(vocabulary[token] for token in whole.ids[:end]).count(b"<think>")
            for end in (count - 1, count)
        )
        if now > before:
            return replace(whole, ids=whole.ids[:count], logprobs=whole.logprobs[:count], finish="stop")
    return whole


def run(
    engines: list[Engine], requests: list[Request], *, numbers: random.Random, chunks: bool, drafts: bool
) -> dict[str, Completion]:
    """In chunks that end here or go on in another engine; drafts are random, some by MTP layers."""
    found: dict[str, Completion] = {}

    def size() -> int | None:
        return numbers.randint(1, 5) if chunks else None

    for request in requests:
        engines[0].add(request, chunk_tokens=size())
    while any(engine.busy for engine in engines):
        for engine in engines:
            given = None
            if drafts and numbers.random() < 0.7:
                if engine.own_drafts is not None and numbers.random() < 0.5:
                    given = engine.mtp_drafts() if numbers.random() < 0.5 else engine.unread_drafts()
                else:
                    texts = {r.id: tuple(numbers.choices(range(VOCABULARY), k=3)) for r in requests}
                    given = engine.drafts_by_slot({name: Draft(tokens=text) for name, text in texts.items()})
            for completion in engine.step(given):
                name = completion.request.id
                if completion.finish != "chunk":
                    found[name] = completion
                elif numbers.random() < 0.5:
                    engine.go_on(name, chunk_tokens=size())
                else:
                    parked = engine.park(name)
                    assert parked is not None
                    numbers.choice(engines).resume(
                        parked if numbers.random() < 0.5 else parked.without_kv(), chunk_tokens=size()
                    )
    for engine in engines:
        assert_all_free(engine)
    return found


def check_forced(completion: Completion) -> None:
    """Forced is what closes thinking, right behind the budget, and nothing else."""
    request, forced = completion.request, list(completion.forced)
    budget = request.sampling.thinking_budget
    assert budget is not None or not forced
    if forced:
        assert forced == [*range(budget, budget + len(forced))]
        assert tuple(completion.ids[budget : budget + len(forced)]) == request.closing[: len(forced)]
        assert {completion.logprobs[place] for place in forced} == {0.0}
    sample = to_sample(completion)
    first = len(request.prompt)
    assert [place - first for place in sample.forced] == forced
    assert [place for place, learnt in enumerate(sample.loss_mask[first:]) if not learnt] == forced
