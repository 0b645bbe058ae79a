r"""Letters that stand for no particular thing: the C of `x^2 + C`, the k of `\pi + k\pi, k \in \mathbb{Z}`.

A response may use other ones. `aligned(candidate, gold)` gives both without their domains, the response with the
right answer's letters; None where the domains differ, for `2k\pi, k \in \mathbb{N}` is only half of `2k\pi`. And
letters that stand for complex numbers, such as the z of `|z|^2`, which is not `z^2` then.
"""

from __future__ import annotations

from foresail.maths.meaning.points import INTEGER_LETTERS
from foresail.maths.meaning.relations import rename
from foresail.maths.notation.tree import PI, I, Node, heads, is_condition, rebuild, symbol, symbols, walk

# A constant of integration in a right answer -> what a response may call it.
_FREE = {"C": frozenset("C c K C_0 C_1 c_1".split()), "c": frozenset("C c C_1 c_1".split()),
         "K": frozenset("C c K".split())}  # fmt: skip
_VARIABLES = frozenset("x y z t u v w s r \\theta \\phi \\rho".split())  # of the function that was integrated
_NEIGHBOURS = {
    "C": frozenset("ABD"),
    "c": frozenset("abd"),
    "K": frozenset("JL"),
}  # a + b + c: the third of three
_NUMBERED = frozenset("C_1 C_2 C_3 c_1 c_2 c_3".split())  # several of them
_NUMBERED_TOO = _NUMBERED | frozenset("A B C D c d K_1 K_2 k_1 k_2".split())
_FORMULAS = frozenset(["+", "^", "exp", "constant", "deg"])
_WHOLE, _ALL = Node("set", ("Z",)), Node("set", ("R",))
_USUALLY_COMPLEX = frozenset("z w z_1 z_2 w_1 w_2".split())
_OF_COMPLEX = frozenset(["re", "im", "conj", "arg"])


def aligned(candidate: Node, gold: Node) -> tuple[Node, Node] | None:
    mine, my_domains = _without_domains(candidate)
    theirs, their_domains = _without_domains(gold)
    if my_domains and their_domains:
        if list(my_domains.values()) != list(their_domains.values()):
            return None
        mine = _renamed(mine, dict(zip(my_domains, their_domains, strict=True)))
    elif my_domains or their_domains:
        declared, core = (my_domains, mine) if my_domains else (their_domains, theirs)
        if any(not _says_little(name, domain, core) for name, domain in declared.items()):
            return candidate, gold
        mine = _renamed(mine, _pairing(mine, theirs, INTEGER_LETTERS, INTEGER_LETTERS))
    elif symbols(mine) == symbols(theirs):
        return mine, theirs
    else:
        mine = _renamed(mine, _pairing(mine, theirs, _counting(mine), _counting(theirs)))
    free = _free_constant(theirs)
    if free and free not in symbols(mine):
        mine = _renamed(
            mine, dict.fromkeys([name for name in _FREE[free] if _is_added(name, mine)][:1], free)
        )
    return _renamed(mine, _pairing(mine, theirs, _NUMBERED_TOO, _NUMBERED)), theirs


def _without_domains(node: Node) -> tuple[Node, dict[str, Node]]:
    r"""`2n + 1, n \in \mathbb{Z}` and `\{2n + 1 \mid n \in \mathbb{Z}\}` -> `2n + 1`, {n: Z}."""
    if node.head not in ("list", "builder"):
        return node, {}
    names = [_declared(item) for item in node.args]
    declared = [(name, item.args[2]) for name, item in zip(names, node.args, strict=True) if name]
    domains = {name: domain for name, domain in declared if domain.head == "set"}
    parts = tuple(item for name, item in zip(names, node.args, strict=True) if name not in domains)
    if not domains or not parts or (node.head == "builder" and len(parts) > 1):
        return node, {}
    return (parts[0] if len(parts) == 1 else Node("list", parts)), domains


