"""What a code problem brings beside its prompt, and the plain form in which it lives in `Problem.extra`.

    problem.extra == {"tests": [{"kind": "call", "function": "add", "arguments": "(1, 2)", "expected": "3"}, …],
                      "prelude": "from typing import *", "levels": [0, 0, 1]}

JSON has no tuples, sets or infinities, so Python values are written as literals, in text.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from math import isinf, isnan
from typing import Any

from foresail.judge.programs.program import AssertTest, CallTest, OutputComparison, StdinTest, Test

SETTINGS = ("relative", "absolute", "strict")  # of calls


@dataclass(frozen=True, kw_only=True)
class CodeTask:
    """`prelude` is Python that stands before every program; `levels` say how hard each test is."""

    tests: tuple[Test, ...]
    prelude: str = ""
    levels: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if not self.tests:
            raise ValueError("a code problem without tests cannot be graded; give it at least one test")
        if self.levels is not None and len(self.levels) != len(self.tests):
            raise ValueError(
                f"{len(self.levels)} levels for {len(self.tests)} tests; compute them again on these tests"
            )


def encode_task(task: CodeTask) -> dict[str, Any]:
    """Columns that `rows.read_task` reads back; JSON and parquet can hold them."""
    columns: dict[str, Any] = {"tests": encode_tests(task.tests)}
    if task.prelude:
        columns["prelude"] = task.prelude
    if task.levels is not None:
        columns["levels"] = list(task.levels)
    return columns


def encode_tests(tests: Sequence[Test]) -> list[dict[str, Any]]:
    """encode_tests([StdinTest(input="1", output="2")]) -> [{"kind": "stdin", "input": "1", "output": "2"}]."""
    return [encode_test(test) for test in tests]


def encode_test(test: Test) -> dict[str, Any]:
    """Settings at their defaults are left out."""
    if isinstance(test, AssertTest):
        return {"kind": "assert", "script": test.script} | ({"names": list(test.names)} if test.names else {})
    if isinstance(test, StdinTest):
        row: dict[str, Any] = {"kind": "stdin", "input": test.input, "output": test.output}
        changed = changes(test.comparison, [field.name for field in fields(OutputComparison)])
        return row | ({"comparison": changed} if changed else {})
    row = {"kind": "call", "function": test.function, "arguments": write_literal(test.arguments)}
    if test.keywords:
        row["keywords"] = write_literal(test.keywords)
    row["expected"] = write_literal(test.expected)
    return row | changes(test, SETTINGS)


def changes(record: CallTest | OutputComparison, names: Sequence[str]) -> dict[str, Any]:
    """Those fields that have not their default values."""
    return {name: value for name in names if (value := getattr(record, name)) != getattr(type(record), name)}


def is_encoded(value: Any) -> bool:
    """Whether a column holds what `encode_tests` writes, and not some data set's own form."""
    return (
        isinstance(value, Sequence)
        and bool(value)
        and all(isinstance(item, Mapping) and "kind" in item for item in value)
    )


def decode_tests(rows: Sequence[Mapping[str, Any]]) -> tuple[Test, ...]:
    """The other way round. A field that is None is absent: parquet fills rows of unlike kinds with None."""
    tests = []
    for number, row in enumerate(rows, 1):
        try:
            tests.append(decode_test(drop_none(row)))
        except KeyError as error:
            raise ValueError(f"test {number} of kind {row['kind']!r} has no field {error}") from error
        except (TypeError, ValueError, SyntaxError) as error:
            raise ValueError(f"test {number} of kind {row['kind']!r} cannot be read: {error}") from error
    return tuple(tests)


def decode_test(row: Mapping[str, Any]) -> Test:
    kind = row["kind"]
    if kind == "assert":
        return AssertTest(script=row["script"], names=tuple(row.get("names", ())))
    if kind == "stdin":
        return StdinTest(
            input=row["input"],
            output=row["output"],
            comparison=OutputComparison(**drop_none(row.get("comparison", {}))),
        )
    if kind == "call":
        return CallTest(
            function=row["function"],
            arguments=tuple(read_literal(row["arguments"])),
            keywords=read_literal(row.get("keywords", "{}")),
            expected=read_literal(row["expected"]),
            **{name: row[name] for name in SETTINGS if name in row},
        )
    raise ValueError("kinds are stdin, call and assert")


def drop_none(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if value is not None}


def write_literal(value: Any) -> str:
    """Text that `read_literal` turns back into an equal value of the same types.

    write_literal((1, {"a": None})) -> "(1, {'a': None})"; write_literal(float("inf")) -> "1e999".
    """
    kind = type(value)
    if kind is float:
        if isnan(value):
            raise ValueError(
                "NaN equals nothing, so no test can expect it or be written with it; drop the test"
            )
        return ("-1e999" if value < 0 else "1e999") if isinf(value) else repr(value)
    if kind is int:
        return hex(value) if abs(value) >> 4096 else repr(value)  # decimal digits have a limit, hex has none
    if value is None or kind in (bool, complex, str, bytes):
        return repr(value)
    if kind is dict:
        return "{" + ", ".join(f"{write_literal(k)}: {write_literal(v)}" for k, v in value.items()) + "}"
    if kind is set:  # sorted: the order of a set differs between processes
        return "{" + ", ".join(sorted(map(write_literal, value))) + "}" if value else "set()"
    if kind in (list, tuple):
        inner = ", ".join(map(write_literal, value))
        if kind is list:
            return f"[{inner}]"
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    raise ValueError(f"a {kind.__name__} is not plain data; write this test as an assert script")


def read_literal(text: str) -> Any:
    """read_literal("(1, [2.5])") -> (1, [2.5]); ValueError for anything that is not a literal."""
    try:
        return ast.literal_eval(text)
    except (SyntaxError, RecursionError, MemoryError) as error:
        raise ValueError(f"{text[:60]!r} is not a Python literal") from error
