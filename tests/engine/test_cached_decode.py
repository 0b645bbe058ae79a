"""What the paged cache gives is what a plain forward pass over the whole sequence gives."""

from __future__ import annotations

import pytest
import torch
from small_engines import (
    SHAPES,
    TOLERANCE,
    ask,
    assert_all_free,
    finish_all,
    full_logits,
    full_logprobs,
    random_prompt,
    small_engine,
    small_model,
)

from foresail.data.packing import pack
from foresail.model.packed import token_logprobs
from foresail.records import TrainSequence


@pytest.mark.parametrize("page_size", [1, 3, 8, 64])
@pytest.mark.parametrize("family", SHAPES)
def test_cached_decode_matches_full_forward(family, page_size):
    model = small_model(family)
    lengths = sorted({1, 2, 7, 8, 9, 15, 16, 17, page_size, page_size + 1, 2 * page_size} & set(range(1, 60)))
    requests = [ask(f"{n}", random_prompt(n), stop_ids=(), max_new_tokens=21) for n in lengths]
    engine = small_engine(model, page_size=page_size)
    completions = finish_all(engine, requests)
    for completion in completions.values():
        assert len(completion.ids) == 21
        torch.testing.assert_close(
            torch.tensor(completion.logprobs), full_logprobs(model, completion), rtol=0, atol=TOLERANCE
        )
    assert_all_free(engine)


def test_logprobs_agree_with_the_trainer():
    model = small_model("qwen3")
    requests = [ask(f"{n}", random_prompt(n), temperature=0.7) for n in range(1, 12)]
    completions = list(finish_all(small_engine(model), requests).values())
    sequences = [
        TrainSequence(
            ids=[*completion.request.prompt, *completion.ids],
            loss_mask=[0] * len(completion.request.prompt) + [1] * len(completion.ids),
            rollout_logprobs=[0.0] * len(completion.request.prompt) + completion.logprobs,
        )
        for completion in completions
    ]
    for batch in pack(sequences, [1.0] * len(sequences), max_tokens=64, device=model.device):
        logprobs_M, _ = token_logprobs(model, batch, temperature=0.7)
        torch.testing.assert_close(logprobs_M, batch.rollout_logprobs_M, rtol=0, atol=TOLERANCE)


def test_greedy_takes_the_best_token_of_the_full_forward():
    model = small_model("mistral")
    request = ask("greedy", random_prompt(9), temperature=0.0, stop_ids=())
    completion = finish_all(small_engine(model), [request])["greedy"]
    best = full_logits(model, (*request.prompt, *completion.ids)).argmax(-1)
    assert completion.ids == best[len(request.prompt) - 1 : -1].tolist()


def test_what_pages_held_before_does_not_matter():
    """The unused tail of a page is hidden: leftovers of other requests change nothing."""
    model = small_model("qwen2")
    requests = [ask(f"{n}", random_prompt(n)) for n in (3, 6, 10)]
    clean = finish_all(small_engine(model, page_size=8), requests)
    used = small_engine(model, page_size=8)
    used.runner.cache.keys.fill_(1e4)
    used.runner.cache.values.fill_(-1e4)
    dirty = finish_all(used, requests)
    assert {name: (c.ids, c.logprobs) for name, c in dirty.items()} == {
        name: (c.ids, c.logprobs) for name, c in clean.items()
    }
