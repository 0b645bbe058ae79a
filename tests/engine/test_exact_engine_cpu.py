"""In batch-invariant mode a CPU engine gives a sample the same bits, whatever runs beside it."""

from __future__ import annotations

import pytest
import small_engines
from small_engines import (
    Completion,
    Engine,
    ask,
    ask_group,
    finish_all,
    random_prompt,
    small_engine,
    small_model,
)

from foresail.engine.drafts import Draft
from foresail.model.decoder import Decoder

# wide enough for sums to depend on how many rows and places there are; two query heads to a key head
WIDE = {"hidden_size": 128, "intermediate_size": 320, "num_heads": 4, "num_kv_heads": 2, "head_dim": 32}
REQUESTS = [
    *ask_group("group", random_prompt(37), 3, stop_ids=()),
    *(ask(f"{n}", random_prompt(n), stop_ids=()) for n in (1, 2, 8, 30, 60)),
    ask("greedy", random_prompt(20), stop_ids=(), temperature=0.0),
    ask("top p", random_prompt(21), stop_ids=(), top_p=0.8),
]


@pytest.fixture(scope="module", params=["llama", "qwen3", "ernie4_5_moe"])
def model(request: pytest.FixtureRequest) -> Decoder:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(small_engines.SHAPES, "wide", small_engines.SHAPES[request.param] | WIDE)
        return small_model("wide")


@pytest.fixture(scope="module")
def alone(model: Decoder) -> dict[str, tuple[list[int], list[float]]]:
    """Tokens and log-probabilities of every request in an engine of its own."""
    return bits({request.id: finish_all(exact(model), [request])[request.id] for request in REQUESTS})


def exact(model: Decoder, **options: int) -> Engine:
    return small_engine(model, batch_invariant=True, **options)


def bits(completions: dict[str, Completion]) -> dict[str, tuple[list[int], list[float]]]:
    return {name: (found.ids, found.logprobs) for name, found in completions.items()}


@pytest.mark.parametrize(
    "options",
    [{}, {"max_running": 3}, {"prefill_tokens": 7}, {"num_pages": 30}, {"page_size": 16, "num_pages": 60}],
    ids=["together", "few rows", "divided prompts", "few pages", "large pages"],
)
def test_cpu_company_changes_no_bit(
    model: Decoder, alone: dict[str, tuple[list[int], list[float]]], options: dict[str, int]
) -> None:
    assert bits(finish_all(exact(model, **options), REQUESTS)) == alone
    assert bits(finish_all(exact(model, **options), REQUESTS[::-1])) == alone


def test_cpu_drafts_change_no_bit(model: Decoder, alone: dict[str, tuple[list[int], list[float]]]) -> None:
    """Right ones, wrong ones, and such as begin wrongly."""
    engine, found, step, ends = exact(model), {}, 0, {}
    for request in REQUESTS:
        engine.add(request)
    while engine.busy:
        drafts = {}
        for number, request in enumerate(REQUESTS):
            if (tokens := engine.tokens(request.id)) is not None:
                rest = tuple(alone[request.id][0][len(tokens) - len(request.prompt) :][:4])
                wrong = next(token for token in range(3) if token not in rest[:1])
                drafts[request.id] = (
                    Draft(tokens=rest),
                    Draft(tokens=(wrong,)),
                    Draft(tokens=(wrong, *rest[:1])),
                )[number % 3]
        step += 1
        for completion in engine.step(engine.drafts_by_slot(drafts)):
            found[completion.request.id], ends[completion.request.id] = completion, step
    assert ends["group.0"] < 10 < ends["group.1"]  # right drafts were taken, wrong ones not
    assert bits(found) == alone
