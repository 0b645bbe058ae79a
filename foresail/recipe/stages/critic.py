"""The critic in a recipe: checks of its table and its model, and the memory it takes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from foresail.recipe.estimates.memory import FLOAT32, VALUE_BYTES, Dtype, state_bytes
from foresail.recipe.shape.hf_config import read_shape
from foresail.recipe.shape.model_shape import ModelShape
from foresail.recipe.tables import parts
from foresail.recipe.tables.inputs import check_weights

SLOWEST_HEAD = 1e-4  # learning rate below which a single layer hardly changes


def critic_mistakes(critic: parts.Critic | None, advantage: str, steps: int) -> Iterator[str]:
    if (critic is None) != (advantage != "gae"):
        yield (
            'advantage.kind = "gae" needs a critic; add a table [critic]'
            if critic is None
            else f'[critic] is for advantage.kind = "gae", and advantage.kind is "{advantage}"; '
            'set advantage.kind = "gae", or remove [critic]'
        )
    if critic is None:
        return
    if critic.kind == "head" and critic.path is not None:
        yield 'critic.path is for a model of its own, and critic.kind is "head"; remove critic.path'
    if critic.optimizer.name != "adamw":
        yield 'critic.optimizer.name = "muon" is for policies; leave it out'
    if critic.warmup_steps >= steps:
        yield (
            f"critic.warmup_steps {critic.warmup_steps} leaves the policy none of the {steps} steps; "
            f"set critic.warmup_steps = {steps // 10}"
        )


def second_model_refusals(key: str, path: str | None, max_length: int) -> Iterator[str]:
    """Checks of a second model, such as a critic or a reference; `key` is where the recipe names it."""
    if path is None:
        return
    try:
        shape = read_shape(path, context=max_length)
    except (OSError, ValueError) as error:
        yield f"{key}: {error}"
        return
    yield from (f"{key}: {refusal}" for refusal in check_weights(Path(path)))
    if max_length > shape.max_context:
        yield (
            f"{key}: samples of up to {max_length} tokens exceed its context of {shape.max_context}; "
            "use a model with a longer one"
        )


def critic_warnings(critic: parts.Critic, *, dynamic_sampling: bool) -> Iterator[str]:
    if critic.kind == "head" and critic.optimizer.lr < SLOWEST_HEAD:
        yield (
            f"critic.optimizer.lr {critic.optimizer.lr:g} is a rate for a whole model, and one layer "
            "hardly changes at it; try 1e-3"
        )
    if dynamic_sampling:
        yield (
            "with a critic every group has a learning signal, and dynamic sampling leaves out problems "
            "that are always or never solved; set dynamic_sampling.enabled = false"
        )


def critic_memory(
    critic: parts.Critic, policy: ModelShape, dtype: Dtype, max_length: int
) -> tuple[int, tuple[ModelShape, ...]]:
    """Bytes of its weights and optimiser, and the shape of its own model, which learns in turn with the policy.

    It is the policy's shape, unless a path names another that can be read. A critic of one layer has no model.
    """
    shape = policy
    if critic.path is not None:
        with suppress(OSError, ValueError):
            shape = read_shape(critic.path, context=max_length)
    states = critic.optimizer.states
    layer = (shape.hidden_size + 1) * (FLOAT32 + state_bytes(states, "float32"))
    if critic.kind == "head":
        return round(layer), ()
    shape = shape.model_copy(update={"tied": True, "mtp": 0})  # it has no head
    return round(layer + shape.num_parameters * (VALUE_BYTES[dtype] + state_bytes(states, dtype))), (shape,)
