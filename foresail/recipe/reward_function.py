"""Reward functions of one's own, as a recipe names them: `rewards.py:score` or `package.module:score`.

They come in the shapes of verl, TRL, OpenRLHF and AReaL, or as a plain `score(response, answer)`, told apart by the
names of their parameters. Here they are looked at without running them, for the preflight;
`foresail.rewards.foreign_rewards` calls them. A program may give the function itself in the place of its name.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any, Literal

from foresail.recipe.function_source import fingerprint_in_file
from foresail.user_code import split_name, user_code_file

Shape = Literal["verl", "trl", "openrlhf", "areal", "plain"]
Function = str | Callable[..., Any]  # by its name, or itself

# What the two parameters of a plain function may be called; of several, the first is meant.
RESPONSE_NAMES = ("response", "completion", "solution", "text")
ANSWER_NAMES = ("answer", "label", "ground_truth", "target", "gold")
IN_PROGRAM = "python"  # the place of a function that no file or module has: python:score
LAMBDA = "lambda"  # what `name_of` calls one

SHAPES: dict[Shape, str] = {
    "verl": "f(data_source, solution_str, ground_truth, extra_info=None) -> a number, or a dict with score",
    "trl": "f(prompts, completions, completion_ids, COLUMNS…, **kwargs) -> a list of numbers or None",
    "openrlhf": "f(queries, prompts, labels, **kwargs) -> numbers, or a dict with rewards",
    "areal": "f(prompt, completions, prompt_ids, completion_ids, COLUMNS…, **data) -> a number",
    "plain": "f(response, answer, COLUMNS…) -> a number",
}


def recognise(names: Collection[str]) -> Shape | None:
    """recognise(["completions", "answer", "kwargs"]) -> "trl"; recognise(["response"]) -> None."""
    if "solution_str" in names:
        return "verl"
    if "queries" in names:
        return "openrlhf"
    if "completions" in names:
        return "areal" if {"prompt", "prompt_ids"} & set(names) else "trl"
    if first_of(names, RESPONSE_NAMES) and first_of(names, ANSWER_NAMES):
        return "plain"
    return None


def first_of(names: Collection[str], meant: Collection[str]) -> str | None:
    """first_of(["text", "gold", "solution"], RESPONSE_NAMES) -> "text"."""
    return next((name for name in names if name in meant), None)


def name_of(function: Function) -> str:
    """`module:function` of what other processes can import; `python:NAME` of a lambda, a method, a notebook's."""
    if isinstance(function, str):
        return function
    named = function.func if isinstance(function, partial) else function
    name = getattr(named, "__qualname__", type(named).__qualname__)
    module = getattr(function, "__module__", None)
    if module not in (None, "__main__") and getattr(sys.modules.get(module), name, None) is function:
        return f"{module}:{name}"
    return f"{IN_PROGRAM}:{re.sub(r'[^0-9a-zA-Z_]+', '_', name.rpartition('.')[2]).strip('_')}"


def can_travel(function: Function) -> bool:
    """Whether another process can load it."""
    return not given_by_program(function)


def file_of(function: Function) -> Path | None:
    """The file that a named function stands in; None where no file has it."""
    if given_by_program(function):
        return None
    file = user_code_file(name_of(function))
    return file if file is not None and file.is_file() else None


def given_by_program(function: Function) -> bool:
    """Whether no file or module has it: a script's own, a notebook's, a lambda, a method."""
    return name_of(function).startswith(f"{IN_PROGRAM}:")


def fingerprint_of_named(grader: str) -> str | None:
    """The fingerprint of `rewards.py:score`, which is not run; None if it is no function at the top of a file."""
    place, function = split_name(grader)
    if not place or place == IN_PROGRAM:
        return None
    file = user_code_file(grader)
    return None if file is None else fingerprint_in_file(file, function)


def how_to_give(functions: Mapping[str, str]) -> str:
    """How to pass again functions that a program gave: how_to_give({"reward.grader": "python:score"})."""
    names = {key: split_name(function)[1] for key, function in functions.items()}
    files = [f"{key}=FILE.py:{'NAME' if name == LAMBDA else name}" for key, name in names.items()]
    (first, *more), listed = names.values(), ", ".join(names.values())
    if more:
        advice = (
            f"the rewards {listed} were given by a Python program; in Python pass them again, as reward=[…]"
        )
    else:
        again = "…" if first == LAMBDA else first
        advice = (
            f"the reward {first} was given by a Python program; in Python pass it again, as reward={again}"
        )
    return (
        f"{advice}; on the command line put {'them' if more else 'it'} into a file and say {' '.join(files)}"
    )


def explain_shapes(name: str, names: Collection[str]) -> str:
    """What to say of a function that `recognise` does not know."""
    shapes = "; ".join(f"{shape}: {text}" for shape, text in SHAPES.items())
    has = f"{name}({', '.join(names)}) has none of the known shapes"
    return f"{has}; rename its parameters to one of these. {shapes}"


def check_function(key: str, grader: str) -> Iterator[str]:
    """Refusals: no such file, module or function, text that is not Python, or an unknown shape."""
    place, function = split_name(grader)
    if place == IN_PROGRAM:
        yield f"{key}: {how_to_give({key: grader})}"
        return
    file = user_code_file(grader)
    if file is None:
        yield f"{key} {grader}: there is no module {place} here; check its name, or name a file: a.py:{function}"
        return
    if not file.is_file():
        yield f"{key} {grader}: the file {place} does not exist (looked in {Path.cwd()}); check the path"
        return
    try:
        body = ast.parse(file.read_bytes(), filename=str(file)).body
    except (SyntaxError, ValueError) as error:
        yield f"{key} {grader}: {file} is not valid Python: {error}; fix it"
        return
    yield from (f"{key} {grader}: {refusal}" for refusal in look_up(function, body))


def look_up(function: str, body: list[ast.stmt]) -> Iterator[str]:
    """What is wrong with a name at the top of a module; a name that is imported or assigned is taken on trust."""
    defined = {node.name: node for node in body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    if function in defined:
        node = defined[function]
        names = [argument.arg for argument in (*node.args.args, *node.args.kwonlyargs)]
        if not node.decorator_list and recognise(names) is None:
            yield explain_shapes(function, names)
        return
    mentioned = {
        name
        for node in body
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for name in bound_names(node)
    }
    if function not in mentioned and "*" not in mentioned:
        near = get_close_matches(function, defined, n=1) or list(defined)[:1]
        hint = f"; did you mean {near[0]}?" if near else "; it defines none"
        yield f"there is no function {function} in it{hint}"


def bound_names(node: ast.stmt) -> Iterator[str]:
    """Names a statement may bind: x of `x = 1`, b of `from a import b`, and those inside its blocks."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
            yield inner.id
        elif isinstance(inner, ast.alias):
            yield inner.asname or inner.name
        elif isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield inner.name
