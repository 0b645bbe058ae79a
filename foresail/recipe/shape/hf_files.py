"""The JSON files of a Hugging Face directory as typed models: what we read of each, and of which type it must be.

    read_typed(directory / "generation_config.json", GenerationConfig).eos_token_id -> (2,)

A value of another type is an error of one line that names the file, the key and what the key takes. Keys that are
not read here are left alone, whatever they hold.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from foresail.recipe.shape.model_shape import MAX_MTP
from foresail.recipe.validation_errors import explain_errors, show

# What transformers assumes where the file is silent.
DEFAULT_WINDOW = 4096
DEFAULT_FIRST_WINDOW_LAYER = 28
MAX_LAYERS, WIDEST, LONGEST = 10_000, 10_000_000, 10_000_000  # beyond these no model is, but a mistake
LARGEST_ID = 2**31 - 1


def listed_ids(value: Any) -> Any:
    """listed_ids(None) -> (); listed_ids(2) -> (2,); listed_ids([2, 3]) -> (2, 3)."""
    if value is None:
        return ()
    ids = value if isinstance(value, list | tuple) else [value]
    if any(type(entry) is not int or not 0 <= entry <= LARGEST_ID for entry in ids):
        raise ValueError(f"takes a token id or a list of them, not {show(value)}")
    return tuple(ids)


def token_text(value: Any) -> Any:
    """token_text({"content": "</s>", …}) -> "</s>", as transformers writes added tokens."""
    text = value.get("content") if isinstance(value, dict) else value
    if text is not None and not isinstance(text, str):
        raise ValueError(f"takes a token as text, or an object with its content, not {show(value)}")
    return text


def template_texts(value: Any) -> Any:
    """template_texts("…") -> {"default": "…"}; a list of {"name", "template"} gives each by its name."""
    if value is None or isinstance(value, str):
        return {"default": value} if value else {}
    entries: list[Any] = value if isinstance(value, list) else [None]
    for entry in entries:
        known = isinstance(entry, dict) and isinstance(entry.get("name"), str)
        if not known or not isinstance(entry.get("template"), str):
            raise ValueError(f"takes a template as text, or a list of name and template, not {show(value)}")
    return {entry["name"]: entry["template"] for entry in entries}


Width = Annotated[int, Field(gt=0, le=WIDEST)]
TokenIds = Annotated[tuple[int, ...], BeforeValidator(listed_ids)]
Token = Annotated[str | None, BeforeValidator(token_text)]
Templates = Annotated[dict[str, str], BeforeValidator(template_texts)]


class HfFile(BaseModel):
    """Strict about what is read, open to all else."""

    model_config = ConfigDict(extra="ignore", frozen=True, strict=True, allow_inf_nan=False)


class Rope(HfFile):
    """`rope_scaling` of transformers 4, `rope_parameters` of 5."""

    rope_type: str | None = None
    type: str | None = None
    rope_theta: float | None = Field(None, gt=0)
    partial_rotary_factor: float | None = None
    factor: float | None = Field(None, gt=0)
    original_max_position_embeddings: int | None = Field(None, gt=0, le=LONGEST)
    low_freq_factor: float | None = Field(None, gt=0)
    high_freq_factor: float | None = Field(None, gt=0)
    attention_factor: float | None = Field(None, ge=0)
    mscale: float | None = None
    mscale_all_dim: float | None = None
    beta_fast: float | None = Field(None, ge=0)
    beta_slow: float | None = Field(None, ge=0)
    truncate: bool = True
    full_attention: Any = None  # where kinds of layers have positions of their own, and the next one
    sliding_attention: Any = None


class ModelConfig(HfFile):
    """`config.json`."""

    model_type: str | None = None
    vocab_size: Width | None = None
    hidden_size: Width | None = None
    intermediate_size: Width | None = None
    num_hidden_layers: int | None = Field(None, gt=0, le=MAX_LAYERS)
    num_attention_heads: Width | None = None
    num_key_value_heads: int | None = Field(None, ge=0, le=WIDEST)  # 0, as null: as many as query heads
    head_dim: int | None = Field(None, ge=0, le=WIDEST)
    max_position_embeddings: int | None = Field(None, gt=0, le=LONGEST)
    original_max_position_embeddings: int | None = Field(None, gt=0, le=LONGEST)
    rms_norm_eps: float = Field(1e-6, gt=0)
    tie_word_embeddings: bool | None = None
    hidden_act: str = "silu"
    attention_bias: bool | None = None
    mlp_bias: bool | None = None
    quantization_config: Any = None
    partial_rotary_factor: float | None = None
    rope_theta: float | None = Field(None, gt=0)
    rope_scaling: Rope | None = None
    rope_parameters: Rope | None = None
    sliding_window: int | None = Field(DEFAULT_WINDOW, gt=0)
    use_sliding_window: bool | None = None
    max_window_layers: int = DEFAULT_FIRST_WINDOW_LAYER
    layer_types: list[str] | None = None
    num_experts: Width | None = None  # Qwen3-MoE's, and the next five
    num_experts_per_tok: Width | None = None
    moe_intermediate_size: Width | None = None
    norm_topk_prob: bool = False
    decoder_sparse_step: int = 1
    mlp_only_layers: list[int] | None = None
    num_local_experts: Width | None = None  # Mixtral's
    moe_num_experts: Width | None = None  # ERNIE's, and the next six
    moe_k: Width | None = None
    moe_num_shared_experts: int | None = Field(2, ge=0)
    moe_layer_start_index: int = 1
    moe_layer_end_index: int = -1
    moe_layer_interval: int = 1
    use_bias: bool | None = None
    num_nextn_predict_layers: int = Field(0, ge=0, le=MAX_MTP)  # MiMo's MTP layers
    foresail_mtp_layers: int = Field(0, ge=0, le=MAX_MTP)  # those of families that have none of their own
    bos_token_id: int | None = None
    eos_token_id: TokenIds = ()
    pad_token_id: int | None = None
    architectures: list[str] | None = None
    id2label: dict[Any, Any] | None = None  # a reward model's, and the next one
    num_labels: int | None = None


class GenerationConfig(HfFile):
    """`generation_config.json`."""

    bos_token_id: int | None = None
    eos_token_id: TokenIds = ()
    pad_token_id: int | None = None


class TokenizerConfig(HfFile):
    """`tokenizer_config.json`."""

    bos_token: Token = None
    eos_token: Token = None
    pad_token: Token = None
    unk_token: Token = None
    chat_template: Templates = {}


class WeightIndex(HfFile):
    """`model.safetensors.index.json`: which file holds which tensor."""

    weight_map: dict[str, str] = Field(description="the file of every tensor, by name")


class AdapterConfig(HfFile):
    """`adapter_config.json`, as PEFT writes it."""

    lora_alpha: float | None = None


Kind = TypeVar("Kind", bound=HfFile)
Value = TypeVar("Value")


def read_typed(file: Path, kind: type[Kind]) -> Kind:
    content = read_json(file)
    try:
        return parse(content, kind)
    except ValueError as error:
        raise ValueError(f"{file}: {error}") from error


def parse(content: Mapping[str, Any], kind: type[Kind]) -> Kind:
    """The file's content as its type, or all that is wrong with it in one line."""
    try:
        return kind.model_validate(content)
    except ValidationError as error:
        wrong = "; ".join(explain_errors(error, kind, content))
        raise ValueError(f"{wrong}. Restore the file or download it again") from None


def required(key: str, value: Value | None) -> Value:
    if value is None:
        raise ValueError(f"{key} is missing; add it, or use the config.json that came with the weights")
    return value


def read_json(file: Path) -> dict[str, Any]:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        json.dumps(content, ensure_ascii=False).encode()  # half a pair of surrogates is found here
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{file} is not valid JSON ({error}); restore or download it again") from error
    if not isinstance(content, dict):
        raise ValueError(f"{file} holds no JSON object; restore or download it again")
    return content
