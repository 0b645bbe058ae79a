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


def same_real_set(work: ComparisonWork, candidate: Node, gold: Node) -> bool:
    if not {candidate.head, gold.head} <= _SETS:
        return False
    work.rule = "set"
    if NATURALS in (candidate, gold) and "{}" in (candidate.head, gold.head):
        listed = candidate if gold == NATURALS else gold
        return spelled_out(listed.args, work.budget) in _NATURALS
    mine, theirs = regions(candidate, work.budget), regions(gold, work.budget)
    if mine is None or theirs is None:
        return _same_parts(work, candidate, gold)
    if len(mine) != len(theirs):
        return False
    names = mine.keys() | theirs.keys()
    if len(mine) == 1 and "" in names and not any(name.startswith(INDEXED) for name in names):
        mine, theirs = {"": next(iter(mine.values()))}, {"": next(iter(theirs.values()))}
    if mine.keys() != theirs.keys():
        return False
    agree = [same_set(mine[name], theirs[name], work.budget) for name in mine]
    return _same_parts(work, candidate, gold) if None in agree else all(agree)


def tells_apart(node: Node, budget: Budget) -> bool:
    """Whether conditions hold of some numbers and not of others: `x^2 + 1 > 0` says nothing of x."""
    parts_of_line = regions(node, budget)
    if parts_of_line is None:
        return True
    return not any(
        is_empty(part, budget) or is_empty(complement(part), budget) for part in parts_of_line.values()
    )


def _same_parts(work: ComparisonWork, candidate: Node, gold: Node) -> bool:
    """Where a side cannot be evaluated: the same shape, made of the same parts."""
    if candidate.head != gold.head or symbols(candidate) != symbols(gold):
        return False
    if candidate.head == "list":
        return same_elements(work, candidate.args, gold.args)
    return len(candidate.args) == len(gold.args) and all(
        work.same(one, other) if isinstance(one, Node) and isinstance(other, Node) else one == other
        for one, other in zip(candidate.args, gold.args, strict=True)
    )


def same_container(work: ComparisonWork, candidate: Node, gold: Node) -> bool:
    work.rule = "items"
    mine, theirs = candidate.head, gold.head
    if mine not in CONTAINERS or theirs not in CONTAINERS:
        return _same_single(work, candidate, gold)
    candidate_items, gold_items = (spelled_out(_flatten(side), work.budget) for side in (candidate, gold))
    if max(len(candidate_items), len(gold_items)) > MAX_ITEMS:
        return candidate == gold
    if mine in _UNORDERED and theirs in _UNORDERED:
        return _same_collection(work, candidate_items, gold_items)
    if "braces" in (mine, theirs) or "list" in (mine, theirs):
        if {mine, theirs} & {"(]", "[)"} or ("[]" in (mine, theirs) and len(candidate_items) == 2):
            return False
        return _same_sequence(work, _in_order(candidate_items), _in_order(gold_items))
    if mine in _INTERVALS and theirs in _INTERVALS:
        pair = len(candidate_items) == 2 and len(gold_items) == 2
        if pair and mine == theirs and (mine != "()" or any(INFINITY in walk(item) for item in gold_items)):
            return all(_same_end(work, *ends) for ends in zip(candidate_items, gold_items, strict=True))
        return (mine == theirs or not pair) and _same_sequence(work, candidate_items, gold_items)
    if len(candidate_items) != 2 and "[]" in (mine, theirs):  # [1, 2, 3] written for a set
        return _same_collection(work, candidate_items, gold_items)
    return False


