r"""Delimiters of raw TeX and AsciiMath in running text become dollars.

dollars(r"where \(x\) and \[y\]")        -> "where $x$ and $$y$$"
dollars("`1/2`", asciimath=True)         -> r"$\frac{1}{2}$"
"""

from __future__ import annotations

import re

from foresail.curate.extract.render.maths.asciimath import asciimath_to_latex

INLINE = re.compile(r"(?<!\\)\\\((.+?)(?<!\\)\\\)")
DISPLAY = re.compile(r"(?<!\\)\\\[(.+?)(?<!\\)\\\]")
TAGS = re.compile(r"\[(tex|itex|latex|math|imath|dmath)\](.+?)\[/\1\]", re.IGNORECASE)
BACKTICKS = re.compile(r"(?<!\\)`([^`]+?)(?<!\\)`")


def dollars(text: str, *, asciimath: bool = False) -> str:
    if "\\(" in text:
        text = INLINE.sub(lambda match: f"${match[1].strip()}$", text)
    if "\\[" in text:
        text = DISPLAY.sub(lambda match: f"$${match[1].strip()}$$", text)
    if "[/" in text:
        text = TAGS.sub(lambda match: f"${match[2].strip()}$", text)
    if asciimath and "`" in text:
        text = BACKTICKS.sub(
            lambda match: f"${' '.join(asciimath_to_latex(match[1]).split())}$", text
        ).replace("\\`", "`")
    return text
