"""Code blocks: the text of a <pre> or of an editor's elements, line by line, without line numbers and buttons.

<pre><span class="ln">1</span>if x:\n<span class="ln">2</span>    y()</pre>   ->   "if x:\n    y()"
"""

from __future__ import annotations

import re

from foresail.curate.extract.page import Page

BLOCKS = frozenset("div p li tr pre ol ul table tbody dd dt section article blockquote".split())
SKIPPED = frozenset("script style button svg template textarea select input noscript title".split())
LINE = re.compile(
    r'class="(?:[^"]* )?(?:line|code-line|token-line|view-line|ace_line|crayon-line|CodeMirror-line|cm-line|cl'
    r'|codeline|react-code-line|code__line|hljs-ln-line|highlight-line)[ "]|data-line="'
)
NUMBER = re.compile(
    r'class="[^"]*(?:lines?-?_?num|lineno|linenos|blob-num|hljs-ln-n|gutter|\bln\b|\blnt\b|\blnr\b|crayon-num|code-num'
    r'|rowNumber|row-number|\bhll-num)[^"]*"|data-line-number=|user-select: ?none|data-lineno=',
    re.IGNORECASE,
)
EXTRA = re.compile(
    r'class="[^"]*(?:copy|clipboard|code-?-?header|code-?-?toolbar|sr-only|visually-hidden|hover-info|tooltip)[^"]*"',
    re.IGNORECASE,
)
NUMBERS = re.compile(r"[\s\d.:|]*")
EDITOR = re.compile(
    r'class="(?:[^"]* )?(?:cm-content|CodeMirror-code|view-lines|ace_text-layer|crayon-pre)[ "]'
)
GHOST = re.compile(
    r'class="[^"]*(?:CodeMirror-(?:measure|gutter|cursor|scrollbar|linenumber|sizer-)|ace_gutter|margin-view)'
)
INVISIBLE = str.maketrans({"\xa0": " ", "\u200b": None, "\ufeff": None, "\r": None})
EMPTY = re.compile(r"^(?:[ \t]*\n)+")


class CodeLines:
    """Text so far. `due`: a line has ended, though no line end was written yet."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.due = False
        self.start = True  # of a line

    def add(self, text: str) -> None:
        if text:
            if self.due and text[0] != "\n":
                self.parts.append("\n")
            self.parts.append(text)
            self.due = False
            self.start = text[-1] == "\n"

    def open_line(self) -> None:
        if self.due or not self.start:
            self.parts.append("\n")
            self.due, self.start = False, True

    def close_line(self, is_empty: bool) -> None:
        self.due = is_empty or not self.start

    def text(self) -> str:
        """Empty lines at the ends go; the indentation of the first line stays."""
        return EMPTY.sub("", "".join(self.parts).translate(INVISIBLE)).rstrip()


def code_text(page: Page, node: int) -> str:
    names, data, ends = page.names, page.data, page.ends
    lines = CodeLines()
    last = ends[node]
    open_lines: list[tuple[int, int]] = []  # its end, and how many parts there were
    numbers = line_numbers(page, node)
    at = node + 1 if names[node] else node
    while at < last:
        while open_lines and open_lines[-1][0] <= at:
            lines.close_line(len(lines.parts) == open_lines.pop()[1])
        name = names[at]
        if not name:
            lines.add(data[at])
        elif name == "br":
            lines.due, lines.start = False, True
            lines.parts.append("\n")
        elif name in SKIPPED or at in numbers:
            at = ends[at]
            continue
        else:
            attributes = data[at]
            if attributes and is_extra(page, at):
                at = ends[at]
                continue
            if name in BLOCKS or (attributes and LINE.search(attributes)):
                lines.open_line()
                open_lines.append((ends[at], len(lines.parts)))
        at += 1
    return lines.text()


def is_extra(page: Page, node: int) -> bool:
    """A line number, or what belongs to the page's buttons."""
    attributes = page.data[node]
    if NUMBER.search(attributes):
        return NUMBERS.fullmatch(page.text(node)) is not None
    return (EXTRA.search(attributes) is not None and not page.text(node).count("\n")) or bool(
        GHOST.search(attributes)
    )


def line_numbers(page: Page, node: int) -> set[int]:
    """Elements that hold 1, 2, 3, … at the start of lines though no class says so."""
    names, data, ends = page.names, page.data, page.ends
    groups: dict[tuple[str, str], list[int]] = {}
    elsewhere: set[tuple[str, str]] = set()
    start = True
    others = 0
    for at in range(node + 1, ends[node]):
        if names[at]:
            start = start or names[at] == "br" or names[at] in BLOCKS
            if ends[at] == at + 2 and not names[at + 1] and data[at + 1].strip().isdecimal():
                key = names[at], data[at]
                groups.setdefault(key, []).append(at)
                if not start:
                    elsewhere.add(key)
        elif text := data[at].strip(" \t"):
            start = text[-1] == "\n"
            others += text != "\n"
    for key, group in groups.items():
        values = [int(data[at + 1]) for at in group if len(data[at + 1]) < 9]
        if (
            key not in elsewhere
            and len(values) == len(group) > 2
            and values == list(range(values[0], values[0] + len(values)))
            and others > 1.5 * len(group)
        ):
            return set(group)
    return set()


def editor(page: Page, node: int) -> int:
    """The element with the lines, where an editor with its bars lies inside; otherwise the node itself."""
    data = page.data
    for at in range(node, page.ends[node]):
        if page.names[at] and data[at] and EDITOR.search(data[at]):
            return at
    return node
