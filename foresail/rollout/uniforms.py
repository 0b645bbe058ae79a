"""Random numbers that belong to a place for ever: no generator has to be saved, none can get out of step."""

from __future__ import annotations

import hashlib


def uniforms(*place: object) -> tuple[float, float]:
    """Two independent numbers in [0, 1): uniforms("easy", seed, step, launch)."""
    text = "\x1f".join(map(str, place))
    digest = hashlib.blake2b(text.encode(), digest_size=16).digest()
    # 53 bits: all a float holds, so that none rounds up to 1
    first, second = (int.from_bytes(part, "little") >> 11 for part in (digest[:8], digest[8:]))
    return first * 2.0**-53, second * 2.0**-53
