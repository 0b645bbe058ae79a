"""Code without <pre>: a line per element, or text whose box says that its line ends count.

<div><code>if</code> <code>x:</code></div><div><code>&nbsp;&nbsp;</code><code>y()</code></div>   ->   two lines
"""

from __future__ import annotations

import re

from foresail.curate.extract.page import Page
from foresail.curate.extract.render.code.text import BLOCKS, EDITOR, LINE

BOX_HINTS = (
    *("codemirror", "cm-content", "ace_", "view-lines", "margin-view", "crayon", "code", "dp-", "linenums"),
    *("white-space: pre", "white-space:pre"),
)
LIST_BOX = re.compile(
    r' class="(?:[^"]* )?(?:blockcode|dp-highlighter|dp-\w{1,6}|linenums|code-list)[ "]| id="code_\w+"'
)
TEXT_BOX = re.compile(
    r' class="(?:[^"]* )?code-?block[ "]|white-space: ?pre(?!-line)[^"]*monospace|monospace[^"]*white-space: ?pre'
)
BREAK_BOX = re.compile(r' class="(?:[^"]* )?code-?(?:box)?[ "]')  # of old forums: lines end in <br>
IN_BREAK_BOX = frozenset(["", "br", "span", "b", "i", "em", "strong", "font", "div"])
SIGNS = re.compile(r"[{};=]\s*$|\)\s*$", re.MULTILINE)
LINES = frozenset(["div", "p", "span", "td", "li"])


def is_code_box(page: Page, node: int) -> bool:
    """A <div> with an editor's lines, a list of lines, or preformatted text."""
    attributes = page.data[node]
    if EDITOR.search(attributes):
        return True
    if LIST_BOX.search(attributes):
        return is_list_of_lines(page, node)
    if BREAK_BOX.search(attributes):
        return is_text_with_breaks(page, node)
    return TEXT_BOX.search(attributes) is not None and is_bare_text(page, node)


def is_list_of_lines(page: Page, node: int) -> bool:
    """<div id="code_1"><ol><li>x = 1<br></li>: one list, and no block in its items."""
    names, ends = page.names, page.ends
    lists = [child for child in page.children(node) if names[child]]
    while len(lists) == 1 and names[lists[0]] == "div":
        lists = [child for child in page.children(lists[0]) if names[child]]
    if not lists or names[lists[0]] not in ("ol", "ul"):
        return False
    items = [child for child in page.children(lists[0]) if names[child]]
    return len(items) > 1 and all(
        names[item] == "li" and BLOCKS.isdisjoint(names[item + 1 : ends[item]]) for item in items
    )


def is_text_with_breaks(page: Page, node: int) -> bool:
    """<div class="code">x = 1<br>y = 2</div>, with empty elements in it at most."""
    inside = range(node + 1, page.ends[node])
    return "br" in page.names[node + 1 : page.ends[node]] and all(
        page.names[at] in IN_BREAK_BOX and (page.names[at] != "div" or not page.text(at).strip())
        for at in inside
    )


def is_bare_text(page: Page, node: int) -> bool:
    """Lines of text, in inline elements at most."""
    names = page.names
    has_lines = False
    for at in range(node + 1, page.ends[node]):
        if not names[at]:
            has_lines = has_lines or "\n" in page.data[at].strip()
        elif names[at] in BLOCKS or names[at] in ("pre", "img", "br", "code"):
            return False
    return has_lines


def box_of_lines(page: Page, code: int, looked_at: set[int]) -> int | None:
    """The element whose children are lines of <code> elements, of which `code` is the first; None for other code.

    A list of names, each in <code>, is none: some line has several pieces or begins with spaces.
    """
    names, parents = page.names, page.parents
    line = parents[code]
    while line > 0 and names[line] == "span":
        line = parents[line]
    box = parents[line] if line > 0 else -1
    if box <= 0 or names[line] not in LINES or box in looked_at:
        return None
    looked_at.add(box)
    pieces = lines = 0
    marked = False
    for child in page.children(box):
        if not names[child]:
            if page.data[child].strip():
                return None
            continue
        count = count_code(page, child)
        if names[child] != names[line] or count is None:
            return None
        lines += 1
        pieces += count
        marked = marked or LINE.search(page.data[child]) is not None
    if lines < 1 + (pieces < 4) or (names[line] == "li" and not marked):
        return None
    if marked or pieces > 1.5 * lines:
        return box
    return box if lines > 3 and names[line] == "div" and SIGNS.search(page.text(box)) else None


def count_code(page: Page, line: int) -> int | None:
    """How many <code> elements the line has; None where it holds other text."""
    names, data, ends = page.names, page.data, page.ends
    count = 0
    at, last = line + 1, ends[line]
    while at < last:
        name = names[at]
        if not name:
            if data[at].strip():
                return None
            at += 1
        elif name == "code":
            count += 1
            at = ends[at]
        elif name == "span" or name == "br":
            at += 1
        else:
            return None
    return count
