r"""Answers of several parts: lists, tuples, sets, intervals, matrices."""

from __future__ import annotations

import re
from fractions import Fraction
from operator import itemgetter

from foresail.maths.meaning.budget import Budget
from foresail.maths.meaning.exact import all_known, plain_value
from foresail.maths.meaning.expressions import is_rounded_end
from foresail.maths.meaning.quantities import ComparisonWork
from foresail.maths.meaning.real_line import complement, is_empty, same_set
from foresail.maths.meaning.real_sets import INDEXED, regions
from foresail.maths.meaning.relations import assignment, is_label, value_of
from foresail.maths.meaning.rewriting import spelled_out
from foresail.maths.meaning.vectors import as_tuple
from foresail.maths.notation.tree import (
    CONTAINERS,
    DOTS,
    INFINITY,
    POSITIVE_INTEGERS,
    Node,
    number,
    symbol,
    symbols,
    walk,
)

MAX_ITEMS = 256  # of a list or a set
PAIR_COST = 25  # work to compare two items, beside that for their values

_INEQUALITIES = frozenset(["<", ">", "<=", ">=", "!="])
_INTERVALS = frozenset(["()", "[]", "(]", "[)"])
_LETTER = re.compile(r"([a-zA-Z]|\\[a-z]+)(?:_(\d{1,4}))?", re.ASCII)
_GREEK = {"\\alpha": "α", "\\beta": "β", "\\gamma": "γ", "\\delta": "δ"}
_RUNS = [frozenset(run) for run in "abcdef hk ijk lmn pqrst uvw xyz ABCDEF LMN PQRST UVW XYZ αβγδ".split()]
_ROOTS = frozenset("xztr")  # whose indices only number them
_UNORDERED = frozenset(["{}", "list", "braces"])
NATURALS = Node("set", ("N",))
_NATURALS = (POSITIVE_INTEGERS.args, (number(0), number(1), DOTS))  # with or without zero
_SETS = frozenset(["union", "intersect", "minus", "set", "{}", "()", "[]", "(]", "[)", "chain", "list"])


def same_real_set(work: ComparisonWork, given: Node, gold: Node) -> bool:
    if not {given.head, gold.head} <= _SETS:
        return False
    work.rule = "set"
    if NATURALS in (given, gold) and "{}" in (given.head, gold.head):
        listed = given if gold == NATURALS else gold
        return spelled_out(listed.args, work.budget) in _NATURALS
    mine, theirs = regions(given, work.budget), regions(gold, work.budget)
    if mine is None or theirs is None:
        return _same_parts(work, given, gold)
    if len(mine) != len(theirs):
        return False
    names = mine.keys() | theirs.keys()
    if len(mine) == 1 and "" in names and not any(name.startswith(INDEXED) for name in names):
        mine, theirs = {"": next(iter(mine.values()))}, {"": next(iter(theirs.values()))}
    if mine.keys() != theirs.keys():
        return False
    agree = [same_set(mine[name], theirs[name], work.budget) for name in mine]
    return _same_parts(work, given, gold) if None in agree else all(agree)


def tells_apart(node: Node, budget: Budget) -> bool:
    """Whether conditions hold of some numbers and not of others: `x^2 + 1 > 0` says nothing of x."""
    found = regions(node, budget)
    if found is None:
        return True
    return not any(is_empty(part, budget) or is_empty(complement(part), budget) for part in found.values())


def _same_parts(work: ComparisonWork, given: Node, gold: Node) -> bool:
    """Where a side cannot be evaluated: the same shape, made of the same parts."""
    if given.head != gold.head or symbols(given) != symbols(gold):
        return False
    if given.head == "list":
        return same_elements(work, given.args, gold.args)
    return len(given.args) == len(gold.args) and all(
        work.same(one, other) if isinstance(one, Node) and isinstance(other, Node) else one == other
        for one, other in zip(given.args, gold.args, strict=True)
    )


