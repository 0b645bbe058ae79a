"""Single values: numbers and formulas, with their units, percent and degree signs, bases and moduli."""

from __future__ import annotations

from fractions import Fraction

from foresail.rewards.meaning.budget import Budget
from foresail.rewards.meaning.expressions import Facts, same_expression
from foresail.rewards.meaning.last_resort import ASSISTANT
from foresail.rewards.meaning.symbolic import HEADS
from foresail.rewards.notation.tree import Node, heads
from foresail.rewards.notation.units import measure, same_noun

_RADIANS = frozenset(["rad", "radian", "radians"])
_CLOCK = frozenset(["am", "pm"])
_UNIT_LETTERS = frozenset("mgshLl")
# Restating the problem is not an answer: `\\gcd(12, 18)` where 6 is asked.
_RESTATING = frozenset(["gcd", "lcm", "opaque", "max", "min"])


class Quantities:
    """One verdict's work: its budget, its random points, and what is already known of each expression."""

    def __init__(self, seed: str) -> None:
        self.seed = seed
        self.budget = Budget()
        self.known: dict[int, Facts] = {}
        self.rule = "value"

    def same(self, given: Node, gold: Node) -> bool:
        raise NotImplementedError  # answers of any shape: `compare.py`

    def same_quantity(self, given: Node, gold: Node) -> bool:
        """Values with units, percent and degree signs, bases and moduli."""
        if given.head == "word" or gold.head == "word":
            self.rule = "words"
            return given == gold
        if given.head == "unit" or gold.head == "unit":
            return self.same_measure(given, gold)
        if given.head == "mod" or gold.head == "mod":
            return self.same_residue(given, gold)
        if "base" in (given.head, gold.head):
            return self.same_base(given, gold)
        for sign in ("%", "deg"):
            if (given.head == sign) != (gold.head == sign):
                bare_given = given.args[0] if given.head == sign else given
                bare_gold = gold.args[0] if gold.head == sign else gold
                if self.same_value(bare_given, bare_gold):
                    return True
        return self.same_value(given, gold) or self.same_without_letter_unit(given, gold)

    def same_measure(self, given: Node, gold: Node) -> bool:
        self.rule = "unit"
        mine, my_unit = given.args if given.head == "unit" else (given, "")
        theirs, their_unit = gold.args if gold.head == "unit" else (gold, "")
        if "deg" in (mine.head, theirs.head) and {my_unit, their_unit} & _RADIANS:
            return self.same_value(mine, theirs)
        if {my_unit, their_unit} & _CLOCK and mine.head == theirs.head == ":":  # a time is no ratio
            half = not (my_unit and their_unit) or my_unit == their_unit
            return half and len(mine.args) == len(theirs.args) and all(map(self.same, mine.args, theirs.args))
        if not (my_unit and their_unit):
            return self.same(mine, theirs)
        one, other = measure(my_unit), measure(their_unit)
        if one is None or other is None:
            return same_noun(my_unit, their_unit) and self.same(mine, theirs)
        if one.dimension != other.dimension:
            return False
        if one.factor == other.factor:
            return self.same(mine, theirs)
        scale = Node("number", (one.factor / other.factor, None))
        return self.same_value(Node("*", (mine, scale)), theirs)

    def same_without_letter_unit(self, given: Node, gold: Node) -> bool:
        """`5m` where 5 is asked: a lone unit letter behind a number decorates it."""
        if given.head != "*" or self.facts(gold).exact is None:
            return False
        *values, last = given.args
        letter = last.args[0] if last.head == "^" else last
        if letter.head != "symbol" or letter.args[0] not in _UNIT_LETTERS or len(values) != 1:
            return False
        self.rule = "unit"
        return self.same_value(values[0], gold)

    def same_residue(self, given: Node, gold: Node) -> bool:
        if given.head == gold.head:
            return self.same_value(given.args[1], gold.args[1]) and self.same_value(
                given.args[0], gold.args[0]
            )
        return self.same(given.args[0], gold) if given.head == "mod" else self.same(given, gold.args[0])

    def same_base(self, given: Node, gold: Node) -> bool:
        """Two numerals with bases by value; where only the right answer names one, the same digits."""
        self.rule = "base"
        if given.head == gold.head:
            return bool(given.args[2] == gold.args[2])
        if gold.head == "base":
            return self.facts(given).exact == Fraction(gold.args[0]) if gold.args[0].isdigit() else False
        return self.facts(gold).exact == given.args[2]

    def same_ratio(self, given: Node, gold: Node) -> bool:
        """1:2 is 2:4 and one half; 12:00 is a time and only itself."""
        self.rule = "ratio"
        if given.head == gold.head:
            if len(given.args) != len(gold.args):
                return False
            if any(self.facts(part).exact == 0 for part in given.args + gold.args):
                return all(map(self.same, given.args, gold.args))
            first, second = given.args[0], gold.args[0]
            return all(
                self.same_value(Node("*", (one, second)), Node("*", (other, first)))
                for one, other in zip(given.args, gold.args, strict=True)
            )
        ratio, value = (given, gold) if given.head == ":" else (gold, given)
        return len(ratio.args) == 2 and self.same_value(Node("/", ratio.args), value)

    def same_value(self, given: Node, gold: Node) -> bool:
        self.rule = "value"
        if _RESTATING & heads(given) and not (_RESTATING & heads(gold)):
            self.rule = "restatement"
            return False
        if same_expression(self.facts(given), self.facts(gold), self.seed):
            return True
        if "opaque" in self.facts(gold).heads and self.facts(given).heads <= HEADS:
            self.rule = "sympy"
            return ASSISTANT.same(given, gold)
        return False

    def is_undefined(self, node: Node) -> bool:
        """A number that is none, such as 1/0: it equals nothing, not even itself."""
        return self.facts(node).is_undefined

    def facts(self, node: Node) -> Facts:
        facts = self.known.get(id(node))
        if facts is None:
            facts = self.known[id(node)] = Facts(node, self.budget)  # holds the node, so its id stays its own
        return facts
