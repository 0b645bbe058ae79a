"""Single values: numbers and formulas, with their units, percent and degree signs, bases and moduli."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

from foresail.maths.meaning.budget import Budget
from foresail.maths.meaning.clocks import are_times, same_time
from foresail.maths.meaning.expressions import Facts, same_expression
from foresail.maths.meaning.points import has_corners, has_steps
from foresail.maths.meaning.relations import rename
from foresail.maths.meaning.symbolic import HEADS
from foresail.maths.meaning.sympy_process import CALLS, SYMPY, Undecided
from foresail.maths.notation.tree import Node, heads, number, symbol, symbols
from foresail.maths.notation.units import measure, same_noun

CALLS_PER_WORK = 6  # calls of a question to sympy that cost as much as a step of other work
QUESTION_COST = 1_000

_RADIANS = frozenset(["rad", "radian", "radians"])
_UNIT_LETTERS = frozenset("mgshLl")
# Restating the problem is not an answer: `\\gcd(12, 18)` where 6 is asked.
RESTATING = frozenset(["gcd", "lcm", "opaque", "max", "min"])


class ComparisonWork:
    """One comparison's work: its budget, its random points, what is known of each expression, the deciding rule."""

    def __init__(
        self, seed: str, compare: Callable[[ComparisonWork, Node, Node], bool], budget: Budget
    ) -> None:
        self.seed = seed
        self.compare = compare  # two answers of any shape: `compare.py`
        self.budget = budget
        self.known: dict[int, Facts] = {}
        self.rule = "value"

    def same(self, candidate: Node, gold: Node) -> bool:
        """Whether two parts of an answer mean the same."""
        return self.compare(self, candidate, gold)

    def facts(self, node: Node) -> Facts:
        facts = self.known.get(id(node))
        if facts is None:
            facts = self.known[id(node)] = Facts(node, self.budget)  # holds the node, so its id stays its own
        return facts


def same_quantity(work: ComparisonWork, candidate: Node, gold: Node) -> bool:
    """Numbers and formulas: `5m` counts where 5 is asked."""
    return _same_value(work, candidate, gold) or _same_without_letter_unit(work, candidate, gold)


def same_word(work: ComparisonWork, candidate: Node, gold: Node) -> bool:
    work.rule = "words"
    return candidate == gold


def same_measure(work: ComparisonWork, candidate: Node, gold: Node) -> bool:
    """Values with units: 1 m and 100 cm, 3 apples and 3, 3:05 pm and 15:05."""
    if are_times(candidate, gold):
        work.rule = "time"
        return same_time(candidate, gold)
    work.rule = "unit"
    candidate, gold = _with_letter_unit(candidate, gold), _with_letter_unit(gold, candidate)
    mine, my_unit = candidate.args if candidate.head == "unit" else (candidate, "")
    theirs, their_unit = gold.args if gold.head == "unit" else (gold, "")
    if "deg" in (mine.head, theirs.head) and {my_unit, their_unit} & _RADIANS:
        return _same_value(work, mine, theirs)
    if not (my_unit and their_unit):
        return work.same(mine, theirs)
    one, other = measure(my_unit), measure(their_unit)
    if one is None or other is None:
        return same_noun(my_unit, their_unit) and work.same(mine, theirs)
    if one.dimension != other.dimension:
        return False
    if one.factor == other.factor:
        return work.same(mine, theirs)
    scale = Node("number", (one.factor / other.factor, None))
    return _same_value(work, Node("*", (mine, scale)), theirs)


def _same_without_letter_unit(work: ComparisonWork, candidate: Node, gold: Node) -> bool:
    """`5m` where 5 is asked: a lone unit letter after a number decorates it."""
    if candidate.head != "*" or work.facts(gold).exact is None:
        return False
    amount = _amount(candidate)
    work.rule = "unit"
    return amount is not None and _same_value(work, amount[0], gold)


def same_residue(work: ComparisonWork, candidate: Node, gold: Node) -> bool:
    """`7 mod 5` is 2, also where 2 is asked; where the right answer has a modulus its number will do."""
    work.rule = "residue"
    if candidate.head == gold.head:
        if not _same_value(work, candidate.args[1], gold.args[1]):
            return False
        mine, theirs = _remainder(work, candidate), _remainder(work, gold)
        if mine is not None and theirs is not None:
            return mine == theirs
        return _same_value(work, candidate.args[0], gold.args[0])
    if candidate.head == "mod":  # 172 mod 20 leaves the work to others
        mine = _remainder(work, candidate)
        return mine is not None and mine == work.facts(candidate.args[0]).exact == work.facts(gold).exact
    return work.same(candidate, gold.args[0])


def _remainder(work: ComparisonWork, residue: Node) -> Fraction | None:
    value, modulus = (work.facts(part).exact for part in residue.args)
    return value % modulus if value is not None and modulus is not None and modulus > 0 else None


