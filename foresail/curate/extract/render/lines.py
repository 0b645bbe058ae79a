"""The text under way: pieces of the present paragraph, and finished lines with the prefix of lists and quotes.

lines.add("one "); lines.add(" two"); lines.flush()   # one line: "one two"
lines.push("- ", "  ")                                # a list item opens: its first line, its other lines

A paragraph's white space collapses as a browser does it. What must stay as it is (inline code, a formula) is put in
by `protect`, and a line break is BREAK; both are marked with NUL, which no parsed page contains.
"""

from __future__ import annotations

import re

from foresail.curate.extract.render.maths.delimiters import dollars

BREAK = "\0;"
MARK = re.compile("\0([0-9]*);")
EMPTY_LINES = re.compile("\n{3,}")
WIDE = "\u3000-\u303f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff00-\uff60"
# A browser joins the lines of Chinese and Japanese source without a space.
WIDE_LINES = re.compile(rf"(?<=[{WIDE}])[ \t]*\n[ \t\n]*(?=[{WIDE}])")
DEEPEST = 60  # characters of prefix: a page of nested lists must not grow with its square


class Lines:
    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.done: list[str] = []
        self.protected: list[str] = []
        self.gap = 0  # line ends before the next line: 2 leaves a line empty
        self.prefix = ""
        self.first: str | None = None  # the prefix of the next line, where it is another one
        self.outer: list[str] = []
        self.last_prefix = ""
        self.asciimath = False
        self.add = self.pieces.append

    def protect(self, text: str) -> None:
        self.pieces.append(f"\0{len(self.protected)};")
        self.protected.append(text)

    def flush(self, gap: int = 1) -> None:
        """Ends the paragraph. At least `gap` line ends come before what follows."""
        if self.pieces:
            text = self.take()
            if text:
                self.emit(text.split("\n"))
        if (
            gap > self.gap and self.first is None
        ):  # nothing comes between an item's mark and its first paragraph
            self.gap = gap

    def take(self) -> str:
        """The present paragraph, which begins anew: lines without white space around them."""
        text = "".join(self.pieces)
        self.pieces.clear()
        return self.settle(text)

    def settle(self, text: str) -> str:
        if "\n" in text and not text.isascii():
            text = WIDE_LINES.sub("", text)
        text = " ".join(text.split())
        if "\\" in text or "`" in text or "[" in text:
            text = dollars(text, asciimath=self.asciimath)
        if "\0" in text:
            lines = "\n".join(line.strip() for line in text.split(BREAK)).strip()
            text = MARK.sub(self.original, EMPTY_LINES.sub("\n\n", lines))
        return text

    def original(self, mark: re.Match[str]) -> str:
        return self.protected[int(mark[1])]

    def emit(self, block: list[str]) -> None:
        """Lines as they are, after the gap that is due. A line end within the last paragraph stays one."""
        done, prefix, first = self.done, self.prefix, self.first
        if done and self.gap > 1:
            done.append(common_start(self.last_prefix, prefix).rstrip())
        if not prefix and first is None:
            done.extend(block)
        else:
            for line in block:
                done.append(
                    ((prefix if first is None else first) + line).rstrip() if line else prefix.rstrip()
                )
                first = None
        self.first = None
        self.last_prefix = prefix
        self.gap = 1

    def push(self, first: str, rest: str) -> None:
        """A container opens: its first line begins with `first`, the others with `rest`."""
        self.outer.append(self.prefix)
        if len(self.prefix) < DEEPEST:
            self.first = (self.prefix if self.first is None else self.first) + first
            self.prefix += rest

    def pop(self) -> None:
        self.prefix = self.outer.pop()
        self.first = None

    def text(self) -> str:
        self.flush()
        return "\n".join(self.done)


def common_start(one: str, other: str) -> str:
    """Of two prefixes: "> > ", "> - " -> "> " """
    for length, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return one[:length]
    return min(one, other, key=len)
