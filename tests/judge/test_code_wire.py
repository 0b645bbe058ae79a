# ruff: noqa: E501 - a bomb on one line reads better than one that is broken for its width
"""Writers that lie: whatever a message says, reading it ends soon, in a value or in the one error there is.

Costs are counted, not timed: `work` of the decoder, `steps` of the matcher, each against the message's length.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from foresail.judge.judge import Judge
from foresail.judge.programs.compare import MAX_STEPS, Matcher, same_value
from foresail.judge.programs.program import AssertTest, CallTest, Limits, Program
from foresail.judge.wire import MAX_HASHED, ValueDecoder, ValueTable, WireError, encode

MESSAGES = 10_000
KINDS = (
    "same int complex bytes bytearray list tuple dict set frozenset deque range decimal fraction keys values items"
    " iterator type object remote eval __class__"
).split()
ATOMS = (
    None, True, False, 0, 1, -1, 2**61 - 1, 10**400, 0.5, float("nan"), float("inf"), 1e308, "", "x", "0x10", "-0xff",
    "0x", "1e20000000", "1/3", "nan", "sNaN", "-Infinity", "1e-400", "9" * 500, "int", "Node", "mine", "yours",
    "\ud800", "é☃", "__class__", "__eq__", "value", [], [0, 1], ["x"], [-1], [True], [1.0], [10**9], {}, {"a": 1},
)  # fmt: skip


class Node:
    def __init__(self, value: Any = None) -> None:
        self.value = value


class Slotted:
    __slots__ = ("value",)


CLASSES = {"Node": Node, "Slotted": Slotted}
HONEST = [
    encode(value)
    for value in (
        [1, (2, "a"), {"k": [None, 2.5]}],
        {(1, 2): {3, 4}, "x": frozenset({5})},
        [10**2000, 1 + 2j, b"ab", range(3), Decimal("1.50"), Fraction(1, 3)],
        [Node([1, 2]), Node()],
        {"a": 1}.items(),
    )
]


def random_part(draw: random.Random, nodes: int) -> Any:
    return [draw.randrange(nodes + 1)] if draw.random() < 0.5 else draw.choice(ATOMS)


def random_table(draw: random.Random) -> str:
    """Nodes of every kind with parts of every kind, most pointers inside the table."""
    count = draw.randrange(1, 12)
    nodes = [
        [
            draw.choice(KINDS),
            *(random_part(draw, count - 1) for _ in range(draw.choice((0, 1, 1, 2, 2, 3, 8)))),
        ]
        for _ in range(count)
    ]
    return json.dumps({"root": random_part(draw, count - 1), "nodes": nodes})


def mutated(draw: random.Random) -> str:
    """An honest message with a few characters removed, doubled, swapped or replaced."""
    text = list(draw.choice(HONEST))
    for _ in range(draw.randrange(1, 5)):
        at = draw.randrange(len(text))
        text[at : at + 1] = draw.choice(([], [text[at]] * 2, [draw.choice('[]{},:"0129e-.xnt\\')], ["1e9"]))
    return "".join(text)


def shuffled(draw: random.Random) -> str:
    """An honest message whose nodes changed kinds, parts and places."""
    table = json.loads(draw.choice(HONEST))
    nodes = table["nodes"]
    for _ in range(draw.randrange(1, 4)):
        node = draw.choice(nodes)
        node[draw.randrange(len(node))] = draw.choice((draw.choice(KINDS), random_part(draw, len(nodes) - 1)))
        draw.choice(nodes).append(random_part(draw, len(nodes) - 1))
    return json.dumps(table)


def noise(draw: random.Random) -> bytes:
    return bytes(draw.randrange(256) for _ in range(draw.randrange(60)))


WRITERS: tuple[Callable[[random.Random], str | bytes], ...] = (random_table, mutated, shuffled, noise)


def decode_counted(message: str | bytes) -> None:
    """A value or a WireError, for no more work than the message is long."""
    decoder = ValueDecoder(CLASSES, lambda parts: "remote")
    with suppress(WireError):
        decoder.decode(message)
    assert decoder.work <= 2 * len(message)
    assert decoder.hashed <= MAX_HASHED


def match_counted(message: str | bytes, expected: str) -> None:
    try:
        matcher = Matcher(ValueTable(message), ValueTable(expected), 1e-9, 1e-9, False)
        try:
            matcher.match()
        finally:
            assert matcher.steps <= 4 * (len(message) + len(expected))
    except WireError:
        pass


@pytest.mark.parametrize("seed", range(4))
def test_ten_thousand_messages(seed: int) -> None:
    draw = random.Random(seed)
    for number in range(MESSAGES // 4):
        message = WRITERS[number % len(WRITERS)](draw)
        decode_counted(message)
        match_counted(message, HONEST[number % len(HONEST)])


def test_the_fuzz_reaches_both_outcomes() -> None:
    """Else it would test nothing."""
    draw, read = random.Random(5), 0
    for number in range(400):
        try:
            ValueDecoder(CLASSES, lambda parts: "remote").decode(WRITERS[number % len(WRITERS)](draw))
            read += 1
        except WireError:
            pass
    assert 20 < read < 380


MANY = 4000
LONG = "0x" + "f" * 200_000
# Each would take a reader minutes, or for ever, that computes before it looks: nodes, and the root's number.
BOMBS: dict[str, list[list[Any]]] = {
    "a fraction by exponent": [["fraction", "1e20000000"]],
    "a fraction of two texts": [["fraction", "1" * 100_000, "3" * 100_000]],
    "a fraction of long integers": [["fraction", [1], [2]], ["int", LONG], ["int", LONG[:-1] + "e"]],
    "a decimal by exponent": [["decimal", "1e999999999"]],
    "a decimal by its digits": [["decimal", "1" * 200_000]],
    "a small decimal": [["decimal", "1e-999999999"]],
    "a complex number in text": [["complex", "1" * 100_000]],
    "an integer with spaces": [["int", " " * 100_000 + "0x1"]],
    "an integer with a base": [["int", "7" * 4000, 10]],
    "keys that collide": [["set", *(k * (2**61 - 1) for k in range(MANY))]],
    "keys of a dict that collide": [["dict", *(p for k in range(MANY) for p in (k * (2**61 - 1), 0))]],
    "tuples that collide": [
        ["set", *([k + 1] for k in range(500))],
        *(["tuple", k * (2**61 - 1)] for k in range(500)),
    ],
    "floats that collide": [["set", *(float(2**61 - 1) * 2**k for k in range(900))]],
    "a key of keys of keys": [["set", [1]], *(["tuple", [k + 2], [k + 2]] for k in range(80)), ["tuple", 1]],
    "a long integer as every key": [["set", *([1] for _ in range(MANY))], ["int", LONG]],
    "a long text as every key": [["set", *([1] for _ in range(MANY))], ["same", "x" * 200_000]],
    "a large node as every part": [
        ["list", *([1] for _ in range(MANY))],
        ["list", *([2] for _ in range(MANY))],
        ["list"],
    ],
    "a large key as every key": [["set", *([1] for _ in range(MANY))], ["tuple", *range(MANY)]],
    "everyone in everyone": [["set", [1]], *(["tuple", *([k] for k in range(1, 200))] for _ in range(200))],
    "a key inside itself": [["set", [1]], ["tuple", [1]]],
    "a chain of stand-ins": [["same", [k + 1]] for k in range(MANY)] + [["same", 1]],
    "a deep tuple": [["tuple", [k + 1]] for k in range(MANY)] + [["tuple"]],
    "a deep list": [["list", [k + 1]] for k in range(MANY)] + [["list"]],
}


EXPECTED = [encode(v) for v in (1, [1] * MANY, set(range(MANY)), dict.fromkeys(range(MANY), 0), (((),),))]


@pytest.mark.parametrize("name", BOMBS)
def test_bombs_are_refused_by_their_count(name: str) -> None:
    message = json.dumps({"root": [0], "nodes": BOMBS[name]})
    decode_counted(message)
    for expected in EXPECTED:
        matcher = Matcher(ValueTable(message), ValueTable(expected), 0, 0, False)
        with suppress(WireError):
            assert not matcher.match()
        assert matcher.steps <= min(MAX_STEPS, 4 * (len(message) + MANY))


def test_shared_parts_of_both_sides_are_counted() -> None:
    """A table of pairs cannot be walked for ever, even if every pair is a new one."""
    side = [["list", *([k + 1] for _ in range(40))] for k in range(40)] + [["list", 1]]
    message = json.dumps({"root": [0], "nodes": side})
    assert same_value(message, message, 0, 0)


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    with Judge() as judge:
        yield judge


BOMB_PROGRAM = """
import json, os
MANY = 20000
LONG = "0x" + "f" * 200000
nodes = {nodes}
text = json.dumps({{"root": [0], "nodes": nodes}})
def f():
    os.write(4, text.encode())
    os._exit(0)
