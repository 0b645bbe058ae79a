"""Tests written as inputs beside outputs: the JSON of APPS, TACO, CodeContests, LiveCodeBench and their like.

{"inputs": ["1 2\\n"], "outputs": ["3\\n"]}                          standard input and output
{"inputs": [[1, 2]], "outputs": [3], "fn_name": "add"}              calls; arguments in a list
[{"input": "1\\n2", "output": "3", "testtype": "functional"}]        calls; arguments in JSON, one a line
["assert add(1, 2) == 3"]                                           asserts, as in AceCode
"""

from __future__ import annotations

import base64
import binascii
import io
import json
import pickle
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from foresail.judge.programs.asserts import split_script
from foresail.judge.programs.evalplus import root_name
from foresail.judge.programs.program import AssertTest, CallTest, StdinTest, Test
from foresail.judge.programs.task import write_literal

FUNCTION_KEYS = ("fn_name", "func_name", "function_name")


class Case(NamedTuple):
    """One input and its output, as written; `function` is None where the program is run as a whole."""

    input: Any
    output: Any
    function: str | None


def read_cases(value: Any, place: str, columns: Mapping[str, Any]) -> list[Test]:
    """The tests in one column; `columns` is the row around it, which may name the function."""
    if isinstance(value, str):
        value = read_text(value, place)
    if isinstance(value, Sequence) and value and all(isinstance(item, str) for item in value):
        return [test for script in value for test in split_script(script)]
    cases = pair_up(value, place, row_function(columns))
    if "class Solution" in str(columns.get("starter_code") or ""):
        cases = [c._replace(function=c.function and f"Solution().{c.function}") for c in cases]
    calls = [case for case in cases if case.function]
    # APPS wraps every returned value in a list of one. Where all outputs look so, nobody can tell [3] from 3.
    wrapped = bool(calls) and all(is_wrapped(case) for case in calls)
    return [to_test(case, wrapped, f"{place}, case {number}") for number, case in enumerate(cases, 1)]


def read_text(text: str, place: str) -> Any:
    """JSON, or LiveCodeBench's packed form of it."""
    try:
        return json.loads(text)
    except ValueError:
        unpacked = unpack(text)
    if unpacked is None:
        raise ValueError(f"field {place!r} is neither tests nor JSON: {text[:60]!r}")
    return json.loads(unpacked)


class _NothingBuilt(pickle.Unpickler):
    """Reads a pickled string and refuses everything that would run code."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"it wants {module}.{name}, and tests are plain text")


def unpack(text: str) -> str | None:
    """Base64 of zlib of a pickled string, as LiveCodeBench's private tests are; None for anything else."""
    try:
        value = _NothingBuilt(io.BytesIO(zlib.decompress(base64.b64decode(text, validate=True)))).load()
    except (binascii.Error, ValueError, zlib.error, EOFError, pickle.UnpicklingError):
        return None
    return value if isinstance(value, str) else None


def row_function(columns: Mapping[str, Any]) -> str | None:
    """The function that the row names, itself or in LiveCodeBench's metadata."""
    metadata = columns.get("metadata")
    if isinstance(metadata, str) and metadata.strip():
        metadata = read_text(metadata, "metadata")
    return named_function(columns) or (named_function(metadata) if isinstance(metadata, Mapping) else None)


def named_function(fields: Mapping[str, Any]) -> str | None:
    return next((str(fields[key]) for key in FUNCTION_KEYS if fields.get(key)), None)


def pair_up(value: Any, place: str, function: str | None) -> list[Case]:
    """Both layouts: a list of pairs, or a pair of lists."""
    if isinstance(value, Mapping):
        inputs, outputs = (column(value, name, place) for name in ("input", "output"))
        if len(inputs) != len(outputs):
            raise ValueError(f"field {place!r} has {len(inputs)} inputs but {len(outputs)} outputs")
        function = named_function(value) or function
        return [Case(value, output, function) for value, output in zip(inputs, outputs, strict=True)]
    if isinstance(value, Sequence) and all(isinstance(item, Mapping) for item in value):
        return [read_pair(item, f"{place}[{index}]", function) for index, item in enumerate(value)]
    raise ValueError(f"field {place!r} holds no tests; write a list of objects with input and output")


def column(value: Mapping[str, Any], name: str, place: str) -> Sequence[Any]:
    entries = value.get(f"{name}s", value.get(name))
    if not isinstance(entries, Sequence) or isinstance(entries, str):
        raise ValueError(f"field {place!r} has no list of {name}s; it has {', '.join(value) or 'nothing'}")
    return entries


def read_pair(item: Mapping[str, Any], place: str, function: str | None) -> Case:
    for name in ("input", "output"):
        if item.get(name) is None:
            raise ValueError(f"field {place!r} has no {name}; it has {', '.join(item) or 'nothing'}")
    kind = item.get("testtype") or item.get("type")
    function = None if kind in ("stdin", "stdin_stdout") else named_function(item) or function
    if not function and kind in ("functional", "function_call"):
        raise ValueError(f"field {place!r} is a call but nothing names the function; give fn_name")
    return Case(item["input"], item["output"], function)


def is_wrapped(case: Case) -> bool:
    return not isinstance(case.input, str) and isinstance(case.output, list) and len(case.output) == 1


def to_test(case: Case, wrapped: bool, place: str) -> Test:
    if case.function is None:
        return StdinTest(input=to_text(case.input, place), output=to_text(case.output, place))
    arguments, expected = case.input, case.output
    if isinstance(arguments, str):  # one JSON value a line
        arguments = [read_value(line, place) for line in arguments.split("\n") if line.strip()]
    if isinstance(expected, str) and isinstance(case.input, str):
        expected = read_value(expected, place)
    if not isinstance(arguments, Sequence):
        raise ValueError(f"field {place!r}: the input of a call must be a list of its arguments")
    if wrapped:
        script = accept_either(case.function, tuple(arguments), expected)
        return AssertTest(script=script, names=tuple(dict.fromkeys((root_name(case.function), "Solution"))))
    return CallTest(function=case.function, arguments=tuple(arguments), expected=expected)


def accept_either(function: str, arguments: tuple[Any, ...], expected: list[Any]) -> str:
    """A script that takes `[3]` as well as `3`, from a function or from a method of class Solution."""
    method = function if "." in function else f"Solution().{function}"
    return f"""
try:
    call = {function}
except NameError:
    call = {method}
assert call(*{write_literal(arguments)}) in ({write_literal(expected)}, {write_literal(expected[0])})
"""


def to_text(value: Any, place: str) -> str:
    """Input as a program reads it; APPS has some as lists of lines."""
    if isinstance(value, list | tuple) and all(isinstance(line, str) for line in value):
        return "\n".join(value)
    if isinstance(value, str):
        return value
    if isinstance(value, int | float):
        return str(value)
    raise ValueError(
        f"field {place!r} is not text: {str(value)[:60]}; name the function with fn_name for calls"
    )


def read_value(text: str, place: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise ValueError(f"field {place!r} is not JSON: {text[:60]!r}") from error
