r"""Answers of several parts: lists, tuples, sets, intervals, matrices."""

from __future__ import annotations

from foresail.rewards.meaning.places import same_set
from foresail.rewards.meaning.progressions import spelled_out
from foresail.rewards.meaning.quantities import Quantities
from foresail.rewards.meaning.real_sets import INDEXED, regions
from foresail.rewards.meaning.relations import assignment
from foresail.rewards.notation.tree import CONTAINERS, DOTS, POSITIVE_INTEGERS, Node, number, symbols

MAX_ITEMS = 256  # of a list or a set
PAIR = 25  # work to compare two items, beside that for their values

_INEQUALITIES = frozenset(["<", ">", "<=", ">=", "!="])
_INTERVALS = frozenset(["()", "[]", "(]", "[)"])
_COORDINATES = frozenset([("x",), ("y",), ("z",)])
_UNORDERED = frozenset(["{}", "list", "braces"])
NATURALS = Node("set", ("N",))
_NATURALS = (POSITIVE_INTEGERS.args, (number(0), number(1), DOTS))  # with or without zero
_SETS = frozenset(["union", "intersect", "minus", "set", "{}", "()", "[]", "(]", "[)", "chain", "list"])


class Collections(Quantities):
    """What is compared item by item, or place by place on the real line."""

    def same_real_set(self, given: Node, gold: Node) -> bool:
        if not {given.head, gold.head} <= _SETS:
            return False
        self.rule = "set"
        if NATURALS in (given, gold) and "{}" in (given.head, gold.head):
            listed = given if gold == NATURALS else gold
            return spelled_out(listed.args, self.budget) in _NATURALS
        mine, theirs = regions(given, self.budget), regions(gold, self.budget)
        if mine is None or theirs is None:
            return self.same_parts(given, gold)
        if len(mine) != len(theirs):
            return False
        names = mine.keys() | theirs.keys()
        if len(mine) == 1 and "" in names and not any(name.startswith(INDEXED) for name in names):
            mine, theirs = {"": next(iter(mine.values()))}, {"": next(iter(theirs.values()))}
        if mine.keys() != theirs.keys():
            return False
        agree = [same_set(mine[name], theirs[name]) for name in mine]
        return self.same_parts(given, gold) if None in agree else all(agree)

    def same_parts(self, given: Node, gold: Node) -> bool:
        """Where a side cannot be evaluated: the same shape, made of the same parts."""
        if given.head != gold.head or symbols(given) != symbols(gold):
            return False
        if given.head == "list":
            return self.each_has_its_like(given.args, gold.args)
        return len(given.args) == len(gold.args) and all(
            self.same(one, other) if isinstance(one, Node) and isinstance(other, Node) else one == other
            for one, other in zip(given.args, gold.args, strict=True)
        )

    def same_container(self, given: Node, gold: Node) -> bool:
        self.rule = "items"
        mine, theirs = given.head, gold.head
        if mine not in CONTAINERS or theirs not in CONTAINERS:
            return self.same_single(given, gold)
        given_items, gold_items = (spelled_out(_flatten(side), self.budget) for side in (given, gold))
        if max(len(given_items), len(gold_items)) > MAX_ITEMS:
            return given == gold
        if mine in _UNORDERED and theirs in _UNORDERED:
            return self.same_collection(given_items, gold_items)
        if "braces" in (mine, theirs) or "list" in (mine, theirs):
            if {mine, theirs} & {"(]", "[)"} or ("[]" in (mine, theirs) and len(given_items) == 2):
                return False
            return self.same_sequence(_in_order(given_items), _in_order(gold_items))
        if mine in _INTERVALS and theirs in _INTERVALS:
            pair = len(given_items) == 2 and len(gold_items) == 2
            return (mine == theirs or not pair) and self.same_sequence(given_items, gold_items)
        if len(given_items) != 2 and "[]" in (mine, theirs):  # [1, 2, 3] written for a set
            return self.same_collection(given_items, gold_items)
        return False

    def same_single(self, given: Node, gold: Node) -> bool:
        """A container against something else: a vector, a set of one, the letters `A, C` for `AC`."""
        container, other = (given, gold) if given.head in CONTAINERS else (gold, given)
        if other.head == "matrix":
            return self.same_matrix(given, gold)
        items = _flatten(container)
        if container.head == "list" and {given.head, gold.head} == {"list", "*"}:
            return _letters(given) is not None and _letters(given) == _letters(gold)
        if container.head not in _UNORDERED or len(items) != 1:
            return False
        return (
            self.same(_values(items)[0], other) if container is given else self.same(other, _values(items)[0])
        )

    def same_sequence(self, given: tuple[Node, ...], gold: tuple[Node, ...]) -> bool:
        return len(given) == len(gold) and all(map(self.same, given, gold))

    def same_collection(self, given: tuple[Node, ...], gold: tuple[Node, ...]) -> bool:
        """Every item on either side has its like on the other; order and repetition do not matter."""
        if _labelled(given) and _labelled(gold):
            return self.each_has_its_like(given, gold)
        if _names(gold) > 1:  # x = 2, y = 1 and 1, 2
            return _names(given) == 0 and self.same_sequence(given, _in_order(gold))
        if all(self.is_inequality(item) for item in given) and all(self.is_inequality(item) for item in gold):
            return self.each_has_its_like(given, gold)
        given, gold = _values(given), _values(gold)
        exact_given = {self.facts(item).exact for item in given}
        exact_gold = {self.facts(item).exact for item in gold}
        if None not in exact_given and None not in exact_gold and not _has_decoration(given + gold):
            return exact_given == exact_gold
        return self.each_has_its_like(given, gold)

    def each_has_its_like(self, given: tuple[Node, ...], gold: tuple[Node, ...]) -> bool:
        if not given or not gold:
            return not given and not gold
        missing = [item for item in gold if not any(self.same_item(other, item) for other in given)]
        return not missing and all(any(self.same_item(item, other) for other in gold) for item in given)

    def same_item(self, given: Node, gold: Node) -> bool:
        """Inside a collection {2} is not 2."""
        self.budget.spend(PAIR)
        return (given.head == "{}") == (gold.head == "{}") and self.same(given, gold)

    def same_matrix(self, given: Node, gold: Node) -> bool:
        self.rule = "matrix"
        mine, theirs = _rows(given), _rows(gold)
        if given.head != gold.head and 1 in (len(mine), len(theirs)):  # a vector against a tuple
            mine, theirs = _as_vector(mine), _as_vector(theirs)
        if [len(row) for row in mine] != [len(row) for row in theirs] or not mine:
            return False
        return all(self.same_sequence(one, other) for one, other in zip(mine, theirs, strict=True))

    def is_inequality(self, node: Node) -> bool:
        if node.head == "list":
            return all(self.is_inequality(item) for item in node.args)
        return node.head == "chain" and bool(_INEQUALITIES & set(node.args[1::2]))


