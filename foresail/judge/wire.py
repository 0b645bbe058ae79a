"""Python values as plain data: what crosses between a judge and a process that runs model code.

A value becomes a flat table, so a linked list of 100,000 nodes needs no recursion and a cycle is a number:
encode([1, (2,)]) -> '{"root": [0], "nodes": [["list", 1, [1]], ["tuple", 2]]}'. Atoms (None, bool, int, float,
str) stand where they are; `[3]` points to node 3. Nothing in a table is code: reading one builds builtin values,
instances of classes the reader itself offers, and never runs a method that the writer chose.

A writer may lie, so nothing is computed before its size is known: every node is read once, numbers whose arithmetic
would take long are refused by their length, and keys by what it would cost to hash them.
"""

from __future__ import annotations

import builtins
import json
import re
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import combinations
from typing import Any

# json reads integers by `int(text)`, which refuses more than 4300 digits; longer ones travel as hexadecimal nodes.
LONGEST_PLAIN_INT = 10**1000
MAX_ITEMS = 1_000_000  # of one iterator: an endless generator must not run for ever
MAX_HASHED = 10_000_000  # values that hashing looks at: tuples that share their parts could take for ever
UNFINISHED = object()  # stands for a value while its parts are read
MAX_COLLISIONS = 50  # keys of one hash; honest ones have two or three
LONGEST_DECIMAL = 400  # characters, and digits before or behind the point
LONGEST_FRACTION = 1 << 14  # bits of either part: to shorten a fraction takes the square of its length
_HEX = re.compile(r"-?0x[0-9a-f]+")
# Builtin types that travel by their names.
TYPES: dict[str, type] = {
    name: getattr(builtins, name)
    for name in "int float complex bool str bytes bytearray list tuple set frozenset dict range object".split()
}


class WireError(ValueError):
    """A table that no honest writer makes, or a value that has no plain form."""


# Writing.


class ValueEncoder:
    """Turns values into one table. `remote` gives a number to what has no plain form, or None to refuse it."""

    def __init__(self, remote: Callable[[Any], list[Any] | None] | None = None) -> None:
        self.nodes: list[list[Any]] = []
        self.places: dict[int, int] = {}  # id of a value -> its node
        self.alive: list[Any] = []  # ids stay taken while the table is written
        self.waiting: list[tuple[int, Iterator[Any]]] = []
        self.remote = remote

    def encode(self, value: Any) -> str:
        root = self.place(value)
        while self.waiting:
            at, parts = self.waiting.pop()
            node = self.nodes[at]
            for part in parts:
                node.append(self.place(part))
        return json.dumps({"root": root, "nodes": self.nodes}, separators=(",", ":"))

    def place(self, value: Any) -> Any:
        """An atom as it stands, anything else as a pointer to its node."""
        kind = type(value)
        if value is None or kind is bool or kind is float or kind is str:
            return value
        if kind is int and -LONGEST_PLAIN_INT < value < LONGEST_PLAIN_INT:
            return value
        at = self.places.get(id(value))
        if at is None:
            at = self.places[id(value)] = len(self.nodes)
            self.alive.append(value)
            self.nodes.append([])
            self.nodes[at] = self.describe(value, at)
        return [at]

    def describe(self, value: Any, at: int) -> list[Any]:
        """The node's head; its parts follow when their turn comes."""
        for base, write in WRITERS:
            if isinstance(value, base):
                head, parts = write(value)
                if parts is not None:
                    self.waiting.append((at, parts))
                return head
        if isinstance(value, type) and TYPES.get(value.__name__) is value:
            return ["type", value.__name__]
        if type(value).__module__ == "numpy" and hasattr(value, "tolist"):
            return ["same", self.place(value.tolist())]
        stand_in = self.remote(value) if self.remote else None
        if stand_in is not None:
            return stand_in
        fields = read_fields(value)
        if fields is None:
            raise WireError(f"a value of type {type(value).__name__} has no plain form")
        self.waiting.append((at, flatten(fields.items())))
        return ["object", type(value).__name__]


def encode(value: Any) -> str:
    return ValueEncoder().encode(value)