def _same_single(work: ComparisonWork, candidate: Node, gold: Node) -> bool:
    """A container against something else: a vector, a set of one, the letters `A, C` for `AC`."""
    container, other = (candidate, gold) if candidate.head in CONTAINERS else (gold, candidate)
    if other.head == "matrix":
        return same_matrix(work, candidate, gold)
    if container.head == "()" and (vector := as_tuple(other, len(container.args))) is not None:
        return work.same(vector, gold) if container is gold else work.same(candidate, vector)
    items = _flatten(container)
    if container.head == "list" and {candidate.head, gold.head} == {"list", "*"}:
        return _letters(candidate) is not None and _letters(candidate) == _letters(gold)
    if container.head not in _UNORDERED or len(items) != 1:
        return False
    return (
        work.same(_values(items)[0], other) if container is candidate else work.same(other, _values(items)[0])
    )


def _same_sequence(work: ComparisonWork, candidate: tuple[Node, ...], gold: tuple[Node, ...]) -> bool:
    return len(candidate) == len(gold) and all(map(work.same, candidate, gold))


def _same_end(work: ComparisonWork, candidate: Node, gold: Node) -> bool:
    """An end of an interval, which may be rounded to four places: 2.6667 for 8/3."""
    return work.same(candidate, gold) or is_rounded_end(work.facts(candidate), work.facts(gold))


def _same_collection(work: ComparisonWork, candidate: tuple[Node, ...], gold: tuple[Node, ...]) -> bool:
    """Every item on either side has its like on the other; order and repetition do not matter."""
    if _labelled(candidate) and _labelled(gold):
        return same_elements(work, candidate, gold)
    if _names(gold) > 1 or _names(candidate) > 1:  # x = 2, y = 1 is not 1, 2
        return _names(candidate) * _names(gold) == 0 and _same_sequence(
            work, _in_order(candidate), _in_order(gold)
        )
    if all(is_inequality(item) for item in candidate) and all(is_inequality(item) for item in gold):
        return same_elements(work, candidate, gold)
    candidate, gold = _values(candidate), _values(gold)
    exact_candidate = {work.facts(item).exact for item in candidate}
    exact_gold = {work.facts(item).exact for item in gold}
    if None not in exact_candidate and None not in exact_gold and not _has_decoration(candidate + gold):
        return exact_candidate == exact_gold
    return same_elements(work, candidate, gold)


def same_elements(work: ComparisonWork, candidate: tuple[Node, ...], gold: tuple[Node, ...]) -> bool:
    if not candidate or not gold:
        return not candidate and not gold
    missing = [item for item in gold if not any(_same_item(work, other, item) for other in candidate)]
    return not missing and all(any(_same_item(work, item, other) for other in gold) for item in candidate)


def _same_item(work: ComparisonWork, candidate: Node, gold: Node) -> bool:
    """Inside a collection {2} is not 2."""
    work.budget.spend(PAIR_COST)
    return (candidate.head == "{}") == (gold.head == "{}") and work.same(candidate, gold)


def same_matrix(work: ComparisonWork, candidate: Node, gold: Node) -> bool:
    work.rule = "matrix"
    size = max(len(part.args) * len(part.args[0].args) for part in (candidate, gold) if part.head == "matrix")
    candidate, gold = (as_tuple(side, size) or side for side in (candidate, gold))
    mine, theirs = _rows(candidate), _rows(gold)
    if candidate.head != gold.head and 1 in (len(mine), len(theirs)):  # a vector against a tuple
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
        candidate = assignment(item)
        if candidate is not None and candidate.value.head == "list":
            items += candidate.value.args
        elif candidate is not None and len(labels := item.args[:-2:2]) > 1 and all(map(is_label, labels)):
            items += (Node("chain", (label, "=", candidate.value)) for label in labels)
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
    candidate = all_known(map(assignment, items))
    places = all_known(_place(item.label) for item in candidate) if candidate else None
    if candidate and places:
        letters = {letter for letter, _ in places}
        if len(letters) == 1 or any(run.issuperset(letters) for run in _RUNS):
            return tuple(
                item.value for _, item in sorted(zip(places, candidate, strict=True), key=itemgetter(0))
            )
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
    return len({_unknown(candidate.label) for candidate in map(assignment, items) if candidate is not None})


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
