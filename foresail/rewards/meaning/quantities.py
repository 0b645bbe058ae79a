"""Single values: numbers and formulas, with their units, percent and degree signs, bases and moduli."""

from __future__ import annotations

from fractions import Fraction

from foresail.rewards.meaning.budget import Budget
from foresail.rewards.meaning.expressions import Facts, same_expression
from foresail.rewards.meaning.last_resort import ASSISTANT, Undecided
from foresail.rewards.meaning.points import has_steps, is_cornered
from foresail.rewards.meaning.relations import rename
from foresail.rewards.meaning.symbolic import HEADS
from foresail.rewards.notation.tree import Node, heads, number, symbol, symbols
from foresail.rewards.notation.units import measure, same_noun

_RADIANS = frozenset(["rad", "radian", "radians"])
_UNIT_LETTERS = frozenset("mgshLl")
# Restating the problem is not an answer: `\\gcd(12, 18)` where 6 is asked.
RESTATING = frozenset(["gcd", "lcm", "opaque", "max", "min"])


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
        return self.same_value(given, gold) or self.same_without_letter_unit(given, gold)

    def same_measure(self, given: Node, gold: Node) -> bool:
        self.rule = "unit"
        given, gold = _with_letter_unit(given, gold), _with_letter_unit(gold, given)
        mine, my_unit = given.args if given.head == "unit" else (given, "")
        theirs, their_unit = gold.args if gold.head == "unit" else (gold, "")
        if "deg" in (mine.head, theirs.head) and {my_unit, their_unit} & _RADIANS:
            return self.same_value(mine, theirs)
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
        amount = _amount(given)
        self.rule = "unit"
        return amount is not None and self.same_value(amount[0], gold)

    def same_residue(self, given: Node, gold: Node) -> bool:
        """`7 mod 5` is 2, also where 2 is asked; where the right answer has a modulus its number will do."""
        self.rule = "residue"
        if given.head == gold.head:
            if not self.same_value(given.args[1], gold.args[1]):
                return False
            mine, theirs = self.remainder(given), self.remainder(gold)
            if mine is not None and theirs is not None:
                return mine == theirs
            return self.same_value(given.args[0], gold.args[0])
        if given.head == "mod":  # 172 mod 20 leaves the work to others
            mine = self.remainder(given)
            return mine is not None and mine == self.facts(given.args[0]).exact == self.facts(gold).exact
        return self.same(given, gold.args[0])

    def remainder(self, residue: Node) -> Fraction | None:
        value, modulus = (self.facts(part).exact for part in residue.args)
        return value % modulus if value is not None and modulus is not None and modulus > 0 else None

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
        if self.restates(given, gold):
            self.rule = "restatement"
            return False
        if is_word(given) and is_word(gold):  # CAB is not ABC
            return given == gold
        if given.head == gold.head == "opaque":
            return self.same_opaque(given, gold)
        if same_expression(self.facts(given), self.facts(gold), self.seed):
            return True
        if "opaque" in self.facts(gold).heads and self.facts(given).heads <= HEADS - {"opaque"}:
            self.rule = "sympy"
            return _same_by_sympy(given, gold)
        return False

    def restates(self, given: Node, gold: Node) -> bool:
        r"""Whether the response leaves work undone: an integral for its value, `\sqrt{(x+6)^2}` for `x + 6`."""
        if RESTATING & heads(given) and not RESTATING & heads(gold):
            return True
        if has_steps(given) and not has_steps(gold):
            return True
        return is_cornered(given, self.budget) and not is_cornered(gold, self.budget)

    def same_opaque(self, given: Node, gold: Node) -> bool:
        r"""Sums, products and unions over the same range of the same thing: `\bigcup_{k=1}^5 [k, k+1]`."""
        if given.args[0] != gold.args[0] or len(given.args) != len(gold.args):
            return False
        given, gold = _with_usual_index(given), _with_usual_index(gold)
        return all(
            self.same_bound(mine, theirs) for mine, theirs in zip(given.args[2:], gold.args[2:], strict=True)
        ) and self.same(given.args[1], gold.args[1])

    def same_bound(self, given: Node, gold: Node) -> bool:
        if given.head == gold.head == "chain":
            return given.args[1::2] == gold.args[1::2] and all(
                one == other or self.same(one, other)
                for one, other in zip(given.args[::2], gold.args[::2], strict=True)
            )
        return given == gold or self.same(given, gold)

    def is_undefined(self, node: Node) -> bool:
        """A number that is none, such as 1/0: it equals nothing, not even itself."""
        return self.facts(node).is_undefined

    def facts(self, node: Node) -> Facts:
        facts = self.known.get(id(node))
        if facts is None:
            facts = self.known[id(node)] = Facts(node, self.budget)  # holds the node, so its id stays its own
        return facts


def _same_by_sympy(given: Node, gold: Node) -> bool:
    """Raises Undecided where the right answer alone is too much; a response that is has itself to blame."""
    try:
        return ASSISTANT.same(given, gold)
    except Undecided as error:
        try:
            ASSISTANT.same(number(0), gold)
        except Undecided:
            raise error from None
        return False


def is_word(node: Node) -> bool:
    """Capitals side by side, as in ABC, HHT or XIV, where the order counts."""
    return node.head == "*" and all(
        part.head == "symbol" and len(part.args[0]) == 1 and part.args[0].isupper() for part in node.args
    )


def _amount(node: Node) -> tuple[Node, str] | None:
    """A number and the letter of a unit behind it: `5m` -> 5, "m"; `5m^2` -> 5, "m^2"; None for anything else."""
    if node.head != "*" or len(node.args) != 2 or symbols(node.args[0]):
        return None
    last, power = node.args[1], ""
    if last.head == "^" and last.args[1] in (number(2), number(3)):
        last, power = last.args[0], f"^{last.args[1].args[0]}"
    if last.head != "symbol" or last.args[0] not in _UNIT_LETTERS:
        return None
    return node.args[0], last.args[0] + power


def _with_letter_unit(node: Node, other: Node) -> Node:
    """`5m` as a measure, where the other side is one."""
    amount = _amount(node) if other.head == "unit" else None
    return node if amount is None else Node("unit", amount)


def _with_usual_index(node: Node) -> Node:
    """A sum over k, or an integral over x, as one over the same letter as any other."""
    body = node.args[1]
    if node.args[0] == "int" and body.args[-2:-1] == (symbol("d"),) and body.args[-1].head == "symbol":
        rest = Node("*", body.args[:-2] or (number(1),))
        return rename(Node("opaque", ("int", rest, *node.args[2:])), body.args[-1].args[0], "\0index")
    for bound in node.args[2:]:
        if bound.head == "chain" and bound.args[0].head == "symbol":
            return rename(node, bound.args[0].args[0], "\0index")
    return node