def _free_constant(node: Node) -> str:
    """The C of `x^2 + C` and `y = x^2 + C`; empty for `a + c` and `a + b + c`, where c is one letter of several."""
    names = symbols(node)
    if _VARIABLES.isdisjoint(names):
        return ""
    return next(
        (c for c in _FREE if c in names and _is_added(c, node) and names.isdisjoint(_NEIGHBOURS[c])), ""
    )


def _is_added(name: str, node: Node) -> bool:
    side = node.args[-1] if node.head == "chain" else node
    return side.head == "+" and symbol(name) in side.args


def _counting(node: Node) -> frozenset[str]:
    r"""The letters that can only count periods: the k of `\frac\pi3 + 2k\pi` and of `30^\circ + 360^\circ k`."""
    side = node.args[-1] if node.head == "chain" else node
    counting = INTEGER_LETTERS & symbols(side)
    if not counting:
        return counting
    terms = side.args if side.head == "+" else (side,)
    return counting.difference(
        *(symbols(term) for term in terms if PI not in walk(term) and "deg" not in heads(term))
    )


def _declared(item: Node) -> str:
    r"""The letter of `k \in …`; empty for anything else."""
    declares = item.head == "chain" and item.args[1] == "in" and item.args[0].head == "symbol"
    return str(item.args[0].args[0]) if declares else ""


def _says_little(name: str, domain: Node, core: Node) -> bool:
    """Whether anybody takes the domain for granted: that a parameter is an integer, or an unknown real."""
    if name not in symbols(core):
        return False
    return domain == _ALL or (domain == _WHOLE and not any(map(is_condition, walk(core))))


def _pairing(candidate: Node, gold: Node, mine: frozenset[str], theirs: frozenset[str]) -> dict[str, str]:
    """Which letter of the response is which of the right answer's, by the order in which they appear."""
    if not heads(gold) & _FORMULAS or not heads(candidate) & _FORMULAS:  # options: AC is not AD
        return {}
    ours, others = symbols(candidate), symbols(gold)
    left = [name for name in _in_order(candidate) if name not in others]
    right = [name for name in _in_order(gold) if name not in ours]
    if len(left) != len(right) or not mine.issuperset(left) or not theirs.issuperset(right):
        return {}
    return dict(zip(left, right, strict=True))


def _in_order(node: Node) -> list[str]:
    names: dict[str, None] = {}
    stack = [node]
    while stack:
        part = stack.pop()
        if part.head == "symbol":
            names[part.args[0]] = None
        stack.extend(child for child in reversed(part.args) if isinstance(child, Node))
    return list(names)


def _renamed(node: Node, names: dict[str, str]) -> Node:
    for old in names:
        node = rename(node, old, f"\0{old}")
    for old, new in names.items():
        node = rename(node, f"\0{old}", new)
    return node


def complex_letters(one: Node, other: Node) -> frozenset[str]:
    """The letters that either side takes for complex: those in Re, Im or a conjugate, and z and w in bars."""
    names: set[str] = set()
    for part in (*walk(one), *walk(other)):
        if part.head in _OF_COMPLEX or (part.head == "apply" and part.args[0] == "bar"):
            names |= symbols(part)
        elif part.head == "abs":
            names |= symbols(part) & _USUALLY_COMPLEX
    return frozenset(names)


def with_both_parts(node: Node, letters: frozenset[str]) -> Node:
    """z as a + bi, so that both parts take values of their own; a bar over such a letter is its conjugate."""
    if node.head == "symbol" and node.args[0] in letters:
        name = node.args[0]
        return Node("+", (symbol(name), Node("*", (I, symbol(f"{name}\0i")))))
    if node.head == "apply" and node.args[0] == "bar" and symbols(node) <= letters:
        return Node("conj", (with_both_parts(node.args[1], letters),))
    return rebuild(node, lambda part: with_both_parts(part, letters)) if heads(node) & {"symbol"} else node
