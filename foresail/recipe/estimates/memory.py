"""The memory a recipe needs on its device, by part, estimated from the model's shape without torch.

Weights stand in the model's dtype; AdamW keeps two float32 values for each, and a float32 master copy where
they have 16 bits; its 8-bit states are two bytes, with the low half of the master four. Muon keeps one value for
those of the blocks. Gradients are summed in
float32. The rest is for one micro-batch of T tokens, full or as large as an update can be:

    activations  T x (layers x what one block keeps + the last norm's), see `block_bytes`;
                 recomputed: T x layers x what enters a block, and one block
    logits       one chunk over the vocabulary, see `logits_bytes`
    KV cache     pages x page_size x keys and values of all layers
    LoRA         only the adapters have gradients and an optimiser; the reference is the model without them
    critic       its weights and its optimiser's state; it learns while the policy waits, so the larger one's
                 gradients and activations do for both

On CUDA the cache lends its memory to the updates: of the two the greater counts; vLLM's does not. Ranks have a
share of weights, gradients and states each, and a micro-batch each, or with cluster.context a slice of T tokens of
one. vLLM, and the first rank's engine, have a copy of the weights beside them.

Left out: what ranks gather for a pass, the embedding and two blocks at most; what a context group exchanges, one
layer's queries, keys and values, and key heads that it has to copy; the allocator's slack, kernels' workspace, and
on CPU the padding of unequal sequences and the copies of a shared prompt's keys, one an answer.

Legend: T tokens, V vocabulary, D hidden size.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from foresail.recipe.shape.model_shape import Experts, ModelShape
from foresail.recipe.tables import parts

Device = Literal["cpu", "cuda"]
Dtype = Literal["float32", "bfloat16", "float16"]
States = Literal["float32", "8bit"]
FLOAT32 = 4
VALUE_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}
# logits of one chunk of tokens: enough for fast products, little beside a model
MOST_LOGITS: dict[Device, int] = {"cuda": 2**28, "cpu": 2**24}
ROUTE_BYTES = 2  # an expert of a token in a layer, as the engine records it
CHOICE_BYTES = 36  # three places and three weights of one token in one expert
STATE_BLOCK = 256  # numbers that share a scale, in 8-bit states


@dataclass(frozen=True, kw_only=True)
class Memory:
    """Bytes by part. `shared` are held by the cache and by updates in turn, and counted in both."""

    weights: int
    gradients: int
    optimizer: int
    activations: int
    logits: int
    kv_cache: int
    reference: int
    teacher: int = 0
    critic: int = 0
    reward_model: int = 0
    engine_weights: int = 0
    shared: int = 0

    @property
    def standing(self) -> int:
        """Bytes held during the whole run; the other parts last for a micro-batch."""
        trained = self.weights + self.gradients + self.optimizer
        others = self.reference + self.teacher + self.critic + self.reward_model + self.engine_weights
        return trained + self.kv_cache + others

    @property
    def total(self) -> int:
        return self.standing + self.activations + self.logits - self.shared

    @property
    def least(self) -> int:
        """Bytes needed at some moment even with an empty micro-batch."""
        return self.standing - min(self.shared, self.gradients)

    def on_ranks(self, ranks: int, device: Device) -> Memory:
        """Where ranks hold it together: on a GPU what the first one has, on a CPU what all have."""
        if ranks == 1:
            return self
        gpus, micro_batches = (ranks, 1) if device == "cuda" else (1, ranks)
        shards = {
            name: -(-getattr(self, name) // gpus)
            for name in ("weights", "gradients", "optimizer", "reference", "teacher", "critic")
        }
        passing = {name: getattr(self, name) * micro_batches for name in ("activations", "logits")}
        lent = min(self.kv_cache, shards["gradients"] + sum(passing.values())) if self.shared else 0
        return replace(self, **shards, **passing, shared=lent)


@dataclass(frozen=True, kw_only=True)
class ExtraMemory:
    """What a stage holds besides its model: bytes by part, and the shapes of models that learn in turn with it."""

    kv_cache: int = 0
    reference: int = 0
    teacher: int = 0
    critic: int = 0
    reward_model: int = 0  # a learned reward's weights, and what it computes with
    engine_weights: int = 0  # a copy of the policy's, for engines that do not read what is trained
    lends: bool = True  # whether the cache can have its memory in turn with updates
    learners: tuple[ModelShape, ...] = ()


def kv_bytes(shape: ModelShape, engine: parts.Engine, max_length: int, value_bytes: int) -> int:
    """Keys and values, and where they are recorded the experts of every token."""
    tokens = kv_pages(engine, max_length) * engine.page_size
    routes = ROUTE_BYTES * shape.num_choices if engine.replay_routing else 0
    return tokens * (shape.kv_values_per_token * (1 if engine.kv_dtype == "fp8" else value_bytes) + routes)


def trained_parameters(shape: ModelShape, mtp: parts.Mtp | None) -> int:
    """Parameters with gradients and an optimiser's state: `mtp.train` freezes the model, or its MTP layers."""
    model = shape.without_mtp().num_parameters
    layers = shape.num_parameters - model
    match "none" if mtp is None else mtp.train:
        case "mtp":
            return layers
        case "added":
            return layers - layers // max(1, shape.mtp)
        case "none":
            return model
    return model + layers


def trained_body(shape: ModelShape, mtp: parts.Mtp | None) -> int:
    """Trained parameters of the blocks, which Muon updates."""
    frozen = mtp is not None and mtp.freezes_model
    embeddings = 0 if frozen else shape.num_parameters - shape.body_parameters
    return trained_parameters(shape, mtp) - embeddings


