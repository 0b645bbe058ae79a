"""Hugging Face's `config.json` read into a ModelShape, and a ModelShape written as one. No torch here.

Covers dense Llama, Mistral, Qwen2/2.5 and Qwen3, and MiMo without its MTP layers. What these families can say but
the decoder cannot do (biases elsewhere, sliding windows, other rotary scalings, quantised weights) is refused,
never ignored.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from foresail.recipe.shape import Family, ModelShape, RopeScaling

FAMILIES: tuple[Family, ...] = get_args(Family)
ARCHITECTURES: dict[Family, str] = {
    "llama": "LlamaForCausalLM",
    "mistral": "MistralForCausalLM",
    "qwen2": "Qwen2ForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
}
RELATIVES: dict[str, Family] = {"mimo": "qwen2"}  # the same blocks, and layers beside them that are not read
# What transformers assumes where the file is silent.
DEFAULT_MISTRAL_WINDOW = 4096
DEFAULT_QWEN3_HEAD_DIM = 128
DEFAULT_QWEN_FIRST_WINDOW_LAYER = 28


@dataclass(frozen=True, kw_only=True)
class SpecialIds:
    """The ids that begin, end and pad a text; a model may end its turn with any of several."""

    bos: int | None = None
    eos: tuple[int, ...] = ()
    pad: int | None = None


NO_SPECIAL_IDS = SpecialIds()


def read_shape(directory: str | Path, *, context: int | None = None) -> ModelShape:
    """The shape of the checkpoint in `directory`; for `context` see `shape_from_config`."""
    config = read_config(directory)
    try:
        return shape_from_config(config, context=context)
    except ValueError as error:
        raise ValueError(f"{Path(directory) / 'config.json'}: {error}") from error


def read_special_ids(directory: str | Path) -> SpecialIds:
    """Ids from generation_config.json, which chat models keep right, else from config.json."""
    ids = dict(read_config(directory))
    generation = Path(directory) / "generation_config.json"
    if generation.is_file():
        ids |= {key: value for key, value in read_json(generation).items() if value is not None}
    eos = ids.get("eos_token_id")
    eos = eos if isinstance(eos, list) else [] if eos is None else [eos]
    return SpecialIds(bos=ids.get("bos_token_id"), eos=tuple(eos), pad=ids.get("pad_token_id"))


def read_config(directory: str | Path) -> dict[str, Any]:
    directory = Path(directory)
    if not directory.is_dir():
        raise FileNotFoundError(
            f"no checkpoint directory {directory}; check the path. A hub's model is fetched beforehand: "
            f"hf download OWNER/NAME --local-dir checkpoints/NAME"
        )
    if not (directory / "config.json").is_file():
        raise FileNotFoundError(
            f"{directory} has no config.json; give a Hugging Face model directory "
            "(config.json beside *.safetensors)"
        )
    return read_json(directory / "config.json")


def read_json(file: Path) -> dict[str, Any]:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{file} is not valid JSON ({error}); restore or download it again") from error
    if not isinstance(content, dict):
        raise ValueError(f"{file} holds no JSON object; restore or download it again")
    return content


def shape_from_config(config: Mapping[str, Any], *, context: int | None = None) -> ModelShape:
    """The shape a `config.json` describes, as written by transformers 4 or 5.

    `context` is the longest sequence that will be run. It matters only to models with a sliding window:
    one no longer than the window never notices it, and the shape's `max_context` becomes the window.
    """
    family = read_family(config)
    refuse_unsupported(config, family)
    theta, scaling = read_rope(config)
    heads, hidden = required(config, "num_attention_heads"), required(config, "hidden_size")
    return ModelShape(
        family=family,
        vocab_size=required(config, "vocab_size"),
        hidden_size=hidden,
        intermediate_size=required(config, "intermediate_size"),
        num_layers=required(config, "num_hidden_layers"),
        num_heads=heads,
        num_kv_heads=config.get("num_key_value_heads") or heads,
        head_dim=config.get("head_dim") or (DEFAULT_QWEN3_HEAD_DIM if family == "qwen3" else hidden // heads),
        max_context=usable_context(config, family, context),
        norm_eps=config.get("rms_norm_eps", 1e-6),
        rope_theta=theta,
        rope_scaling=scaling,
        qkv_bias=family == "qwen2",
        qk_norm=family == "qwen3",
        tied=config.get("tie_word_embeddings", False),
    )


def required(config: Mapping[str, Any], key: str) -> int:
    if config.get(key) is None:
        raise ValueError(f"{key} is missing; add it, or use the config.json that came with the weights")
    return config[key]


def read_family(config: Mapping[str, Any]) -> Family:
    name = config.get("model_type")
    name = RELATIVES.get(str(name), name)
    for family in FAMILIES:
        if name == family:
            return family
    raise ValueError(f"model_type {name!r} is not supported; use one of {', '.join(FAMILIES)} (dense)")


def refuse_unsupported(config: Mapping[str, Any], family: Family) -> None:
    """Options that change the arithmetic in ways the decoder does not follow."""
    if config.get("quantization_config"):
        raise ValueError("the weights are quantised; start from the original bf16 or fp32 checkpoint")
    if config.get("attention_bias") and family != "qwen2":
        raise ValueError(f"attention_bias is not supported for {family}; only qwen2 has biases (q, k and v)")
    if config.get("mlp_bias"):
        raise ValueError("mlp_bias is not supported; choose a model without it")
    if (activation := config.get("hidden_act", "silu")) not in ("silu", "swish"):
        raise ValueError(f"hidden_act {activation!r} is not supported; choose a model with silu")


def read_rope(config: Mapping[str, Any]) -> tuple[float, RopeScaling | None]:
    """theta and scaling: transformers 5 keeps both in `rope_parameters`, 4 in two keys of their own.

    Where a file has both, `rope_scaling` wins, as it does in transformers 5.
    """
    rope = config.get("rope_scaling") or config.get("rope_parameters") or {}
    theta = rope.get("rope_theta") or config.get("rope_theta") or 10_000.0
    turned = rope.get("partial_rotary_factor") or config.get("partial_rotary_factor") or 1.0
    if turned != 1.0:
        raise ValueError(f"partial_rotary_factor {turned} is not supported; choose a model that turns all")
    kind = rope.get("rope_type") or rope.get("type") or "default"
    if kind == "default":
        return theta, None
    if kind != "llama3":
        raise ValueError(
            f"rope type {kind!r} is not supported, only default and llama3; if your sequences fit the "
            "original context, remove rope_scaling (or set its rope_type to default) in config.json"
        )
    keys = ("factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings")
    factor, low, high, original = (required(rope, key) for key in keys)
    return theta, RopeScaling(
        factor=factor, low_freq_factor=low, high_freq_factor=high, original_context=original
    )


def usable_context(config: Mapping[str, Any], family: Family, context: int | None) -> int:
    """Positions the decoder may use: all of the model's, or its window if nothing longer is run."""
    longest = required(config, "max_position_embeddings")
    window = sliding_window(config, family)
    if window is None or window >= longest:
        return longest
    if context is None or context > window:
        asked = f"the model's {longest}" if context is None else str(context)
        raise ValueError(
            f"sliding-window attention of {window} tokens is shorter than the context, {asked} tokens, and "
            f"is not supported; keep sequences within {window} tokens (recipe lengths, or "
            "max_position_embeddings in config.json) or choose a model without a window"
        )
    return window


