r"""What a chain of relations says: an assignment (`x = 5`), an equation (`2x+3y = 5`) or an inequality."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

from foresail.maths.meaning.computations import is_computation
from foresail.maths.notation.tree import Node, fingerprint, rebuild, symbols

MAX_PLACES = 60  # of a decimal that is said to be about something
_COMPLEX = frozenset(["z", "w"])
_BOUNDS = frozenset(["<", "<=", ">", ">=", "in"])
_REALS = Node("set", ("R",))
_FUNCTIONS_OF_LABELS = frozenset("gcd lcm max min det tr arg re im binom".split())


class Assignment(NamedTuple):
    """A name and the value it gets; a chain also claims that other sides are equal to it, or about equal."""

    label: Node
    value: Node
    claims: tuple[Node, ...] = ()
    about: tuple[Node, ...] = ()


def assignment(node: Node) -> Assignment | None:
    r"""`x = 1 + 1 = 2` -> x, 2, claiming 1 + 1; `5 = x` -> x, 5; `x \in S` -> x, S; None for `2x + z = 1`."""
    if node.head != "chain":
        return None
    sides, signs = list(node.args[::2]), list(node.args[1::2])
    if signs == ["in"] and (is_label(sides[0]) or sides[0].head == "()"):
        return Assignment(sides[0], sides[1])
    if not set(signs) <= {"=", "~"}:
        return None
    first = 1 if is_label(sides[0]) else 0
    about: tuple[Node, ...] = ()
    if "~" in signs[first:]:  # x = 1/3 ≈ 0.33: what stands before the sign is the value
        cut = signs.index("~", first)
        about = tuple(sides[cut + 1 :])
        sides, signs = sides[: cut + 1], signs[:cut]
    if len(sides) == 2 and not is_label(sides[0]) and is_label(sides[1]) and not symbols(sides[0]):
        sides.reverse()
    if is_computation(sides[0]) and len(sides) > 1:
        return Assignment(
            sides[0], sides[-1], tuple(side for side in sides[:-1] if not is_label(side)), about
        )
    if not is_label(sides[0]):
        constants = [side for side in sides if not symbols(side)]
        if len(sides) == 1:
            return Assignment(sides[0], sides[0], (), about)
        if len(constants) == len(sides):  # 3 + 4 = 7
            return Assignment(sides[0], sides[-1], tuple(sides[:-1]), about)
        if len(sides) > 2 and all(side in constants or is_label(side) for side in sides):  # 1 + 1 = x = 2
            label = next(side for side in sides if side not in constants)
            return Assignment(label, constants[-1], tuple(constants[:-1]))
        return None
    return Assignment(sides[0], sides[-1], tuple(side for side in sides[1:-1] if not is_label(side)), about)


def value_of(node: Node) -> Node:
    """What is assigned, or the node itself: value_of(parse("x = 5")) -> 5."""
    candidate = assignment(node)
    return node if candidate is None else candidate.value


def is_label(node: Node) -> bool:
    r"""A name for something: `x`, `AB`, `f(x)`, `|AB|`, `\frac{NO}{BO}`, `S_1 : S_2`, `(p, q)`; not `2x`."""
    if node.head in ("symbol", "apply"):
        return True
    if node.head == "constant":
        return node.args[0] in ("e", "i")
    if node.head == "abs":
        return is_label(node.args[0]) and (len(symbols(node)) > 1 or symbols(node) <= _COMPLEX)
    if node.head in ("*", "/", ":", "()") or node.head in _FUNCTIONS_OF_LABELS:
        return all(is_label(part) for part in node.args)
    if node.head in ("deg", "conj"):
        return is_label(node.args[0])
    return False


def is_prose(label: Node) -> bool:
    r"""`\text{Area}`: words, which may stand for any letter."""
    name = label.args[0] if label.head == "symbol" else ""
    return len(name) > 1 and not name.startswith("\\") and "_" not in name and "'" not in name


def is_function_of_x(one: Node, other: Node) -> bool:
    """`f(x)` and `y`, which name the same thing."""
    pair = (one, other) if parameter(one) else (other, one)
    return parameter(pair[0]) is not None and pair[1] == Node("symbol", ("y",))


def bare_label(label: Node) -> Node:
    r"""`|AB|` and `\overline{AB}` name the length that `AB` names."""
    if label.head in ("abs", "conj") and label.args[0].head == "*" and is_label(label.args[0]):
        return bare_label(label.args[0])
    return label


def in_usual_order(label: Node) -> bool:
    """`(x, y) = (1, 2)` says (1, 2), and `(y, x) = (1, 2)` does not."""
    names = [fingerprint(part) for part in label.args] if label.head == "()" else []
    return names == sorted(names)


def is_rounded(value: Fraction, about: Fraction) -> bool:
    """is_rounded(2/3, 0.67) -> True, also 0.66; is_rounded(100, 104) -> False: given digits are right."""
    last_place = _last_place(about)
    distance = abs(value - about)
    if last_place is None:
        return distance <= abs(value) / 100
    return distance <= last_place / 2 or (distance < last_place and abs(about) < abs(value))


def _last_place(value: Fraction) -> Fraction | None:
    """_last_place(0.67) -> 1/100; _last_place(1200) -> 100; None for 22/7, which has no last digit."""
    place = Fraction(1)
    for _ in range(MAX_PLACES):
        if (value / place).denominator == 1:
            break
        place /= 10
    else:
        return None
    while value and (value / (10 * place)).denominator == 1:
        place *= 10
    return place


def is_solved(node: Node, *, strictly: bool = False) -> bool:
    r"""Whether every condition in the node names its unknown on one side alone: `x < 3`, not `2x < 6` or `|x| < 3`.

    A restated problem is no answer to it. `strictly` takes single names only, and not `a + b < 3`.
    """
    if node.head == "chain":
        sides, signs = node.args[::2], node.args[1::2]
        if set(signs) & {"in", "notin"}:
            return all(is_solved(side, strictly=strictly) for side in sides[1:])
        return any(
            (side.head in ("symbol", "apply") if strictly else _is_unknown(side, len(sides)))
            and all(symbols(side).isdisjoint(symbols(other)) for other in sides if other is not side)
            for side in sides
        )
    if node.head == "builder" or (node.head == "list" and _says_twice(node.args)):
        return False
    return all(is_solved(part, strictly=strictly) for part in node.args if isinstance(part, Node))


def _says_twice(conditions: tuple[Node, ...]) -> bool:
    """`x > 1, x > 2` and `x \\in (0, 2), x \\in (1, 3)`: two bounds of one kind that nobody put together."""
    said = [
        (item.args[0], item.args[1][0])
        for item in conditions
        if item.head == "chain" and len(item.args) == 3 and item.args[1] in _BOUNDS and item.args[2] != _REALS
    ]
    return len(set(said)) < len(said)


def _is_unknown(node: Node, sides: int) -> bool:
    r"""What a condition can be about: `x`, `-x`, `f(x)`, `AB`, `a + b`; not `|x|` or `2x`, where work is left."""
    if node.head == "neg":
        return node.args[0].head == "symbol" and sides == 2
    if node.head in ("*", "/", "+", ":", "abs"):
        return len(symbols(node)) > 1 and all(is_label(part) for part in node.args)
    return is_label(node)


def sum_of_names(chain: Node) -> Node | None:
    """The number in `m + n = 7`, which answers a question for m + n; None for `2x = 14` or `x + 1 = 8`."""
    if len(chain.args) != 3 or chain.args[1] != "=" or symbols(chain.args[2]):
        return None
    left = chain.args[0]
    terms = [term.args[0] if term.head == "neg" else term for term in left.args] if left.head == "+" else []
    return chain.args[2] if terms and all(is_label(term) for term in terms) else None


def parameter(label: Node) -> str | None:
    """The variable a function is defined in: parameter(f(x)) -> "x"; P(A) and a_n name things."""
    if (
        label.head == "apply"
        and len(label.args) == 2
        and label.args[1].head == "symbol"
        and label.args[1].args[0].islower()
        and label.args[0] != label.args[1].args[0]
        and not label.args[0].endswith("_")
    ):
        return str(label.args[1].args[0])
    return None


def same_label(one: Node, other: Node) -> bool:
    """f(x) and f(t) name the same function; x and y are different unknowns."""
    if parameter(one) and parameter(other):
        return bool(one.args[0] == other.args[0])
    return one == other


def difference(chain: Node) -> tuple[Node, str] | None:
    """A relation of two sides as (left - right, sign), with `>` turned into `<`."""
    if len(chain.args) != 3:
        return None
    left, sign, right = chain.args
    if sign in (">", ">="):
        left, right, sign = right, left, sign.replace(">", "<")
    return Node("+", (left, Node("neg", (right,)))), sign


def rename(node: Node, old: str, new: str) -> Node:
    if node.head == "symbol":
        return Node("symbol", (new,)) if node.args[0] == old else node
    return rebuild(node, lambda part: rename(part, old, new))
