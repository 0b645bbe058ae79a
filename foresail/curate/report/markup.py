"""HTML of texts that nobody has checked: documents are pages, and some are written to break others.

text("<b>\\0") -> "&lt;b&gt;\\ufffd"
inline("שלום") -> "<bdi>שלום</bdi>"           # its direction ends where it ends
"""

from __future__ import annotations

import re
from html import escape

# what no page may hold, and halves of characters
UNFIT = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


def text(value: object) -> str:
    return escape(UNFIT.sub("\ufffd", str(value)), quote=True)


def inline(value: object) -> str:
    return f"<bdi>{text(value)}</bdi>"


def count(number: float) -> str:
    """count(12345) -> "12,345"."""
    return f"{number:,.0f}"


def share(part: float, whole: float) -> str:
    """share(1, 8) -> "12.5 %"."""
    if not whole:
        return "–"
    percent = 100 * part / whole
    return "< 0.1 %" if 0 < percent < 0.05 else f"{percent:.1f} %"


def size(number: float) -> str:
    """size(4017) -> "4.0 kB"."""
    for unit in ("bytes", "kB", "MB", "GB", "TB"):
        if number < 1000 or unit == "TB":
            break
        number /= 1000
    return (
        f"{number:.0f} bytes"
        if unit == "bytes"
        else f"{number:.3g} {unit}"
        if number < 999.5
        else f"{number:,.0f} {unit}"
    )


def bar(parts: list[tuple[str, float]], whole: float) -> str:
    """Parts of a bar by their class, wide in proportion to `whole`."""
    widths = ((name, 100 * max(value, 0) / whole if whole else 0) for name, value in parts)
    inner = "".join(f'<i class="{name}" style="width:{width:.3f}%"></i>' for name, width in widths)
    return f'<span class="bar">{inner}</span>'
