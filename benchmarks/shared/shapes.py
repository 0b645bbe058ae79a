"""Shapes of models whose random weights are measured: those of public checkpoints, by their size."""

from __future__ import annotations

from foresail.recipe.shape.model_shape import Experts, ModelShape

SHAPES = {
    "135M": ModelShape(
        family="llama",
        hidden_size=576,
        num_layers=30,
        num_heads=9,
        num_kv_heads=3,
        head_dim=64,
        intermediate_size=1536,
        vocab_size=49_152,
        tied=True,
        max_context=8192,
    ),
    "1.5B": ModelShape(
        family="qwen2",
        qkv_bias=True,
        hidden_size=1536,
        num_layers=28,
        num_heads=12,
        num_kv_heads=2,
        head_dim=128,
        intermediate_size=8960,
        vocab_size=151_936,
        tied=True,
        max_context=8192,
    ),
    "7B": ModelShape(
        family="qwen2",
        qkv_bias=True,
        hidden_size=3584,
        num_layers=28,
        num_heads=28,
        num_kv_heads=4,
        head_dim=128,
        intermediate_size=18_944,
        vocab_size=152_064,
        tied=False,
        max_context=8192,
    ),
}


def compass_v2(layers: int) -> ModelShape:
    """That many of Compass-v2's 30 layers."""
    return ModelShape(
        family="ernie4_5_moe",
        hidden_size=3072,
        num_layers=layers,
        num_heads=24,
        num_kv_heads=6,
        head_dim=128,
        intermediate_size=8192,
        vocab_size=180_224,
        tied=False,
        max_context=8192,
        experts=Experts(routed=48, active=4, shared=2, inner_size=2048, correction=True),
    )


SHAPES |= {f"compass-v2-{layers}": compass_v2(layers) for layers in (2, 4, 8)}

TINY = ModelShape(
    family="llama",
    vocab_size=64,
    hidden_size=64,
    intermediate_size=128,
    num_layers=2,
    num_heads=4,
    num_kv_heads=2,
    head_dim=16,
    max_context=256,
)
SMALL = ModelShape(
    family="llama",
    vocab_size=512,
    hidden_size=128,
    intermediate_size=256,
    num_layers=4,
    num_heads=4,
    num_kv_heads=2,
    head_dim=32,
    max_context=1024,
)
