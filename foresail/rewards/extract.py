r"""Finding the final answer in a response: the last `\boxed{…}`, else the last `#### …` line.

Only text after the last `</think>` counts, and nothing does while a `<think>` is still open. Every rule is
one pass over the text, so a response of any size or nesting is read in linear time.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

Rule = Literal["boxed", "hashes"]

# `\\` is a line break and `\{` a printed brace; neither opens a group. `\\boxed` is an over-escaped `\boxed`.
_BOX = re.compile(r"\\(?:boxed|fbox)\s*+\{|\\\\(?!boxed|fbox)|\\[{}]|[{}]")
_HASHES = re.compile(r"^[ \t]*+####(?!#)(.*)$", re.MULTILINE)


class Extracted(NamedTuple):
    """What a response gives as its answer, and the rule that found it."""

    text: str
    rule: Rule


def extract(response: str) -> Extracted | None:
    r"""extract("so \boxed{7}") -> ("7", "boxed"); extract("#### 7") -> ("7", "hashes"); extract("7") -> None.

    The last box speaks even when it is empty: `\boxed{7} or rather \boxed{}` has no answer.
    """
    final = final_text(response)
    if final is None:
        return None
    rule: Rule = "boxed"
    text = last_box(final)
    if text is None and (lines := _HASHES.findall(final)):
        rule, text = "hashes", lines[-1]
    return Extracted(text.strip(), rule) if text and text.strip() else None


def extract_answer(response: str) -> str | None:
    r"""The text of the final answer, whichever rule found it: extract_answer("so \boxed{7}") -> "7"."""
    extracted = extract(response)
    return extracted.text if extracted else None


def final_text(response: str) -> str | None:
    """What follows the thinking: final_text("<think>3?</think> 4") -> " 4"; None while it has not ended."""
    final = response.rpartition("</think>")[2]
    return None if "<think>" in final else final


def last_box(text: str) -> str | None:
    r"""The content of the last balanced box: last_box(r"\boxed{1}, no, \boxed{\{2\}}") -> r"\{2\}".

    A box that holds nothing but another box is the same as the inner one.
    """
    contents: dict[int, tuple[int, int]] = {}  # where a box's command begins -> the span inside its braces
    open_groups: list[re.Match[str]] = []
    last: tuple[int, int] | None = None
    for token in _BOX.finditer(text):
        if token[0].endswith("{") and token[0] != r"\{":
            open_groups.append(token)
        elif token[0] == "}" and open_groups:
            opening = open_groups.pop()
            if opening[0] != "{":
                last = contents[opening.start()] = (opening.end(), token.start())
    return None if last is None else _innermost(text, last, contents)


def _innermost(text: str, span: tuple[int, int], contents: dict[int, tuple[int, int]]) -> str:
    start, end = span
    while True:
        while start < end and text[start].isspace():
            start += 1
        while start < end and text[end - 1].isspace():
            end -= 1
        inner = contents.get(start)
        if inner is None or inner[1] != end - 1:
            return text[start:end]
        start, end = inner
