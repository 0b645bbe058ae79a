"""Hugging Face's `config.json` read into a ModelShape, and a ModelShape written as one. No torch here.

Covers dense Llama, Mistral, Qwen2/2.5 and Qwen3, MiMo, and with experts Qwen3-MoE, Mixtral and ERNIE 4.5
(`hf_experts`). MiMo is Qwen2 with MTP layers, and written so; other families may have them, too, in tensors with
MiMo's names, which `transformers` passes over. What these families can say but
the decoder cannot do (biases elsewhere, sliding windows, rotary scalings that `hf_rope` does not know, quantised
weights) is refused, never ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from foresail.recipe.shape.hf_experts import check_experts, expert_keys, read_experts
from foresail.recipe.shape.hf_files import GenerationConfig, ModelConfig, parse, read_typed, required
from foresail.recipe.shape.hf_rope import position_count, read_rotary, rope_keys
from foresail.recipe.shape.hf_unused import NOTHING_UNUSED, Unused
from foresail.recipe.shape.model_shape import Family, ModelShape

FAMILIES: tuple[Family, ...] = get_args(Family)
ARCHITECTURES: dict[Family, str] = {
    "llama": "LlamaForCausalLM",
    "mistral": "MistralForCausalLM",
    "qwen2": "Qwen2ForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
    "qwen3_moe": "Qwen3MoeForCausalLM",
    "mixtral": "MixtralForCausalLM",
    "ernie4_5_moe": "Ernie4_5_MoeForCausalLM",
}
SCORING: dict[Family, str] = {  # reward models; transformers has none of ERNIE
    family: name.replace("ForCausalLM", "ForSequenceClassification")
    for family, name in ARCHITECTURES.items()
    if family != "ernie4_5_moe"
}
RELATIVES: dict[str, Family] = {"mimo": "qwen2"}  # the same blocks, and MTP layers beside them
QK_NORM: tuple[Family, ...] = ("qwen3", "qwen3_moe")
DEFAULT_QWEN3_HEAD_DIM = 128  # what transformers assumes where the file is silent


@dataclass(frozen=True, kw_only=True)
class SpecialIds:
    """Ids that begin, end and pad a text; several may end a turn."""

    bos: int | None = None
    eos: tuple[int, ...] = ()
    pad: int | None = None


NO_SPECIAL_IDS = SpecialIds()


def read_shape(
    directory: str | Path, *, context: int | None = None, mtp_layers: int | None = None
) -> ModelShape:
    """The shape of the checkpoint in `directory`, with the first so many of its MTP layers, or all of them; for
    `context` see `shape_from_config`.
    """
    config = read_config(directory)
    try:
        shape = build_shape(config, context=context)
        shape = shape.with_score() if is_scoring(config) else shape
        if mtp_layers is not None and mtp_layers > shape.mtp:
            raise ValueError(
                f"it has {shape.mtp} MTP layers, and {mtp_layers} are asked for; set model.mtp_layers lower, or "
                "add some: foresail mtp extend (or mtp add, where it has none)"
            )
        return shape if mtp_layers is None else shape.model_copy(update={"mtp": mtp_layers})
    except ValueError as error:
        raise ValueError(f"{Path(directory) / 'config.json'}: {error}") from error


def read_special_ids(directory: str | Path) -> SpecialIds:
    """Ids from generation_config.json, which chat models keep right, else from config.json."""
    config, file = read_config(directory), Path(directory) / "generation_config.json"
    better = read_typed(file, GenerationConfig) if file.is_file() else GenerationConfig()
    return SpecialIds(
        bos=config.bos_token_id if better.bos_token_id is None else better.bos_token_id,
        eos=better.eos_token_id or config.eos_token_id,
        pad=config.pad_token_id if better.pad_token_id is None else better.pad_token_id,
    )


def read_config(directory: str | Path) -> ModelConfig:
    directory = Path(directory)
    if not directory.is_dir():
        raise FileNotFoundError(
            f"no checkpoint directory {directory}; check the path. A hub's model is fetched beforehand: "
            f"hf download OWNER/NAME --local-dir checkpoints/NAME"
        )
    if not (directory / "config.json").is_file():
        own = next(directory.glob("checkpoints/*/config.json"), None)
        raise FileNotFoundError(
            f"{directory} is the folder of a run; give one of its checkpoints, such as {own.parent}"
            if own
            else f"{directory} has no config.json; give a Hugging Face model directory "
            "(config.json beside *.safetensors)"
        )
    return read_typed(directory / "config.json", ModelConfig)


def shape_from_config(config: Mapping[str, Any], *, context: int | None = None) -> ModelShape:
    """The shape a `config.json` describes, as written by transformers 4 or 5.

    `context` is the longest sequence that will be run. It matters to models with a sliding window: one no longer
    than the window never notices it, and the shape's `max_context` becomes the window. And to dynamic positions,
    which have another base where it is longer than the model's own context; see `rope`.
    """
    return build_shape(parse(config, ModelConfig), context=context)


def build_shape(config: ModelConfig, *, context: int | None) -> ModelShape:
    family = read_family(config.model_type)
    refuse_unsupported(config, family)
    rotary = read_rotary(config)
    heads = required("num_attention_heads", config.num_attention_heads)
    hidden = required("hidden_size", config.hidden_size)
    head_dim = config.head_dim or (DEFAULT_QWEN3_HEAD_DIM if family == "qwen3" else hidden // heads)
    if head_dim == 0:
        raise ValueError(
            f"hidden_size {hidden} is less than num_attention_heads {heads}; one of them is wrong"
        )
    kv_heads = config.num_key_value_heads or heads
    if heads % kv_heads:
        raise ValueError(f"num_attention_heads {heads} is not a multiple of num_key_value_heads {kv_heads}")
    if head_dim % 2:
        raise ValueError(f"heads are {head_dim} wide, but rotary positions need an even width; see head_dim")
    shape = ModelShape(
        family=family,
        vocab_size=required("vocab_size", config.vocab_size),
        hidden_size=hidden,
        intermediate_size=required("intermediate_size", config.intermediate_size),
        num_layers=required("num_hidden_layers", config.num_hidden_layers),
        num_heads=heads,
        num_kv_heads=kv_heads,
        head_dim=head_dim,
        max_context=usable_context(config, family, rotary.context, context),
        norm_eps=config.rms_norm_eps,
        rope_theta=rotary.theta,
        rope_scaling=rotary.scaling,
        qkv_bias=family == "qwen2",
        qk_norm=family in QK_NORM,
        tied=family == "ernie4_5_moe" if config.tie_word_embeddings is None else config.tie_word_embeddings,
        experts=read_experts(config, family),
        mtp=config.num_nextn_predict_layers if config.model_type == "mimo" else config.foresail_mtp_layers,
    )
    dynamic = rotary.scaling is not None and rotary.scaling.type == "dynamic"
    return shape.lengthened(context) if dynamic and context is not None else shape


def is_scoring(config: ModelConfig) -> bool:
    """Whether it is a reward model: a classifier with one label."""
    if not any(name.endswith("ForSequenceClassification") for name in config.architectures or ()):
        return False
    labels = len(config.id2label) if config.id2label is not None else config.num_labels or 2
    if labels != 1:
        raise ValueError(f"a classifier with {labels} labels is not a reward model, which has one label")
    return True


def read_family(model_type: str | None) -> Family:
    name = RELATIVES.get(str(model_type), model_type)
    for family in FAMILIES:
        if name == family:
            return family
    raise ValueError(f"model_type {name!r} is not supported; use one of {', '.join(FAMILIES)}")


def refuse_unsupported(config: ModelConfig, family: Family) -> None:
    """Options that change the arithmetic in ways the decoder does not follow."""
    if config.quantization_config:
        raise ValueError("the weights are quantised; start from the original bf16 or fp32 checkpoint")
    if config.attention_bias and family != "qwen2":
        raise ValueError(f"attention_bias is not supported for {family}; only qwen2 has biases (q, k and v)")
    if config.mlp_bias or config.use_bias:
        raise ValueError(
            f"{'mlp' if config.mlp_bias else 'use'}_bias is not supported; choose a model without it"
        )
    if config.hidden_act not in ("silu", "swish"):
        raise ValueError(f"hidden_act {config.hidden_act!r} is not supported; choose a model with silu")


def usable_context(config: ModelConfig, family: Family, longest: int, context: int | None) -> int:
    """Positions the decoder may use: all of the model's, or its window if nothing longer is run."""
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


