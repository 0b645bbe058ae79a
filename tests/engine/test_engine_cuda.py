"""The same engine on CUDA: tokens hold in float32, log-probabilities within bfloat16's rounding."""

from __future__ import annotations

import pytest
import torch
from small_engines import (
    SHAPES,
    VOCABULARY,
    ask_group,
    assert_all_free,
    assert_same,
    finish_all,
    full_logprobs,
    mixed_requests,
    random_prompt,
    small_engine,
    small_model,
)

from foresail.engine.drafts import Draft

if torch.cuda.is_available():
    from foresail.engine import runner_cuda

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]
BFLOAT16_TOLERANCE = 0.1


def uncut(completion) -> bool:
    return not completion.request.sampling.truncates


@pytest.mark.parametrize("family", SHAPES)
def test_cuda_decode_matches_full_forward(family):
    model = small_model(family, device="cuda", dtype=torch.bfloat16)
    completions = finish_all(small_engine(model, page_size=16), mixed_requests())
    found, expected = [], []
    for completion in filter(uncut, completions.values()):
        found += completion.logprobs
        expected.append(full_logprobs(model, completion))
    differences = (torch.tensor(found) - torch.cat(expected)).abs()
    assert differences.max() < BFLOAT16_TOLERANCE
    assert differences.mean() < BFLOAT16_TOLERANCE / 10


def test_cuda_draws_the_tokens_of_the_cpu():
    requests = mixed_requests()
    on_cpu = finish_all(small_engine(small_model("qwen3")), requests)
    on_cuda = finish_all(small_engine(small_model("qwen3", device="cuda")), requests)
    assert_same(on_cuda, on_cpu, tolerance=1e-4)


def test_cuda_preemption_does_not_matter():
    model = small_model("qwen2", device="cuda")
    roomy = finish_all(small_engine(model), mixed_requests())
    tight = small_engine(model, num_pages=12, page_size=4, max_running=4)
    assert_same(finish_all(tight, mixed_requests()), roomy, tolerance=1e-4)
    assert_all_free(tight)


def test_cuda_drafts_change_no_token():
    """Right drafts with a wrong end, in groups whose shared pages are packed."""
    model = small_model("qwen3", device="cuda")
    requests = [request for request in mixed_requests() if not request.sampling.truncates]
    plain = finish_all(small_engine(model), requests)
    engine, found, steps = small_engine(model), {}, 0
    for request in requests:
        engine.add(request)
    while engine.busy:
        drafts = {}
        for request in requests:
            tokens = engine.tokens(request.id)
            if tokens is not None:
                rest = plain[request.id].ids[len(tokens) - len(request.prompt) :][:3]
                wrong = next(token for token in range(VOCABULARY) if token not in rest[:1])
                drafts[request.id] = Draft(tokens=(*rest, wrong))
        found |= {
            completion.request.id: completion for completion in engine.step(engine.drafts_by_slot(drafts))
        }
        steps += 1
    assert_same(found, plain, tolerance=1e-4)
    assert steps <= 1 + -(-20 // 4) + 1
    assert_all_free(engine)


@pytest.mark.parametrize("worth", [0, 2**60])
def test_cuda_packing_does_not_matter(worth, monkeypatch):
    model = small_model("qwen2", device="cuda")
    requests = [
        *ask_group("a", random_prompt(23), 9, stop_ids=()),
        *ask_group("b", random_prompt(9), 3, stop_ids=()),
    ]
    expected = finish_all(small_engine(small_model("qwen2")), requests)
    monkeypatch.setattr(runner_cuda, "WORTH_PACKING", worth)
    engine = small_engine(model)
    assert_same(finish_all(engine, requests), expected, tolerance=1e-4)
    assert any(kind.packed for kind in engine.runner.graphs) == (worth == 0)


def test_cuda_parked_requests_go_on_elsewhere():
    model = small_model("qwen2", device="cuda")
    expected = finish_all(small_engine(model), mixed_requests())
    engines, found = [small_engine(model), small_engine(model)], {}
    for request in mixed_requests():
        engines[0].add(request, chunk_tokens=3)
    while any(engine.busy for engine in engines):
        for place, engine in enumerate(engines):
            for completion in engine.step():
                if completion.finish == "chunk":
                    parked = engine.park(completion.request.id)
                    assert parked.kv.pages.is_pinned()
                    engines[1 - place].resume(parked, chunk_tokens=3)
                else:
                    found[completion.request.id] = completion
    assert_same(found, expected, tolerance=1e-4)


def test_cuda_memory_can_be_lent():
    model = small_model("qwen2", device="cuda")
    engine = small_engine(model, num_pages=200_000, page_size=16)
    expected = finish_all(engine, mixed_requests())
    address = engine.runner.cache.keys.data_ptr()
    engine.give_back_memory()
    free, _ = torch.cuda.mem_get_info()
    lent = torch.ones(free // 2, dtype=torch.uint8, device="cuda")
    del lent
    torch.cuda.empty_cache()
    engine.take_memory()
    assert engine.runner.cache.keys.data_ptr() == address
    assert_same(finish_all(engine, mixed_requests()), expected, tolerance=1e-4)


def test_cuda_fp8_cache_is_near():
    """Keys and values in eight bits: log-probabilities of the same tokens move, but not far."""
    model = small_model("qwen3", device="cuda", dtype=torch.bfloat16)
    engine = small_engine(model, page_size=16, fp8_kv=True)
    assert engine.runner.cache.keys.dtype == torch.float8_e4m3fn
    completions = finish_all(engine, mixed_requests())
    pairs = [(torch.tensor(c.logprobs), full_logprobs(model, c)) for c in completions.values() if uncut(c)]
    differences = torch.cat([(ours - theirs).abs() for ours, theirs in pairs])
    assert 0 < differences.mean() < 0.1


def test_cuda_batch_invariance_is_exact():
    """In that mode a request draws the same tokens with the same bits, alone and in any company."""
    model = small_model("qwen3", device="cuda", dtype=torch.bfloat16)
    together = finish_all(small_engine(model, batch_invariant=True, page_size=16), mixed_requests())
    for request in mixed_requests():
        alone = finish_all(small_engine(model, batch_invariant=True, page_size=16), [request])[request.id]
        assert alone.ids == together[request.id].ids
        assert alone.logprobs == together[request.id].logprobs


def test_cuda_refuses_what_it_cannot_do():
    model = small_model("qwen3", device="cuda", dtype=torch.bfloat16)
    with pytest.raises(ValueError, match="page_size 12 is no power of two"):
        small_engine(model, page_size=12)
    with pytest.raises(MemoryError, match=r"lower engine\.kv_tokens"):
        small_engine(model, num_pages=10**9, page_size=16)
