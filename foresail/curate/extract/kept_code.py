"""Code and formulas that stay in the main content: a scorer of words is often wrong about what has few words.

content = MainContent(root=4, dropped={9}, page_type="article")       # 9: a <pre> behind a paragraph that stays
keep_code(page, content, marks) -> MainContent(root=4, dropped=set(), page_type="article")

A block of code is one thing: if some of its lines stay, all do. A block of code that was left out, or a paragraph
with a formula, comes back where its neighbour stays: the paragraph before it, or the one behind it.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterator
from itertools import accumulate

from foresail.curate.extract.content.main_content import MainContent
from foresail.curate.extract.page import Page
from foresail.curate.extract.render.code.line_elements import box_of_lines, is_code_box
from foresail.curate.extract.render.code.table import code_table
from foresail.curate.extract.render.handle.code import BLOCK_CLASS
from foresail.curate.extract.render.marks import Marks
from foresail.curate.extract.render.maths.formula import FormulaReader
from foresail.curate.extract.render.table import read_table

TEX = ("\\(", "\\[", "$$", "\\begin{")
NO_TEXT = frozenset(["script", "style", "noscript", "pre", "code", "textarea"])
CODE = frozenset(["pre", "code", "table"])
BLOCKS = frozenset(
    "p div li td th dd dt figure blockquote section article table pre center h1 h2 h3 h4 h5 h6".split()
)
BESIDE = frozenset("nav aside footer header form".split())  # never looked into
LEVELS = 3  # that a neighbour may be further up


def keep_code(page: Page, content: MainContent, marks: Marks) -> MainContent:
    root, dropped = content.root, set(content.dropped)
    code, formulas = code_elements(page, marks.boxes), formula_blocks(page, marks.formulas, dropped)
    if not code and not formulas:
        return content
    tree = Tree(page, root, dropped)
    for node in code:
        if tree.kept_in(node):
            dropped.difference_update(range(node, page.ends[node]))
            root = node if node < root < page.ends[node] else root
    away = sorted(node for node in {*code, *formulas} if tree.all_in(node) and not tree.kept_in(node))
    for nodes in (away, away[::-1]):  # one that comes back brings the next, and then the one before
        for node in nodes:
            if not tree.came_back(node) and tree.has_kept_neighbour(node):
                root = tree.take_back(node, root, dropped)
    return MainContent(root, frozenset(dropped), content.page_type)


def code_elements(page: Page, boxes: set[int]) -> list[int]:
    """Outermost ones."""
    names, ends = page.names, page.ends
    places = boxes.union(node for node, name in enumerate(names) if name in CODE)
    found: list[int] = []
    looked_at: set[int] = set()
    end = 0
    for node in sorted(places):
        if node < end:
            continue
        box = box_of_lines(page, node, looked_at) if names[node] == "code" else None
        if box is not None or is_code(page, node, names[node], boxes):
            found.append(node if box is None else box)
            end = ends[found[-1]]
    return found


def is_code(page: Page, node: int, name: str, boxes: set[int]) -> bool:
    if name == "pre":
        return True
    if name == "table":
        return code_table(page, node, read_table(page, node)) is not None
    if name == "code":
        inside = page.names[node + 1 : page.ends[node]]
        return (
            "br" in inside
            or "div" in inside
            or "\n" in page.text(node).strip()
            or BLOCK_CLASS.search(page.data[node]) is not None
        )
    return node in boxes and is_code_box(page, node)


def formula_blocks(page: Page, formulas: FormulaReader, dropped: set[int]) -> set[int]:
    """The paragraphs, cells and items that hold formulas."""
    names, parents = page.names, page.parents
    found = set()
    for node in formula_nodes(page, formulas.anew()):
        while node > 0 and names[node] not in BLOCKS and node not in dropped:
            node = parents[node]
        if node > 0:
            found.add(node)
    return found


def formula_nodes(page: Page, reader: FormulaReader) -> Iterator[int]:
    """Elements that are formulas, and texts with TeX in them."""
    end = 0
    for node in sorted(reader.places):
        if node >= end and (formula := reader.read(node)) is not None:
            end = formula.end
            if formula.latex:
                yield node
    joined = "\n".join(page.data)
    if not any(sign in joined for sign in TEX):
        return
    names, parents = page.names, page.parents
    for node in [node for node, text in enumerate(page.data) if "\\" in text or "$$" in text]:
        is_prose = not names[node] and names[parents[node]] not in NO_TEXT
        if is_prose and any(sign in page.data[node] for sign in TEX):
            yield node


class Tree:
    """What of a page stays, as counts of texts."""

    def __init__(self, page: Page, root: int, dropped: set[int]) -> None:
        self.page = page
        names, data, ends = page.names, page.data, page.ends
        is_text = [not name and not text.isspace() for name, text in zip(names, data, strict=True)]
        stays = [False] * len(names)
        node = root
        while node < ends[root]:
            if node in dropped:
                node = ends[node]
            else:
                stays[node] = is_text[node]
                node += 1
        self.all = [0, *accumulate(is_text)]
        self.kept = [0, *accumulate(stays)]
        self.children: dict[int, list[int]] = {}
        self.back: list[int] = []  # nodes that came back, in their order

    def all_in(self, node: int) -> int:
        return self.all[self.page.ends[node]] - self.all[node]

    def kept_in(self, node: int) -> int:
        return self.kept[self.page.ends[node]] - self.kept[node]

    def has_kept_neighbour(self, node: int) -> bool:
        """The text before it or behind it stays, where little else stands between."""
        page, texts = self.page, self.all_in(node)
        for _ in range(LEVELS):
            parent = page.parents[node]
            if parent <= 0 or page.names[node] in BESIDE:
                return False
            siblings = self.siblings(parent)
            place = bisect_right(siblings, node) - 1
            beside = siblings[max(0, place - 1) : place + 2]
            if any(self.kept_in(other) or self.came_back(other) for other in beside if other != node):
                return True
            if 2 * texts < self.all_in(parent):
                return False
            node = parent
        return False

    def came_back(self, node: int) -> bool:
        place = bisect_right(self.back, node - 1)
        return place < len(self.back) and self.back[place] < self.page.ends[node]

    def siblings(self, parent: int) -> list[int]:
        """Its children that hold text."""
        if parent not in self.children:
            self.children[parent] = [child for child in self.page.children(parent) if self.all_in(child)]
        return self.children[parent]

    def take_back(self, node: int, root: int, dropped: set[int]) -> int:
        """The node stays, and what is around it in a dropped element does not. Returns the root with it."""
        page = self.page
        insort(self.back, node)
        up = node
        path = [node]
        while up > 0 and up not in dropped and not root <= up < page.ends[root]:
            up = page.parents[up]
            path.append(up)
            if up <= root < page.ends[up]:  # an element around both
                self.drop_others(up, {*path, *self.path(root, up)}, dropped)
                return up
        up, path = node, [node]
        while up != root and up not in dropped:
            up = page.parents[up]
            path.append(up)
        if up in dropped:
            dropped.discard(up)
            self.drop_others(up, set(path), dropped)
        return root

    def path(self, node: int, up: int) -> list[int]:
        nodes = [node]
        while nodes[-1] != up:
            nodes.append(self.page.parents[nodes[-1]])
        return nodes

    def drop_others(self, top: int, path: set[int], dropped: set[int]) -> None:
        """Of the elements on the path, all children that are not on it."""
        page = self.page
        ends = {node for node in path if not any(child in path for child in page.children(node))}
        for node in path - ends:
            dropped |= {child for child in page.children(node) if child not in path}
