"""Writes a small transformers model and a BPE as a GGUF file, the way llama.cpp's converter does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import tokenizers
from gguf import GGMLQuantizationType as Kind

NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "mlp.gate": "ffn_gate_inp",
    "mlp.experts.gate": "ffn_gate_exps",
    "mlp.experts.up": "ffn_up_exps",
    "mlp.experts.down": "ffn_down_exps",
}
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
TEMPLATE = "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"


def write_gguf(file: Path, model: Any, tokenizer: tokenizers.Tokenizer, **options: Any) -> None:
    """`options`: kind (of the matrices), pre, extra tensors, and metadata to replace or drop (None)."""
    kind, extra = options.get("kind", Kind.F32), options.get("tensors", {})
    architecture = options.get("architecture") or model.config.model_type.replace("_", "")
    writer = gguf.GGUFWriter(file, architecture)
    replaced = options.get("metadata", {})
    for key, value in (metadata(model.config, architecture, tokenizer, options) | replaced).items():
        add(writer, key, value)
    for name, weight in split_experts(model.state_dict()):
        if name == "lm_head.weight" and model.config.tie_word_embeddings:
            continue
        add_tensor(writer, architecture, name, weight.numpy(), kind, model.config)
    for name, array in extra.items():
        writer.add_tensor(name, array)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def split_experts(weights: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """transformers has gate and up of all experts in one tensor, llama.cpp in two."""
    for name, weight in weights.items():
        if name.endswith("experts.gate_up_proj"):
            stem = name.removesuffix("_up_proj")
            gate, up = weight.chunk(2, dim=1)
            yield f"{stem}.weight", gate.contiguous()
            yield f"{stem.removesuffix('gate')}up.weight", up.contiguous()
        elif name.endswith("experts.down_proj"):
            yield f"{name.removesuffix('_proj')}.weight", weight
        else:
            yield name, weight


def metadata(config: Any, architecture: str, tokenizer: tokenizers.Tokenizer, options: Any) -> dict[str, Any]:
    bpe = json.loads(tokenizer.to_str())["model"]
    tokens = sorted(bpe["vocab"], key=bpe["vocab"].get)
    padding = [f"[PAD{i}]" for i in range(len(tokens), config.vocab_size)]
    model = {
        "context_length": config.max_position_embeddings,
        "embedding_length": config.hidden_size,
        "block_count": config.num_hidden_layers,
        "feed_forward_length": config.intermediate_size,
        "attention.head_count": config.num_attention_heads,
        "attention.head_count_kv": config.num_key_value_heads,
        "attention.layer_norm_rms_epsilon": config.rms_norm_eps,
        "rope.freq_base": config.rope_parameters["rope_theta"],
    }
    if config.model_type == "qwen3_moe":
        model["expert_count"], model["expert_used_count"] = config.num_experts, config.num_experts_per_tok
        model["expert_feed_forward_length"] = config.moe_intermediate_size
    if config.model_type.startswith("qwen3"):
        model["attention.key_length"] = model["attention.value_length"] = config.head_dim
    return {f"{architecture}.{key}": value for key, value in model.items()} | {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": options.get("pre", "smollm"),
        "tokenizer.ggml.tokens": tokens + padding,
        "tokenizer.ggml.token_type": [3 if t in SPECIAL else 1 for t in tokens] + [5] * len(padding),
        "tokenizer.ggml.merges": [" ".join(merge) for merge in bpe["merges"]],
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.padding_token_id": 0,
        "tokenizer.chat_template": TEMPLATE,
    }


def add(writer: gguf.GGUFWriter, key: str, value: Any) -> None:
    if isinstance(value, bool):
        writer.add_bool(key, value)
    elif isinstance(value, int):
        writer.add_uint32(key, value)
    elif isinstance(value, float):
        writer.add_float32(key, value)
    elif isinstance(value, str):
        writer.add_string(key, value)
    elif value is not None:
        writer.add_array(key, value)


def add_tensor(
    writer: Any, architecture: str, name: str, weight: np.ndarray, kind: Kind, config: Any
) -> None:
    if architecture == "llama" and ".q_proj." in name:
        weight = interleave(weight, config.num_attention_heads)
    if architecture == "llama" and ".k_proj." in name:
        weight = interleave(weight, config.num_key_value_heads)
    kind = Kind.F32 if weight.ndim == 1 else kind  # norms and biases are never quantised
    writer.add_tensor(gguf_name(name), gguf.quants.quantize(weight, kind), raw_dtype=kind)


def interleave(weight: np.ndarray, heads: int) -> np.ndarray:
    """llama.cpp's order within a head: 0, d/2, 1, d/2 + 1, …"""
    size = weight.shape[0] // heads
    order = [half * size // 2 + i for i in range(size // 2) for half in (0, 1)]
    return weight.reshape(heads, size, -1)[:, order].reshape(weight.shape)


def gguf_name(name: str) -> str:
    module, _, ending = name.rpartition(".")
    if not module.startswith("model.layers."):
        return f"{NAMES[module]}.{ending}"
    layer, _, stem = module.removeprefix("model.layers.").partition(".")
    return f"blk.{layer}.{NAMES[stem]}.{ending}"
