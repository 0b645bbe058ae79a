"""HTML tags around a box: those that only set type, those that lay out, and those that hide or move what they hold.

is_hidden("<s>") -> True;  is_hidden("<s>7</s> ") -> False;  is_hidden('<p style="opacity: 0">') -> True
"""

from __future__ import annotations

import re

_ATTRIBUTES = r"(?:\s[^<>]{0,200})?"
_TYPE = r"(?:b|i|u|em|strong|span|font|mark|big|code|center|ins|a)"
FORMATTING = rf"</?{_TYPE}{_ATTRIBUTES}/?>"
LAYOUT = rf"</?[a-zA-Z][\w-]*{_ATTRIBUTES}/?>"  # all others: a paragraph, a list, `<answer>`
# Raised, lowered or a part of another formula: `<sup>2</sup>`, MathML.
MOVED = (
    r"</?(?:sup|sub|small|m(?:i|n|o|row|sup|sub|subsup|frac|sqrt|root|over|under|fenced|text))(?:\s[^<>]*)?>"
)

_HIDING = re.compile(
    rf"<(?P<ends>/?)(?P<name>s|del|strike|script|style|template|noscript|title|head|textarea|object|rp|rt)(?:\s[^<>]*)?>|{MOVED}",
    re.IGNORECASE,
)
_TAG = re.compile(r"<(?P<ends>/?)(?P<name>[a-zA-Z]\w*)(?P<attributes>\s[^<>]{0,200})?(?<!/)>")
_HIDDEN_BY_STYLE = re.compile(
    r"\bhidden\b|display\s*:\s*none|visibility|opacity|line-through|(?:font-size|width|height)\s*:\s*0|size\s*=\W?0"
    r"|position\s*:|clip|transform|text-indent|white\b|transparent|#f{3}\b|#f{6}\b|sr-only|strike|none\b",
    re.IGNORECASE,
)


def is_hidden(before: str) -> bool:
    """Whether a tag is open that strikes out, hides, raises or lowers what follows."""
    if "<" not in before:
        return False
    open_tags = sum(-1 if tag[0][1] == "/" else 1 for tag in _HIDING.finditer(before))
    if open_tags > 0:
        return True
    hidden: list[str] = []
    for tag in _TAG.finditer(before):
        if not tag["ends"] and tag["attributes"] and _HIDDEN_BY_STYLE.search(tag["attributes"]):
            hidden.append(tag["name"])
        elif tag["ends"] and tag["name"] in hidden:
            hidden.remove(tag["name"])
    return bool(hidden)
