"""Weights on their way to vLLM: loaded, proved by content, and within a time limit."""

from __future__ import annotations

import random
from typing import Any

import pytest
import torch
from fake_vllm import FakeVllm, copied, far_fakes, request_of
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_rollouts import small_model

from foresail.model.hf import build_model
from foresail.model.lora import attach
from foresail.model.weights import tensor_checksum
from foresail.recipe.shape.model_shape import ModelShape
from foresail.recipe.tables.parts import Lora
from foresail.rollout.instance import EngineFailed, InstanceLost
from foresail.rollout.vllm.weights import held_checksums, saved_weights
from foresail.rollout.weights.buckets import fill
from foresail.rollout.weights.sync import HandedOver, WeightsDiffer

BACKSTOP = 120.0
SHORT = 0.5  # seconds of patience, where running out of it is what is tried


def nudge(model: Any) -> None:
    with torch.no_grad():
        model.embed.weight[0, 0] += 1


def same(fake: FakeVllm, model: Any) -> bool:
    wanted = dict(saved_weights(model))
    return wanted.keys() == fake.held.keys() and all(torch.equal(fake.held[n], wanted[n]) for n in wanted)


def test_weights_are_loaded_proved_and_old_keys_forgotten_before_the_next_request() -> None:
    model = small_model()
    with far_fakes(model) as [(vllm, fake)]:
        vllm.update_weights(1)
        assert same(fake, model)
        vllm.weights.take_figures()
        fake.calls.clear()
        nudge(model)
        fake.busy_resets = 2
        vllm.update_weights(2)
        assert same(fake, model)
        assert [call for call in fake.calls if call != "foresail_load"] == [
            *["reset_prefix_cache"] * 3,
            "foresail_finish",
            "foresail_checksums",
        ]
        assert vllm.weights.take_figures()["perf/weight_sync_gb"] == model.embed.weight.nbytes / 1e9
        (done,) = vllm.generate([request_of()])
        assert set(done.versions) == {2}


@settings(max_examples=10)
@given(st.integers(0, 10**6))
def test_whatever_changes_and_however_buckets_are_cut_engines_have_all_of_it(seed: int) -> None:
    """Some tensors change, one engine joins late, and an update may have been given up half-way before."""
    numbers, model = random.Random(seed), small_model()
    if numbers.random() < 0.3:
        attach(model, Lora(rank=2), seed=0)
    with far_fakes(model, ("a", "b")) as [(one, first), (two, second)]:
        weights = one.weights = two.weights = copied(model, numbers.randint(100, 9000))
        weights.push(0, [one])
        for version in range(1, 4):
            for parameter in numbers.sample([*model.parameters()], numbers.randint(0, 4)):
                with torch.no_grad():
                    parameter.view(-1)[numbers.randrange(parameter.numel())] *= -1.5
            if numbers.random() < 0.5:  # given up: some of it is there
                for content in [*fill(saved_weights(model), 1000)][: numbers.randint(1, 5)]:
                    one.order("bucket", HandedOver(content))
                    one.answer(BACKSTOP)
                weights.loaded.clear()
            weights.push(version, [one, two])
            assert same(first, model) and same(second, model)


def test_a_tensor_that_differs_stops_the_run_and_is_named() -> None:
    model = small_model()
    with far_fakes(model) as [(vllm, fake)]:
        fake.changed = ["model.norm.weight"]
        with pytest.raises(WeightsDiffer, match=r"model\.norm\.weight has .* instance vllm 0 .* version 1"):
            vllm.update_weights(1)
        fake.changed = []
        vllm.update_weights(2)  # what was not proved is not taken for known
        assert same(fake, model)
        at_first = model.norm.weight.data.clone()
        model.norm.weight.data.mul_(2)
        fake.changed = ["model.norm.weight"]
        with pytest.raises(WeightsDiffer):
            vllm.update_weights(3)
        fake.changed = []
        model.norm.weight.data.copy_(at_first)  # it has others by now
        vllm.update_weights(4)
        assert same(fake, model)
        nudge(model)
        fake.changed = ["lm_head.weight"]  # it is the embedding, and was not sent
        with pytest.raises(EngineFailed, match=r"another lm_head\.weight than model\.embed_tokens\.weight"):
            vllm.update_weights(5)
        assert fake.calls[-1] == "shutdown"


