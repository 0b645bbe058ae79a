"""The GPU benchmark sees wrong values, knows where the rival's figures come from, and can run the rival."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import gpu_rival
import pytest
import torch
from gpu_check import check_logprobs, check_tokens, float32_copy, spread_out
from gpu_loads import LOADS, Load, draw_requests, even
from gpu_rival import STORED, measure_rival, run_loads
from shapes import SHAPES

from foresail.engine.engine import Engine
from foresail.engine.request import Completion
from foresail.model.decoder import Decoder
from foresail.model.hf import build_model
from foresail.recipe.shape.model_shape import ModelShape

SHAPE = ModelShape(
    family="qwen2",
    qkv_bias=True,
    vocab_size=300,
    hidden_size=64,
    intermediate_size=96,
    num_layers=2,
    num_heads=4,
    num_kv_heads=2,
    head_dim=16,
    max_context=64,
)
LOAD = even("x", "small", groups=3, samples=2, prompt=9, new=12)


@pytest.fixture(scope="module")
def model() -> Decoder:
    """Weights far from uniform draws, in the benchmark's bfloat16."""
    model = build_model(SHAPE, seed=0).requires_grad_(False)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "norm" not in name:
                parameter.normal_(0.0, 0.15, generator=torch.Generator().manual_seed(len(name)))
    return model.to(torch.bfloat16)


@pytest.fixture(scope="module")
def drawn(model: Decoder) -> list[Completion]:
    engine = Engine(model, num_pages=40, page_size=4, max_running=4, prefill_tokens=64)
    return list(engine.generate(draw_requests(LOAD, SHAPE.vocab_size, number=1)))


def changed(completions: list[Completion], row: int, logprobs: list[float]) -> list[Completion]:
    return [*completions[:row], replace(completions[row], logprobs=logprobs), *completions[row + 1 :]]


def test_what_the_engine_gives_agrees_with_float32(model: Decoder, drawn: list[Completion]) -> None:
    check_tokens(LOAD, drawn)
    found = check_logprobs(float32_copy(model), LOAD, drawn)
    assert found.tokens == 4 * 12
    assert found.max_abs > 0  # it rounds, so this is no comparison of a thing with itself


def test_one_wrong_log_probability_is_seen(model: Decoder, drawn: list[Completion]) -> None:
    last = len(drawn) - 1
    values = list(drawn[last].logprobs)
    values[7] -= 0.4
    with pytest.raises(AssertionError, match="off by"):
        check_logprobs(float32_copy(model), LOAD, changed(drawn, last, values))


def test_values_of_another_temperature_are_seen(model: Decoder, drawn: list[Completion]) -> None:
    """Small errors everywhere, none of them large: the mean tells."""
    off = [replace(completion, logprobs=[0.97 * v for v in completion.logprobs]) for completion in drawn]
    with pytest.raises(AssertionError, match="off by"):
        check_logprobs(float32_copy(model), LOAD, off)


def test_values_of_other_tokens_are_seen(model: Decoder, drawn: list[Completion]) -> None:
    values = list(drawn[0].logprobs)
    with pytest.raises(AssertionError, match="off by"):
        check_logprobs(float32_copy(model), LOAD, changed(drawn, 0, [*values[1:], values[0]]))


def test_nan_and_missing_tokens_are_seen(model: Decoder, drawn: list[Completion]) -> None:
    holes = changed(drawn, 0, [float("nan")] * 12)
    with pytest.raises(AssertionError):
        check_logprobs(float32_copy(model), LOAD, holes)
    with pytest.raises(AssertionError, match="are not"):
        check_tokens(LOAD, holes)
    with pytest.raises(AssertionError, match="without"):
        check_tokens(LOAD, changed(drawn, 0, [-1.0] * 11))
    with pytest.raises(AssertionError, match="drew"):
        check_tokens(LOAD, drawn[1:])


def test_rows_come_from_all_over_the_load() -> None:
    assert spread_out(10, 4) == [0, 3, 6, 9]
    assert spread_out(2, 4) == [0, 1]
    assert spread_out(1, 4) == [0]


# The rival.


def test_every_figure_on_record_says_when_and_how_it_was_measured() -> None:
    assert STORED.keys() < SHAPES.keys()  # the smallest is there for training only
    for figures in STORED.values():
        assert figures.keys() == LOADS.keys()
        for plain, with_logprobs in ((by[False], by[True]) for by in figures.values()):
            assert (plain.logprobs, with_logprobs.logprobs) == (False, True)
            assert plain.date == with_logprobs.date == "2026-11-16"
            assert plain.engine.startswith("vLLM 0.") and plain.machine and plain.setting
    assert STORED["7B"]["c"][True].tokens_per_second == 22_726
    assert "capture size 1,024" in STORED["7B"]["c"][True].setting


class FakeVllm(ModuleType):
    """As much of vLLM as is asked of it; `cut` tokens are missing from every answer."""

    __version__ = "0.0"

    def __init__(self, cut: int = 0) -> None:
        super().__init__("vllm")
        self.cut, self.calls, self.settings = cut, [], {}

    def SamplingParams(self, **given: Any) -> SimpleNamespace:
        return SimpleNamespace(**given)

    def LLM(self, **settings: Any) -> FakeVllm:
        self.config = json.loads((Path(settings["model"]) / "config.json").read_text())
        self.settings = settings
        return self

    def generate(self, prompts: list[Any], sampling: list[Any], use_tqdm: bool) -> list[Any]:
        self.calls.append((prompts, sampling))
        answers = [[0] * (one.max_tokens - self.cut) for one in sampling]
        outputs = [SimpleNamespace(token_ids=ids, logprobs=ids) for ids in answers]
        return [SimpleNamespace(outputs=[output]) for output in outputs]


def fake(monkeypatch: pytest.MonkeyPatch, **changes: int) -> FakeVllm:
    vllm = FakeVllm(**changes)
    monkeypatch.setitem(sys.modules, "vllm", vllm)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "a card")
    return vllm


def test_the_rival_gets_the_same_load_and_its_figures_say_how(monkeypatch: pytest.MonkeyPatch) -> None:
    vllm = fake(monkeypatch)
    load = Load(name="y", title="", groups=2, prompt_length=5, lengths=(3, 20))
    found = run_loads(SHAPE, [load], rounds=2, settings={"max_cudagraph_capture_size": 16})
    assert [(name, figure.logprobs) for name, figure in found] == [("y", False), ("y", True)]
    assert '{"max_cudagraph_capture_size": 16}' in found[0][1].setting and found[0][1].engine == "vLLM 0.0"
    assert vllm.settings["max_cudagraph_capture_size"] == 16 and vllm.config["hidden_size"] == 64
    lengths = [[one.max_tokens for one in sampling] for _, sampling in vllm.calls]
    assert lengths == [[3, 8], [3, 20], [3, 20]] * 2  # a warm-up, then the rounds
    ours = draw_requests(load, SHAPE.vocab_size, number=2)
    assert [one["prompt_token_ids"] for one in vllm.calls[2][0]] == [list(one.prompt) for one in ours]
    assert [one.logprobs for _, sampling in vllm.calls for one in sampling] == [None] * 6 + [0] * 6


def test_a_rival_that_stops_early_has_no_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    fake(monkeypatch, cut=1)
    with pytest.raises(AssertionError, match="stopped early"):
        run_loads(SHAPE, [LOAD], rounds=1, settings={})


def test_without_vllm_it_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_rival.importlib.util, "find_spec", lambda _name: None)
    with pytest.raises(ModuleNotFoundError, match="leave out --vllm"):
        measure_rival("7B", ["a"], rounds=1, settings={})