def same_container(work: ComparisonWork, given: Node, gold: Node) -> bool:
    work.rule = "items"
    mine, theirs = given.head, gold.head
    if mine not in CONTAINERS or theirs not in CONTAINERS:
        return _same_single(work, given, gold)
    given_items, gold_items = (spelled_out(_flatten(side), work.budget) for side in (given, gold))
    if max(len(given_items), len(gold_items)) > MAX_ITEMS:
        return given == gold
    if mine in _UNORDERED and theirs in _UNORDERED:
        return _same_collection(work, given_items, gold_items)
    if "braces" in (mine, theirs) or "list" in (mine, theirs):
        if {mine, theirs} & {"(]", "[)"} or ("[]" in (mine, theirs) and len(given_items) == 2):
            return False
        return _same_sequence(work, _in_order(given_items), _in_order(gold_items))
    if mine in _INTERVALS and theirs in _INTERVALS:
        pair = len(given_items) == 2 and len(gold_items) == 2
        if pair and mine == theirs and (mine != "()" or any(INFINITY in walk(item) for item in gold_items)):
            return all(_same_end(work, *ends) for ends in zip(given_items, gold_items, strict=True))
        return (mine == theirs or not pair) and _same_sequence(work, given_items, gold_items)
    if len(given_items) != 2 and "[]" in (mine, theirs):  # [1, 2, 3] written for a set
        return _same_collection(work, given_items, gold_items)
    return False


def _same_single(work: ComparisonWork, given: Node, gold: Node) -> bool:
    """A container against something else: a vector, a set of one, the letters `A, C` for `AC`."""
    container, other = (given, gold) if given.head in CONTAINERS else (gold, given)
    if other.head == "matrix":
        return same_matrix(work, given, gold)
    if container.head == "()" and (vector := as_tuple(other, len(container.args))) is not None:
        return work.same(vector, gold) if container is gold else work.same(given, vector)
    items = _flatten(container)
    if container.head == "list" and {given.head, gold.head} == {"list", "*"}:
        return _letters(given) is not None and _letters(given) == _letters(gold)
    if container.head not in _UNORDERED or len(items) != 1:
        return False
    return work.same(_values(items)[0], other) if container is given else work.same(other, _values(items)[0])


def _same_sequence(work: ComparisonWork, given: tuple[Node, ...], gold: tuple[Node, ...]) -> bool:
    return len(given) == len(gold) and all(map(work.same, given, gold))


def _same_end(work: ComparisonWork, given: Node, gold: Node) -> bool:
    """An end of an interval, which may be rounded to four places: 2.6667 for 8/3."""
    return work.same(given, gold) or is_rounded_end(work.facts(given), work.facts(gold))


def _same_collection(work: ComparisonWork, given: tuple[Node, ...], gold: tuple[Node, ...]) -> bool:
    """Every item on either side has its like on the other; order and repetition do not matter."""
    if _labelled(given) and _labelled(gold):
        return same_elements(work, given, gold)
    if _names(gold) > 1 or _names(given) > 1:  # x = 2, y = 1 is not 1, 2
        return _names(given) * _names(gold) == 0 and _same_sequence(work, _in_order(given), _in_order(gold))
    if all(is_inequality(item) for item in given) and all(is_inequality(item) for item in gold):
        return same_elements(work, given, gold)
    given, gold = _values(given), _values(gold)
    exact_given = {work.facts(item).exact for item in given}
    exact_gold = {work.facts(item).exact for item in gold}
    if None not in exact_given and None not in exact_gold and not _has_decoration(given + gold):
        return exact_given == exact_gold
    return same_elements(work, given, gold)


def same_elements(work: ComparisonWork, given: tuple[Node, ...], gold: tuple[Node, ...]) -> bool:
    if not given or not gold:
        return not given and not gold
    missing = [item for item in gold if not any(_same_item(work, other, item) for other in given)]
    return not missing and all(any(_same_item(work, item, other) for other in gold) for item in given)


def _same_item(work: ComparisonWork, given: Node, gold: Node) -> bool:
    """Inside a collection {2} is not 2."""
    work.budget.spend(PAIR_COST)
    return (given.head == "{}") == (gold.head == "{}") and work.same(given, gold)


def same_matrix(work: ComparisonWork, given: Node, gold: Node) -> bool:
    work.rule = "matrix"
    size = max(len(part.args) * len(part.args[0].args) for part in (given, gold) if part.head == "matrix")
    given, gold = (as_tuple(side, size) or side for side in (given, gold))
    mine, theirs = _rows(given), _rows(gold)
    if given.head != gold.head and 1 in (len(mine), len(theirs)):  # a vector against a tuple
        mine, theirs = _as_vector(mine), _as_vector(theirs)
    if [len(row) for row in mine] != [len(row) for row in theirs] or not mine:
        return False
    return all(_same_sequence(work, one, other) for one, other in zip(mine, theirs, strict=True))


