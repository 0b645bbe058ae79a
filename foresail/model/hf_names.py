"""Which Hugging Face tensors make up each of our parameters.

Query, key and value are one matrix here and three there, gate and up one here and two there; all others
correspond one to one. Loading, saving and GGUF import read this one table.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from foresail.recipe.shape import ModelShape


@dataclass(frozen=True, kw_only=True)
class Part:
    """One Hugging Face tensor: rows `start` to `start + sizes[0]` of our parameter `parameter`."""

    parameter: str
    hf_name: str
    start: int
    sizes: tuple[int, ...]


def weight_parts(shape: ModelShape) -> list[Part]:
    """Every tensor of the checkpoint, in the order of the layers."""
    hidden = shape.hidden_size
    parts = list(stack("embed.weight", ("model.embed_tokens.weight",), (shape.vocab_size,), hidden))
    for layer in range(shape.num_layers):
        parts += block_parts(shape, f"blocks.{layer}", f"model.layers.{layer}")
    parts += stack("norm.weight", ("model.norm.weight",), (hidden,))
    if not shape.tied:
        parts += stack("head.weight", ("lm_head.weight",), (shape.vocab_size,), hidden)
    return parts


def block_parts(shape: ModelShape, ours: str, theirs: str) -> Iterator[Part]:
    hidden, inner = shape.hidden_size, shape.intermediate_size
    q_width, kv_width = shape.num_heads * shape.head_dim, shape.num_kv_heads * shape.head_dim
    attention = f"{theirs}.self_attn"

    yield from stack(f"{ours}.attention_norm.weight", (f"{theirs}.input_layernorm.weight",), (hidden,))
    names, widths = [f"{attention}.{x}_proj" for x in "qkv"], (q_width, kv_width, kv_width)
    yield from stack(f"{ours}.attention.qkv.weight", [f"{name}.weight" for name in names], widths, hidden)
    if shape.qkv_bias:
        yield from stack(f"{ours}.attention.qkv.bias", [f"{name}.bias" for name in names], widths)
    yield from stack(f"{ours}.attention.out.weight", (f"{attention}.o_proj.weight",), (hidden,), q_width)
    if shape.qk_norm:
        for norm in ("q_norm", "k_norm"):
            yield from stack(
                f"{ours}.attention.{norm}.weight", (f"{attention}.{norm}.weight",), (shape.head_dim,)
            )

    yield from stack(f"{ours}.mlp_norm.weight", (f"{theirs}.post_attention_layernorm.weight",), (hidden,))
    names = [f"{theirs}.mlp.{x}_proj.weight" for x in ("gate", "up")]
    yield from stack(f"{ours}.mlp.gate_up.weight", names, (inner, inner), hidden)
    yield from stack(f"{ours}.mlp.down.weight", (f"{theirs}.mlp.down_proj.weight",), (hidden,), inner)


def stack(
    parameter: str, hf_names: list[str] | tuple[str, ...], rows: tuple[int, ...], *columns: int
) -> Iterator[Part]:
    """stack("x", ("a", "b"), (4, 2), 8) -> a is rows 0..4 of x, b rows 4..6; each 8 wide."""
    start = 0
    for hf_name, height in zip(hf_names, rows, strict=True):
        yield Part(parameter=parameter, hf_name=hf_name, start=start, sizes=(height, *columns))
        start += height