def sliding_window(config: ModelConfig, family: Family) -> int | None:
    """The window in tokens, or None if every layer sees the whole past."""
    if family in ("llama", "ernie4_5_moe"):
        return None
    if family == "mixtral" and "sliding_window" not in config.model_fields_set:
        return None
    if family in ("mistral", "mixtral"):
        return config.sliding_window
    if not config.use_sliding_window:
        return None
    kinds, layers = config.layer_types, required("num_hidden_layers", config.num_hidden_layers)
    slides = "sliding_attention" in kinds if kinds else config.max_window_layers < layers
    return config.sliding_window if slides else None


def config_from_shape(
    shape: ModelShape,
    *,
    dtype: str,
    special: SpecialIds = NO_SPECIAL_IDS,
    unused: Unused = NOTHING_UNUSED,
) -> dict[str, Any]:
    """The `config.json` of a shape, for transformers 4 and 5 alike; `dtype` is a name, "bfloat16"."""
    check_family(shape)
    rope = unused.complete_rope(rope_keys(shape))
    config: dict[str, Any] = {
        "architectures": [(SCORING if shape.scores else ARCHITECTURES)[shape.family]],
        "model_type": shape.family,
        "vocab_size": shape.vocab_size,
        "hidden_size": shape.hidden_size,
        "intermediate_size": shape.intermediate_size,
        "num_hidden_layers": shape.num_layers,
        "num_attention_heads": shape.num_heads,
        "num_key_value_heads": shape.num_kv_heads,
        "head_dim": shape.head_dim,
        "max_position_embeddings": position_count(shape, unused.positions),
        "hidden_act": "silu",
        "rms_norm_eps": shape.norm_eps,
        "rope_theta": shape.rope_theta,  # transformers 4 reads this and the next,
        "rope_scaling": None if shape.rope_scaling is None else rope,
        "rope_parameters": {"rope_theta": shape.rope_theta, **rope},  # and transformers 5 this
        "tie_word_embeddings": shape.tied,
        "torch_dtype": dtype,  # both read the old name, only 5 the new one
        "use_cache": True,
    }
    # Spelled out where transformers' default would be another model.
    if shape.family in ("llama", "qwen3", "qwen3_moe"):
        config["attention_bias"] = False
    if shape.family in ("mistral", "mixtral"):
        config["sliding_window"] = None
    if shape.family in ("qwen2", "qwen3", "qwen3_moe"):
        config["use_sliding_window"] = False
    if shape.scores:
        config |= {"num_labels": 1, "id2label": {"0": "LABEL_0"}, "label2id": {"LABEL_0": 0}}
    config |= expert_keys(shape) | mtp_keys(shape) | special_keys(special)
    return unused.complete(config)


