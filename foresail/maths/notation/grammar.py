r"""From tokens to a tree: `parse(r"x = \pm 3")` -> a chain whose right side is 0 ± 3.

Recursive descent, one function per level: items, relation, set, ratio, sum, product, power, atom. `RULES` hands the
upper levels to the lower ones, for brackets hold whole answers. How deep the rules call each other is bounded, and
so is how deep the tree is that they make: `1/2/2/…` needs few rules and makes a deep tree. Beyond, a text is
unreadable.
"""

from __future__ import annotations

from collections.abc import Callable

from foresail.maths.notation.atoms import atom, power, with_unit
from foresail.maths.notation.cursor import Cursor, Rules
from foresail.maths.notation.domains import with_domains_apart
from foresail.maths.notation.names import skip_lead
from foresail.maths.notation.tokens import Token, tokenize
from foresail.maths.notation.tree import ZERO, Node, Unreadable, is_condition, is_deep, join, symbols
from foresail.maths.notation.vocabulary import RELATIONS

MAX_LENGTH = 20_000  # characters of an answer that are read; longer ones are compared as text

MAX_SIGNS = 6  # of ± in one sum
MAX_PARTS = 4  # of a measure: days, hours, minutes, seconds

_AND = frozenset(["and", "land", "wedge", "和", "且", "并且", "而且"])
_OR = frozenset(["or", "lor", "vee", "或", "或者"])
_SET_SIGNS = {"cup": "union", "cap": "intersect", "setminus": "minus", "backslash": "minus"}


def parse(text: str, *, commas: str = "top") -> Node:
    """The tree of a whole answer; raises Unreadable where the text is not mathematics."""
    if len(text) > MAX_LENGTH:
        raise Unreadable("too long")
    cursor = Cursor(with_domains_apart(tokenize(text, commas=commas)), RULES)
    values = items(cursor)
    while cursor.peek().kind == "row":
        cursor.advance()
    if cursor.more():
        raise Unreadable(f"stray {cursor.peek().text}")
    tree = values[0] if len(values) == 1 else Node("list", tuple(values))
    if is_deep(tree):
        raise Unreadable("too deep")
    return tree


def items(cursor: Cursor) -> list[Node]:
    """What is separated by commas, semicolons, `and`, `or`."""
    groups: list[list[Node]] = [[]]
    either = both = logical = False
    while cursor.more() and not cursor.closes():
        if cursor.peek().kind == ";":
            while cursor.at_separator() or cursor.peek().kind == ";":
                cursor.advance()
            groups.append([])
            continue
        groups[-1].append(relation(cursor))
        if not (cursor.at_separator() or cursor.peek().kind == ";"):
            break
        while cursor.at_separator():
            token = cursor.advance()
            logical |= token.kind == "command"
            both |= token.text.lower() in _AND
            either |= token.text.lower() in _OR
    filled = [group for group in groups if group]
    if not filled:
        raise Unreadable("nothing there")
    if len(filled) > 1 and any(len(group) > 1 for group in filled):  # p=5,q=2;p=7,q=2 or (0;0;0)
        return [group[0] if len(group) == 1 else Node("list", tuple(group)) for group in filled]
    together = [item for group in filled for item in group]
    if logical and not any(map(is_condition, together)):
        raise Unreadable("logic")
    unknowns = {frozenset(symbols(item)) for item in together} if both else set()
    if both and not either and all(map(is_condition, together)) and len(unknowns) == 1:
        return [join("intersect", together)]
    if either and len(together) > 1 and all(item.head == "unit" for item in together):  # 1 hour or 30 minutes
        return [Node("{}", tuple(together))]
    return [join("union", together)] if either and any(map(is_condition, together)) else together


