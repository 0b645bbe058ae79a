"""Small random transformers models of every family, the outside oracle of this room's tests."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from transformers import (
    AutoModelForCausalLM,
    Ernie4_5_MoeConfig,
    LlamaConfig,
    MistralConfig,
    MixtralConfig,
    Qwen2Config,
    Qwen3Config,
    Qwen3MoeConfig,
)

from foresail.model.attention import PackedAttention
from foresail.model.decoder import Decoder
from foresail.model.readouts import logits

VOCABULARY = 67

SIZES: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 128,
    "pad_token_id": None,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
LLAMA3_ROPE = {
    "rope_type": "llama3",
    "rope_theta": 500.0,
    "factor": 4.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,
}
PLAIN_ROPE = {"rope_type": "default", "rope_theta": 50_000.0}

QWEN3_EXPERTS = {"num_experts": 7, "num_experts_per_tok": 3, "moe_intermediate_size": 24}
ERNIE_EXPERTS = {
    "moe_num_experts": 6,
    "moe_k": 2,
    "moe_intermediate_size": 20,
    "moe_num_shared_experts": 2,
    "moe_layer_start_index": 0,
}

CONFIGS = {
    "llama": lambda: LlamaConfig(**SIZES, rope_parameters=PLAIN_ROPE, rms_norm_eps=1e-5),
    "llama tied": lambda: LlamaConfig(**SIZES, tie_word_embeddings=True),
    "llama3 rope": lambda: LlamaConfig(**SIZES, rope_parameters=LLAMA3_ROPE),
    "llama wide heads": lambda: LlamaConfig(**SIZES, head_dim=16),
    "llama all heads": lambda: LlamaConfig(**SIZES | {"num_key_value_heads": 4}),
    "mistral": lambda: MistralConfig(**SIZES, sliding_window=None),
    "mistral wide window": lambda: MistralConfig(**SIZES, sliding_window=128, tie_word_embeddings=True),
    "qwen2": lambda: Qwen2Config(**SIZES, rope_parameters=PLAIN_ROPE),
    "qwen2 tied": lambda: Qwen2Config(**SIZES, tie_word_embeddings=True),
    "qwen3": lambda: Qwen3Config(**SIZES, head_dim=16),
    "qwen3 tied": lambda: Qwen3Config(**SIZES, head_dim=8, tie_word_embeddings=True),
    "qwen3_moe": lambda: Qwen3MoeConfig(**SIZES, **QWEN3_EXPERTS, head_dim=16, norm_topk_prob=True),
    "qwen3_moe dense first": lambda: Qwen3MoeConfig(
        **SIZES, **QWEN3_EXPERTS, head_dim=8, mlp_only_layers=[0]
    ),
    "mixtral": lambda: MixtralConfig(**SIZES, num_local_experts=5, num_experts_per_tok=2),
    "ernie4_5_moe": lambda: Ernie4_5_MoeConfig(**SIZES, **ERNIE_EXPERTS),
    "ernie4_5_moe dense first": lambda: Ernie4_5_MoeConfig(
        **SIZES | {"num_hidden_layers": 3},
        **ERNIE_EXPERTS | {"moe_layer_start_index": 1},
        tie_word_embeddings=False,
    ),
}


@torch.no_grad()
def random_model(name: str) -> Any:
    """Weights, biases and norms all random and of a size that makes logits differ by far more than 1e-4."""
    model = AutoModelForCausalLM.from_config(CONFIGS[name](), dtype=torch.float32).eval()
    scramble(model)
    return model


@torch.no_grad()
def scramble(model: torch.nn.Module) -> None:
    generator = torch.Generator().manual_seed(7)
    for parameter in model.parameters():
        noise = torch.randn(parameter.shape, generator=generator)
        parameter.copy_(noise * parameter.shape[-1] ** -0.5 if parameter.ndim > 1 else 1 + 0.3 * noise)


def random_ids(length: int, seed: int = 0) -> Tensor:
    return torch.randint(0, VOCABULARY, (length,), generator=torch.Generator().manual_seed(seed))


def packed_logits(model: Decoder, sequences: list[Tensor]) -> Tensor:
    """Logits of all sequences, laid end to end, in one forward pass."""
    lengths = torch.tensor([0, *(len(ids) for ids in sequences)])
    positions_T = torch.cat([torch.arange(len(ids)) for ids in sequences]).to(model.device)
    attend = PackedAttention(lengths.cumsum(0).to(model.device))
    return model(torch.cat(sequences).to(model.device), positions_T, attend, logits).value