def same_base(work: ComparisonWork, candidate: Node, gold: Node) -> bool:
    """Two numerals with bases by value; where only the right answer names one, the same digits."""
    work.rule = "base"
    if candidate.head == gold.head:
        return bool(candidate.args[2] == gold.args[2])
    if gold.head == "base":
        return work.facts(candidate).exact == Fraction(gold.args[0]) if gold.args[0].isdigit() else False
    return work.facts(gold).exact == candidate.args[2]


def same_ratio(work: ComparisonWork, candidate: Node, gold: Node) -> bool:
    """1:2 is 2:4 and one half; 12:00 is a time and only itself."""
    if are_times(candidate, gold) or "unit" in (candidate.head, gold.head):
        return same_measure(work, candidate, gold)
    work.rule = "ratio"
    if candidate.head == gold.head:
        if len(candidate.args) != len(gold.args):
            return False
        if any(work.facts(part).exact == 0 for part in candidate.args + gold.args):
            return all(map(work.same, candidate.args, gold.args))
        first, second = candidate.args[0], gold.args[0]
        return all(
            _same_value(work, Node("*", (one, second)), Node("*", (other, first)))
            for one, other in zip(candidate.args, gold.args, strict=True)
        )
    ratio, value = (candidate, gold) if candidate.head == ":" else (gold, candidate)
    return len(ratio.args) == 2 and _same_value(work, Node("/", ratio.args), value)


def _same_value(work: ComparisonWork, candidate: Node, gold: Node) -> bool:
    work.rule = "value"
    if _restates(work, candidate, gold):
        work.rule = "restatement"
        return False
    if is_word(candidate) and is_word(gold):  # CAB is not ABC
        return candidate == gold
    if candidate.head == gold.head == "opaque":
        return _same_opaque(work, candidate, gold)
    if same_expression(work.facts(candidate), work.facts(gold), work.seed):
        return True
    if "opaque" in work.facts(gold).heads and work.facts(candidate).heads <= HEADS - {"opaque"}:
        work.rule = "sympy"
        return _same_by_sympy(work, candidate, gold)
    return False


def _restates(work: ComparisonWork, candidate: Node, gold: Node) -> bool:
    r"""Whether the response leaves work undone: an integral for its value, `\sqrt{(x+6)^2}` for `x + 6`."""
    if RESTATING & heads(candidate) and not RESTATING & heads(gold):
        return True
    if has_steps(candidate) and not has_steps(gold):
        return True
    return has_corners(candidate, work.budget) and not has_corners(gold, work.budget)


def _same_opaque(work: ComparisonWork, candidate: Node, gold: Node) -> bool:
    r"""Sums, products and unions over the same range of the same thing: `\bigcup_{k=1}^5 [k, k+1]`."""
    if candidate.args[0] != gold.args[0] or len(candidate.args) != len(gold.args):
        return False
    mine, theirs = (_with_usual_index(side).args for side in (candidate, gold))
    same_bounds = all(_same_bound(work, *pair) for pair in zip(mine[2:], theirs[2:], strict=True))
    return same_bounds and work.same(mine[1], theirs[1])


def _same_bound(work: ComparisonWork, candidate: Node, gold: Node) -> bool:
    if not candidate.head == gold.head == "chain":
        return candidate == gold or work.same(candidate, gold)
    if candidate.args[1::2] != gold.args[1::2]:
        return False
    sides = zip(candidate.args[::2], gold.args[::2], strict=True)
    return all(one == other or work.same(one, other) for one, other in sides)


def _same_by_sympy(work: ComparisonWork, candidate: Node, gold: Node) -> bool:
    """Raises Undecided where the right answer alone is too much; a response that is has itself to blame."""
    work.budget.spend(QUESTION_COST)
    try:
        answer = SYMPY.ask(candidate, gold, calls=min(CALLS, work.budget.left * CALLS_PER_WORK))
        work.budget.charge(answer.calls // CALLS_PER_WORK)
        return answer.decided()
    except Undecided as error:
        try:
            work.budget.charge(_calls_alone(gold) // CALLS_PER_WORK)
        except Undecided:
            raise error from None
        return False


@lru_cache(maxsize=256)  # many responses may be too much for one problem
def _calls_alone(gold: Node) -> int:
    """What the right answer takes by itself; raises Undecided where that is too much."""
    answer = SYMPY.ask(number(0), gold)
    answer.decided()
    return answer.calls


def is_word(node: Node) -> bool:
    """Capitals side by side, as in ABC, HHT or XIV, where the order counts."""
    return node.head == "*" and all(
        part.head == "symbol" and len(part.args[0]) == 1 and part.args[0].isupper() for part in node.args
    )


def _amount(node: Node) -> tuple[Node, str] | None:
    """A number and the letter of a unit after it: `5m` -> 5, "m"; `5m^2` -> 5, "m^2"; None for anything else."""
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
