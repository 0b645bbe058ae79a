"""The wire and the comparison of values, against Python's own `==` and against writers that lie."""

from __future__ import annotations

import json
from collections import Counter, OrderedDict, deque, namedtuple
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foresail.judge.programs.compare import same_value
from foresail.judge.wire import ValueTable, WireError, decode, encode

ATOMS = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary()
    | st.complex_numbers(allow_nan=False) | st.integers(min_value=10**1000, max_value=10**1010)
)  # fmt: skip
KEYS = st.integers() | st.text() | st.tuples(st.integers(), st.text()) | st.frozensets(st.integers())
VALUES = st.recursive(
    ATOMS,
    lambda inner: st.lists(inner) | st.lists(inner).map(tuple) | st.dictionaries(KEYS, inner) | st.sets(KEYS),
    max_leaves=12,
)


@given(VALUES)
@settings(max_examples=200, deadline=None)
def test_what_is_sent_arrives(value: Any) -> None:
    arrived = decode(encode(value))
    assert type(arrived) is type(value)
    assert arrived == value or has_nan(value)


def has_nan(value: Any) -> bool:
    """Anywhere inside: the one value that does not equal itself."""
    return "nan" in encode(value).lower()


@given(VALUES, VALUES)
@settings(max_examples=300, deadline=None)
def test_values_are_the_same_when_python_says_so(given_value: Any, expected: Any) -> None:
    assert same_value(encode(given_value), encode(given_value), 0, 0)
    if not has_nan([given_value, expected]):
        assert same_value(encode(given_value), encode(expected), 0, 0) == (
            loosen(given_value) == loosen(expected)
        )


def loosen(value: Any) -> Any:
    """Lists as tuples, since the comparison takes one for the other."""
    if isinstance(value, list | tuple):
        return tuple(map(loosen, value))
    if isinstance(value, dict):
        return {loosen(key): loosen(part) for key, part in value.items()}
    return value


@given(
    st.lists(st.floats(allow_nan=False, allow_infinity=False, width=32), min_size=1), st.integers(min_value=0)
)
@settings(max_examples=200, deadline=None)
def test_tolerance_reaches_inside(values: list[float], at: int) -> None:
    near, far = list(values), list(values)
    at %= len(values)
    near[at] += abs(values[at]) * 5e-7
    far[at] += abs(values[at]) * 1e-3 + 1
    assert same_value(encode({"x": near}), encode({"x": values}), 1e-6, 0)
    assert not same_value(encode({"x": far}), encode({"x": values}), 1e-6, 0)


Point = namedtuple("Point", "x y")


@pytest.mark.parametrize(
    ("value", "arrives_as"),
    [
        (Point(1, 2), (1, 2)),
        (OrderedDict(a=1), {"a": 1}),
        (Counter("aab"), {"a": 2, "b": 1}),
        (deque([1, 2]), deque([1, 2])),
        (range(2, 9, 3), range(2, 9, 3)),
        (Decimal("1.50"), Decimal("1.5")),
        (Fraction(2, 6), Fraction(1, 3)),
        (bytearray(b"\xff"), bytearray(b"\xff")),
        ({1: 2}.keys(), {1}),
        (int, int),
    ],
)
def test_types_that_are_nearly_builtin(value: Any, arrives_as: Any) -> None:
    assert decode(encode(value)) == arrives_as


def test_iterators_are_drained_but_not_for_ever() -> None:
    assert list(decode(encode(x * x for x in range(4)))) == [0, 1, 4, 9]
    with pytest.raises(WireError, match="more than"):
        encode(iter(int, 1))


class Node:
    def __init__(self, value: Any, link: Any = None) -> None:
        self.value, self.link = value, link

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]


