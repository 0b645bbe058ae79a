r"""Whether two answers mean the same, whatever shape they have: the rules of `docs/rewards.md` in order.

`same_answer(new_work(seed, budget), candidate, gold)` looks up what both sides are (a relation, a container, a
matrix, a quantity, a value) in the table `KINDS` and asks the function that knows that kind. A response is held to
what it claims: a chain such as `x = 8 = 7` is wrong because its sides differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

from foresail.maths.meaning.budget import Budget
from foresail.maths.meaning.collections import (
    is_inequality,
    same_container,
    same_elements,
    same_matrix,
    same_real_set,
    tells_apart,
)
from foresail.maths.meaning.computations import result
from foresail.maths.meaning.exact import plain_value
from foresail.maths.meaning.expressions import constant_ratio
from foresail.maths.meaning.letters import aligned
from foresail.maths.meaning.matrices import with_matrices_done
from foresail.maths.meaning.numeric import NumericValue
from foresail.maths.meaning.pieces import same_pieces
from foresail.maths.meaning.quantities import (
    RESTATING,
    ComparisonWork,
    same_base,
    same_measure,
    same_quantity,
    same_ratio,
    same_residue,
    same_word,
)
from foresail.maths.meaning.real_line import real_value
from foresail.maths.meaning.relations import (
    Assignment,
    assignment,
    bare_label,
    difference,
    in_usual_order,
    is_function_of_x,
    is_label,
    is_prose,
    is_rounded,
    is_solved,
    parameter,
    rename,
    same_label,
    sum_of_names,
    value_of,
)
from foresail.maths.meaning.rewriting import (
    one_quantity,
    with_conditions_apart,
    with_free_signs,
    without_sign,
    without_signs,
)
from foresail.maths.notation.tree import CONTAINERS, Node, heads, symbols, walk
from foresail.maths.notation.units import same_noun

USUAL_NODES = 64  # of both sides, which the other costs account for
NODE_COST = 4  # work for each further one: every level of a tree is looked at again, about ten times

_WRITTEN_SHORT = frozenset(["pm", "mp", "matrix", "list", "chain"])
_TURNED: dict[Any, Any] = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}


def new_work(seed: str, budget: Budget) -> ComparisonWork:
    """The work of one comparison, with random points that depend on nothing but `seed`."""
    return ComparisonWork(seed, same, budget)


def same_answer(work: ComparisonWork, candidate: Node, gold: Node) -> bool:
    """Whether a response's answer means what the right one means."""
    mine, theirs = plain_value(candidate), plain_value(gold)
    if mine is not None and theirs is not None:  # most answers, decided at once
        return mine == theirs
    if _leaves_work(candidate) and not RESTATING & heads(gold):
        work.rule = "restatement"
        return False
    sides = aligned(candidate, gold)
    if sides is None:
        work.rule = "domain"
        return False
    return same(work, *sides) or _same_but_for_a_sign(work, *sides)


def _leaves_work(candidate: Node) -> bool:
    r"""Whether a computation is left to do: `\gcd(12, 18)`, and not `\gcd(12, 18) = 6`."""
    if not RESTATING & heads(candidate):
        return False
    if candidate.head in ("chain", "list"):
        values = [value_of(candidate)] if candidate.head == "chain" else candidate.args
        return values == [candidate] or any(map(_leaves_work, values))
    return True


def _same_but_for_a_sign(work: ComparisonWork, candidate: Node, gold: Node) -> bool:
    r"""`28\%` where 28 is asked, `90^\circ` for 90 and the reverse: the sign may stand in the question."""
    if (amount := without_sign(candidate, "%")) is not None and without_sign(gold, "%") is None:
        value = work.facts(gold).exact
        return value is not None and abs(value) >= 1 and same(work, amount, gold)
    if (amount := without_sign(gold, "%")) is not None and without_sign(candidate, "%") is None:
        return same(work, candidate, amount)
    mine, theirs = (value_of(side) for side in (candidate, gold))
    if "unit" in (mine.head, theirs.head):  # 45 radians are no 45 degrees
        return False
    if (angle := without_sign(mine, "deg")) is not None and without_sign(theirs, "deg") is None:
        return same(work, angle, theirs)
    if (angle := without_sign(theirs, "deg")) is not None and without_sign(mine, "deg") is None:
        return same(work, mine, angle)
    return False


