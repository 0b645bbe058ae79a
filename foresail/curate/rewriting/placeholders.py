"""Code, LaTeX, addresses and names of tools out of a translator's way: marks stand for them, and have to come back.

text, parts = protect("Compute `f(2)`, see https://a.org.")     # "Compute ⟦1⟧, see ⟦2⟧.", ["`f(2)`", …]
restore("Lihat ⟦2⟧ dan hitung ⟦1⟧.", parts) -> "Lihat https://a.org dan hitung `f(2)`."
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from foresail.curate.rewriting.spans import Span, fixed_spans

MARK = re.compile("⟦\\s*(\\d{1,4})\\s*⟧")
LONE = re.compile("[⟦⟧]")


def protect(text: str, words: Sequence[str] = ()) -> tuple[str, list[str]]:
    """`words` stay too, such as the names of tools. What looks like a mark is protected as well."""
    spans = [*fixed_spans(text)]
    own = [re.escape(word) for word in sorted(words, key=len, reverse=True) if word]
    pattern = "|".join([r"⟦\s*\d+\s*⟧|[⟦⟧]", *(rf"(?<!\w){word}(?!\w)" for word in own)])
    for match in re.finditer(pattern, text):
        if not any(span.start < match.end() and match.start() < span.end for span in spans):
            spans.append(Span(match[0], "word", match.start(), match.end()))
    parts, pieces, place = list[str](), list[str](), 0
    for span in sorted(spans, key=lambda span: span.start):
        tail = span.text[len(span.text.rstrip("\n")) :]  # the line break behind a fence is the text's
        parts.append(span.text.removesuffix(tail) if tail else span.text)
        pieces += [text[place : span.start], f"⟦{len(parts)}⟧", tail]
        place = span.end
    return "".join([*pieces, text[place:]]), parts


def restore(text: str, parts: Sequence[str]) -> str | None:
    """None if a mark is missing, doubled or unknown."""
    numbers = sorted(int(match[1]) for match in MARK.finditer(text))
    if numbers != [*range(1, len(parts) + 1)] or LONE.search(MARK.sub("", text)):
        return None
    return MARK.sub(lambda match: parts[int(match[1]) - 1], text)
