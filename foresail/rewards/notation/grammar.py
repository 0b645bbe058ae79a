r"""From tokens to a tree: `parse(r"x = \pm 3")` -> a chain whose right side is 0 ± 3.

Recursive descent, one method per level: answer, relation, set, ratio, sum, product, power, atom. The depth
is bounded, so hostile nesting is unreadable rather than a crash.
"""

from __future__ import annotations

from foresail.rewards.notation.atoms import Atoms
from foresail.rewards.notation.tokens import Token, tokenize
from foresail.rewards.notation.tree import ZERO, Node, Unreadable, is_condition, join, symbols
from foresail.rewards.notation.vocabulary import RELATIONS, SEPARATORS

MAX_LENGTH = 20_000  # characters of an answer that are read; longer ones are compared as text

MAX_SIGNS = 6  # of ± in one sum
MAX_SETS = 60  # in one union
MAX_DIVISIONS = 40  # in one product, moduli included

_SET_SIGNS = {"cup": "union", "cap": "intersect", "setminus": "minus", "backslash": "minus"}


def parse(text: str, *, commas: str = "top") -> Node:
    """The tree of a whole answer; raises Unreadable where the text is not mathematics."""
    if len(text) > MAX_LENGTH:
        raise Unreadable("too long")
    parser = Grammar(tokenize(text, commas=commas))
    tree = parser.answer()
    while parser.peek().kind == "row":
        parser.advance()
    if parser.more():
        raise Unreadable(f"stray {parser.peek().text}")
    return tree


