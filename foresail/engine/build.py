"""Builds an engine from a recipe's settings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from foresail.engine.engine import Engine
from foresail.engine.runner import can_draft
from foresail.model.decoder import Decoder
from foresail.recipe.estimates.memory import kv_pages
from foresail.recipe.tables import parts


def build_engine(
    model: Decoder,
    settings: parts.Engine,
    *,
    max_length: int,
    vocabulary: Sequence[bytes] = (),
    drafts: bool = False,
) -> Engine:
    """An engine with the recipe's capacity, by default that of all running rows at full length.

    `drafts`: draft with MTP layers if the model and the device have them.
    """
    options = engine_options(settings, max_length, vocabulary)
    return Engine(model, **options, mtp=drafts and can_draft(model))


def engine_options(settings: parts.Engine, max_length: int, vocabulary: Sequence[bytes]) -> dict[str, Any]:
    """The engine's arguments besides its model."""
    return {
        "num_pages": kv_pages(settings, max_length),
        "page_size": settings.page_size,
        "max_running": settings.max_running,
        "prefill_tokens": settings.prefill_tokens,
        "fp8_kv": settings.kv_dtype == "fp8",
        "batch_invariant": settings.batch_invariant,
        "replay_routing": settings.replay_routing,
        "vocabulary": vocabulary,
    }
