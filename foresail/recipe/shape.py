"""The shape of a dense decoder: all that is needed to build it, or to reckon its memory without torch."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

Family = Literal["llama", "mistral", "qwen2", "qwen3"]


class RopeScaling(BaseModel):
    """Llama 3's stretching of the rotary wavelengths (`rope_type: llama3`)."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    factor: float = Field(gt=0, description="how far long wavelengths are stretched")
    low_freq_factor: float = Field(description="below this many turns in the old context: stretched")
    high_freq_factor: float = Field(description="above this many turns: kept")
    original_context: int = Field(gt=0, description="context before the stretching")


class ModelShape(BaseModel):
    """Widths, depths and options of one dense decoder of the Llama, Mistral, Qwen2 or Qwen3 family."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    family: Family = Field("llama", description="whose config.json is written")
    vocab_size: int = Field(gt=0, description="rows of the embedding")
    hidden_size: int = Field(gt=0, description="width of the residual stream")
    intermediate_size: int = Field(gt=0, description="width inside the MLP")
    num_layers: int = Field(gt=0, description="blocks")
    num_heads: int = Field(gt=0, description="query heads")
    num_kv_heads: int = Field(gt=0, description="key/value heads; fewer than num_heads: grouped queries")
    head_dim: int = Field(gt=0, description="width of one head")
    max_context: int = Field(gt=0, description="tokens of prompt and response together")
    norm_eps: float = Field(1e-6, gt=0, description="keeps the norms finite")
    rope_theta: float = Field(10_000.0, gt=0, description="base of the rotary wavelengths")
    rope_scaling: RopeScaling | None = Field(None, description="Llama 3's stretching")
    qkv_bias: bool = Field(False, description="bias on query, key and value, as in Qwen2")
    qk_norm: bool = Field(False, description="norm on queries and keys, as in Qwen3")
    tied: bool = Field(True, description="the head is the embedding")

    @model_validator(mode="after")
    def check(self) -> Self:
        if self.num_heads % self.num_kv_heads:
            raise ValueError(
                f"num_heads {self.num_heads} is not a multiple of num_kv_heads {self.num_kv_heads}; "
                "every KV head must serve the same number of query heads"
            )
        if self.head_dim % 2:
            raise ValueError(f"head_dim {self.head_dim} is odd; rotary positions need pairs")
        return self

    @property
    def num_parameters(self) -> int:
        """Exact count, for memory estimates and for the closing lines of a run."""
        qkv_width = (self.num_heads + 2 * self.num_kv_heads) * self.head_dim
        attention = self.hidden_size * qkv_width + self.num_heads * self.head_dim * self.hidden_size
        attention += qkv_width if self.qkv_bias else 0
        attention += 2 * self.head_dim if self.qk_norm else 0
        mlp = 3 * self.hidden_size * self.intermediate_size
        embeddings = self.vocab_size * self.hidden_size * (1 if self.tied else 2)
        return self.num_layers * (attention + mlp + 2 * self.hidden_size) + embeddings + self.hidden_size

    @property
    def kv_values_per_token(self) -> int:
        """Numbers kept in the KV cache for one token: keys and values of all layers."""
        return 2 * self.num_layers * self.num_kv_heads * self.head_dim