class Grammar(Atoms):
    """Everything above the atoms."""

    def answer(self) -> Node:
        """Items separated by commas, semicolons, `and`, `or`."""
        items = self.items()
        return items[0] if len(items) == 1 else Node("list", tuple(items))

    def items(self) -> list[Node]:
        groups: list[list[Node]] = [[]]
        either = both = logical = False
        while self.more() and not self.closes():
            if self.peek().kind == ";":
                self.skip_separators()
                groups.append([])
                continue
            groups[-1].append(self.relation())
            if not (self.at_separator() or self.peek().kind == ";"):
                break
            while self.at_separator():
                logical |= self.peek().kind == "command"
                both |= self.peek().text.lower() in ("and", "land", "wedge", "和", "且")
                either |= self.advance().text.lower() in ("or", "lor", "vee", "或")
        filled = [group for group in groups if group]
        if not filled:
            raise Unreadable("nothing there")
        if len(filled) > 1 and any(len(group) > 1 for group in filled):  # p=5,q=2;p=7,q=2 or (0;0;0)
            return [group[0] if len(group) == 1 else Node("list", tuple(group)) for group in filled]
        items = [item for group in filled for item in group]
        if logical and not any(map(is_condition, items)):
            raise Unreadable("logic")
        if both and not either and all(map(is_condition, items)) and len(set(map(_names, items))) == 1:
            return [join("intersect", items)]
        if either and len(items) > 1 and all(item.head == "unit" for item in items):  # 1 hour or 30 minutes
            return [Node("{}", tuple(items))]
        return [join("union", items)] if either and any(map(is_condition, items)) else items

    def skip_separators(self) -> None:
        while self.at_separator() or self.peek().kind == ";":
            self.advance()

    def at_separator(self) -> bool:
        token = self.peek()
        return (
            token.kind == ","
            or (token.kind == "command" and token.text in ("land", "lor", "wedge", "vee"))
            or (token.kind == "word" and token.text.lower() in SEPARATORS)
        )

    def relation(self) -> Node:
        """side (sign side)*: `x = 1 + 1 = 2`, `1 < x \\le 3`, `x \\in [0, 1]`."""
        self.enter()
        self.skip_lead()
        if self.peek().kind == "<" and self.tokens[-1].kind == ">" and not self.open:  # <1, 2, 3>
            return self.pointed_brackets()
        if self.relation_sign() is not None and self.open:
            raise Unreadable("a relation without a left side")
        sides: list[Node | str] = [] if self.relation_sign() is None else [ZERO]
        if not sides:
            sides.append(self.set_expression())
        elif self.relation_sign() in ("=", "~", "in"):  # `= 5`: the left side stayed in the prose
            sides = []
        else:
            raise Unreadable("a relation without a left side")
        while (sign := self.relation_sign()) is not None:
            self.advance()
            if sides:
                sides.append(sign)
            sides.append(self.set_expression())
        self.leave()
        return sides[0] if len(sides) == 1 else Node("chain", tuple(sides))  # type: ignore[return-value]

    def pointed_brackets(self) -> Node:
        self.advance()
        self.tokens[-1] = Token(")", ")")
        self.open.append("(")
        items = self.items()
        self.open.pop()
        self.expect(")")
        self.leave()
        return Node("()", tuple(items))

    def relation_sign(self) -> str | None:
        token = self.peek()
        if token.kind in ("=", "<", ">"):
            return token.kind
        if token.kind == "command" and token.text in RELATIONS and token.text != "colon":
            return RELATIONS[token.text]
        return None

    def set_expression(self) -> Node:
        left, signs = self.ratio(), 0
        while (self.peek().kind == "command" and self.peek().text in _SET_SIGNS) or self.at_letter_union():
            head = _SET_SIGNS.get(self.advance().text, "union")
            left, signs = Node(head, (left, self.ratio())), signs + 1
            if signs > MAX_SETS:
                raise Unreadable("too many sets")
        return left

    def at_letter_union(self) -> bool:
        """`(0, 1) U (2, 3)`: the letter for the sign."""
        before = self.tokens[self.position - 1].kind if self.position else ""
        return (
            self.peek() == Token("letter", "U", self.peek().spaced)
            and before in ")]"
            and self.peek(1).kind in ("(", "[")
        )

    def ratio(self) -> Node:
        parts = [self.sum()]
        while self.at_colon():
            self.advance()
            parts.append(self.sum())
        if len(parts) > 1 and parts[-1].head == "unit":  # 8:34 pm
            return Node("unit", (Node(":", (*parts[:-1], parts[-1].args[0])), parts[-1].args[1]))
        return parts[0] if len(parts) == 1 else Node(":", tuple(parts))

    def at_colon(self) -> bool:
        token = self.peek()
        if token.kind == ":":
            return self.open[-1:] != [r"\{"]
        return self.at_command("colon") or (token.kind == "word" and token.text == "to")

    def sum(self) -> Node:
        self.enter()
        terms: list[Node] = []
        tree: Node | None = None
        signs = 0
        while True:
            sign = self.sum_sign()
            if sign is None and (terms or tree is not None):
                break
            if sign is not None:
                self.advance()
            term = self.signed_product()
            if sign in ("pm", "mp"):
                signs += 1
                if signs > MAX_SIGNS:
                    raise Unreadable("too many signs")
                left = _add(tree, terms) or ZERO
                tree, terms = Node(sign, (left, term)), []
            elif term.head == "unit" and self.peek().kind == "number" and not terms and tree is None:
                self.leave()
                return self.compound(term, sign)
            elif sign == "-" and term.head == "unit":  # -\$5
                terms.append(Node("unit", (Node("neg", (term.args[0],)), term.args[1])))
            else:
                terms.append(Node("neg", (term,)) if sign == "-" else term)
        self.leave()
        result = _add(tree, terms)
        assert result is not None
        return result

    def compound(self, first: Node, sign: str | None) -> Node:
        """`1 hour 30 minutes`, as a list of two quantities."""
        rest = self.product()
        if sign is not None or rest.head != "unit":
            raise Unreadable("a number behind a unit")
        return Node("list", (first, rest))

    def sum_sign(self) -> str | None:
        token = self.peek()
        if token.kind in ("+", "-"):
            return token.kind
        if token.kind == "command" and token.text in ("pm", "mp"):
            return token.text
        return None

    def signed_product(self) -> Node:
        """A product that may carry signs of its own: the `-3` in `2 - -3`."""
        negative = False
        while self.peek().kind in ("+", "-"):
            negative ^= self.advance().kind == "-"
        currency = self.advance().text if self.peek().kind == "currency" else ""
        while currency and self.peek().kind in ("+", "-"):
            negative ^= self.advance().kind == "-"
        product = self.product()
        if not currency:
            return Node("neg", (product,)) if negative else product
        amount = product.args[0] if product.head == "unit" else product
        return Node("unit", (Node("neg", (amount,)) if negative else amount, currency))

    def product(self) -> Node:
        """Factors side by side or joined by signs; left to right, so `1/2x` is half of x."""
        tree = self.power()
        divisions = 0
        while True:
            token = self.peek()
            if token.kind == "*" or (token.kind == "command" and token.text in _TIMES):
                if token.text == "times" and self.after_vector == self.position:
                    raise Unreadable("a cross product")
                self.advance()
                tree = _multiply(tree, self.signed_power())
            elif token.kind == "/" or (token.kind == "command" and token.text == "div"):
                self.advance()
                divisions += 1
                tree = Node("/", (tree, self.signed_power()))
            elif self.starts_mixed_fraction(tree):
                tree = _mixed(tree, self.mixed_fraction())
            elif token.kind == "command" and token.text in ("bmod", "mod", "pmod"):
                divisions += 1
                tree = self.modulus(tree)
            elif self.starts_factor() and not self.at_letter_union():
                tree = _multiply(tree, self.power())
            else:
                return self.with_unit(tree)
            if divisions > MAX_DIVISIONS:
                raise Unreadable("too many divisions")

    def signed_power(self) -> Node:
        negative = False
        while self.peek().kind in ("+", "-"):
            negative ^= self.advance().kind == "-"
        factor = self.power()
        return Node("neg", (factor,)) if negative else factor

    def modulus(self, tree: Node) -> Node:
        self.advance()
        return Node("mod", (tree, self.signed_power()))

    def starts_mixed_fraction(self, whole: Node) -> bool:
        r"""`2\frac{1}{3}`, `2 1/3`: a bare integer directly before a bare fraction of integers."""
        if whole.head != "number" or whole.args[1] is not None or not self.last_was_number:
            return False
        token = self.peek()
        if token.kind == "number":
            return token.spaced and self.peek(1).kind == "/" and self.peek(2).kind == "number"
        if token.kind != "command" or not token.text.endswith("frac"):
            return False
        shape = "".join(
            "d" if self.peek(offset).kind == "number" else self.peek(offset).kind[:1]
            for offset in range(1, 7)
        )
        return (
            shape == "{d}{d}"
            or (shape[:1] == "d" and len(self.peek(1).text) == 2)
            or shape[:4] in ("d{d}", "{d}d")
        )

    def mixed_fraction(self) -> Node:
        if self.peek().kind == "number":
            top = self.power()
            self.advance()
            return Node("/", (top, self.power()))
        return self.power()

    # what the atoms call back
    def group_items(self) -> list[Node]:
        return [] if self.closes() else self.items()


