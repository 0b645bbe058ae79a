"""Reads a typed Python function's description and the JSON schema of its parameters, and checks arguments.

    def search(query: str, count: int = 3) -> str:
        '''Search the encyclopedia.

        Args:
            query: what to look for
            count: how many passages
        '''

    read_signature(search).schema["properties"]["query"] -> {"type": "string", "description": "what to look for"}

Types may be int, float, bool, str, list[…], dict[…], Literal, Optional, and others that pydantic knows.
"""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic.errors import PydanticUserError

MAX_MISTAKES = 3  # listed in one answer
SHOWN = 60  # characters of a wrong value
# Headings above the arguments in Google and NumPy style; sections under other headings are left out.
HEADING = re.compile(r"(Args|Arguments|Parameters|Params)\s*:?\s*$")
OTHER_HEADING = re.compile(
    r"(Returns?|Yields?|Raises|Examples?|Notes?|See Also|References|Warnings?)\s*:?\s*$"
)
UNDERLINE = re.compile(r"[-=~]{3,}\s*$")
ARGUMENT = re.compile(r"\**(\w+)(?:\s*\([^)]*\)|\s*:\s*[^:]*(?=:))?\s*:\s*(.*)")
NUMPY_ARGUMENT = re.compile(r"\**(\w+)(?:\s*:.*)?$")


class BadArguments(ValueError):
    """A call's arguments are wrong; the message is one line."""


