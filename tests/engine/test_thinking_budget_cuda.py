"""Thinking budgets on CUDA: graphs, a host one step behind, drafts; the tokens are those of two plain requests."""

from __future__ import annotations

import random

import pytest
import torch
from mtp_models import mtp_model
from small_engines import assert_same, finish_all, small_engine, small_model
from thinking_cases import check_forced, random_cases, reference, run

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]
FLOAT32_TOLERANCE = 1e-3


@pytest.fixture(scope="module")
def model():
    return mtp_model(2, device="cuda")


@pytest.mark.parametrize("mtp", [False, True])
@pytest.mark.parametrize("chunks", [False, True])
@pytest.mark.parametrize("drafts", [False, True])
def test_thinking_is_closed_at_its_budget_on_a_card(model, mtp, chunks, drafts):
    """Seeds of the search on the CPU, with few pages so that rows are preempted, and with many."""
    for seed in range(3):
        vocabulary, requests = random_cases(seed)
        expected = {request.id: reference(vocabulary, request, model) for request in requests}
        for num_pages in (20, 200):
            engine = small_engine(model, vocabulary=vocabulary, num_pages=num_pages, mtp=mtp)
            engine.ask_for_drafts(mtp)
            numbers = random.Random(seed)
            found = run([engine], requests, numbers=numbers, chunks=chunks, drafts=drafts)
            assert_same(found, expected, FLOAT32_TOLERANCE)
            for completion in found.values():
                check_forced(completion)


def test_in_exact_mode_division_and_drafts_change_no_bit():
    model = small_model("qwen3", device="cuda", dtype=torch.bfloat16)
    vocabulary, requests = random_cases(7)
    options = {"vocabulary": vocabulary, "page_size": 16, "batch_invariant": True}
    plain = finish_all(small_engine(model, **options), requests)
    for chunks, drafts in ((True, False), (False, True), (True, True)):
        engine = small_engine(model, **options)
        found = run([engine], requests, numbers=random.Random(1), chunks=chunks, drafts=drafts)
        assert_same(found, plain, tolerance=0.0)