def state_bytes(states: States, dtype: Dtype) -> float:
    """What AdamW keeps of one weight: two moments, and what makes a 16-bit weight a float32 master."""
    if states == "8bit":
        return 2 * (1 + FLOAT32 / STATE_BLOCK) + (0 if dtype == "float32" else 2)
    return 2 * FLOAT32 + (0 if dtype == "float32" else FLOAT32)


def dtype_of(setting: Literal["auto"] | Dtype, device: Device) -> Dtype:
    """What model.dtype comes to: `auto` is bfloat16 on a GPU, float32 on a CPU."""
    if setting != "auto":
        return setting
    return "bfloat16" if device == "cuda" else "float32"


def pages_per_sample(page_size: int, max_length: int) -> int:
    """Pages one sample of full length needs, one of them to copy the prompt's shared last page to."""
    return -(-max_length // page_size) + 1


def kv_pages(engine: parts.Engine, max_length: int) -> int:
    """Pages of an engine's cache: as set, or enough for all that may run at once, at full length."""
    if engine.kv_tokens is not None:
        return engine.kv_tokens // engine.page_size
    return engine.max_running * pages_per_sample(engine.page_size, max_length)


def token_bytes(shape: ModelShape, value_bytes: int, device: Device, *, recompute: bool = False) -> int:
    """What the forward pass keeps of one token for the backward pass, logits aside."""
    last_norm = norm_bytes(shape.hidden_size, device) + shape.hidden_size * value_bytes
    rotary = 2 * shape.head_dim * value_bytes
    mixed = shape.mixed_layers
    kinds = [(shape.experts, mixed), (None, shape.cached_layers - mixed)]
    blocks = [(block_bytes(shape, experts, value_bytes, device), count) for experts, count in kinds if count]
    entrances = shape.cached_layers * shape.hidden_size * FLOAT32
    stored = entrances + max(blocks)[0] if recompute else sum(size * count for size, count in blocks)
    return stored + last_norm + rotary


def logits_bytes(shape: ModelShape, tokens: int, value_bytes: int, device: Device) -> int:
    """At the most, as if every token carried a loss: a chunk's float32 logits, on a CPU twice on the way to
    their entropy, and in the backward pass their gradient, the head's, and those of the states it saw.
    """
    rows = shape.head_rows or shape.vocab_size
    chunk = min(tokens * rows, max(MOST_LOGITS[device], rows))
    forward = chunk * (FLOAT32 if device == "cuda" else 2 * FLOAT32)
    backward = chunk * (FLOAT32 + value_bytes if device == "cuda" else FLOAT32)
    head = rows * shape.hidden_size * value_bytes
    states = 2 * tokens * shape.hidden_size * value_bytes
    return states + max(forward, backward + head)


def block_bytes(shape: ModelShape, experts: Experts | None, value_bytes: int, device: Device) -> int:
    """One block's share: inputs of its two norms, of its matrices, attention, and the MLP or experts."""
    queries, keys = shape.num_heads * shape.head_dim, shape.num_kv_heads * shape.head_dim
    norms = 2 * norm_bytes(shape.hidden_size, device)
    softmax = shape.num_heads * FLOAT32  # the log-sum of every head
    # q, k, v as projected, of which v is a part, and q and k as turned; the output is the next matrix's input.
    attention = queries + (queries + 2 * keys) + (queries + keys)
    if device == "cpu":
        attention += (queries + 2 * keys) + queries  # all three spread to a rectangle, and the output there
        attention += 2 * shape.hidden_size  # what CUDA computes anew: normed rows
    if experts is None:
        mlp = value_bytes * mlp_values(shape.intermediate_size, device)
    else:
        mlp = expert_bytes(experts, shape.hidden_size, value_bytes, device)
    qk_norms = qk_norm_bytes(queries + keys, value_bytes, device) if shape.qk_norm else 0
    return norms + qk_norms + softmax + value_bytes * attention + mlp


def mlp_values(inner: int, device: Device) -> int:
    """Gate and up; on a CPU also silu(gate) and its product with up, which CUDA computes anew."""
    return (2 if device == "cuda" else 4) * inner


def expert_bytes(experts: Experts, hidden: int, value_bytes: int, device: Device) -> int:
    """For each of a token's experts its row, gate and up, what comes out, on a CPU in float32, and a few numbers:
    places and weights. Besides, scores of all experts, and a float32 copy of what they are of.
    """
    values = value_bytes * (hidden + mlp_values(experts.inner_size, device))
    out = hidden * (value_bytes if device == "cuda" else FLOAT32)
    routed = experts.active * (values + out + CHOICE_BYTES)
    shared = value_bytes * mlp_values(experts.shared * experts.inner_size, device)
    copy = FLOAT32 * hidden if value_bytes != FLOAT32 else 0
    return routed + shared + FLOAT32 * experts.routed + copy


def norm_bytes(width: int, device: Device) -> int:
    """Of the float32 stream. CUDA's kernel keeps it and one scale; plain operations the normalised values, too."""
    return (width + 1) * FLOAT32 if device == "cuda" else 2 * width * FLOAT32


def qk_norm_bytes(width: int, value_bytes: int, device: Device) -> int:
    """The input is the projection, kept already; the CPU keeps a float32 copy of it and the output as well."""
    copy = FLOAT32 if value_bytes != FLOAT32 else 0
    return width * (value_bytes + copy) if device == "cpu" else 0


def gigabytes(count: int) -> str:
    """gigabytes(269_030_016) -> "0.27 GB"; small things in MB."""
    return f"{count / 1e9:.2f} GB" if count >= 1e8 else f"{count / 1e6:.2f} MB"