"""


@pytest.mark.parametrize(
    "nodes",
    [
        '[["fraction", "1e20000000"]]',
        '[["decimal", "1e999999999"]]',
        '[["set", *(k * (2**61 - 1) for k in range(MANY))]]',
        '[["list", *([1] for _ in range(MANY))], ["list", *([2] for _ in range(MANY))], ["list"]]',
    ],
)
def test_a_bomb_is_a_verdict_on_the_program(judge: Judge, nodes: str) -> None:
    program = Program(source=BOMB_PROGRAM.format(nodes=nodes))
    test = CallTest(function="f", expected=[[]] * 20_000)
    assert [v.status for v in judge.judge(program, [test], Limits(seconds=5))] == ["wrong"]


def test_a_bomb_in_a_frame_is_a_verdict_on_the_program(judge: Judge) -> None:
    source = BOMB_PROGRAM.format(nodes='[["list", [1], [2]], ["fraction", "1e20000000"], ["list"]]')
    source = source.replace("text.encode()", "frame").replace(
        "def f():",
        "frame = json.dumps({'value': text}).encode()\nframe = len(frame).to_bytes(4, 'big') + frame\ndef f():",
    )
    (verdict,) = judge.judge(
        Program(source=source), [AssertTest(script="assert f() == 1")], Limits(seconds=5)
    )
    assert verdict.status == "wrong"
    assert "cannot be compared" in verdict.detail
