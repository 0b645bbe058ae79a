"""What the parser cannot take: its time grows with the square of a page's depth, and of an element's attributes.

limit_page("<div>" * 100_000 + "text") -> "<div>" * 2000 + "text"

Start tags deeper than that go, with their end tags, and attributes after the first thousand. Other pages are
returned as they are.
"""

from __future__ import annotations

import re

DEEPEST = 2_000  # browsers stop at a few hundred
FEW_TAGS = 8_000
MOST_ATTRIBUTES = 1_000
TAG = re.compile(r"<(/?)([a-zA-Z][^\s/<>]*)[^<>]*>")
LONG_TAG = re.compile(r"<[a-zA-Z][^<>]{10000,}>")
ATTRIBUTE = re.compile(r"""[^\s="'<>]+(?:\s*=\s*(?:"[^"]*"|'[^']*'|[^\s"'<>]+))?""")
# They end by themselves, or have no inside.
CLOSED = frozenset(
    "p li td th tr dd dt option tbody thead tfoot area base basefont bgsound br col embed frame hr img input link"
    " meta param source track wbr".split()
)


def limit_page(html: str) -> str:
    return limit_depth(LONG_TAG.sub(limit_attributes, html))


def limit_attributes(match: re.Match[str]) -> str:
    for number, attribute in enumerate(ATTRIBUTE.finditer(match[0])):
        if number == MOST_ATTRIBUTES:  # the element's name is the first
            return match[0][: attribute.end()] + ">"
    return match[0]


def limit_depth(html: str) -> str:
    if html.count("<") < FEW_TAGS:
        return html
    depth = 0

    def keep(match: re.Match[str]) -> str:
        nonlocal depth
        closing, name = match.groups()
        if name.lower() in CLOSED:
            return match[0]
        is_too_deep = depth > DEEPEST - (not closing)
        depth = max(depth - 1, 0) if closing else depth + 1
        return "" if is_too_deep else match[0]

    return TAG.sub(keep, html)
