r"""What a reader of a response sees: no comments, no program's text, no struck-out words, no marks of typeface."""

from __future__ import annotations

import re

SPECIAL_TOKEN = re.compile(r"<\|[a-z_]{2,20}\|>|</s>")
_HTML_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_PROGRAM = re.compile(
    r"```[ \t]*(?:python\d?|py|c|cpp|c\+\+|java|javascript|js|ts|typescript|rust|go|r|julia|matlab|octave"
    r"|sage|sympy"
    r"|bash|sh|shell|sql|ruby|haskell|lean\d?|wolfram|mathematica)[ \t]*\n.*?(?:```|\Z)",
    re.DOTALL | re.IGNORECASE,
)
_STRUCK_OUT = re.compile(r"~~[^~\n]+~~")
_STRUCK_TAG = re.compile(
    r"<(s|del|strike)>[^<]{0,400}+</\1>(?=\s*\S)", re.IGNORECASE
)  # and no token at the end
_RARE = (
    (r"\iffalse", re.compile(r"\\iffalse(?![a-zA-Z]).*?(?:\\fi(?![a-zA-Z])|\Z)", re.DOTALL)),
    (r"\verb", re.compile(r"\\verb\*?([^\w\s*])[^\n]{0,400}?\1")),
    ("[asy]", re.compile(r"\[asy\].*?(?:\[/asy\]|\Z)", re.DOTALL)),  # a picture's program
)
_MAY_BE_COMMENT = re.compile(r"(?:\A|[\n.;:,!?])[ \t]*%")  # found much faster than the comment itself
_COMMENT = re.compile(r"^[ \t]*%[^\n]*|(?<=[.;:,!?])[ \t]+%[ \t][^\n]*", re.MULTILINE)
# Not after what a power would stand after: `x**2` is no typeface.
_EMPHASIS = re.compile(r"(?<![A-Za-z0-9)}\]*\\])\*{1,3}(?![\s*])([^*\n]{1,400}+)\*{1,3}")
_UNDERLINES = re.compile(r"(?<![\w}\\])__(?![\s_])([^_\n]{1,400}+)__(?!\w)")
_TAG = re.compile(
    r"</?(?:b|i|u|em|strong|span|p|div|center|font|mark|code|small|big|h[1-6]|br)(?:\s[^<>\n]{0,80})?/?>",
    re.I,
)
_CALCULATOR = re.compile(r"<<[^<>\n]{0,200}>>")  # as GSM8K's solutions have it
_CODE = re.compile(r"(?<!`)`([^`\n]{1,80})`(?!`)")


def visible(text: str) -> str:
    r"""visible(r"It is 8. <!-- \boxed{7} -->") -> "It is 8. ". A search for one character costs next to nothing."""
    if "<" in text:
        if "<!--" in text:
            text = _HTML_COMMENT.sub(" ", text)
        if "</" in text:
            text = _STRUCK_TAG.sub(" ", text)
    if "`" in text and "```" in text:
        text = _PROGRAM.sub(" ", text)
    if "~" in text and "~~" in text:
        text = _STRUCK_OUT.sub(" ", text)
    has_percent = "%" in text and (text[0] == "%" or "\n%" in text or " % " in text)
    if has_percent and _MAY_BE_COMMENT.search(text):
        text = _COMMENT.sub(" ", text)
    return text


def without_rare_markup(text: str, begin: int = 0) -> str:
    r"""The text without `\iffalse … \fi`, `\verb|…|` and programs of pictures that begin at a place or later."""
    seen = around = text[begin:]
    for mark, hidden in _RARE:
        if mark in seen:
            seen = hidden.sub(" ", seen)
    return text if seen is around else text[:begin] + seen


def without_unclosed(text: str) -> str:
    r"""Signs that open a formula and have no end are made unreadable, each character by itself.

    without_unclosed(r"\(7\) \[8") -> r"\(7\) ??8", with characters that mean nothing. A pattern would look for the
    end of each of them up to the end of the text, which takes the square of their number.
    """
    for opening, closing in ((r"\[", r"\]"), (r"\(", r"\)")):
        if opening in text:
            last = text.rfind(closing) + 1
            text = text[:last] + text[last:].replace(opening, "\0\0")
    return text


def without_marks(text: str) -> str:
    """The text without the typeface of Markdown and HTML: without_marks("It is **42**.") -> "It is 42."."""
    if "*" in text:
        text = _EMPHASIS.sub(r"\1", text)
    if "__" in text:
        text = _UNDERLINES.sub(r"\1", text)
    if "</" in text:
        text = _TAG.sub("", text)
    if "<<" in text:
        text = _CALCULATOR.sub("", text)
    if "`" in text:
        text = _CODE.sub(r"\1", text)
    return text
