"""How many attempts an evaluation makes at once: never more KV cache than the machine can spare."""

from __future__ import annotations

import pytest
import torch

from foresail.engine.build import build_engine
from foresail.model.hf import build_model
from foresail.recipe.shape.model_shape import ModelShape
from foresail.rollout import checkpoint as checkpoint_module
from foresail.rollout.checkpoint import choose_engine

SHAPE = ModelShape(
    vocab_size=20, hidden_size=8, intermediate_size=8, num_layers=2, num_heads=2, num_kv_heads=1, head_dim=4,
    max_context=256,
)  # fmt: skip
MODEL = build_model(SHAPE, seed=0)


def cache_bytes(max_length: int, num_attempts: int) -> int:
    engine = choose_engine(MODEL, max_length, num_attempts=num_attempts)
    cache = build_engine(MODEL, engine, max_length=max_length).runner.cache
    return sum(tensor.numel() * tensor.element_size() for tensor in (cache.keys, cache.values))


@pytest.mark.parametrize(("num_attempts", "rows"), [(1, 1), (40, 40), (511, 511), (9999, 512)])
def test_with_memory_enough_there_is_a_row_for_every_attempt(num_attempts: int, rows: int) -> None:
    assert choose_engine(MODEL, 30, num_attempts=num_attempts).max_running == rows


@pytest.mark.parametrize("memory", [50_000, 200_000, 1_000_000])
def test_the_cache_stays_below_half_of_the_memory(monkeypatch: pytest.MonkeyPatch, memory: int) -> None:
    monkeypatch.setattr(checkpoint_module, "main_memory", lambda: memory)
    # a row is 3 pages of 16 tokens, a token 2 layers x (key + value) x 4 numbers x 4 bytes
    row = 3 * 16 * 2 * 2 * 4 * 4
    assert memory // 2 - row < cache_bytes(max_length=30, num_attempts=9999) <= memory // 2


def test_one_row_there_always_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint_module, "main_memory", lambda: 1)
    assert choose_engine(MODEL, 30, num_attempts=100).max_running == 1
    monkeypatch.setattr(checkpoint_module, "main_memory", lambda: None)
    assert choose_engine(MODEL, 30, num_attempts=100).max_running == 100


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_on_cuda_the_free_memory_of_the_card_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (100_000, 10**9))
    model = build_model(SHAPE, seed=0, device="cuda")
    assert choose_engine(model, 30, num_attempts=9999).max_running == 60_000 // (3 * 16 * 64)
