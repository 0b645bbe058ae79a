"""The shape of a decoder: enough to build it, or to estimate its memory without torch."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from foresail.recipe.shape.rope import RopeScaling, dynamic_base

Family = Literal["llama", "mistral", "qwen2", "qwen3", "qwen3_moe", "mixtral", "ernie4_5_moe"]
MAX_MTP = 8  # layers: half of the longest draft


class Experts(BaseModel):
    """A mixture of experts in the MLP's place: of many small MLPs, a router gives each token a few."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    routed: int = Field(gt=0, description="experts that the router chooses from")
    active: int = Field(gt=0, description="routed experts that a token passes through")
    inner_size: int = Field(gt=0, description="width inside each expert")
    shared: int = Field(
        0, ge=0, description="experts that every token passes through, beside the routed ones"
    )
    normalized: bool = Field(True, description="weights of a token's routed experts sum to 1")
    correction: bool = Field(
        False, description="a bias per expert that counts for the choice, not for the weight"
    )
    dense_layers: int = Field(0, ge=0, description="first layers, which have an MLP instead")

    @model_validator(mode="after")
    def check(self) -> Self:
        if self.active > self.routed:
            raise ValueError(
                f"active {self.active} exceeds routed {self.routed}; a token passes each expert once"
            )
        return self


