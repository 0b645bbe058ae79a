"""Rotary positions of a `config.json`, read and written. No torch here.

    read_rotary(config) -> Rotary(theta=1e6, scaling=RopeScaling(type="yarn", factor=4.0, …), context=131_072)

transformers 4 has `rope_theta` and `rope_scaling`, with `type` or `rope_type`, 5 has both in `rope_parameters`.
"""

from __future__ import annotations

from typing import Any, NamedTuple, get_args

from pydantic import ValidationError

from foresail.recipe.shape.hf_files import LONGEST, ModelConfig, Rope, required
from foresail.recipe.shape.model_shape import ModelShape
from foresail.recipe.shape.rope import OPTIONAL, REQUIRED, RopeScaling, RopeType
from foresail.recipe.validation_errors import explain_errors

KINDS: tuple[RopeType, ...] = get_args(RopeType)
HF_NAMES = {"original_context": "original_max_position_embeddings"}  # other keys have the same name there


class Rotary(NamedTuple):
    """`context`: positions that the model may use, before a sliding window is looked at."""

    theta: float
    scaling: RopeScaling | None
    context: int


def read_rotary(config: ModelConfig) -> Rotary:
    rope = chosen(config)
    if rope.full_attention is not None or rope.sliding_attention is not None:
        raise ValueError(
            "rope_parameters by the kind of layer are not supported; choose a model with one for all"
        )
    theta = rope.rope_theta or config.rope_theta or 10_000.0
    turned = rope.partial_rotary_factor or config.partial_rotary_factor or 1.0
    if turned != 1.0:
        raise ValueError(
            f"partial_rotary_factor {turned} is not supported; choose a model that rotates all dimensions"
        )
    positions = required("max_position_embeddings", config.max_position_embeddings)
    scaling = read_scaling(config, rope, positions)
    if scaling is None:
        return Rotary(theta, None, positions)
    if (stretched := scaling.stretch(positions)) > LONGEST:
        raise ValueError(
            f"factor {scaling.factor:g} makes a context of {stretched:,} tokens; it must be wrong"
        )
    return Rotary(theta, scaling, positions if scaling.type == "dynamic" else stretched)


def chosen(config: ModelConfig) -> Rope:
    """Where a file has both, `rope_scaling` wins, as it does in transformers 5; an empty one says nothing."""
    for rope in (config.rope_scaling, config.rope_parameters):
        if rope is not None and rope.model_fields_set:
            return rope
    return Rope()


def read_scaling(config: ModelConfig, rope: Rope, positions: int) -> RopeScaling | None:
    name = rope.rope_type or rope.type or "default"
    if name == "default":
        return None
    kind = next((kind for kind in KINDS if kind == name), None)
    if kind is None:
        raise ValueError(
            f"rope type {name!r} is not supported, only default, {', '.join(KINDS)}; choose another model: without "
            "its scaling this one would compute something else, for short sequences as well"
        )
    values = {key: getattr(rope, HF_NAMES.get(key, key)) for key in (*REQUIRED[kind], *OPTIONAL[kind])}
    factor = rope.factor
    if "original_context" in values:  # transformers takes them in this order
        values["original_context"] = (
            config.original_max_position_embeddings or values["original_context"] or positions
        )
        if factor is None and values["original_context"] < positions:
            factor = positions / values["original_context"]
    values |= {"type": kind, "factor": required("factor", factor)}
    try:
        return RopeScaling.model_validate(values)
    except ValidationError as error:
        raise ValueError("; ".join(explain_errors(error, RopeScaling, values))) from None


def rope_keys(shape: ModelShape) -> dict[str, Any]:
    """`rope_scaling`, or `rope_parameters` without the base: {"rope_type": "linear", "factor": 4.0}."""
    if (scaling := shape.rope_scaling) is None:
        return {"rope_type": "default"}
    values = scaling.model_dump(exclude={"type", "factor"}, exclude_defaults=True)
    values = {HF_NAMES.get(key, key): value for key, value in values.items()}
    return {"rope_type": scaling.type, "factor": scaling.factor, **values}


def position_count(shape: ModelShape, before: int | None) -> int:
    """max_position_embeddings: as many as `before`, where these still give the model's context."""
    scaling, context = shape.rope_scaling, shape.max_context
    if scaling is None or scaling.type == "dynamic":  # the latter begins beyond its context
        return context
    if before is not None and scaling.stretch(before) == context:
        return before
    if scaling.type == "linear":
        fewest = int(context / scaling.factor)
        return min(context, fewest if scaling.stretch(fewest) >= context else fewest + 1)
    return context