def relation(cursor: Cursor) -> Node:
    """side (sign side)*: `x = 1 + 1 = 2`, `1 < x \\le 3`, `x \\in [0, 1]`."""
    cursor.enter()
    skip_lead(cursor)
    if cursor.peek().kind == "<" and cursor.tokens[-1].kind == ">" and not cursor.open:
        return _pointed_brackets(cursor)
    sign = _relation_sign(cursor)
    if sign is not None and (cursor.open or sign not in ("=", "~", "in")):
        raise Unreadable("a relation without a left side")
    # the left side of `= 5` stayed in the prose
    sides: list[Node | str] = [_set_expression(cursor)] if sign is None else []
    while (sign := _relation_sign(cursor)) is not None:
        cursor.advance()
        if sides:
            sides.append(sign)
        sides.append(_set_expression(cursor))
    cursor.leave()
    return sides[0] if len(sides) == 1 else Node("chain", tuple(sides))  # type: ignore[return-value]


def _pointed_brackets(cursor: Cursor) -> Node:
    """<1, 2, 3>"""
    cursor.advance()
    cursor.tokens[-1] = Token(")", ")")
    cursor.open.append("(")
    values = items(cursor)
    cursor.open.pop()
    cursor.expect(")")
    cursor.leave()
    return Node("()", tuple(values))


def _relation_sign(cursor: Cursor) -> str | None:
    token = cursor.peek()
    if token.kind in ("=", "<", ">"):
        return token.kind
    return RELATIONS.get(token.text) if token.kind == "command" and token.text != "colon" else None


def _set_expression(cursor: Cursor) -> Node:
    left = _ratio(cursor)
    while (cursor.peek().kind == "command" and cursor.peek().text in _SET_SIGNS) or _at_letter_union(cursor):
        head = _SET_SIGNS.get(cursor.advance().text, "union")
        left = Node(head, (left, _ratio(cursor)))
    return left


def _at_letter_union(cursor: Cursor) -> bool:
    """`(0, 1) U (2, 3)`: the letter for the sign."""
    token = cursor.peek()
    if token.kind != "letter" or token.text != "U":
        return False
    before = cursor.tokens[cursor.position - 1].kind if cursor.position else ""
    return before in ")]" and cursor.peek(1).kind in ("(", "[")


def _ratio(cursor: Cursor) -> Node:
    parts = [sum_of_terms(cursor)]
    while _at_colon(cursor):
        cursor.advance()
        parts.append(sum_of_terms(cursor))
    if len(parts) > 1 and parts[-1].head == "unit":  # 8:34 pm
        return Node("unit", (Node(":", (*parts[:-1], parts[-1].args[0])), parts[-1].args[1]))
    return parts[0] if len(parts) == 1 else Node(":", tuple(parts))


def _at_colon(cursor: Cursor) -> bool:
    token = cursor.peek()
    if token.kind == ":":
        return cursor.open[-1:] != [r"\{"]
    return (token.kind == "command" and token.text == "colon") or (
        token.kind == "word" and token.text == "to"
    )


def sum_of_terms(cursor: Cursor) -> Node:
    cursor.enter()
    terms: list[Node] = []
    tree: Node | None = None
    signs = 0
    while True:
        sign = _sum_sign(cursor)
        if sign is None and (terms or tree is not None):
            break
        if sign is not None:
            cursor.advance()
        term = _signed_product(cursor)
        if sign in ("pm", "mp"):
            signs += 1
            if signs > MAX_SIGNS:
                raise Unreadable("too many signs")
            left = _add(tree, terms) or ZERO
            tree, terms = Node(sign, (left, term)), []
        elif term.head == "unit" and cursor.peek().kind == "number" and not terms and tree is None:
            cursor.leave()
            return _compound(cursor, term, sign)
        elif sign == "-" and term.head == "unit":  # -\$5
            terms.append(Node("unit", (Node("neg", (term.args[0],)), term.args[1])))
        else:
            terms.append(Node("neg", (term,)) if sign == "-" else term)
    cursor.leave()
    result = _add(tree, terms)
    assert result is not None
    return result


def _compound(cursor: Cursor, first: Node, sign: str | None) -> Node:
    """`1 hour 30 minutes`, as a list of quantities."""
    parts = [first]
    while cursor.peek().kind == "number" and len(parts) < MAX_PARTS:
        parts.append(_product(cursor))
    if sign is not None or any(part.head != "unit" for part in parts):
        raise Unreadable("a number after a unit")
    return Node("list", tuple(parts))


