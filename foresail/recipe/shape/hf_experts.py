"""The experts of a `config.json`: three families, three ways to say the same. No torch here.

read_experts(config, "mixtral") -> Experts(routed=8, active=2, inner_size=14336, …)
expert_keys(shape)              -> {"num_local_experts": 8, "num_experts_per_tok": 2}
"""

from __future__ import annotations

from typing import Any

from foresail.recipe.shape.hf_files import ModelConfig, required
from foresail.recipe.shape.model_shape import Experts, Family, ModelShape

WITH_EXPERTS: tuple[Family, ...] = ("qwen3_moe", "mixtral", "ernie4_5_moe")


def read_experts(config: ModelConfig, family: Family) -> Experts | None:
    match family:
        case "qwen3_moe":
            return Experts(
                routed=required("num_experts", config.num_experts or config.num_local_experts),
                active=required("num_experts_per_tok", config.num_experts_per_tok),
                inner_size=required("moe_intermediate_size", config.moe_intermediate_size),
                normalized=config.norm_topk_prob,
                dense_layers=leading(config.mlp_only_layers or [], config.decoder_sparse_step),
            )
        case "mixtral":
            return Experts(
                routed=required("num_local_experts", config.num_local_experts or config.num_experts),
                active=required("num_experts_per_tok", config.num_experts_per_tok),
                inner_size=required("intermediate_size", config.intermediate_size),
            )
        case "ernie4_5_moe":
            last = required("num_hidden_layers", config.num_hidden_layers) - 1
            if config.moe_layer_interval != 1 or config.moe_layer_end_index not in (-1, last):
                raise ValueError(
                    "moe_layer_interval and moe_layer_end_index leave layers without experts after the first one "
                    "with some, which is not supported; choose a model where all later layers have them"
                )
            return Experts(
                routed=required("moe_num_experts", config.moe_num_experts),
                active=required("moe_k", config.moe_k),
                inner_size=required("moe_intermediate_size", config.moe_intermediate_size),
                shared=config.moe_num_shared_experts or 0,
                correction=True,
                dense_layers=config.moe_layer_start_index,
            )
    return None


def leading(dense: list[int], every: int) -> int:
    """leading([0, 1], 1) -> 2: so many layers are dense, and then none."""
    if every != 1 or sorted(dense) != [*range(len(dense))]:
        raise ValueError(
            "mlp_only_layers and decoder_sparse_step leave layers without experts after the first one with some, "
            "which is not supported; choose a model where all later layers have them"
        )
    return len(dense)


def expert_keys(shape: ModelShape) -> dict[str, Any]:
    """For the `config.json`, in the words of the shape's family."""
    if (experts := shape.experts) is None:
        return {}
    match shape.family:
        case "qwen3_moe":
            return {
                "num_experts": experts.routed,
                "num_experts_per_tok": experts.active,
                "moe_intermediate_size": experts.inner_size,
                "norm_topk_prob": experts.normalized,
                "decoder_sparse_step": 1,
                "mlp_only_layers": [*range(experts.dense_layers)],
            }
        case "mixtral":
            return {"num_local_experts": experts.routed, "num_experts_per_tok": experts.active}
        case _:
            return {
                "moe_num_experts": experts.routed,
                "moe_k": experts.active,
                "moe_intermediate_size": experts.inner_size,
                "moe_num_shared_experts": experts.shared,
                "moe_layer_start_index": experts.dense_layers,
                "moe_layer_end_index": shape.num_layers - 1,
                "moe_layer_interval": 1,
                "use_bias": False,
            }


def check_experts(shape: ModelShape) -> None:
    """Refuse experts that no family has: no other program could load the result."""
    family, experts = shape.family, shape.experts
    if (experts is not None) != (family in WITH_EXPERTS):
        raise ValueError(
            f"family {family} has {'no ' if experts else ''}experts; choose the family: "
            f"{', '.join(WITH_EXPERTS)} have experts, the others none"
        )
    if experts is None:
        return
    has: dict[Family, dict[str, int]] = {
        "qwen3_moe": {"shared": 0, "correction": False},
        "mixtral": {
            "shared": 0,
            "correction": False,
            "normalized": True,
            "dense_layers": 0,
            "inner_size": shape.intermediate_size,
        },
        "ernie4_5_moe": {"correction": True, "normalized": True},
    }
    for option, needed in has[family].items():
        if getattr(experts, option) != needed:
            raise ValueError(
                f"family {family} has experts.{option} = {str(needed).lower()}; set it so, or choose another: "
                "ernie4_5_moe has shared experts and a correction, qwen3_moe may leave weights as they are"
            )