class ModelShape(BaseModel):
    """Widths, depths and options of one decoder, dense or with experts."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    family: Family = Field("llama", description="model family, as in config.json")
    vocab_size: int = Field(gt=0, description="rows of the embedding")
    hidden_size: int = Field(gt=0, description="width of the residual stream")
    intermediate_size: int = Field(gt=0, description="width inside the MLP")
    num_layers: int = Field(gt=0, description="blocks")
    num_heads: int = Field(gt=0, description="query heads")
    num_kv_heads: int = Field(gt=0, description="key/value heads; fewer than num_heads: grouped queries")
    head_dim: int = Field(gt=0, description="width of one head")
    max_context: int = Field(gt=0, description="context length: tokens of prompt and response together")
    norm_eps: float = Field(1e-6, gt=0, description="epsilon of the norms")
    rope_theta: float = Field(10_000.0, gt=0, description="RoPE base")
    rope_scaling: RopeScaling | None = Field(None, description="RoPE scaling, for a longer context")
    qkv_bias: bool = Field(False, description="bias on query, key and value, as in Qwen2")
    qk_norm: bool = Field(False, description="norm on queries and keys, as in Qwen3")
    tied: bool = Field(True, description="the head shares the embedding's weights")
    experts: Experts | None = Field(None, description="a mixture of experts in the place of the MLP")
    mtp: int = Field(0, ge=0, le=MAX_MTP, description="MTP layers, which predict further tokens; 0: none")
    scores: bool = Field(False, description="a reward model: its head gives one score, no words")

    @model_validator(mode="after")
    def check(self) -> Self:
        if self.num_heads % self.num_kv_heads:
            raise ValueError(
                f"num_heads {self.num_heads} is not a multiple of num_kv_heads {self.num_kv_heads}; "
                "every KV head must serve the same number of query heads"
            )
        if self.head_dim % 2:
            raise ValueError(f"head_dim {self.head_dim} is odd; rotary positions need pairs")
        if self.experts is not None and self.experts.dense_layers >= self.num_layers:
            raise ValueError(
                f"experts.dense_layers {self.experts.dense_layers} leaves none of {self.num_layers} layers with "
                "experts; set it lower, or remove experts"
            )
        if self.scores and (self.tied or self.mtp):
            raise ValueError(
                "a reward model has a head of its own and no MTP layers; set tied = false, mtp = 0"
            )
        return self

    def experts_in(self, layer: int) -> Experts | None:
        """None: that layer has an MLP. MTP layers, whose numbers follow, have one too: drafts must be cheap."""
        if self.experts is None or not self.experts.dense_layers <= layer < self.num_layers:
            return None
        return self.experts

    @property
    def num_parameters(self) -> int:
        """Exact count, for memory estimates and for the closing lines of a run."""
        routed = 0 if self.experts is None else self.experts.routed
        return self._count(routed)

    @property
    def body_parameters(self) -> int:
        """Those of the blocks, and the last norm."""
        return self.num_parameters - (self.vocab_size + self.head_rows) * self.hidden_size

    @property
    def active_parameters(self) -> int:
        """Parameters used for one token: of the routed experts, only those it is routed to."""
        active = 0 if self.experts is None else self.experts.active
        return self._count(active)

    def _count(self, routed_per_layer: int) -> int:
        qkv_width = (self.num_heads + 2 * self.num_kv_heads) * self.head_dim
        attention = self.hidden_size * qkv_width + self.num_heads * self.head_dim * self.hidden_size
        attention += qkv_width if self.qkv_bias else 0
        attention += 2 * self.head_dim if self.qk_norm else 0
        embeddings = (self.vocab_size + self.head_rows) * self.hidden_size
        mlps = self.mixed_layers * self._count_experts(routed_per_layer)
        mlps += (self.cached_layers - self.mixed_layers) * 3 * self.hidden_size * self.intermediate_size
        blocks = self.cached_layers * (attention + 2 * self.hidden_size) + mlps
        # each joins two states in one, and has a norm for each of them and a last one
        joints = self.mtp * (2 * self.hidden_size + 3) * self.hidden_size
        return blocks + joints + embeddings + self.hidden_size

    def _count_experts(self, routed: int) -> int:
        """Of one layer, with so many of its routed ones."""
        if (experts := self.experts) is None:
            return 0
        router = experts.routed * (self.hidden_size + (1 if experts.correction else 0))
        return router + 3 * self.hidden_size * experts.inner_size * (routed + experts.shared)

    def without_mtp(self) -> ModelShape:
        return self.model_copy(update={"mtp": 0})

    def with_score(self) -> ModelShape:
        """The reward model on the same blocks."""
        return self.model_copy(update={"scores": True, "tied": False, "mtp": 0})

    def lengthened(self, context: int, rope_theta: float | None = None) -> ModelShape:
        """With room for so many positions, or as it is where it has it, and with another base where there is one.

        Dynamic positions become plain ones with one base: see `rope`.
        """
        scaling, theta, longest = self.rope_scaling, self.rope_theta, max(self.max_context, context)
        if scaling is not None and scaling.type == "dynamic" and context > self.max_context:
            longest = max(context, scaling.stretch(self.max_context))
            theta = dynamic_base(theta, scaling.factor, longest / self.max_context, self.head_dim)
            scaling = None
        changes = {"max_context": longest, "rope_theta": rope_theta or theta, "rope_scaling": scaling}
        return self.model_copy(update=changes)

    def within_context(self) -> ModelShape:
        """The shape to save for other programs: without dynamic positions, which would reach further there."""
        dynamic = self.rope_scaling is not None and self.rope_scaling.type == "dynamic"
        return self.model_copy(update={"rope_scaling": None}) if dynamic else self

    @property
    def head_rows(self) -> int:
        """Of the head's own matrix: none where it is the embedding."""
        if self.scores:
            return 1
        return 0 if self.tied else self.vocab_size

    @property
    def cached_layers(self) -> int:
        """Layers with keys and values: the blocks, and behind them the MTP layers."""
        return self.num_layers + self.mtp

    @property
    def mixed_layers(self) -> int:
        """Layers with experts."""
        return 0 if self.experts is None else self.num_layers - self.experts.dense_layers

    @property
    def num_choices(self) -> int:
        """Experts of one token in all layers."""
        return 0 if self.experts is None else self.mixed_layers * self.experts.active

    @property
    def kv_values_per_token(self) -> int:
        """Numbers kept in the KV cache for one token: keys and values of all layers."""
        return 2 * self.cached_layers * self.num_kv_heads * self.head_dim
