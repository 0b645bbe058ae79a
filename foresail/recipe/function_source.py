"""Fingerprints of functions, by their source: the same notebook cell run again gives the same one.

    fingerprint(lambda response, answer: 1.0) == fingerprint(lambda response,answer:  1.0)   # wherever it stands

Comments, docstrings, layout and place do not count, nor do the values of names outside of it. What
`functools.partial` fixes does.
"""

from __future__ import annotations

import ast
import copy
import functools
import hashlib
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType
from typing import Any

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
PLAIN = (bool, int, float, str, bytes, type(None))  # values that are written out


def fingerprint(function: Callable[..., Any]) -> str:
    """16 hexadecimal digits."""
    return digest(text_of(function))


def fingerprint_in_file(file: Path, function: str) -> str | None:
    """Of a function at the top of a file, which is not run; None if there is none of that name."""
    try:
        body = ast.parse(file.read_bytes()).body
    except (OSError, SyntaxError, ValueError):
        return None
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == function:
            return digest(written(node))
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Lambda):
            continue
        if any(isinstance(target, ast.Name) and target.id == function for target in node.targets):
            return digest(written(node.value))
    return None


def digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:16]


def text_of(function: Callable[..., Any]) -> str:
    if isinstance(function, functools.partial):
        fixed = [*map(value_text, function.args)]
        fixed += [f"{name}={value_text(value)}" for name, value in sorted(function.keywords.items())]
        return f"{text_of(function.func)}({', '.join(fixed)})"
    function = inspect.unwrap(getattr(function, "__func__", function))
    if not hasattr(function, "__code__"):  # an object with __call__
        function = inspect.unwrap(getattr(type(function).__call__, "__func__", type(function).__call__))
    code = getattr(function, "__code__", None)
    if code is None:  # Python's own, or one written in C
        return getattr(function, "__qualname__", type(function).__qualname__)
    node = find_definition(code)
    return code_text(code) if node is None else written(node)


def value_text(value: Any) -> str:
    if callable(value):
        return text_of(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(value_text, value))}]"
    return repr(value) if isinstance(value, PLAIN) else type(value).__qualname__


def written(node: Definition) -> str:
    """As Python would write it, without docstrings."""
    node = copy.deepcopy(node)
    for inner in ast.walk(node):
        if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef) and ast.get_docstring(inner) is not None:
            inner.body = inner.body[1:] or [ast.Pass()]
    return ast.unparse(node)


def code_text(code: CodeType) -> str:
    """For code without a source: typed at a prompt, or made by exec."""
    consts = [code_text(value) if isinstance(value, CodeType) else repr(value) for value in code.co_consts]
    return repr((code.co_code, code.co_names, code.co_varnames, consts))


# Where it stands.


def find_definition(code: CodeType) -> Definition | None:
    """The part of its file, or of its cell, that the code was made of."""
    try:
        lines, _ = inspect.findsource(code)
        tree = ast.parse("".join(lines))
    except (OSError, TypeError, SyntaxError, ValueError):
        return None
    nodes = [node for node in definitions(tree) if is_made_of(code, node)]
    return min(nodes, key=lambda node: len(ast.dump(node)), default=None)


def definitions(tree: ast.AST) -> Iterator[Definition]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield node


def is_made_of(code: CodeType, node: Definition) -> bool:
    """By name and first line; lambdas, of which one line may hold several, by their columns."""
    if not isinstance(node, ast.Lambda):
        first = min(line.lineno for line in (node, *node.decorator_list))
        return (node.name, first) == (code.co_name, code.co_firstlineno)
    if code.co_name != "<lambda>" or node.lineno != code.co_firstlineno:
        return False
    body = node.body
    start, end = (body.lineno, body.col_offset), (body.end_lineno, body.end_col_offset)
    places = [place for place in code.co_positions() if None not in place and place[3]]
    return all(start <= (line, left) and (last, right) <= end for line, last, left, right in places)