def _sum_sign(cursor: Cursor) -> str | None:
    token = cursor.peek()
    if token.kind in ("+", "-"):
        return token.kind
    return token.text if token.kind == "command" and token.text in ("pm", "mp") else None


def _signed_product(cursor: Cursor) -> Node:
    """A product that may carry signs of its own: the `-3` in `2 - -3`."""
    negative = _signs(cursor)
    currency = cursor.advance().text if cursor.peek().kind == "currency" else ""
    if currency:
        negative ^= _signs(cursor)
    product = _product(cursor)
    if not currency:
        return Node("neg", (product,)) if negative else product
    amount = product.args[0] if product.head == "unit" else product
    return Node("unit", (Node("neg", (amount,)) if negative else amount, currency))


def _product(cursor: Cursor) -> Node:
    """Factors side by side or joined by signs; left to right, so `1/2x` is half of x."""
    tree = power(cursor)
    while True:
        token = cursor.peek()
        joined = _JOINING.get(token.text if token.kind == "command" else token.kind)
        if joined is not None:
            tree = joined(cursor, tree)
        elif _starts_mixed_fraction(cursor, tree):
            tree = _mixed(tree, _mixed_fraction(cursor))
        elif cursor.starts_factor() and not _at_letter_union(cursor):
            tree = _multiply(tree, power(cursor))
        else:
            return with_unit(cursor, tree)


def _times(cursor: Cursor, left: Node) -> Node:
    if cursor.advance().text == "times" and cursor.after_vector == cursor.position - 1:
        raise Unreadable("a cross product")
    return _multiply(left, _signed_power(cursor))


def _divided(cursor: Cursor, left: Node) -> Node:
    head = "mod" if cursor.advance().text.endswith("mod") else "/"
    return Node(head, (left, _signed_power(cursor)))


def _signed_power(cursor: Cursor) -> Node:
    negative = _signs(cursor)
    factor = power(cursor)
    return Node("neg", (factor,)) if negative else factor


def _signs(cursor: Cursor) -> bool:
    """Whether the signs here, which are read, make what follows negative: `--+-` does."""
    negative = False
    while cursor.peek().kind in ("+", "-"):
        negative ^= cursor.advance().kind == "-"
    return negative


def _starts_mixed_fraction(cursor: Cursor, whole: Node) -> bool:
    r"""`2\frac{1}{3}`, `2 1/3`: a bare integer directly before a bare fraction of integers."""
    if whole.head != "number" or whole.args[1] is not None or cursor.after_number != cursor.position:
        return False
    token = cursor.peek()
    if token.kind == "number":
        return token.spaced and cursor.peek(1).kind == "/" and cursor.peek(2).kind == "number"
    if token.kind != "command" or not token.text.endswith("frac"):
        return False
    shape = "".join("d" if kind == "number" else kind[:1] for kind in cursor.kinds(7)[1:])
    two_digits = shape[:1] == "d" and len(cursor.peek(1).text) == 2
    return two_digits or shape == "{d}{d}" or shape[:4] in ("d{d}", "{d}d")


def _mixed_fraction(cursor: Cursor) -> Node:
    if cursor.peek().kind == "number":
        top = power(cursor)
        cursor.advance()
        return Node("/", (top, power(cursor)))
    return power(cursor)


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
    r"""`33\frac13\%`: the sign after a mixed number belongs to all of it."""
    if part.head in ("%", "deg"):
        return Node(part.head, (Node("+", (whole, part.args[0])),))
    return Node("+", (whole, part))


def _multiply(left: Node, right: Node) -> Node:
    return Node("*", (*left.args, right)) if left.head == "*" else Node("*", (left, right))


# The sign between two factors -> what it makes of what stands before it.
_JOINING: dict[str, Callable[[Cursor, Node], Node]] = {
    **dict.fromkeys(["*", "times", "cdot", "ast", "star", "cdotp", "centerdot", "bullet"], _times),
    **dict.fromkeys(["/", "div", "bmod", "mod", "pmod"], _divided),
}
RULES = Rules(items=items, relation=relation, sum=sum_of_terms, power=power, atom=atom)
