r"""Parts of a text that must come back as they are: code, LaTeX, addresses, placeholders, tags, names with digits.

    fixed_spans("Compute `f(2)` for $x^2$, see https://a.org.")
        -> Span("`f(2)`", "code"), Span("$x^2$", "latex"), Span("https://a.org", "address")

`$5 and $10` is money: a formula in dollars begins and ends at a character, and no digit follows it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

KINDS = {
    "fence": r"(?P<fence>\[asy\].*?\[/asy\]|^(?P<ticks>`{3,}|~{3,})[^\n]*\n.*?(?:^(?P=ticks)[`~]*[ \t]*$|\Z))",
    "code": r"(?P<code>(?<!`)(?P<tick>`{1,2})(?!`)(?:(?!\n\n).){1,400}?(?<!`)(?P=tick)(?!`))",
    "latex": (
        r"(?P<latex>\$\$.{1,2000}?\$\$|\\\[.{1,2000}?\\\]|\\\(.{1,1000}?\\\)"
        r"|\\begin\{(?P<environment>[a-z*]{1,20})\}.{0,4000}?\\end\{(?P=environment)\}"
        r"|(?<![\\$\w])\$(?![\s$])(?:(?!\n\n)[^$]){0,400}?(?<![\s\\])\$(?![\d$])"
        r"|\\[A-Za-z]{2,20}(?:\{[^{}\n]{0,200}\})*)"
    ),
    "address": (
        r"(?P<address>\b(?:https?|ftp)://[^\s<>\"'`)\]}]*[^\s<>\"'`)\]}.,;:!?。，、]"
        r"|\bwww\.[^\s<>\"'`)\]}]*[^\s<>\"'`)\]}.,;:!?。，、]"
        r"|[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){1,4})"
    ),
    "placeholder": (
        r"(?P<placeholder>\{\{[^{}\n]{1,80}\}\}|\{[A-Za-z_][A-Za-z_0-9]{0,40}\}"
        r"|%(?:\([A-Za-z_]{1,40}\))?[sd]\b)"
    ),
    "tag": r"(?P<tag></?[A-Za-z][\w-]{0,30}(?:\s[^<>\n]{0,200})?/?>)",
    # f_max, read_csv; A4, H2O, iPhone14
    "name": (
        r"(?P<name>\b(?=[A-Za-z0-9_]*[A-Za-z])[A-Za-z0-9]+(?:_[A-Za-z0-9]+)+\b"
        r"|\b[A-Za-z]+\d[A-Za-z0-9]*(?:-[A-Za-z0-9]+)*\b)"
    ),
}
PATTERN = re.compile("|".join(KINDS.values()), re.DOTALL | re.MULTILINE)
BLANK = " \x00 "


@dataclass(frozen=True, slots=True)
class Span:
    """`start` and `end`: where it stands."""

    text: str
    kind: str
    start: int = 0
    end: int = 0


def fixed_spans(text: str) -> list[Span]:
    """In the order of the text; none inside another."""
    spans = []
    for match in PATTERN.finditer(text):
        kind = next(name for name in KINDS if match[name] is not None)
        spans.append(Span(match[0], kind, match.start(), match.end()))
    return spans


def without_spans(text: str, spans: Sequence[Span]) -> str:
    """What is prose: a NUL stands where a part was."""
    parts, place = [], 0
    for span in spans:
        parts += [text[place : span.start], BLANK]
        place = span.end
    return "".join([*parts, text[place:]])


def lost_spans(before: Sequence[Span], after: Sequence[Span], whole: str) -> list[str]:
    """Parts of the first text that the second, `whole`, does not have as often; white space does not matter."""
    left = Counter(squeezed(span.text) for span in after)
    squeezed_whole = squeezed(whole)
    missing = []
    for span in before:
        text = squeezed(span.text)
        if left[text]:
            left[text] -= 1
        elif text not in squeezed_whole or text in left:
            missing.append(span.text)
    return missing


def squeezed(text: str) -> str:
    return "".join(text.split())
