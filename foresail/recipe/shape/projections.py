"""The seven matrices of a block, by the names that users of LoRA know, and the size of their adapters."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from foresail.recipe.shape.model_shape import ModelShape

GROUPS = {"attention": ("q", "k", "v", "o"), "mlp": ("gate", "up", "down")}
PROJECTIONS = (*GROUPS["attention"], *GROUPS["mlp"])
# The model's own matrices, and which projections each is made of, from its first output to its last.
STACKS = {
    "attention.qkv": ("q", "k", "v"),
    "attention.out": ("o",),
    "mlp.gate_up": ("gate", "up"),
    "mlp.down": ("down",),
}


def check_targets(names: tuple[str, ...]) -> tuple[str, ...]:
    """("q", "vv") -> ValueError: unknown target "vv"; did you mean v?"""
    known = (*GROUPS, *PROJECTIONS)
    if not names:
        raise ValueError(f"no target, so nothing would be trained; name some of {', '.join(known)}")
    for name in names:
        if name not in known:
            near = get_close_matches(name.removesuffix("_proj"), known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"use some of {', '.join(known)}"
            raise ValueError(f'unknown target "{name}"; {hint}')
    return names


def projections_of(targets: tuple[str, ...]) -> tuple[str, ...]:
    """projections_of(("mlp", "q")) -> ("q", "gate", "up", "down")."""
    named = {one for name in targets for one in GROUPS.get(name, (name,))}
    return tuple(one for one in PROJECTIONS if one in named)


def beside_experts(targets: tuple[str, ...]) -> list[str]:
    """Of the targets those that experts stand in the place of: ("q", "mlp") -> ["gate", "up", "down"]."""
    return [name for name in projections_of(targets) if name in GROUPS["mlp"]]


def projection_sizes(shape: ModelShape) -> dict[str, tuple[int, int]]:
    """Outputs and inputs of each."""
    hidden, inner = shape.hidden_size, shape.intermediate_size
    queries, keys = shape.num_heads * shape.head_dim, shape.num_kv_heads * shape.head_dim
    return {
        "q": (queries, hidden),
        "k": (keys, hidden),
        "v": (keys, hidden),
        "o": (hidden, queries),
        "gate": (inner, hidden),
        "up": (inner, hidden),
        "down": (hidden, inner),
    }


def count_adapters(shape: ModelShape, rank: int, targets: tuple[str, ...]) -> int:
    """Numbers in all adapters: an A for every target, and a B as high as the matrix that the target is part of."""
    sizes, adapted = projection_sizes(shape), projections_of(targets)
    block = 0
    for names in STACKS.values():
        if chosen := [name for name in names if name in adapted]:
            inputs, outputs = sizes[names[0]][1], sum(sizes[name][0] for name in names)
            block += rank * (len(chosen) * inputs + outputs)
    return shape.num_layers * block


def narrowest(shape: ModelShape, targets: tuple[str, ...]) -> tuple[str, int]:
    """The target with the smallest side, and that side: an adapter of a higher rank could do no more."""
    sides = {name: min(size) for name, size in projection_sizes(shape).items()}
    name = min(projections_of(targets), key=sides.__getitem__)
    return name, sides[name]
