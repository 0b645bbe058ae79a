"""Opens a checkpoint for generation: model, tokenizer, and an engine that fits into memory."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from foresail.model.decoder import Decoder
from foresail.model.device import choose_device, choose_dtype, choose_library, choose_threads
from foresail.model.hf import check_vocabulary, load_model
from foresail.recipe.estimates.machine import main_memory
from foresail.recipe.estimates.memory import pages_per_sample
from foresail.recipe.tables import parts
from foresail.tokenizer.tokenizer import Tokenizer

UNKNOWN_MEMORY = 8 << 30  # bytes assumed where the system does not say


def open_checkpoint(
    checkpoint: Path,
    *,
    device: str,
    dtype: str = "auto",
    max_length: int,
    template_options: Mapping[str, Any] | None = None,
) -> tuple[Decoder, Tokenizer]:
    """`max_length`: tokens to make room for; a model with a sliding window then has the window as its context."""
    place = choose_device(device)
    model = load_model(
        checkpoint, dtype=choose_dtype(dtype, place), device=place, context=max_length, mtp_layers=0
    )
    tokenizer = Tokenizer.load(checkpoint, options=template_options)
    check_vocabulary(model.shape, tokenizer.vocab_size)
    choose_threads(model.shape.num_parameters)
    choose_library(model.dtype)
    return model, tokenizer


def check_context(prompt: int, response: int, context: int) -> None:
    if prompt + response <= context:
        return
    room = context - prompt
    remedy = f"set --max-new-tokens to {room} or less" if room > 0 else "use shorter prompts"
    raise ValueError(
        f"a prompt of {prompt} tokens and --max-new-tokens {response} exceed the model's context of {context}; "
        f"{remedy}"
    )


def choose_engine(model: Decoder, max_length: int, *, num_attempts: int) -> parts.Engine:
    """Rows: one for each attempt, but no more than the default and than memory holds at full length."""
    default = parts.Engine()
    pages = pages_per_sample(default.page_size, max_length)
    row_bytes = pages * default.page_size * model.shape.kv_values_per_token * model.dtype.itemsize
    fitting = max(1, kv_budget(model.device) // row_bytes)
    return default.model_copy(update={"max_running": min(default.max_running, num_attempts, fitting)})


def kv_budget(device: torch.device) -> int:
    """Bytes a KV cache may take: the rest is for the forward pass and other programs."""
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        return int(0.6 * free)
    return (main_memory() or UNKNOWN_MEMORY) // 2