def mtp_keys(shape: ModelShape) -> dict[str, Any]:
    """Qwen2 with MTP layers is MiMo. A key of its own elsewhere: ERNIE's of that name means other layers."""
    if not shape.mtp:
        return {}
    if shape.family != "qwen2":
        return {"foresail_mtp_layers": shape.mtp}
    names = {"architectures": ["MiMoForCausalLM"], "model_type": "mimo", "attention_bias": True}
    return names | {"num_nextn_predict_layers": shape.mtp}


def generation_config(special: SpecialIds) -> dict[str, Any]:
    """The `generation_config.json` that makes `transformers.generate` stop where we do."""
    return {"_from_model_config": True, **special_keys(special)}


def special_keys(special: SpecialIds) -> dict[str, Any]:
    """eos is a number when there is one, a list when there are several, as others write it."""
    eos = list(special.eos) if len(special.eos) > 1 else special.eos[0] if special.eos else None
    return {"bos_token_id": special.bos, "eos_token_id": eos, "pad_token_id": special.pad}


def check_family(shape: ModelShape) -> None:
    """Refuse shapes that no Hugging Face family has: no other program could load the result."""
    family = shape.family
    for option, needed in (("qkv_bias", family == "qwen2"), ("qk_norm", family in QK_NORM)):
        if getattr(shape, option) != needed:
            raise ValueError(
                f"family {family} has {option} = {str(needed).lower()}; set it so, or choose the family: "
                "qwen2 has qkv_bias, qwen3 and qwen3_moe have qk_norm, the others have neither"
            )
    check_experts(shape)
    if shape.scores and family not in SCORING:
        raise ValueError(f"there is no reward model of family {family}; use one of {', '.join(SCORING)}")
    if family == "llama" and shape.hidden_size % shape.num_heads:
        raise ValueError(
            f"hidden_size {shape.hidden_size} is not a multiple of num_heads {shape.num_heads}, which "
            "transformers demands of llama; change one of them or choose another family"
        )
