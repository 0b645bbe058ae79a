"""The mapping of Hugging Face tensors to our parameters.

Here query, key and value are one matrix, gate and up another, and all experts of a layer one; there each has its
own. All other tensors correspond one to one. Loading, saving and GGUF import share this table.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from torch import Tensor

from foresail.recipe.shape.model_shape import Experts, ModelShape

MTP_LAYERS = "model.mtp_layers."  # MiMo's, whatever the family
SCORE_HEAD = "score.weight"  # of a reward model, in the place of lm_head


@dataclass(frozen=True, kw_only=True)
class TensorPart:
    """One Hugging Face tensor: rows `start` to `start + sizes[0]` of our parameter `parameter`."""

    parameter: str
    hf_name: str
    start: int
    sizes: tuple[int, ...]
    paired: int | None = None  # width of a head that is turned by position in pairs (0, 1), (2, 3), … there
    wide: bool = False  # float32 whatever the others are

    def from_hf(self, rows: Tensor) -> Tensor:
        """Here the first half of a head is turned with the second: (0, 2), (1, 3) of four."""
        if self.paired is None:
            return rows
        return rows.unflatten(0, (-1, self.paired // 2, 2)).transpose(1, 2).flatten(0, 2)

    def to_hf(self, rows: Tensor) -> Tensor:
        if self.paired is None:
            return rows
        return rows.unflatten(0, (-1, 2, self.paired // 2)).transpose(1, 2).flatten(0, 2)


def weight_parts(shape: ModelShape) -> list[TensorPart]:
    """Every tensor of the checkpoint, in the order of the layers."""
    hidden = shape.hidden_size
    parts = list(stack("embed.weight", ("model.embed_tokens.weight",), (shape.vocab_size,), hidden))
    for layer in range(shape.num_layers):
        ours, theirs, experts = f"blocks.{layer}", f"model.layers.{layer}", shape.experts_in(layer)
        parts += attention_parts(shape, ours, theirs)
        parts += stack(f"{ours}.mlp_norm.weight", (f"{theirs}.post_attention_layernorm.weight",), (hidden,))
        if experts is None:
            parts += mlp_parts(hidden, shape.intermediate_size, f"{ours}.mlp", f"{theirs}.mlp")
        else:
            parts += expert_parts(shape, experts, f"{ours}.mlp", theirs)
    parts += stack("norm.weight", ("model.norm.weight",), (hidden,))
    for number in range(shape.mtp):
        parts += mtp_parts(shape, f"mtp.{number}", f"{MTP_LAYERS}{number}")
    if shape.head_rows:
        name = SCORE_HEAD if shape.scores else "lm_head.weight"
        parts += stack("head.weight", (name,), (shape.head_rows,), hidden)
    return parts


def mtp_parts(shape: ModelShape, ours: str, theirs: str) -> Iterator[TensorPart]:
    """A block as any other, and what stands before and behind it."""
    hidden, block = shape.hidden_size, f"{ours}.block"
    yield from stack(f"{ours}.hidden_norm.weight", (f"{theirs}.hidden_layernorm.weight",), (hidden,))
    yield from stack(f"{ours}.token_norm.weight", (f"{theirs}.token_layernorm.weight",), (hidden,))
    yield from stack(f"{ours}.join.weight", (f"{theirs}.input_proj.weight",), (hidden,), 2 * hidden)
    yield from attention_parts(shape, block, theirs)
    yield from stack(f"{block}.mlp_norm.weight", (f"{theirs}.post_attention_layernorm.weight",), (hidden,))
    yield from mlp_parts(hidden, shape.intermediate_size, f"{block}.mlp", f"{theirs}.mlp")
    yield from stack(f"{ours}.norm.weight", (f"{theirs}.final_layernorm.weight",), (hidden,))


def attention_parts(shape: ModelShape, ours: str, theirs: str) -> Iterator[TensorPart]:
    hidden = shape.hidden_size
    q_width, kv_width = shape.num_heads * shape.head_dim, shape.num_kv_heads * shape.head_dim
    attention = f"{theirs}.self_attn"

    yield from stack(f"{ours}.attention_norm.weight", (f"{theirs}.input_layernorm.weight",), (hidden,))
    names, widths = [f"{attention}.{x}_proj" for x in "qkv"], (q_width, kv_width, kv_width)
    *turned, value = stack(
        f"{ours}.attention.qkv.weight", [f"{name}.weight" for name in names], widths, hidden
    )
    paired = shape.head_dim if shape.family == "ernie4_5_moe" else None
    yield from (replace(part, paired=paired) for part in turned)
    yield value
    if shape.qkv_bias:
        yield from stack(f"{ours}.attention.qkv.bias", [f"{name}.bias" for name in names], widths)
    yield from stack(f"{ours}.attention.out.weight", (f"{attention}.o_proj.weight",), (hidden,), q_width)
    if shape.qk_norm:
        for norm in ("q_norm", "k_norm"):
            yield from stack(
                f"{ours}.attention.{norm}.weight", (f"{attention}.{norm}.weight",), (shape.head_dim,)
            )


def mlp_parts(hidden: int, inner: int, ours: str, theirs: str) -> Iterator[TensorPart]:
    names = [f"{theirs}.{x}_proj.weight" for x in ("gate", "up")]
    yield from stack(f"{ours}.gate_up.weight", names, (inner, inner), hidden)
    yield from stack(f"{ours}.down.weight", (f"{theirs}.down_proj.weight",), (hidden,), inner)


def expert_parts(shape: ModelShape, experts: Experts, ours: str, theirs: str) -> Iterator[TensorPart]:
    mixtral = shape.family == "mixtral"
    theirs = f"{theirs}.{'block_sparse_moe' if mixtral else 'mlp'}"
    gate, up, down = ("w1", "w3", "w2") if mixtral else ("gate_proj", "up_proj", "down_proj")
    routed, hidden, inner = experts.routed, shape.hidden_size, experts.inner_size

    yield from stack(f"{ours}.router.weight", (f"{theirs}.gate.weight",), (routed,), hidden)
    if experts.correction:
        [part] = stack(
            f"{ours}.router.correction", (f"{theirs}.moe_statics.e_score_correction_bias",), (1,), routed
        )
        yield replace(part, wide=True)
    each = [f"{theirs}.experts.{number}" for number in range(routed)]
    names = [f"{name}.{matrix}.weight" for name in each for matrix in (gate, up)]
    yield from stack(f"{ours}.experts.gate_up", names, (inner,) * len(names), hidden)
    yield from stack(
        f"{ours}.experts.down", [f"{name}.{down}.weight" for name in each], (hidden,) * routed, inner
    )
    if experts.shared:
        yield from mlp_parts(hidden, experts.shared * inner, f"{ours}.shared", f"{theirs}.shared_experts")


def stack(
    parameter: str, hf_names: list[str] | tuple[str, ...], rows: tuple[int, ...], *columns: int
) -> Iterator[TensorPart]:
    """stack("x", ("a", "b"), (4, 2), 8) -> a is rows 0..4 of x, b rows 4..6; each 8 wide."""
    start = 0
    for hf_name, height in zip(hf_names, rows, strict=True):
        yield TensorPart(parameter=parameter, hf_name=hf_name, start=start, sizes=(height, *columns))
        start += height
