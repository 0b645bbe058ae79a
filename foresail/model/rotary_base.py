"""Sets a loaded model's rotary base or a longer context; no weight changes.

set_rotary(model, rope_theta=1_000_000.0, context=32_768)   # its tables, and what its config.json will say
"""

from __future__ import annotations

from foresail.model.decoder import Decoder
from foresail.model.rotary import rotary_table


def set_rotary(model: Decoder, *, rope_theta: float | None = None, context: int = 0) -> None:
    """The context only grows. Nothing is done where both are as they were."""
    if (shape := model.shape.lengthened(context, rope_theta)) == model.shape:
        return
    model.shape = shape
    device = model.cos.device
    cos, sin = rotary_table(shape)
    model.cos, model.sin = cos.to(device), sin.to(device)