_TIMES = frozenset("times cdot ast star cdotp centerdot bullet".split())


def _names(condition: Node) -> frozenset[str]:
    return frozenset(symbols(condition))


def _add(tree: Node | None, terms: list[Node]) -> Node | None:
    parts = ([] if tree is None else [tree]) + terms
    if not parts:
        return None
    if len(parts) == 2 and parts[0].head == "set" and parts[1].head == "neg":  # \mathbb{R} - \{0\}
        return Node("minus", (parts[0], parts[1].args[0]))
    if len(parts) > 1 and parts[-1].head == "unit" and all(part.head != "unit" for part in parts[:-1]):
        return Node("unit", (Node("+", (*parts[:-1], parts[-1].args[0])), parts[-1].args[1]))  # 1 + \sqrt2 cm
    return parts[0] if len(parts) == 1 else Node("+", tuple(parts))


def _mixed(whole: Node, part: Node) -> Node:
    r"""`33\frac13\%`: the sign behind a mixed number belongs to all of it."""
    if part.head in ("%", "deg"):
        return Node(part.head, (Node("+", (whole, part.args[0])),))
    return Node("+", (whole, part))


def _multiply(left: Node, right: Node) -> Node:
    return Node("*", (*left.args, right)) if left.head == "*" else Node("*", (left, right))