def _flatten(node: Node) -> tuple[Node, ...]:
    """The items, where `a = 4, -8, -10` gives one name three values and `x = ±3` gives it two."""
    items: list[Node] = []
    for item in node.args:
        given = assignment(item) if item.head == "chain" else None
        if given is not None and given.value.head == "list":
            items += given.value.args
        else:
            items.append(item)
    return tuple(items)


def _values(items: tuple[Node, ...]) -> tuple[Node, ...]:
    """The items without their names: x = 1, y = 2 -> 1, 2."""
    values = []
    for item in items:
        given = assignment(item) if item.head == "chain" else None
        values.append(given.value if given is not None else item)
    return tuple(values)


def _in_order(items: tuple[Node, ...]) -> tuple[Node, ...]:
    """The values as coordinates: y = 2, x = 1 -> 1, 2, because everybody puts x before y."""
    if _labelled(items) and all(item.args[0].args[:1] in _COORDINATES for item in items):
        items = tuple(sorted(items, key=lambda item: str(item.args[0].args[0])))
    return _values(items)


def _labelled(items: tuple[Node, ...]) -> bool:
    """Whether every item assigns something: x = 1, y = 2."""
    return all(item.head == "chain" and assignment(item) is not None for item in items)


def _names(items: tuple[Node, ...]) -> int:
    """How many different things get a value."""
    given = [assignment(item) if item.head == "chain" else None for item in items]
    return len({item.label for item in given if item is not None})


def _has_decoration(items: tuple[Node, ...]) -> bool:
    return any(item.head in ("unit", "%", "deg", "base", "mod") for item in items)


def _letters(node: Node) -> frozenset[str] | None:
    """The options of `AC` or `A, C`; None for anything but capital letters."""
    names = [item.args[0] if item.head == "symbol" else "" for item in node.args]
    return frozenset(names) if all(len(name) == 1 and name.isupper() for name in names) else None


def _rows(node: Node) -> list[tuple[Node, ...]]:
    if node.head == "matrix":
        return [row.args for row in node.args]
    items = _values(_flatten(node)) if node.head in ("()", "list", "braces", "[]") else ()
    if items and all(item.head in ("()", "[]") for item in items):  # [[1, 2], [3, 4]]
        return [item.args for item in items]
    return [items] if items else []


def _as_vector(rows: list[tuple[Node, ...]]) -> list[tuple[Node, ...]]:
    """One row, whether it stood upright or lay: [[1], [2]] -> [[1, 2]]."""
    if len(rows) == 1:
        return rows
    return [tuple(row[0] for row in rows)] if all(len(row) == 1 for row in rows) else []
