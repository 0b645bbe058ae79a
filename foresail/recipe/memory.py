"""The memory a recipe needs on its device, by part, reckoned from the model's shape without torch.

Weights stand in the model's dtype; AdamW keeps two float32 values for each, and a float32 master copy where
they are bfloat16. Gradients are summed in float32; in bfloat16 those of one backward pass stand beside the
sum. The rest is for one full micro-batch of T tokens, nothing recomputed in the backward pass:

    activations  T x (layers x what one block keeps + the last norm's), see `block_bytes`
    logits       T x V x 16, as if every token carried a loss, see `logits_bytes`
    KV cache     pages x page_size x keys and values of all layers

On CUDA the cache lends its memory to the updates, yet all parts are added up: the self-test at the start has the
cache and gradients side by side.

Left out: the allocator's slack, kernels' workspace, and on CPU the padding of unequal sequences.

Legend: T tokens, V vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from foresail.recipe import parts
from foresail.recipe.shape import ModelShape
from foresail.recipe.stages import Recipe, Rl

Device = Literal["cpu", "cuda"]
FLOAT32 = 4
VALUE_BYTES = {"float32": 4, "bfloat16": 2}


@dataclass(frozen=True, kw_only=True)
class Memory:
    """Bytes by part."""

    weights: int
    gradients: int
    optimizer: int
    activations: int
    logits: int
    kv_cache: int
    reference: int

    @property
    def standing(self) -> int:
        """What is held from the first step to the last; the other parts come and go with a micro-batch."""
        return self.weights + self.gradients + self.optimizer + self.kv_cache + self.reference

    @property
    def total(self) -> int:
        return self.standing + self.activations + self.logits

    @property
    def checkpoint(self) -> int:
        """One checkpoint on disk: the weights and the optimiser's state."""
        return self.weights + self.optimizer


def estimate(shape: ModelShape, recipe: Recipe, device: Device) -> Memory:
    """For SmolLM2-135M in bfloat16: 0.27 GB of weights, 0.81 GB of gradients, 1.61 GB of optimiser."""
    dtype = dtype_of(recipe, device)
    value_bytes, tokens = VALUE_BYTES[dtype], recipe.micro_batch_tokens
    weights = shape.num_parameters * value_bytes
    master_bytes = FLOAT32 if dtype == "bfloat16" else 0
    kv_tokens, kv_bytes = 0, value_bytes
    if isinstance(recipe, Rl):
        kv_bytes = 1 if recipe.engine.kv_dtype == "fp8" else value_bytes
        kv_tokens = kv_pages(recipe.engine_room, recipe.max_length) * recipe.engine.page_size
    return Memory(
        weights=weights,
        gradients=shape.num_parameters * FLOAT32 + (weights if dtype == "bfloat16" else 0),
        optimizer=shape.num_parameters * (2 * FLOAT32 + master_bytes),
        activations=tokens * token_bytes(shape, value_bytes, device),
        logits=tokens * logits_bytes(shape),
        kv_cache=kv_tokens * shape.kv_values_per_token * kv_bytes,
        reference=weights if isinstance(recipe, Rl) and recipe.loss.kl_weight > 0 else 0,
    )


def dtype_of(recipe: Recipe, device: Device) -> Literal["float32", "bfloat16"]:
    """The `auto` of model.dtype made plain."""
    if recipe.model.dtype != "auto":
        return recipe.model.dtype
    return "bfloat16" if device == "cuda" else "float32"


def pages_per_sample(page_size: int, max_length: int) -> int:
    """Pages one sample of full length needs, one of them to copy the prompt's shared last page to."""
    return -(-max_length // page_size) + 1


def kv_pages(room: parts.Engine, max_length: int) -> int:
    """Pages of an engine's cache: as set, or enough for all that may run at once, at full length."""
    if room.kv_tokens is not None:
        return room.kv_tokens // room.page_size
    return room.max_running * pages_per_sample(room.page_size, max_length)


def token_bytes(shape: ModelShape, value_bytes: int, device: Device) -> int:
    """What the forward pass keeps of one token for the backward pass, logits aside."""
    last_norm = norm_bytes(shape.hidden_size, value_bytes, device) + shape.hidden_size * value_bytes
    rotary = 2 * shape.head_dim * value_bytes
    return shape.num_layers * block_bytes(shape, value_bytes, device) + last_norm + rotary


def logits_bytes(shape: ModelShape) -> int:
    """One token's float32 rows over the vocabulary: logits, log-softmax, and two while its entropy is taken.

    The backward pass, with log-softmax and two gradients, then finds room in the same.
    """
    return 4 * shape.vocab_size * FLOAT32


def block_bytes(shape: ModelShape, value_bytes: int, device: Device) -> int:
    """One block's share: inputs of its two norms, of its four matrices, of the attention and of SwiGLU."""
    queries, keys = shape.num_heads * shape.head_dim, shape.num_kv_heads * shape.head_dim
    norms = 2 * norm_bytes(shape.hidden_size, value_bytes, device)
    matrix_inputs = 2 * shape.hidden_size + queries + shape.intermediate_size
    swiglu = 2 * shape.intermediate_size  # gate and up as one
    softmax = shape.num_heads * FLOAT32  # the log-sum of every head
    if device == "cuda":
        # Flash attention keeps q, k and v with the keys repeated for every query head; its output is the
        # next matrix's input. Only the norms of queries and keys hold on to the projection.
        attention = 3 * queries + (queries + 2 * keys if shape.qk_norm else 0)
    else:
        # q, k, v as projected, q and k as turned, all three spread to a rectangle, and the output there.
        attention = (queries + 2 * keys) + (queries + keys) + (queries + 2 * keys) + queries
        swiglu += shape.intermediate_size  # silu(gate), which CUDA's kernel computes anew
    qk_norms = qk_norm_bytes(queries + keys, value_bytes, device) if shape.qk_norm else 0
    return norms + qk_norms + softmax + value_bytes * (matrix_inputs + attention + swiglu)


def norm_bytes(width: int, value_bytes: int, device: Device) -> int:
    """CUDA's kernel keeps its input and one scale; PyTorch's plain operations the normalised values as well.

    There bfloat16 is computed in float32, and kept so.
    """
    return width * value_bytes + FLOAT32 if device == "cuda" else 2 * width * FLOAT32


def qk_norm_bytes(width: int, value_bytes: int, device: Device) -> int:
    """The input is the projection, kept already; the CPU keeps a float32 copy of it and the output as well."""
    copy = FLOAT32 if value_bytes != FLOAT32 else 0
    return width * (value_bytes + copy) if device == "cpu" else 0
