"""Compares what a program printed or returned with what a test expects.

Text: by bytes, by words, or by words where numbers may be off a little; a `checker` is a script that defines
`check(input, output, expected)`. Values: as `==` would, with these liberties: a list equals a tuple of the same
items unless the test is strict, NaN equals NaN, and numbers may differ by the test's tolerance.
They are compared as tables of plain data, never built: a program can choose neither `__eq__` nor keys that collide.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from foresail.judge.programs.program import OutputComparison
from foresail.judge.wire import (
    ValueTable,
    WireError,
    read_complex,
    read_decimal,
    read_fraction,
    read_int,
)

SEQUENCES = {"list": "list", "tuple": "list"}
SETS = {"set": "set", "frozenset": "set"}
DEEPEST_KEY = 100
MAX_STEPS = 5_000_000  # pairs of values that are compared; an honest megabyte has a tenth of that

# Each looks at the size of what it is given before it computes anything.
NUMBERS: dict[str, Callable[..., Any]] = {
    "int": read_int,
    "complex": read_complex,
    "fraction": read_fraction,
    "decimal": lambda text: Fraction(read_decimal(text)),
}


# Text.


def same_output(actual: bytes, expected: str, comparison: OutputComparison) -> bool:
    """same_output(b"1 2\\n", "1\\n2", OutputComparison(mode="tokens")) -> True; by "bytes" -> False."""
    if comparison.mode == "bytes":
        return actual == expected.encode("utf-8", "surrogatepass")
    ours, theirs = actual.split(), expected.encode("utf-8", "surrogatepass").split()
    if comparison.mode == "tokens":
        return ours == theirs
    return len(ours) == len(theirs) and all(
        same_word(word, expected_word, comparison.relative, comparison.absolute)
        for word, expected_word in zip(ours, theirs, strict=True)
    )


def same_word(actual: bytes, expected: bytes, relative: float, absolute: float) -> bool:
    """same_word(b"0.50001", b"0.5", 1e-3, 0) -> True; a word that is no number must be the same word."""
    if actual == expected:
        return True
    try:
        ours, theirs = float(actual), float(expected)
    except ValueError:
        return False
    if b"_" in actual:  # float("1_0") is 10, but nobody prints that
        return False
    return close(ours, theirs, relative, absolute)


def close(actual: float, expected: float, relative: float, absolute: float) -> bool:
    """Within `relative` of the expected value or `absolute` of it. Infinities equal only themselves."""
    if actual == expected:
        return True
    if not (math.isfinite(actual) and math.isfinite(expected)):
        return math.isnan(actual) and math.isnan(expected)
    return abs(actual - expected) <= max(relative * abs(expected), absolute)


# Values.


class Matcher:
    """Walks two tables side by side, without recursion: a linked list may be long, and a graph may have cycles."""

    def __init__(
        self, actual: ValueTable, expected: ValueTable, relative: float, absolute: float, strict: bool
    ) -> None:
        self.actual = NodeReader(actual, strict)
        self.expected = NodeReader(expected, strict)
        self.relative = relative
        self.absolute = absolute
        self.steps = 0

    def match(self) -> bool:
        waiting = [(self.actual.table.root, self.expected.table.root)]
        met: set[tuple[int, int]] = set()
        while waiting:
            ours, theirs = waiting.pop()
            if type(ours) is list and type(theirs) is list:
                if (ours[0], theirs[0]) in met:
                    continue
                met.add((ours[0], theirs[0]))
            ours, theirs = self.actual.resolve(ours), self.expected.resolve(theirs)
            if type(ours) is list and type(theirs) is list:
                pairs = self.pair(ours, theirs)
                if pairs is None:
                    return False
                waiting += pairs
            elif type(ours) is list or type(theirs) is list or not self.same_atom(ours, theirs):
                return False
        return True

    def pair(self, ours: list[int], theirs: list[int]) -> list[tuple[Any, Any]] | None:
        """The parts of two nodes that must match in turn; None when the nodes cannot."""
        kind, count = self.actual.head(ours)
        if (kind, count) != self.expected.head(theirs):
            return None
        self.steps += count + 1
        if self.steps > MAX_STEPS:
            raise WireError("a value with too many parts")
        parts, expected_parts = self.actual.parts(ours), self.expected.parts(theirs)
        if kind == "set":
            digests = self.actual.digests(parts)
            same = digests == self.expected.digests(expected_parts)
            return [] if same and len(set(digests)) == len(parts) else None
        if kind == "dict":
            return self.pair_items(parts, expected_parts)
        return list(zip(parts, expected_parts, strict=True))

    def pair_items(self, parts: list[Any], others: list[Any]) -> list[tuple[Any, Any]] | None:
        ours = {self.actual.digest(key): value for key, value in zip(parts[::2], parts[1::2], strict=False)}
        theirs = {
            self.expected.digest(key): value for key, value in zip(others[::2], others[1::2], strict=False)
        }
        if ours.keys() != theirs.keys() or len(ours) * 2 != len(parts):
            return None
        return [(ours[key], theirs[key]) for key in theirs]

    def same_atom(self, actual: Any, expected: Any) -> bool:
        numbers = (int, float, complex, Fraction)  # bool is an int, as in Python
        if not (isinstance(actual, numbers) and isinstance(expected, numbers)):
            return type(actual) is type(expected) and actual == expected
        if actual == expected:
            return True
        try:
            if isinstance(actual, complex) or isinstance(expected, complex):
                ours, theirs = complex(actual), complex(expected)
                return close(ours.real, theirs.real, self.relative, self.absolute) and close(
                    ours.imag, theirs.imag, self.relative, self.absolute
                )
            return close(float(actual), float(expected), self.relative, self.absolute)
        except OverflowError:
            return False


class NodeReader:
    """Reads a table's nodes in the form in which equal values look alike. Every node is read once."""

    def __init__(self, table: ValueTable, strict: bool) -> None:
        self.table = table
        self.alike = SETS if strict else SETS | SEQUENCES
        self.known: dict[int, str | None] = {}  # digests of keys; None while one is being made
        self.numbers: dict[int, Any] = {}

    def resolve(self, part: Any) -> Any:
        """Follows a pointer that only stands for an atom: big integers, complex numbers, subclasses of str."""
        if type(part) is not list:
            return part
        node = self.table.nodes[part[0]]
        if node[0] == "same" and len(node) == 2:
            part = node[1]  # an atom, or, where numpy wrote it, a list
            if type(part) is not list:
                return part
            node = self.table.nodes[part[0]]
            if node[0] == "same":
                raise WireError("a value that stands for another for too long")
        if node[0] not in NUMBERS:
            return part
        at = part[0]
        if at not in self.numbers:
            try:
                self.numbers[at] = NUMBERS[node[0]](*node[1:])
            except (TypeError, ValueError, ArithmeticError):
                self.numbers[at] = part  # compared as it is written
        return self.numbers[at]

    def head(self, pointer: list[int]) -> tuple[str, int]:
        """A node's kind, and how many parts it has."""
        node = self.table.nodes[pointer[0]]
        return self.alike.get(node[0], node[0]), len(node) - 1

    def parts(self, pointer: list[int]) -> list[Any]:
        return self.table.nodes[pointer[0]][1:]

    def digests(self, parts: list[Any]) -> list[str]:
        return sorted(self.digest(part) for part in parts)

    def digest(self, part: Any, depth: int = 0) -> str:
        """A text that is the same for equal keys; a hash, so that shared parts cannot make it explode."""
        if type(part) is not list:
            return digest_atom(part)
        at = part[0]
        if at not in self.known:
            if depth > DEEPEST_KEY:
                raise WireError(f"a key nested deeper than {DEEPEST_KEY}")
            self.known[at] = None
            self.known[at] = self.digest_node(part, depth)
        known = self.known[at]
        if known is None:
            raise WireError("a key inside itself")
        return known

    def digest_node(self, pointer: list[int], depth: int) -> str:
        value = self.resolve(pointer)
        if type(value) is not list:
            return digest_atom(value)
        kind, _ = self.head(value)
        inner = [self.digest(part, depth + 1) for part in self.parts(value)]
        inner = sorted(inner) if kind == "set" else inner
        return hashlib.sha256(" ".join([kind, *inner]).encode("utf-8", "replace")).hexdigest()


def digest_atom(value: Any) -> str:
    """digest_atom(1) == digest_atom(1.0) == digest_atom(True), as keys of a dict are the same."""
    if isinstance(value, complex) and not value.imag:
        value = value.real
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or (isinstance(value, Fraction) and value.denominator == 1):
        value = int(value)
    if isinstance(value, float):  # Fraction(1, 2) and 0.5 are the same key
        value = Fraction(value) if math.isfinite(value) else value
    if isinstance(value, Fraction):
        text = f"{value.numerator:x}/{value.denominator:x}"  # decimal digits have a limit, and take long
    else:
        text = hex(value) if isinstance(value, int) else repr(value)
    return hashlib.sha256(f"{type(value).__name__} {text}".encode("utf-8", "surrogatepass")).hexdigest()


def same_value(
    actual: bytes | str, expected: str, relative: float, absolute: float, strict: bool = False
) -> bool:
    """same_value(encode((1, 2.0)), encode([1, 2]), 0, 0) -> True. Raises WireError when `given` is no table."""
    return Matcher(ValueTable(actual), ValueTable(expected), relative, absolute, strict).match()
