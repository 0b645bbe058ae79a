r"""Whether two answers mean the same, whatever shape they have: the rules of `docs/rewards.md` in order.

`Comparison(seed).same(given, gold)` looks at what both sides are (a relation, a container, a matrix, a
quantity, a value) and asks the module that knows that kind. A response is held to what it claims: a
chain such as `x = 8 = 7` is wrong because its sides differ.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from foresail.rewards.meaning.clocks import are_times, same_time
from foresail.rewards.meaning.collections import Collections
from foresail.rewards.meaning.exact import plain_value
from foresail.rewards.meaning.expressions import proportional
from foresail.rewards.meaning.letters import aligned
from foresail.rewards.meaning.matrices import with_matrices_done
from foresail.rewards.meaning.numeric import Value
from foresail.rewards.meaning.places import place
from foresail.rewards.meaning.quantities import RESTATING
from foresail.rewards.meaning.relations import (
    Assignment,
    assignment,
    bare_label,
    gap,
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
)
from foresail.rewards.meaning.rewriting import (
    one_quantity,
    with_conditions_apart,
    with_free_signs,
    without_sign,
    without_signs,
)
from foresail.rewards.notation.tree import CONTAINERS, Node, heads, symbols
from foresail.rewards.notation.units import same_noun

_WRITTEN_SHORT = frozenset(["pm", "mp", "matrix", "list", "chain"])


class Comparison(Collections):
    """Two answers of any shape."""

    def same_answer(self, given: Node, gold: Node) -> bool:
        """Whether a response's answer means what the right one means."""
        mine, theirs = plain_value(given), plain_value(gold)
        if mine is not None and theirs is not None:  # most answers, decided at once
            return mine == theirs
        if RESTATING & heads(given) and not RESTATING & heads(gold):
            self.rule = "restatement"
            return False
        sides = aligned(given, gold)
        if sides is None:
            self.rule = "domain"
            return False
        return self.same(*sides) or self.same_but_for_a_sign(*sides)

    def same_but_for_a_sign(self, given: Node, gold: Node) -> bool:
        r"""`28\%` where 28 is asked, `90^\circ` for 90 and the reverse: the sign may stand in the question."""
        if (amount := without_sign(given, "%")) is not None and without_sign(gold, "%") is None:
            value = self.facts(gold).exact
            return value is not None and abs(value) >= 1 and self.same(amount, gold)
        if (amount := without_sign(gold, "%")) is not None and without_sign(given, "%") is None:
            return self.same(given, amount)
        mine, theirs = (_value_of(side) for side in (given, gold))
        if "unit" in (mine.head, theirs.head):  # 45 radians are no 45 degrees
            return False
        if (angle := without_sign(mine, "deg")) is not None and without_sign(theirs, "deg") is None:
            return self.same(angle, theirs)
        if (angle := without_sign(theirs, "deg")) is not None and without_sign(mine, "deg") is None:
            return self.same(mine, angle)
        return False

    def same(self, given: Node, gold: Node) -> bool:
        """The same for a part of an answer, where nothing is left open."""
        marks = heads(given) | heads(gold)
        if "pm" in marks:
            free = with_free_signs(given) or with_free_signs(gold)
            if free is not None and self.same(with_free_signs(given) or given, with_free_signs(gold) or gold):
                return True
        if marks.isdisjoint(_WRITTEN_SHORT):
            return self.same_shape(given, gold)
        given, gold = (
            with_matrices_done(
                one_quantity(with_conditions_apart(without_signs(side)), self.budget), self.budget
            )
            for side in (given, gold)
        )
        return self.same_shape(given, gold)

    def same_shape(self, given: Node, gold: Node) -> bool:
        if self.is_inequality(given) or self.is_inequality(gold):
            return self.same_inequality(given, gold)
        if given.head == "chain" or gold.head == "chain":
            return self.same_relation(given, gold)
        if {given.head, gold.head} & {"union", "intersect", "minus", "set"}:
            return is_solved(given) and self.same_real_set(given, gold)
        if given.head in CONTAINERS or gold.head in CONTAINERS:
            return self.same_container(given, gold)
        if given.head == "matrix" or gold.head == "matrix":
            return self.same_matrix(given, gold)
        if are_times(given, gold):
            self.rule = "time"
            return same_time(given, gold)
        if ":" in (given.head, gold.head) and "unit" not in (given.head, gold.head):
            return self.same_ratio(given, gold)
        if given.head == gold.head == "builder":
            return self.same_builder(given, gold)
        return self.same_quantity(given, gold)

    def same_relation(self, given: Node, gold: Node) -> bool:
        given, gold = _by_name(given, gold), _by_name(gold, given)
        if given.head in CONTAINERS and gold.head in CONTAINERS:
            return self.same_container(given, gold)
        left = assignment(given) if given.head == "chain" else None
        right = assignment(gold) if gold.head == "chain" else None
        self.rule = "equation" if left is None and right is None else "assignment"
        if left is not None and not self.holds(left):
            return False
        if left is not None and right is not None:
            return self.same_assignment(left.label, left.value, right.label, right.value)
        if given.head == "chain" and gold.head == "chain":
            if right is not None and not symbols(right.value):  # 2x = 10 where x = 5 is asked
                self.rule = "restatement"
                return False
            return self.same_equation(given, gold)
        if left is not None:
            return in_usual_order(left.label) and self.same(left.value, gold)
        if (total := sum_of_names(given) if given.head == "chain" else None) is not None:
            return not symbols(gold) and self.same(total, gold)
        return right is not None and in_usual_order(right.label) and self.same(given, right.value)

    def holds(self, given: Assignment) -> bool:
        """Whether a response may claim what it does: 3 + 4 = 7, and 2/3 about 0.67 but not 100 about 104."""
        if not all(self.same(claim, given.value) for claim in given.claims):
            return False
        value = place(given.value, self.budget)
        about = [place(side, self.budget) for side in given.about]
        return value is None or all(side is None or is_rounded(value, side) for side in about)

    def same_assignment(self, label: Node, value: Node, gold_label: Node, gold_value: Node) -> bool:
        label, gold_label = bare_label(label), bare_label(gold_label)
        if same_label(label, gold_label):
            mine, theirs = parameter(label), parameter(gold_label)
            if mine and theirs and mine != theirs:
                if theirs in symbols(value):  # f(y) = x
                    return False
                value = rename(value, mine, theirs)
            return self.same(value, gold_value)
        labels = (label, gold_label)
        if all(map(is_prose, labels)):  # a perimeter is no area
            return same_noun(*(label.args[0] for label in labels)) and self.same(value, gold_value)
        if not all(map(is_label, labels)) or any(map(is_prose, labels)) or is_function_of_x(*labels):
            return self.same(value, gold_value)
        return self.same_equation(
            Node("chain", (label, "=", value)), Node("chain", (gold_label, "=", gold_value))
        )

    def same_builder(self, given: Node, gold: Node) -> bool:
        r"""`\{2k \mid k > 1\}`: the same thing under the same conditions, whatever the letters are."""
        self.rule = "set"
        names, others = (sorted(symbols(side.args[0])) for side in (given, gold))
        if len(names) != len(others):
            return False
        for index, (name, other) in enumerate(zip(names, others, strict=True)):
            given, gold = rename(given, name, f"\0{index}"), rename(gold, other, f"\0{index}")
        return self.same(given.args[0], gold.args[0]) and self.each_has_its_like(
            given.args[1:], gold.args[1:]
        )

    def same_equation(self, given: Node, gold: Node) -> bool:
        """Equal up to a factor that is not zero."""
        mine, theirs = gap(given), gap(gold)
        if mine is None or theirs is None or {mine[1], theirs[1]} - {"=", "~"}:
            return False
        return proportional(mine[0], theirs[0], self.seed, self.budget) is not None

    def same_inequality(self, given: Node, gold: Node) -> bool:
        if is_solved(gold, strictly=True) and not is_solved(given):
            self.rule = "restatement"
            return False
        self.rule = "inequality"
        if given.head == gold.head == "chain":
            if self.same_links(given, gold):
                return True
            mine, theirs = gap(given), gap(gold)
            if mine is not None and theirs is not None and mine[1] == theirs[1] and mine[1] != "in":
                ratio = proportional(mine[0], theirs[0], self.seed, self.budget)
                if ratio is not None and (mine[1] in ("!=", "=") or _is_positive(ratio)):
                    return True
        return self.same_real_set(given, gold)

    def same_links(self, given: Node, gold: Node) -> bool:
        """The same sides in the same order, read from the left or from the right."""
        turn = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}
        backwards: tuple[Any, ...]
        backwards = tuple(
            turn.get(part, part) if isinstance(part, str) else part for part in reversed(given.args)
        )
        return any(
            sides[1::2] == gold.args[1::2]
            and all(
                self.same_shape(one, other) for one, other in zip(sides[::2], gold.args[::2], strict=True)
            )
            for sides in (given.args, backwards)
            if len(sides) == len(gold.args)
        )


def _by_name(node: Node, other: Node) -> Node:
    """`(b, a) = (2, 1)` as `b = 2, a = 1`, where the other side has names as well."""
    given = assignment(node) if node.head == "chain" else None
    if given is None or given.label.head != "()" or given.value.head != "()":
        return node
    if len(given.label.args) != len(given.value.args) or "chain" not in heads(other):
        return node
    return Node(
        "list",
        tuple(
            Node("chain", (name, "=", value))
            for name, value in zip(given.label.args, given.value.args, strict=True)
        ),
    )


def _value_of(node: Node) -> Node:
    given = assignment(node) if node.head == "chain" else None
    return node if given is None else given.value


def _is_positive(ratio: Fraction | Value) -> bool:
    return ratio > 0 if isinstance(ratio, Fraction) else bool(ratio.is_real and ratio.fine.real > 0)
