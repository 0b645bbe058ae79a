"""MTP layers: by the formula, in and out of MiMo's files.

The decoder's logits are compared with transformers' Qwen2, the layers behind it with a small reference in float64
that reads the checkpoint's tensors by MiMo's names.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor
from transformers import Qwen2Config, Qwen2ForCausalLM

from foresail.model.attention import PackedAttention
from foresail.model.decoder import Decoder
from foresail.model.hf import build_model, load_model, save_model
from foresail.model.mtp import MtpHeads
from foresail.model.readouts import logits
from foresail.recipe.shape.hf_config import read_shape
from foresail.recipe.shape.model_shape import Experts, ModelShape

SHAPE = ModelShape(
    family="qwen2",
    vocab_size=29,
    hidden_size=16,
    intermediate_size=24,
    num_layers=2,
    num_heads=4,
    num_kv_heads=2,
    head_dim=4,
    max_context=40,
    qkv_bias=True,
    tied=False,
    mtp=2,
)
IDS_T = torch.arange(11) * 7 % 29


@torch.no_grad()
def uneven_model(shape: ModelShape = SHAPE) -> Decoder:
    """Norms and biases away from their first values, so that a mistaken name shows."""
    model = build_model(shape, seed=3)
    generator = torch.Generator().manual_seed(4)
    for parameter in model.parameters():
        if parameter.ndim == 1:
            parameter += 0.3 * torch.randn(parameter.shape, generator=generator)
    return model


@torch.no_grad()
def predictions(model: Decoder, ids_T: Tensor = IDS_T) -> list[Tensor]:
    """The logits of every layer, the decoder's first."""
    positions_T, attend = torch.arange(len(ids_T)), PackedAttention(torch.tensor([0, len(ids_T)]))

    def ahead(stream_TD: Tensor, heads: MtpHeads) -> list[Tensor]:
        found = []
        for number in range(len(heads)):
            stream_TD, normed_TD = heads.run(number, stream_TD, ids_T.roll(-number - 1), positions_T, attend)
            found.append(heads.read(normed_TD, logits))
        return found

    output = model(ids_T, positions_T, attend, logits, ahead=ahead)
    return [output.value, *output.ahead]


@pytest.fixture(scope="module")
def mimo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mimo") / "checkpoint"
    save_model(uneven_model(), folder)
    return folder


# The reference.


def norm(x_TD: Tensor, weight_D: Tensor) -> Tensor:
    return x_TD / (x_TD.square().mean(-1, keepdim=True) + SHAPE.norm_eps).sqrt() * weight_D


def turn(x_THd: Tensor) -> Tensor:
    half = SHAPE.head_dim // 2
    angles_Td = torch.arange(len(x_THd))[:, None] * SHAPE.rope_theta ** -(torch.arange(half).double() / half)
    left, right = x_THd.split(half, dim=-1)
    cos, sin = angles_Td.cos()[:, None], angles_Td.sin()[:, None]
    return torch.cat((left * cos - right * sin, right * cos + left * sin), dim=-1)


def reference_layer(weights: dict[str, Tensor], number: int, stream_TD: Tensor, ids_T: Tensor) -> Tensor:
    """h' = W [norm(h_i); norm(E(t_{i+k}))], then one block."""
    own = {
        name.removeprefix(f"model.mtp_layers.{number}."): weight
        for name, weight in weights.items()
        if name.startswith(f"model.mtp_layers.{number}.")
    }
    token_TD = weights["model.embed_tokens.weight"][ids_T.roll(-number - 1)]
    state_TD = norm(stream_TD, own["hidden_layernorm.weight"])
    token_TD = norm(token_TD, own["token_layernorm.weight"])
    x_TD = torch.cat((state_TD, token_TD), -1) @ own["input_proj.weight"].T
    normed_TD = norm(x_TD, own["input_layernorm.weight"])
    q, k, v = (
        (normed_TD @ own[f"self_attn.{x}_proj.weight"].T + own[f"self_attn.{x}_proj.bias"]).unflatten(
            1, (-1, 4)
        )
        for x in "qkv"
    )
    k, v = (x.repeat_interleave(2, dim=1) for x in (turn(k), v))
    scores_HTT = torch.einsum("thd,shd->hts", turn(q), k) / 2
    scores_HTT += torch.full(scores_HTT.shape, -torch.inf).triu(1)
    gathered_TD = torch.einsum("hts,shd->thd", scores_HTT.softmax(-1), v).flatten(1)
    x_TD = x_TD + gathered_TD @ own["self_attn.o_proj.weight"].T
    normed_TD = norm(x_TD, own["post_attention_layernorm.weight"])
    gate_TI, up_TI = (normed_TD @ own[f"mlp.{x}_proj.weight"].T for x in ("gate", "up"))
    return x_TD + (gate_TI * gate_TI.sigmoid() * up_TI) @ own["mlp.down_proj.weight"].T