def same(work: ComparisonWork, candidate: Node, gold: Node) -> bool:
    """The same for a part of an answer, where nothing is left open."""
    nodes = [*walk(candidate), *walk(gold)]
    work.budget.spend(NODE_COST * max(0, len(nodes) - USUAL_NODES))
    marks = {node.head for node in nodes}
    if "pm" in marks:
        free = with_free_signs(candidate) or with_free_signs(gold)
        if free is not None and same(
            work, with_free_signs(candidate) or candidate, with_free_signs(gold) or gold
        ):
            return True
    if marks.isdisjoint(_WRITTEN_SHORT):
        return _same_shape(work, candidate, gold)
    candidate, gold = (
        with_matrices_done(one_quantity(with_conditions_apart(without_signs(side)), work.budget), work.budget)
        for side in (candidate, gold)
    )
    return _same_shape(work, candidate, gold)


def _same_shape(work: ComparisonWork, candidate: Node, gold: Node) -> bool:
    if is_inequality(candidate) or is_inequality(gold):
        return _same_inequality(work, candidate, gold)
    row = min(_ROWS.get(candidate.head, len(KINDS)), _ROWS.get(gold.head, len(KINDS)))
    compare = KINDS[row][1] if row < len(KINDS) else same_quantity
    return compare(work, candidate, gold)


def _same_relation(work: ComparisonWork, candidate: Node, gold: Node) -> bool:
    candidate, gold = _by_name(candidate, gold), _by_name(gold, candidate)
    if candidate.head in CONTAINERS and gold.head in CONTAINERS:
        return same_container(work, candidate, gold)
    left, right = assignment(candidate), assignment(gold)
    work.rule = "equation" if left is None and right is None else "assignment"
    if left is not None and not _holds(work, left):
        return False
    if left is not None and right is not None:
        return _same_assignment(work, left.label, left.value, right.label, right.value)
    if candidate.head == "chain" and gold.head == "chain":
        if right is not None and not symbols(right.value):  # 2x = 10 where x = 5 is asked
            work.rule = "restatement"
            return False
        return _same_equation(work, candidate, gold)
    if left is not None:
        return in_usual_order(left.label) and same(work, left.value, gold)
    if (total := sum_of_names(candidate) if candidate.head == "chain" else None) is not None:
        return not symbols(gold) and same(work, total, gold)
    return right is not None and in_usual_order(right.label) and same(work, candidate, right.value)


def _holds(work: ComparisonWork, candidate: Assignment) -> bool:
    """Whether a response may claim what it does: 3 + 4 = 7, and 2/3 about 0.67 but not 100 about 104."""
    if not all(_claim_holds(work, claim, candidate.value) for claim in candidate.claims):
        return False
    value = real_value(candidate.value, work.budget)
    about = [real_value(side, work.budget) for side in candidate.about]
    return value is None or all(side is None or is_rounded(value, side) for side in about)


def _claim_holds(work: ComparisonWork, claim: Node, value: Node) -> bool:
    """What is too long to work out here is taken for a name of the value, as f(2) is."""
    if not RESTATING & heads(claim) and claim.head != "mod":
        return same(work, claim, value)
    known, said = result(claim, work.budget), work.facts(value).exact
    return known is None or said is None or known == said


def _same_region(work: ComparisonWork, candidate: Node, gold: Node) -> bool:
    return is_solved(candidate) and same_real_set(work, candidate, gold)


def _same_assignment(
    work: ComparisonWork, label: Node, value: Node, gold_label: Node, gold_value: Node
) -> bool:
    label, gold_label = bare_label(label), bare_label(gold_label)
    if same_label(label, gold_label):
        mine, theirs = parameter(label), parameter(gold_label)
        if mine and theirs and mine != theirs:
            if theirs in symbols(value):  # f(y) = x
                return False
            value = rename(value, mine, theirs)
        return same(work, value, gold_value)
    labels = (label, gold_label)
    if all(map(is_prose, labels)):  # a perimeter is no area
        return same_noun(*(label.args[0] for label in labels)) and same(work, value, gold_value)
    if not all(map(is_label, labels)) or any(map(is_prose, labels)) or is_function_of_x(*labels):
        return same(work, value, gold_value)
    one, other = Node("chain", (label, "=", value)), Node("chain", (gold_label, "=", gold_value))
    return _same_equation(work, one, other)