def test_long_chains_and_cycles() -> None:
    chain = None
    for number in range(50_000):
        chain = Node(number, chain)
    arrived = decode(encode(chain), {"Node": Node})
    assert (arrived.value, arrived.link.link.value) == (49_999, 49_997)
    loop = Node(1)
    loop.link = Node(2, loop)
    assert decode(encode(loop), {"Node": Node}).link.link.value == 1
    assert same_value(encode(loop), encode(loop), 0, 0)
    other = Node(1)
    other.link = Node(3, other)
    assert not same_value(encode(loop), encode(other), 0, 0)  # although Node.__eq__ says yes


def test_decimals_are_compared_by_value() -> None:
    assert same_value(encode(Decimal("1.50")), encode(Decimal("1.5")), 0, 0)
    assert same_value(encode([Decimal("1.50")]), encode([1.5]), 0, 0)
    assert not same_value(encode(Decimal("1.51")), encode(Decimal("1.5")), 0, 0)
    assert not same_value(encode(Decimal("1e999999")), encode(1), 0, 0)


def test_an_instance_needs_a_class_to_arrive() -> None:
    with pytest.raises(WireError):
        decode(encode(Node(1)))


@pytest.mark.parametrize(
    "frame",
    [
        "", "[", "1", "[]", "{}", '{"root": 1}', '{"nodes": []}', '{"root": 1, "nodes": 2}',
        '{"root": [0], "nodes": []}', '{"root": [-1], "nodes": [["list"]]}',
        '{"root": [true], "nodes": [["list"]]}',
        '{"root": [0], "nodes": [[]]}', '{"root": [0], "nodes": [[1]]}', '{"root": [0], "nodes": [["list", {}]]}',
        '{"root": [0], "nodes": [["list", [1]]]}', '{"root": {}, "nodes": []}', "[" * 100_000, "9" * 10_000,
        '{"root": [0], "nodes": [["list", [0, 0]]]}',
    ],
)  # fmt: skip
def test_nonsense_is_no_table(frame: str) -> None:
    with pytest.raises(WireError):
        ValueTable(frame)


@pytest.mark.parametrize(
    "node",
    [
        ["tuple", [0]], ["frozenset", [0]], ["unknown"], ["int", "x"], ["int"], ["int", 5], ["complex", "a", "b"],
        ["range", 1, 2, 0], ["decimal", "x"], ["fraction", 1, 0], ["dict", 1], ["set", [1]], ["dict", [1], 1],
        ["object", "Node", 1], ["object", "type"], ["type", "eval"], ["remote", "mine", 0], ["bytes", "☃"],
        ["same"], ["object", [0]],
    ],
)  # fmt: skip
def test_a_malformed_node_is_refused_and_equals_nothing(node: list[Any]) -> None:
    frame = json.dumps({"root": [0], "nodes": [node, ["list"]]})
    with pytest.raises(WireError):
        decode(frame, {"Node": Node})
    for value in (0, 1, "x", [], (), {}, set(), None):
        assert not same_value(frame, encode(value), 0, 0)


def test_shared_parts_do_not_explode() -> None:
    """2**60 leaves if they were written out; compared as keys and as values, both at once."""
    nodes: list[list[Any]] = [["tuple", [n + 1], [n + 1]] for n in range(60)]
    frame = json.dumps({"root": [61], "nodes": [*nodes, ["tuple", 1], ["set", [0]]]})
    other = frame.replace('["tuple", 1]', '["tuple", 2]')
    assert same_value(frame, frame, 0, 0)
    assert not same_value(other, frame, 0, 0)
    values = frame.replace('"set"', '"list"')
    assert same_value(values, values, 0, 0)


def test_duplicates_do_not_make_a_set() -> None:
    twice = json.dumps({"root": [0], "nodes": [["set", 1, 1.0]]})
    assert not same_value(twice, encode({1, 2}), 0, 0)
    assert not same_value(twice, encode([1, 1]), 0, 0)
    keys = json.dumps({"root": [0], "nodes": [["dict", 1, 1, 1, 1]]})
    assert not same_value(keys, encode({1: 1, 2: 1}), 0, 0)