def read_fields(value: Any) -> dict[str, Any] | None:
    """Attributes of an instance of a class written in Python; None for modules, functions, files and the like."""
    kind = type(value)
    written_in_python = kind.__flags__ & (1 << 9)  # heap types: a `class` statement
    if isinstance(value, type) or callable(value) or not written_in_python:
        return None
    fields = dict(getattr(value, "__dict__", {}))
    for base in kind.__mro__:
        slots = base.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if hasattr(value, name) and name not in ("__dict__", "__weakref__"):
                fields[name] = getattr(value, name)
    return fields


def flatten(pairs: Any) -> Iterator[Any]:
    for key, value in pairs:
        yield key
        yield value


def drain(values: Iterator[Any]) -> Iterator[Any]:
    for count, value in enumerate(values):
        if count >= MAX_ITEMS:
            raise WireError(f"an iterator gave more than {MAX_ITEMS} values")
        yield value


def sequence(kind: str) -> Callable[[Any], tuple[list[Any], Iterator[Any]]]:
    return lambda value: ([kind], iter(value))


# In order: the first base that fits decides, so `bool` stands before `int` and a namedtuple is a tuple.
WRITERS: list[tuple[Any, Callable[[Any], tuple[list[Any], Iterator[Any] | None]]]] = [
    (bool, lambda value: (["same", bool(value)], None)),
    (int, lambda value: (["int", hex(int(value))], None)),
    (float, lambda value: (["same", float(value)], None)),
    (str, lambda value: (["same", str.__getitem__(value, slice(None))], None)),
    (complex, lambda value: (["complex", value.real, value.imag], None)),
    (bytes, lambda value: (["bytes", bytes(value).decode("latin-1")], None)),
    (bytearray, lambda value: (["bytearray", bytes(value).decode("latin-1")], None)),
    (list, sequence("list")),
    (tuple, sequence("tuple")),
    (dict, lambda value: (["dict"], flatten(dict.items(value)))),
    (set, sequence("set")),
    (frozenset, sequence("frozenset")),
    (deque, sequence("deque")),
    (range, lambda value: (["range"], iter((value.start, value.stop, value.step)))),
    (Decimal, lambda value: (["decimal", str(value)], None)),
    (Fraction, lambda value: (["fraction"], iter((value.numerator, value.denominator)))),
    (type({}.keys()), sequence("keys")),
    (type({}.values()), sequence("values")),
    (type({}.items()), lambda value: (["items"], flatten(value))),
    (Iterator, lambda value: (["iterator"], drain(value))),
]


# Reading.


class ValueTable:
    """A table as it was read: every node a list that opens with its kind, every pointer inside the table."""

    def __init__(self, text: str | bytes) -> None:
        try:
            read = json.loads(text)
            self.root, self.nodes = read["root"], read["nodes"]
        except (ValueError, RecursionError, KeyError, TypeError, IndexError) as error:
            raise WireError(f"not a table: {type(error).__name__}") from None
        if not isinstance(self.nodes, list) or not all(map(self.is_node, self.nodes)):
            raise WireError("not a table: a node is malformed")
        if not self.is_part(self.root):
            raise WireError("not a table: no root")

    def is_node(self, node: Any) -> bool:
        return (
            isinstance(node, list)
            and bool(node)
            and isinstance(node[0], str)
            and all(map(self.is_part, node))
        )

    def is_part(self, part: Any) -> bool:
        if type(part) is list:
            return len(part) == 1 and type(part[0]) is int and 0 <= part[0] < len(self.nodes)
        return type(part) is not dict


def read_int(text: Any) -> int:
    """read_int("-0xff") -> -255. Hexadecimal: decimal digits would take the square of their number."""
    if type(text) is not str or not _HEX.fullmatch(text):
        raise ValueError("not hexadecimal")
    return int(text, 16)


def read_decimal(text: Any) -> Decimal:
    """read_decimal("1.50") -> Decimal("1.50"); 1e20000000 is refused: as an integer it would fill the memory."""
    if type(text) is not str or len(text) > LONGEST_DECIMAL:
        raise ValueError("no decimal, or too long")
    number = Decimal(text)
    if number.is_finite() and abs(number.adjusted()) > LONGEST_DECIMAL:
        raise ValueError("too long")
    return number


def read_fraction(numerator: Any, denominator: Any) -> Fraction:
    """read_fraction(2, 6) -> 1/3."""
    for part in (numerator, denominator):
        if type(part) is not int or part.bit_length() > LONGEST_FRACTION:
            raise ValueError("no integer, or too long")
    return Fraction(numerator, denominator)