def _same_builder(work: ComparisonWork, candidate: Node, gold: Node) -> bool:
    r"""`\{2k \mid k > 1\}`: the same thing under the same conditions, whatever the letters are."""
    if candidate.head != gold.head:
        return same_quantity(work, candidate, gold)
    work.rule = "set"
    names, others = (sorted(symbols(side.args[0])) for side in (candidate, gold))
    if len(names) != len(others):
        return False
    for index, (name, other) in enumerate(zip(names, others, strict=True)):
        candidate, gold = rename(candidate, name, f"\0{index}"), rename(gold, other, f"\0{index}")
    return same(work, candidate.args[0], gold.args[0]) and same_elements(
        work, candidate.args[1:], gold.args[1:]
    )


def _same_equation(work: ComparisonWork, candidate: Node, gold: Node) -> bool:
    """Equal up to a factor that is not zero."""
    mine, theirs = difference(candidate), difference(gold)
    if mine is None or theirs is None or {mine[1], theirs[1]} - {"=", "~"}:
        return False
    return constant_ratio(mine[0], theirs[0], work.seed, work.budget) is not None


def _same_inequality(work: ComparisonWork, candidate: Node, gold: Node) -> bool:
    if is_solved(gold, strictly=True) and not is_solved(candidate):
        work.rule = "restatement"
        return False
    work.rule = "inequality"
    if candidate.head == gold.head == "chain":
        if _same_links(work, candidate, gold):
            return True
        mine, theirs = difference(candidate), difference(gold)
        if mine is not None and theirs is not None and mine[1] == theirs[1] and mine[1] != "in":
            ratio = constant_ratio(mine[0], theirs[0], work.seed, work.budget)
            if ratio is not None and (mine[1] in ("!=", "=") or _is_positive(ratio)):
                return True
    return (is_solved(candidate) or tells_apart(candidate, work.budget)) and same_real_set(
        work, candidate, gold
    )


def _same_links(work: ComparisonWork, candidate: Node, gold: Node) -> bool:
    """The same sides in the same order, read from the left or from the right."""
    turned = (_TURNED.get(part, part) if isinstance(part, str) else part for part in reversed(candidate.args))
    return any(
        sides[1::2] == gold.args[1::2]
        and all(_same_shape(work, one, other) for one, other in zip(sides[::2], gold.args[::2], strict=True))
        for sides in (candidate.args, tuple(turned))
    )


def _by_name(node: Node, other: Node) -> Node:
    """`(b, a) = (2, 1)` as `b = 2, a = 1`, where the other side has names as well."""
    candidate = assignment(node)
    if candidate is None or candidate.label.head != "()" or candidate.value.head != "()":
        return node
    if len(candidate.label.args) != len(candidate.value.args) or "chain" not in heads(other):
        return node
    pairs = zip(candidate.label.args, candidate.value.args, strict=True)
    return Node("list", tuple(Node("chain", (name, "=", value)) for name, value in pairs))


def _is_positive(ratio: Fraction | NumericValue) -> bool:
    return ratio > 0 if isinstance(ratio, Fraction) else bool(ratio.is_real and ratio.fine.real > 0)


# What an answer is, by the head of its tree -> how it is compared. Of two kinds the upper row counts; what stands
# in no row is a number or a formula.
KINDS: tuple[tuple[Iterable[str], Callable[[ComparisonWork, Node, Node], bool]], ...] = (
    (("chain",), _same_relation),
    (("pieces",), same_pieces),
    (("union", "intersect", "minus", "set"), _same_region),
    (CONTAINERS, same_container),
    (("matrix",), same_matrix),
    ((":",), same_ratio),
    (("word",), same_word),
    (("unit",), same_measure),
    (("mod",), same_residue),
    (("base",), same_base),
    (("builder",), _same_builder),
)
_ROWS = {head: row for row, (kinds, _) in enumerate(KINDS) for head in kinds}
