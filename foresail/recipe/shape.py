"""The shape of a dense decoder: all that is needed to build it, or to reckon its memory without torch."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, model_validator

Family = Literal["llama", "mistral", "qwen2", "qwen3"]


class RopeScaling(BaseModel):
    """Llama 3's stretching of the rotary wavelengths (`rope_type: llama3`)."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    factor: float
    low_freq_factor: float
    high_freq_factor: float
    original_context: int


class ModelShape(BaseModel):
    """Widths, depths and options of one dense decoder of the Llama, Mistral, Qwen2 or Qwen3 family."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    family: Family = "llama"
    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    max_context: int
    norm_eps: float = 1e-6
    rope_theta: float = 10_000.0
    rope_scaling: RopeScaling | None = None
    qkv_bias: bool = False
    qk_norm: bool = False
    tied: bool = True

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