def read_complex(real: Any, imaginary: Any) -> complex:
    if type(real) is not float or type(imaginary) is not float:
        raise ValueError("not two floats")
    return complex(real, imaginary)


def read_bytes(text: Any) -> bytes:
    if type(text) is not str:
        raise ValueError("not text")
    return text.encode("latin-1")


class ValueDecoder:
    """Builds the value of a table. `classes` are those whose instances may be rebuilt, by name.

    `work` counts parts of nodes, each looked at once, so that what a message costs is bounded by its length;
    `hashed` counts values that were hashed, of which shared keys have more than the message shows.
    """

    def __init__(
        self,
        classes: Mapping[str, type],
        remote: Callable[[list[Any]], Any] | None = None,
        deepest: int = 200,
    ) -> None:
        self.classes = classes
        self.remote = remote
        self.deepest = deepest
        self.work = 0
        self.hashed = 0

    def decode(self, text: str | bytes) -> Any:
        self.table = ValueTable(text)
        self.built: dict[int, Any] = {}
        self.weights: dict[int, int] = {}  # of nodes that can be keys: how many values a hash of one looks at
        self.unfilled: list[tuple[int, Any]] = []
        self.instances: list[Any] = []  # of classes with an `__eq__` of their own
        value = self.read(self.table.root, 0)
        while self.unfilled:
            at, shell = self.unfilled.pop()
            self.fill(shell, self.table.nodes[at])
        return value

    def read(self, part: Any, depth: int) -> Any:
        if type(part) is not list:
            return part
        at = part[0]
        if at not in self.built:
            if depth > self.deepest:
                raise WireError(f"nested deeper than {self.deepest}")
            self.built[at] = UNFINISHED
            self.built[at] = self.build(at, depth + 1)
        if self.built[at] is UNFINISHED:
            raise WireError("a value inside itself that cannot be")
        return self.built[at]

    def build(self, at: int, depth: int) -> Any:
        """Mutable values are made empty and filled later, so that cycles and long chains need no recursion."""
        kind, *parts = self.table.nodes[at]
        self.work += len(parts) + 1
        shell = self.shell(kind, parts)
        if shell is not None:
            self.unfilled.append((at, shell))
            return shell
        if kind == "remote" and self.remote is not None:
            return self.remote(parts)
        values = [self.read(part, depth) for part in parts]
        self.weights[at] = 1 + sum(map(self.weight, parts))
        if kind in HASHED:
            self.check_keys(parts, values, HASHED[kind])
        try:
            return READERS[kind](*values)
        except (KeyError, TypeError, ValueError, ArithmeticError) as error:
            raise WireError(f"a node of kind {kind[:20]} is malformed: {type(error).__name__}") from None

    def shell(self, kind: str, parts: list[Any]) -> Any:
        if kind in SHELLS:
            return SHELLS[kind]()
        if kind == "object" and parts and isinstance(parts[0], str) and parts[0] in self.classes:
            try:
                instance: Any = object.__new__(self.classes[parts[0]])
                if type(instance).__eq__ is not object.__eq__:
                    self.instances.append(instance)
                return instance
            except TypeError:  # a class derived from an exception, a dict and the like
                raise WireError(f"instances of {parts[0]} cannot be rebuilt") from None
        return None

    def fill(self, shell: Any, node: list[Any]) -> None:
        parts = node[2:] if node[0] == "object" else node[1:]
        self.work += len(parts)
        values = [self.read(part, 0) for part in parts]
        if node[0] in HASHED:
            self.check_keys(parts, values, HASHED[node[0]])
        try:
            if isinstance(shell, list | deque):
                shell.extend(values)
            elif isinstance(shell, set):
                shell.update(values)
            elif isinstance(shell, dict):
                shell.update(zip(values[::2], values[1::2], strict=True))
            else:
                set_fields(shell, dict(zip(values[::2], values[1::2], strict=True)))
        except Exception as error:  # methods of the reader's classes meet fields that the writer chose
            raise WireError(f"a node of kind {node[0]} is malformed: {type(error).__name__}") from None

    # What keys cost.

    def weight(self, part: Any) -> int:
        if type(part) is str:
            return 1 + len(part) // 16  # of a long integer's digits, too
        return self.weights.get(part[0], 1) if type(part) is list else 1

    def check_keys(self, parts: Sequence[Any], values: Sequence[Any], step: int) -> None:
        """Refuses keys that take long to hash, and keys that all have the same hash."""
        cost = sum(map(self.weight, parts[::step]))
        if self.hashed + cost > MAX_HASHED:
            raise WireError("keys that share too many parts")
        self.hashed += cost
        try:
            hashes = Counter(map(hash, values[::step]))
        except Exception as error:  # as in `fill`
            raise WireError(f"a key that is no key: {type(error).__name__}") from None
        if hashes and max(hashes.values()) > MAX_COLLISIONS:
            raise WireError("keys that collide")


