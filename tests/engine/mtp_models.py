"""Small models with MTP layers, which idle unless an engine asks for them."""

from __future__ import annotations

from typing import Any

import pytest
from small_engines import SHAPES, small_model

from foresail.model.decoder import Decoder


def mtp_model(layers: int, name: str = "qwen3", **options: Any) -> Decoder:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(SHAPES, "with mtp", {**SHAPES[name], "mtp": layers})
        return small_model("with mtp", **options)


MTP_MODELS = {layers: mtp_model(layers) for layers in (1, 2, 3)}
