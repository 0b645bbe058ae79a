"""Code: blocks in fences, and inline."""

from __future__ import annotations

import re

from foresail.curate.extract.render.code.language import language
from foresail.curate.extract.render.code.line_elements import box_of_lines
from foresail.curate.extract.render.code.text import code_text, editor
from foresail.curate.extract.render.walker import Walker

BLOCK_CLASS = re.compile(r' class="(?:[^"]* )?(?:block|code-?block|sourceCode)[ "]')


def pre(walker: Walker, node: int) -> int:
    """A <pre> that was never closed swallows the rest of the page."""
    if walker.prose.within(node) is not None:
        walker.lines.flush(2)
        walker.close_at(node, walker.end_paragraph)
        return node + 1
    return code_block(walker, node)


def code_block(walker: Walker, node: int) -> int:
    text = code_text(walker.page, editor(walker.page, node))
    write_code(walker, text, node)
    return walker.page.ends[node]


def write_code(walker: Walker, text: str, node: int) -> None:
    if not text.strip():
        return
    lines, markup = walker.lines, walker.rendering.markup
    if walker.in_cell:
        lines.protect(inline_code(" ".join(text.split())) if markup else text)
        return
    lines.flush(2)
    if markup:
        mark = fence(text)
        lines.emit([mark + language(walker.page, node), *text.split("\n"), mark])
    else:
        lines.emit(text.split("\n"))
    lines.flush(2)


def code(walker: Walker, node: int) -> int:
    """Inline, unless it holds lines."""
    page = walker.page
    if walker.blocks_in_code.within(node) is not None:
        return node + 1
    box = box_of_lines(page, node, walker.looked_at)
    if box is not None:
        write_code(walker, code_text(page, box), box)
        return page.ends[box]
    if walker.lines_in_code.within(node) is not None or BLOCK_CLASS.search(page.data[node]):
        return code_block(walker, node)
    text = page.text(node)
    if "\n" in text.strip() and has_code_lines(text, page.data[node]):
        return code_block(walker, node)
    text = " ".join(text.split())
    if text:
        walker.lines.protect(inline_code(text) if walker.rendering.markup else text)
    return page.ends[node]


def has_code_lines(text: str, attributes: str) -> bool:
    """Some line is indented, or the element says what language it holds."""
    lines = text.strip("\n").split("\n")
    return (
        "language-" in attributes
        or "white-space: pre" in attributes
        or "white-space:pre" in attributes
        or (
            len(lines) > 2
            and any(line[:1] in " \t" for line in lines[1:])
            and any(line[:1] not in (" ", "\t", "") for line in lines)
        )
    )


def fence(text: str) -> str:
    """Longer than any inside."""
    longest = max((len(run) for run in re.findall("`{3,}", text)), default=2)
    return "`" * (longest + 1)


def inline_code(text: str) -> str:
    """`x`; with backticks inside: `` a`b ``"""
    if "`" not in text:
        return f"`{text}`"
    ticks = "`" * (max(len(run) for run in re.findall("`+", text)) + 1)
    return f"{ticks} {text} {ticks}"
