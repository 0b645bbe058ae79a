"""Weights on their way to vLLM: loaded, proved by content, and within a time limit."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from fake_vllm import FakeVllm, fake_instance, opened, request_of
from tiny_rollouts import small_model

from foresail.model.hf import build_model
from foresail.recipe.shape import ModelShape
from foresail.rollout.instance import InstanceLost
from foresail.rollout.vllm_weights import held_checksums, trainer_checksums
from foresail.rollout.weight_sync import WeightsDiffer

SHORT = 0.5  # seconds of patience, where running out of it is what is tried


def nudge(model: Any) -> None:
    with torch.no_grad():
        model.embed.weight[0, 0] += 1


def test_weights_are_loaded_proved_and_old_keys_forgotten_before_the_next_request() -> None:
    model = small_model()
    with opened(model=model) as (vllm, fake):
        assert fake.calls == ["foresail_checksums"]
        vllm.update_weights(1)
        assert vllm.version == 1 and fake.calls == ["foresail_checksums"]  # it has them already
        nudge(model)
        fake.busy_resets = 2
        vllm.update_weights(2)
        assert fake.calls[1:] == ["foresail_load", *["reset_prefix_cache"] * 3]
        assert vllm.take_figures()["timing_s/weight_sync"] > 0 and not vllm.take_figures()
        (done,) = vllm.generate([request_of()])
        assert set(done.versions) == {2}


def test_a_tensor_that_differs_stops_the_run_and_is_named() -> None:
    model = small_model()
    at_first = model.embed.weight.data.clone()
    with opened(model=model) as (vllm, fake):
        nudge(model)
        fake.changed = ["lm_head.weight"]
        for version in (1, 2):  # and again: what was not proved is not taken for known
            with pytest.raises(
                WeightsDiffer, match=rf"version {version} .* 1 of \d+ tensors .*lm_head\.weight"
            ):
                vllm.update_weights(version)
        assert vllm.version == 0
        model.embed.weight.data.copy_(at_first)  # vLLM has others by now
        with pytest.raises(WeightsDiffer):
            vllm.update_weights(3)
        fake.changed = []
        vllm.update_weights(4)
        assert vllm.version == 4
    lying = FakeVllm()
    lying.changed = ["model.norm.weight"]
    with pytest.raises(WeightsDiffer, match=r"model\.norm\.weight"):  # at the start, too
        fake_instance(fake=lying)
    assert lying.calls[-1] == "shutdown"


@pytest.mark.parametrize("method", ["foresail_load", "reset_prefix_cache"])
def test_weights_that_take_too_long_are_a_loss(method: str) -> None:
    model = small_model()
    with opened(model=model, patience=SHORT) as (vllm, fake):
        nudge(model)
        fake.hangs.add(method)
        with pytest.raises(InstanceLost, match=f"waited {SHORT} seconds"):
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
    assert held_checksums(theirs, shape) == trainer_checksums(model)

    with torch.no_grad():
        (model.embed if tied else model.head).weight[5, 5] += 1e-3
        theirs.model.embed_tokens.weight[: shape.vocab_size] = (
            model.embed.weight
        )  # the head keeps its packed copy
    ours, held = trainer_checksums(model), held_checksums(theirs, shape)
    assert {name for name in ours if ours[name] != held[name]} == {"lm_head.weight"}