def is_inequality(node: Node) -> bool:
    """An inequality, or a list of them."""
    if node.head == "list":
        return all(is_inequality(item) for item in node.args)
    return node.head == "chain" and bool(_INEQUALITIES & set(node.args[1::2]))


def _flatten(node: Node) -> tuple[Node, ...]:
    """The items, where `a = 4, -8` gives one name two values, as `x = ±3` does, and `a = b = 1` two names one."""
    items: list[Node] = []
    for item in node.args:
        given = assignment(item)
        if given is not None and given.value.head == "list":
            items += given.value.args
        elif given is not None and len(labels := item.args[:-2:2]) > 1 and all(map(is_label, labels)):
            items += (Node("chain", (label, "=", given.value)) for label in labels)
        else:
            items.append(item)
    return tuple(items)


def _values(items: tuple[Node, ...]) -> tuple[Node, ...]:
    """The items without their names: x = 1, y = 2 -> 1, 2."""
    return tuple(map(value_of, items))


def _in_order(items: tuple[Node, ...]) -> tuple[Node, ...]:
    """The values in the order of their names: b = 2, a = 1 -> 1, 2, because everybody puts a before b.

    Only letters of one run have such an order, and indices of one letter; k = 2, b = 3 stays as it is.
    """
    given = all_known(map(assignment, items))
    places = all_known(_place(item.label) for item in given) if given else None
    if given and places:
        letters = {letter for letter, _ in places}
        if len(letters) == 1 or any(run.issuperset(letters) for run in _RUNS):
            return tuple(item.value for _, item in sorted(zip(places, given, strict=True), key=itemgetter(0)))
    return _values(items)


def _place(label: Node) -> tuple[str, Fraction] | None:
    r"""The letter and the index of a name: x_2 -> ("x", 2), \alpha -> ("α", 0), f(2) -> ("f", 2); or None."""
    if label.head == "apply" and len(label.args) == 2:
        argument = plain_value(label.args[1])
        return None if argument is None else (str(label.args[0]), argument)
    name = _LETTER.fullmatch(str(label.args[0])) if label.head in ("symbol", "constant") else None
    return None if name is None else (_GREEK.get(name[1], name[1]), Fraction(name[2] or 0))


def _labelled(items: tuple[Node, ...]) -> bool:
    """Whether every item assigns something: x = 1, y = 2."""
    return all(assignment(item) is not None for item in items)


def _names(items: tuple[Node, ...]) -> int:
    """How many different things get a value; x_1 and x_2 are two roots of one unknown."""
    return len({_unknown(given.label) for given in map(assignment, items) if given is not None})


def _unknown(label: Node) -> Node:
    place = _place(label)
    return symbol(place[0]) if place and place[1] and place[0] in _ROOTS else label


def _has_decoration(items: tuple[Node, ...]) -> bool:
    return any(item.head in ("unit", "%", "deg", "base", "mod") for item in items)


def _letters(node: Node) -> frozenset[str] | None:
    """The options of `AC` or `A, C`; None for anything but capital letters."""
    names = [item.args[0] if item.head == "symbol" else "" for item in node.args]
    return frozenset(names) if all(len(name) == 1 and name.isupper() for name in names) else None


def _rows(node: Node) -> list[tuple[Node, ...]]:
    if node.head == "matrix":
        return [row.args for row in node.args]
    items = _in_order(_flatten(node)) if node.head in ("()", "list", "braces", "[]") else ()
    if items and all(
        item.head in ("()", "[]", "list") for item in items
    ):  # [[1, 2], [3, 4]] and [1, 2; 3, 4]
        return [item.args for item in items]
    return [items] if items else []


def _as_vector(rows: list[tuple[Node, ...]]) -> list[tuple[Node, ...]]:
    """One row, whether it stood upright or lay: [[1], [2]] -> [[1, 2]]."""
    if len(rows) == 1:
        return rows
    return [tuple(row[0] for row in rows)] if all(len(row) == 1 for row in rows) else []
