"""The reward model in a recipe of RL: checks, and the memory it takes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from foresail.recipe.estimates.memory import FLOAT32, VALUE_BYTES, Dtype
from foresail.recipe.shape.hf_config import read_shape
from foresail.recipe.shape.model_shape import ModelShape
from foresail.recipe.stages.critic import second_model_refusals
from foresail.recipe.tables.reward import LearnedReward


def reward_model_refusals(settings: LearnedReward, max_length: int) -> Iterator[str]:
    key = "reward.model.path"
    yield from second_model_refusals(key, settings.path, max_length)
    with suppress(OSError, ValueError):
        if not read_shape(settings.path, context=max_length).scores:
            yield (
                f"{key}: {settings.path} is a language model, which gives no score; train a reward model "
                "from it: foresail reward-model"
            )


def reward_model_memory(settings: LearnedReward, policy: ModelShape, dtype: Dtype) -> int:
    """Bytes of its weights, and of a forward pass without gradients: the residual stream, and a block's widest
    tensors.

    Its shape is the policy's where the path cannot be read.
    """
    shape = policy.with_score()
    with suppress(OSError, ValueError):
        shape = read_shape(settings.path, context=1)
    value_bytes = VALUE_BYTES[dtype if settings.dtype == "auto" else settings.dtype]
    projected = (2 * shape.num_heads + 2 * shape.num_kv_heads) * shape.head_dim
    inner = (
        shape.intermediate_size if shape.experts is None else shape.experts.active * shape.experts.inner_size
    )
    token = 2 * FLOAT32 * shape.hidden_size + value_bytes * (shape.hidden_size + max(projected, 3 * inner))
    return shape.num_parameters * value_bytes + settings.batch_tokens * token