@dataclass(frozen=True, kw_only=True)
class Signature:
    """A function's parameters: `read` checks arguments, `schema` is for the model."""

    description: str
    model: type[BaseModel]
    fields: Mapping[str, str]  # the model's name of each parameter -> the function's
    required: tuple[str, ...]

    @property
    def schema(self) -> dict[str, Any]:
        return without_titles(self.model.model_json_schema(by_alias=True))

    def read(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """read({"count": "3"}) -> {"count": 3}. Raises BadArguments."""
        try:
            checked = self.model.model_validate(dict(arguments))
        except ValidationError as error:
            raise BadArguments(explain(error, self.required, list(self.fields.values()))) from None
        except RecursionError:
            raise BadArguments("the arguments are nested too deeply") from None
        present = checked.model_fields_set
        return {name: getattr(checked, inner) for inner, name in self.fields.items() if inner in present}


def read_signature(function: Callable[..., Any], *, description: str = "") -> Signature:
    """`function` may be bound to an object. Raises ValueError for parameters that have no schema."""
    name = getattr(function, "__qualname__", type(function).__qualname__)
    text, descriptions = read_docstring(
        inspect.getdoc(function) or "", tuple(inspect.signature(function).parameters)
    )
    hints = type_hints(function, name)
    fields: dict[str, Any] = {}
    names: dict[str, str] = {}
    for at, (parameter, entry) in enumerate(inspect.signature(function).parameters.items()):
        if entry.kind in (entry.VAR_POSITIONAL, entry.VAR_KEYWORD, entry.POSITIONAL_ONLY):
            raise ValueError(f"{name} takes {entry}; a tool's parameters have names: write them out")
        if parameter not in hints:
            raise ValueError(f"the parameter {parameter} of {name} has no type; write one: {parameter}: str")
        inner = f"argument_{at}"  # pydantic reserves names such as `json` or `_x`
        names[inner] = parameter
        default = ... if entry.default is entry.empty else entry.default
        fields[inner] = (
            hints[parameter],
            Field(default, alias=parameter, description=descriptions.get(parameter)),
        )
    try:
        model = create_model(
            name.rpartition(".")[2], __config__=ConfigDict(extra="forbid", allow_inf_nan=False), **fields
        )
        signature = Signature(
            description=description or text,
            model=model,
            fields=names,
            required=tuple(names[inner] for inner, (_, field) in fields.items() if field.is_required()),
        )
        assert signature.schema
    except PydanticUserError as error:
        reason = str(error).splitlines()[0]
        raise ValueError(f"the types of {name} cannot be told to a model: {reason}") from None
    if not signature.description:
        raise ValueError(f"{name} has no docstring; its first lines tell the model what it does: write some")
    return signature


def type_hints(function: Callable[..., Any], name: str) -> dict[str, Any]:
    plain = inspect.isroutine(function)
    try:
        return typing.get_type_hints(function if plain else type(function).__call__, include_extras=True)
    except NameError as error:
        raise ValueError(f"a type of {name} is unknown: {error}; import it at the top of its file") from None


def without_titles(schema: Any) -> Any:
    """The schema without pydantic's titles, which tell a model nothing."""
    if isinstance(schema, list):
        return [without_titles(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    titleless = {
        key: value for key, value in schema.items() if not (key == "title" and isinstance(value, str))
    }
    return {
        key: {name: without_titles(part) for name, part in value.items()}
        if key in ("properties", "$defs") and isinstance(value, dict)
        else without_titles(value)
        for key, value in titleless.items()
    }


# Docstrings.


def read_docstring(text: str, parameters: Sequence[str]) -> tuple[str, dict[str, str]]:
    """The descriptions of the function and of its parameters, in Google, NumPy or plain `name: text` style."""
    description: list[str] = []
    lines: dict[str, list[str]] = {}
    section, current, depth = "description", "", 0
    for line in text.splitlines():
        bare, indent = line.strip(), len(line) - len(line.lstrip())
        if UNDERLINE.match(bare):
            continue
        if HEADING.match(bare) or OTHER_HEADING.match(bare):
            section, current = "arguments" if HEADING.match(bare) else "other", ""
            continue
        if section == "other":
            continue
        argument = find_argument(bare, parameters, in_section=section == "arguments")
        if argument and (not current or indent <= depth):
            current, first = argument
            depth, lines[current] = indent, [first]
        elif current and bare and indent > depth:
            lines[current].append(bare)
        elif section == "description":
            current = ""
            description.append(line)
    joined = {name: " ".join(part for part in parts if part) for name, parts in lines.items()}
    return "\n".join(description).strip(), {name: part for name, part in joined.items() if part}


def find_argument(line: str, parameters: Sequence[str], *, in_section: bool) -> tuple[str, str] | None:
    """find_argument("query (str): what to look for", ["query"], …) -> ("query", "what to look for")."""
    if line.startswith(":param"):  # as Sphinx writes it
        line = line.removeprefix(":param").strip()
        line = line.partition(" ")[2] if line.partition(":")[0].count(" ") else line
    numpy = NUMPY_ARGUMENT.match(line) if in_section else None
    if numpy and numpy[1] in parameters and is_numpy(line):
        return numpy[1], ""
    match = ARGUMENT.match(line)
    return (match[1], match[2].strip()) if match and match[1] in parameters else None


def is_numpy(line: str) -> bool:
    """Whether a line is in NumPy style: `query : str`, or a lone name; the text follows below."""
    return " : " in line or ":" not in line


# What is wrong.


def explain(error: ValidationError, required: Sequence[str], known: Sequence[str]) -> str:
    """ "count: Input should be a valid integer, not 'many'", and so on for the first few."""
    mistakes = []
    for each in error.errors(include_url=False)[:MAX_MISTAKES]:
        place = ".".join(plain(part) for part in each["loc"])
        if each["type"] == "extra_forbidden":
            mistakes.append(f"there is no argument {place}; there are: {', '.join(known) or 'none'}")
        elif each["type"] == "missing":
            mistakes.append(f"the argument {place} is missing")
        else:
            mistakes.append(f"{place}: {each['msg']}, not {shown(each['input'])}")
    more = error.error_count() - len(mistakes)
    return "; ".join(mistakes) + (f"; and {more} more mistakes" if more > 0 else "")


def plain(part: str | int) -> str:
    """A known name unchanged; another in quotes."""
    return str(part) if isinstance(part, int) or part.isidentifier() else shown(part)


def shown(value: Any) -> str:
    try:
        text = repr(value) if not isinstance(value, str) else repr(value[: SHOWN + 1])
    except ValueError:  # an integer of more digits than Python likes to print
        text = f"a huge {type(value).__name__}"
    return text if len(text) <= SHOWN else text[:SHOWN] + "…"