def set_fields(instance: Any, fields: Mapping[Any, Any]) -> None:
    """Past `__setattr__`: an attribute arrives as data, even one called `__class__`.

    A name that the class itself defines as a method is refused: `node.same(other)` must stay the reader's own code.
    """
    kind = type(instance)
    for name in fields:
        if type(name) is not str or is_behaviour(getattr(kind, name, None)):
            raise TypeError("a field in the place of a method")
    if hasattr(instance, "__dict__"):
        instance.__dict__.update(fields)
    else:
        for name, value in fields.items():
            if name in dir(kind) and not name.startswith("__"):
                object.__setattr__(instance, name, value)


# Numbers next to each other, texts and lists: what is one of them, even by a remainder, is no other.
DIFFERENT: tuple[Any, ...] = (
    *range(-1, 13), *range(99, 102), 0.5, -7.25, 1e6 + 0.5, "", "a", "b", "ab", "7", "x y", (), (1,), [], [1], None,
)  # fmt: skip


def refuse_wildcard(instance: Any) -> None:
    """Refuses an instance that equals any object, or two that differ: a wildcard of the reader's, or a tolerance
    as wide as the writer likes, is no value that a writer may send.
    """
    others = [probe for probe in DIFFERENT if equals(instance, probe)]
    if equals(instance, object()) or any(not is_kin(one, other) for one, other in combinations(others, 2)):
        raise WireError(f"an instance of {type(instance).__name__}, which equals what is not equal")


def equals(instance: Any, other: Any) -> bool:
    try:
        return bool(instance == other)
    except Exception:
        return False


def is_kin(one: Any, other: Any) -> bool:
    """What an honest `__eq__` may take for the same: 2 and 7 modulo 5, but not 2 and 3; (1,) and [1]; 7 and "7"."""
    if type(one) is type(other) is int:
        return abs(one - other) > 1
    if isinstance(one, str | list | tuple) and isinstance(other, str | list | tuple):
        return [*one] == [*other]
    return str(one) == str(other)


def is_behaviour(member: Any) -> bool:
    """Methods and properties, but not the slots that hold fields, nor their default values."""
    return callable(member) or isinstance(member, property | classmethod | staticmethod)


class Drained(Iterator[Any]):
    """What an iterator of the writer's gave; the reader can tell it from its own."""

    def __init__(self, *values: Any) -> None:
        self.left = deque(values)

    def __next__(self) -> Any:
        if not self.left:
            raise StopIteration
        return self.left.popleft()


def decode(text: str | bytes, classes: Mapping[str, type] | None = None) -> Any:
    """decode(encode(value)) == value for every value built of builtin types, whatever its shape."""
    return ValueDecoder(classes or {}).decode(text)


SHELLS: dict[str, Callable[[], Any]] = {"list": list, "set": set, "dict": dict, "deque": deque}
# Kinds whose parts are keys: all of them, or every second one.
HASHED = {"set": 1, "frozenset": 1, "keys": 1, "dict": 2, "items": 2}
READERS: dict[str, Callable[..., Any]] = {
    "same": lambda value: value,
    "int": read_int,
    "complex": read_complex,
    "bytes": read_bytes,
    "bytearray": lambda text: bytearray(read_bytes(text)),
    "tuple": lambda *values: values,
    "frozenset": lambda *values: frozenset(values),
    "range": range,
    "decimal": read_decimal,
    "fraction": read_fraction,
    "iterator": Drained,
    "keys": lambda *values: dict.fromkeys(values).keys(),
    "values": lambda *values: dict(enumerate(values)).values(),
    "items": lambda *values: dict(zip(values[::2], values[1::2], strict=True)).items(),
    "type": lambda name: TYPES[name],
}