@pytest.mark.parametrize("method", ["foresail_load", "reset_prefix_cache"])
def test_weights_that_take_too_long_are_a_loss(method: str) -> None:
    with far_fakes(small_model(), patience=SHORT) as [(vllm, fake)]:
        fake.hangs.add(method)
        with pytest.raises(InstanceLost):
            vllm.update_weights(1)


class Layer(torch.nn.Module):
    """As vLLM keeps a layer on a CPU: the parameter is empty, a packed copy computes."""

    def __init__(self, weight: torch.Tensor, *, kept: bool) -> None:
        super().__init__()
        packed = weight.clone()
        self.weight = torch.nn.Parameter(weight if kept else torch.empty(0), requires_grad=False)
        self.input_size_per_partition = weight.shape[1]
        self.cpu_linear = lambda x, _, bias: torch.nn.functional.linear(x, packed, bias)


@pytest.mark.parametrize("tied", [True, False])
def test_checksums_are_of_what_the_layers_compute_with(tied: bool) -> None:
    """Stacked as in vLLM, padded, packed: equal weights give equal sums, and a forgotten head shows."""
    shape = ModelShape(
        vocab_size=29, hidden_size=16, intermediate_size=24, num_layers=1, num_heads=2, num_kv_heads=1, head_dim=8,
        max_context=64, tied=tied,
    )  # fmt: skip
    model = build_model(shape, seed=0)
    with torch.no_grad():
        model.embed.weight[3] = -0.0
    padded = torch.cat((model.embed.weight.data, torch.ones(3, 16)))
    block = model.blocks[0]

    def ours() -> dict[str, int]:
        found = {name: tensor_checksum(tensor) for name, tensor in saved_weights(model)}
        return found | ({"lm_head.weight": found["model.embed_tokens.weight"]} if tied else {})

    def sums(theirs: torch.nn.Module) -> dict[str, int]:
        return held_checksums(theirs, shape, [name for name, _ in saved_weights(model)])

    def plain(weight: torch.Tensor) -> torch.nn.Module:
        module = torch.nn.Module()
        module.weight = torch.nn.Parameter(weight)
        return module

    theirs = torch.nn.Module()
    theirs.model = torch.nn.Module()
    theirs.model.embed_tokens = Layer(padded, kept=True)
    theirs.model.norm = plain(model.norm.weight.data)
    layer = torch.nn.Module()
    theirs.model.layers = torch.nn.ModuleList([layer])
    layer.input_layernorm, layer.post_attention_layernorm = (
        plain(norm.weight.data) for norm in (block.attention_norm, block.mlp_norm)
    )
    layer.self_attn, layer.mlp = torch.nn.Module(), torch.nn.Module()
    layer.self_attn.qkv_proj = Layer(block.attention.qkv.weight.data, kept=False)
    layer.self_attn.o_proj = Layer(block.attention.out.weight.data, kept=False)
    layer.mlp.gate_up_proj = Layer(block.mlp.gate_up.weight.data, kept=False)
    layer.mlp.down_proj = Layer(block.mlp.down.weight.data, kept=False)
    theirs.lm_head = Layer(padded if tied else model.head.weight.data, kept=True)
    assert sums(theirs) == ours()

    with torch.no_grad():
        (model.embed if tied else model.head).weight[5, 5] += 1e-3
        theirs.model.embed_tokens.weight[: shape.vocab_size] = (
            model.embed.weight
        )  # the head keeps its packed copy
    wanted, held = ours(), sums(theirs)
    assert {name for name in wanted if wanted[name] != held[name]} == {"lm_head.weight"}
