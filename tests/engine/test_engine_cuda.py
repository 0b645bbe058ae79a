"""The same engine on CUDA: tokens hold in float32, log-probabilities within bfloat16's rounding."""

from __future__ import annotations

import pytest
import torch
from small_engines import (
    SHAPES,
    assert_all_free,
    assert_same,
    finish_all,
    full_logprobs,
    mixed_requests,
    small_engine,
    small_model,
)

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