def test_every_layer_gives_the_logits_of_the_formula(mimo: Path) -> None:
    config = json.loads((mimo / "config.json").read_text())
    assert (config["model_type"], config["architectures"]) == ("mimo", ["MiMoForCausalLM"])
    assert config["num_nextn_predict_layers"] == 2
    weights = load_file(mimo / "model.safetensors")
    trunk = {name: weight for name, weight in weights.items() if "mtp_layers" not in name}
    theirs = Qwen2ForCausalLM(Qwen2Config(**config | {"model_type": "qwen2"})).eval()
    theirs.load_state_dict(trunk)
    streams: list[Tensor] = []
    theirs.model.norm.register_forward_pre_hook(lambda _, args: streams.append(args[0][0]))
    ours, *further = predictions(load_model(mimo, dtype=torch.float32, device="cpu"))
    with torch.no_grad():
        torch.testing.assert_close(ours, theirs(IDS_T[None]).logits[0], atol=1e-4, rtol=1e-4)
    wide = {name: weight.double() for name, weight in weights.items()}
    stream_TD = streams[0].double()
    assert len(further) == 2
    for number, found in enumerate(further):
        stream_TD = reference_layer(wide, number, stream_TD, IDS_T)
        last_TD = norm(stream_TD, wide[f"model.mtp_layers.{number}.final_layernorm.weight"])
        known = len(IDS_T) - number - 1  # places whose further token is in the text
        expected = (last_TD @ wide["lm_head.weight"].T)[:known].float()
        torch.testing.assert_close(found[:known], expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("layers", [0, 1, None])
def test_a_checkpoint_loads_with_some_of_its_layers_and_saves_what_it_has(
    mimo: Path, layers: int | None, tmp_path: Path
) -> None:
    whole = predictions(uneven_model())
    count = 2 if layers is None else layers
    model = load_model(mimo, dtype=torch.float32, device="cpu", mtp_layers=layers)
    assert model.shape.mtp == count
    assert model.shape.num_parameters == sum(parameter.numel() for parameter in model.parameters())
    save_model(model, tmp_path / "again")
    assert read_shape(tmp_path / "again") == model.shape
    again = load_model(tmp_path / "again", dtype=torch.float32, device="cpu")
    for ours, theirs in zip(predictions(again), whole[: count + 1], strict=True):
        torch.testing.assert_close(ours, theirs)


def test_more_layers_than_a_checkpoint_has_are_refused(mimo: Path) -> None:
    with pytest.raises(ValueError, match=r"it has 2 MTP layers, and 3 are asked for; .* foresail mtp extend"):
        read_shape(mimo, mtp_layers=3)


def test_a_model_with_experts_has_dense_mtp_layers_and_keeps_them(tmp_path: Path) -> None:
    experts = Experts(routed=4, active=2, inner_size=12, shared=1, correction=True)
    changes = {"family": "ernie4_5_moe", "qkv_bias": False, "experts": experts}
    model = uneven_model(SHAPE.model_copy(update=changes))
    assert model.shape.num_parameters == sum(parameter.numel() for parameter in model.parameters())
    save_model(model, tmp_path / "saved")
    config = json.loads((tmp_path / "saved/config.json").read_text())
    assert (config["model_type"], config["foresail_mtp_layers"]) == ("ernie4_5_moe", 2)
    again = load_model(tmp_path / "saved", dtype=torch.float32, device="cpu")
    for ours, theirs in zip(predictions(again), predictions(model), strict=True):
        torch.testing.assert_close(ours, theirs)


def test_a_seed_gives_the_decoder_the_same_weights_with_and_without_them() -> None:
    with_them, without = (
        dict(build_model(SHAPE.model_copy(update={"mtp": count}), seed=5).named_parameters())
        for count in (1, 0)
    )
    assert all(torch.equal(with_them[name], weight) for name, weight in without.items())
    assert {name.split(".")[0] for name in with_them.keys() - without.keys()} == {"mtp"}
