r"""Images of formulas: their LaTeX from the alternative text or from the address of the service that drew them.

image_latex({"src": "https://latex.codecogs.com/svg.image?%5Cfrac%7Ba%7D%7Bb%7D"})   -> r"\frac{a}{b}"
image_latex({"src": "x.png", "class": "latex", "alt": "e^x"})                         -> "e^x"
"""

from __future__ import annotations

import re
from urllib.parse import unquote

SERVICE = re.compile(
    r"latex\.php|codecogs\.com|mimetex|mathtex|texrendr|latex\.cgi|tex2img|/latex/|/tex/|mathurl|equation\?tex=|cht=tx|quicklatex"
    r"|/math/render/|/formula/|latexrender|texify|wp-latex|/teximg|render\.githubusercontent\.com/render/math|latex2png|sciweavers",
    re.IGNORECASE,
)
QUERY = re.compile(r"[?&](?:latex|tex|chl|math|eq|equation|formula|f)=([^&]*)", re.IGNORECASE)
PATH = re.compile(r"/formula/([^/?]+)$")
WHOLE_QUERY = re.compile(
    r"(?:codecogs\.com/[\w.]+|(?:mimetex|mathtex|latex)\.cgi|texrendr/?)\?(.*)$", re.IGNORECASE
)
MATH_CLASS = re.compile(
    r"\b(?:latex|tex|math|mwe-math[\w-]*|equation|mimetex|formula|katex|mathjax|ql-img[\w-]*|LaTeX[\w-]*|inlineformula|texImage)\b",
    re.IGNORECASE,
)
TEX = re.compile(r"\\[A-Za-z]+|[A-Za-z0-9}\])][\^_][{A-Za-z0-9\\(]|\\[,;!{}|]")
COMMAND = re.compile(r"\\[A-Za-z]{2,}|[\^_]\{")
PATHS = re.compile(r"^(?:[A-Za-z]:\\|\\\\)")
SIZE = re.compile(
    r"^(?:\\(?:dpi|bg|fg|inline|large|small|huge|LARGE|fn_\w+|150dpi|\d+dpi)\s*(?:\{[^}]*\})?\s*)+"
)


def image_latex(attributes: dict[str, str]) -> str | None:
    """None where it is a picture of something else."""
    alt = attributes.get("alt", "").strip() or attributes.get("title", "").strip()
    for key in ("src", "data-src", "data-lazy-src", "data-original"):
        source = attributes.get(key, "")
        if source and not source.startswith("data:") and SERVICE.search(source):
            return (
                (alt if TEX.search(alt) else "") or from_address(source) or (alt if is_formula(alt) else None)
            )
    if not alt or PATHS.match(alt):
        return None
    if MATH_CLASS.search(attributes.get("class", "")) and is_formula(alt):
        return alt
    return alt if COMMAND.search(alt) and not alt.startswith("http") else None


def from_address(address: str) -> str:
    match = QUERY.search(address) or WHOLE_QUERY.search(address) or PATH.search(address)
    if match is None:
        return ""
    source = unquote(
        match[1].replace("+", " ") if "%20" not in match[1] and "%2B" in match[1].upper() else match[1]
    )
    return SIZE.sub("", source.replace("&space;", " ")).strip()


def is_formula(text: str) -> bool:
    return bool(text) and (
        TEX.search(text) is not None or len(text) < 40 or re.search(r"[=<>+]", text) is not None
    )
