r"""Brackets of every kind: (…), […], \{…\}, |…|, \langle…\rangle, and LaTeX environments."""

from __future__ import annotations

from foresail.rewards.notation.cursor import Levels
from foresail.rewards.notation.tree import Node, Unreadable, is_condition, join, symbols

BARS = {
    "lvert": "rvert",
    "vert": "vert",
    "lVert": "rVert",
    "Vert": "Vert",
    "lfloor": "rfloor",
    "lceil": "rceil",
}
_MATRICES = frozenset("pmatrix bmatrix Bmatrix vmatrix Vmatrix matrix smallmatrix array".split())
_SYSTEMS = frozenset("cases aligned align gathered split alignedat rcases".split())


def _described(elements: list[Node], conditions: list[Node]) -> Node:
    r"""`\{x \mid x > 2\}` is what its conditions say, all at once; `\{2x \mid x > 2\}` is something else."""
    if len(elements) != 1 or not conditions:
        raise Unreadable("a set whose condition is not understood")
    (element,) = elements
    if element.head == "chain" and element.args[1:] == ("in", Node("set", ("R",))):
        element = element.args[0]
    about_it = all(element in part.args[::2] or symbols(part) == symbols(element) for part in conditions)
    if element.head == "symbol" and about_it:
        return join("intersect", conditions)
    return Node("builder", (element, *conditions))


class Brackets(Levels):
    """What opens and closes."""

    def bracket(self, opening: str) -> Node:
        """(…), […], and the French ]…[ for an open interval."""
        self.open.append(opening)
        items = self.group_items()
        self.open.pop()
        closing = self.expect(")", "]", "[").kind
        head = ("(" if opening in "(]" else "[") + (")" if closing in ")[" else "]")
        if len(items) == 1 and head in ("()", "[]"):
            return items[0]
        if head == "()" and items and all(map(is_condition, items)):  # (x > 1 and x < 3)
            return join("intersect", items)
        if not items or (head in ("(]", "[)") and len(items) != 2):
            raise Unreadable("brackets around nothing")
        return Node(head, tuple(items))

    def arguments(self) -> tuple[Node, ...]:
        self.expect("(")
        self.open.append("(")
        items = self.group_items()
        self.open.pop()
        self.expect(")")
        return tuple(items)

    def braced(self) -> Node:
        """A LaTeX group, or a bare `{1, 2}`."""
        self.expect("{")
        self.open.append("{")
        if self.peek().kind == "}":
            self.open.pop()
            self.advance()
            return self.atom()
        items = self.group_items()
        if self.at_command("choose", "over") and len(items) == 1:
            head = "binom" if self.advance().text == "choose" else "/"
            items = [Node(head, (items[0], self.sum()))]
        self.open.pop()
        self.expect("}")
        return items[0] if len(items) == 1 else Node("braces", tuple(items))

    def set_braces(self) -> Node:
        r"""\{1, 2\}, or \{x \mid x > 2\}, which says what its condition says."""
        self.open.append(r"\{")
        items = self.group_items()
        if self.peek().kind in ("|", ":") or self.at_command("mid", "colon", "vert"):
            self.advance()
            conditions = self.group_items()
            self.open.pop()
            self.expect(r"\}", "}")
            return _described(items, conditions)
        self.open.pop()
        self.expect(r"\}", "}")
        if len(items) == 1 and items[0].head == ":":
            raise Unreadable("a set whose condition is not understood")
        return Node("{}", tuple(items))

    def bars(self, name: str, head: str) -> Node:
        self.open.append(name)
        tree = self.sum()
        self.open.pop()
        closing = self.advance()
        if closing.text != BARS.get(name, name):
            raise Unreadable("an unclosed bar")
        return Node(head, (tree,))

    def angle_brackets(self, name: str) -> Node:
        self.open.append(name)
        items = self.group_items()
        self.open.pop()
        self.advance()
        return Node("{}" if name == "lbrace" else "()", tuple(items))

    def environment(self) -> Node:
        name = self.environment_name()
        if name == "array":
            self.environment_name()  # the column letters
        if name not in _MATRICES | _SYSTEMS:
            raise Unreadable(f"unknown environment {name}")
        self.open.append("{")
        rows: list[list[Node]] = [[]]
        while not self.at_command("end"):
            if not self.more():
                raise Unreadable("an environment without its end")
            if self.peek().kind == "row":
                self.advance()
                rows.append([])
            elif self.peek().kind in ("&", ","):
                self.advance()
            else:
                rows[-1].append(self.relation())
        self.advance()
        self.environment_name()
        self.open.pop()
        filled = [row for row in rows if row]
        if name in _SYSTEMS:
            if not filled:
                raise Unreadable("an empty environment")
            if any(len(row) > 1 for row in filled):
                raise Unreadable("a function by cases")
            return Node("list", tuple(row[0] for row in filled))
        if not filled or len({len(row) for row in filled}) > 1:
            raise Unreadable("a ragged matrix")
        matrix = Node("matrix", tuple(Node("row", tuple(row)) for row in filled))
        return Node("det", (matrix,)) if name == "vmatrix" else matrix

    def environment_name(self) -> str:
        self.expect("{")
        name = ""
        while self.more() and self.peek().kind != "}":
            name += self.advance().text
        self.expect("}")
        return name.rstrip("*")