def sliding_window(config: Mapping[str, Any], family: Family) -> int | None:
    """The window in tokens, or None if every layer sees the whole past."""
    if family == "llama":
        return None
    if family == "mistral":
        return config.get("sliding_window", DEFAULT_MISTRAL_WINDOW)
    if not config.get("use_sliding_window"):
        return None
    first = config.get("max_window_layers", DEFAULT_QWEN_FIRST_WINDOW_LAYER)
    kinds = config.get("layer_types")
    slides = "sliding_attention" in kinds if kinds else first < required(config, "num_hidden_layers")
    return config.get("sliding_window", DEFAULT_MISTRAL_WINDOW) if slides else None


def config_from_shape(
    shape: ModelShape, *, dtype: str, special: SpecialIds = NO_SPECIAL_IDS
) -> dict[str, Any]:
    """The `config.json` of a shape, for transformers 4 and 5 alike; `dtype` is a name, "bfloat16"."""
    check_family(shape)
    rope: dict[str, Any] = {"rope_type": "default"}
    if (scaling := shape.rope_scaling) is not None:
        rope = {
            "rope_type": "llama3",
            "factor": scaling.factor,
            "low_freq_factor": scaling.low_freq_factor,
            "high_freq_factor": scaling.high_freq_factor,
            "original_max_position_embeddings": scaling.original_context,
        }
    config: dict[str, Any] = {
        "architectures": [ARCHITECTURES[shape.family]],
        "model_type": shape.family,
        "vocab_size": shape.vocab_size,
        "hidden_size": shape.hidden_size,
        "intermediate_size": shape.intermediate_size,
        "num_hidden_layers": shape.num_layers,
        "num_attention_heads": shape.num_heads,
        "num_key_value_heads": shape.num_kv_heads,
        "head_dim": shape.head_dim,
        "max_position_embeddings": shape.max_context,
        "hidden_act": "silu",
        "rms_norm_eps": shape.norm_eps,
        "rope_theta": shape.rope_theta,  # transformers 4 reads this and the next,
        "rope_scaling": None if scaling is None else rope,
        "rope_parameters": {"rope_theta": shape.rope_theta, **rope},  # and transformers 5 this
        "tie_word_embeddings": shape.tied,
        "torch_dtype": dtype,  # both read the old name, only 5 the new one
        "use_cache": True,
    }
    # Spelled out where transformers' default would be another model.
    if shape.family in ("llama", "qwen3"):
        config["attention_bias"] = False
    if shape.family == "mistral":
        config["sliding_window"] = None
    if shape.family in ("qwen2", "qwen3"):
        config["use_sliding_window"] = False
    return config | special_keys(special)


def generation_config(special: SpecialIds) -> dict[str, Any]:
    """The `generation_config.json` that makes `transformers.generate` stop where we do."""
    return {"_from_model_config": True, **special_keys(special)}


def special_keys(special: SpecialIds) -> dict[str, Any]:
    """eos is a number when there is one, a list when there are several, as others write it."""
    eos = list(special.eos) if len(special.eos) > 1 else special.eos[0] if special.eos else None
    return {"bos_token_id": special.bos, "eos_token_id": eos, "pad_token_id": special.pad}


def check_family(shape: ModelShape) -> None:
    """Refuse shapes no Hugging Face family has: they would train, but nothing else could load them."""
    family = shape.family
    for option, needed in (("qkv_bias", family == "qwen2"), ("qk_norm", family == "qwen3")):
        if getattr(shape, option) != needed:
            raise ValueError(
                f"family {family} has {option} = {str(needed).lower()}; set it so, or choose the family: "
                "qwen2 has qkv_bias, qwen3 has qk_norm, llama and mistral have neither"
            )
    if family == "llama" and shape.hidden_size % shape.num_heads:
        raise ValueError(
            f"hidden_size {shape.hidden_size} is not a multiple of num_heads {shape.num_heads}, which "
            "transformers demands of llama; change one of them or choose another family"
        )
