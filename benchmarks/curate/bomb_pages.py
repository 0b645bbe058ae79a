"""HTML pages and Markdown that cost their reader far more than their size: depth, repetition, huge tables.

PAGES["deep.html"](2**30) -> b"<div><div><div>…", a million of them
"""

from __future__ import annotations

import random
from collections.abc import Callable

DEPTH = 400_000
# fmt: off
PARTS = (  # what pages are made of; a repetition of few of them is where parsers and patterns go wrong
    "<div>", "</div>", "<p>", "</p>", "<span>", "<b>", "<i>", "</b>", "<a href=x>", "</a>", "<font>", "<nobr>",
    "<ul>", "<ol>", "<li>", "</li>", "<dl>", "<dd>", "<blockquote>", "<h1>", "<section>", "<article>", "<form>",
    "<table>", "<tr>", "<td>", "<th>", "</table>", "<td colspan=9999 rowspan=9999>", "<caption>", "<select>",
    "<pre>", "<code>", "</code>", "<code class=language-c>", "\n", " ", "<br>", "<textarea>", "<template>",
    "<svg>", "<math>", "<mrow>", "<mfrac>", "<msup>", "<mi>x</mi>", "<semantics>",
    "<annotation encoding=application/x-tex>", "<span class=katex>", "<span class=MathJax>", "<mjx-container>",
    "<mjx-math>", "<script type=math/tex>", "</script>", "<div class=CodeMirror>", "<div class=line>",
    "<img alt='\\frac{a}{b}'>", "<!--", "-->", "<![CDATA[", "$", "$$", "\\(", "\\)", "\\[", "\\]", "[tex]",
    "[/tex]", "`", "\\begin{align}", "{", "}", "^", "_", "&", "&amp;", "x", "word ", "a=", "\"", "'", "<", ">",
    "/", "\\", "\0", "é", "http://a/", "- ", "1. ", "#", "|", "[", "](", "Reply", "<div class=post>",
    "<div class=comment>", "<nav>", "<footer>", "<main>", "<time>", "<iframe>", "<noscript>",
)
# fmt: on


def deep(*tags: str, close: bool = False, inside: str = "x") -> Callable[[int], bytes]:
    def make(size: int) -> bytes:
        number = min(DEPTH, size // 64) // len(tags)
        opened = "".join(f"<{tag}>{inside}" for tag in tags) * number
        closed = "".join(f"</{tag.split()[0]}>" for tag in reversed(tags)) * number if close else ""
        return f"<!doctype html><html><body>{opened}{closed}<p>The end.".encode()

    return make


def repeated(text: str, begin: str = "") -> Callable[[int], bytes]:
    """As many as fill 60 MB."""

    def make(size: int) -> bytes:
        number = min(60 * 10**6, size // 16) // len(text)
        return (begin + text * number).encode()

    return make


def repetition(chance: random.Random, length: int = 300_000) -> bytes:
    """A page of one to four parts, again and again: all of one, then all of the next, or in turns."""
    parts = chance.choices(PARTS, k=chance.choice([1, 2, 2, 3, 4]))
    number = length // sum(map(len, parts))
    in_turns = chance.random() < 0.5
    text = "".join(parts) * number if in_turns else "".join(part * number for part in parts)
    return f"<!doctype html><body>{chance.choice(PARTS)}{text}{chance.choice(PARTS)}x".encode()


PAGES: dict[str, Callable[[int], bytes]] = {
    "deep.html": deep("div"),
    "deep-closed.html": deep("div", close=True),
    "deep-lists.html": deep("ul", "li", close=True),
    "deep-quotes.html": deep("blockquote"),
    "deep-tables.html": deep("table", "tr", "td"),
    "deep-bold.html": deep("b", "i", "font"),
    "deep-links.html": deep("a href=x", "div"),
    "deep-maths.html": deep("math", "mrow"),
    "deep-rows.html": deep("mrow", inside="<math>"),
    "deep-code.html": deep("pre", "code"),
    "deep-svg.html": deep("svg", "foreignObject"),
    "fonts.html": lambda size: (
        "".join(f"<font size={n}>" for n in range(min(6000, size // 4096))) + "<p>x" * min(6000, size // 4096)
    ).encode(),
    "open-tags.html": repeated("<b>"),
    "open-paragraphs.html": repeated("<p>"),
    "open-tag.html": repeated("a ", "<p "),
    "attributes.html": lambda size: (
        b"<p " + b"".join(b"a%d=1 " % n for n in range(min(size // 256, 10**6))) + b">x"
    ),
    "text.html": repeated("word "),
    "letters.html": repeated("x"),
    "entities.html": repeated("&lt;"),
    "laughs.html": lambda size: b'<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]><p>&b;&b;</p>',
    "less.html": repeated("<"),
    "comments.html": repeated("<!--"),
    "dollars.html": repeated("\\("),
    "tex.html": repeated("[tex]", "[/"),
    "cells.html": repeated("<td>", "<table>"),
    "spans.html": repeated("<td colspan=1000 rowspan=65000>x", "<table><tr>"),
    "rows.html": repeated("<tr><td>a<td>b", "<table>"),
    "scripts.html": repeated("<script type=math/tex>x</script>"),
    "formulas.html": repeated("<math><mi>x</mi></math>"),
    "fence.md": repeated("```\n"),
    "brackets.md": repeated("["),
    "lines.txt": repeated("\n"),
}
