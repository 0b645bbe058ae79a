"""Tools and calls of them as data has them, and as chat templates read them.

    read_calls([{"function": {"name": "add", "arguments": '{"a": 1}'}}], place)
        -> [{"type": "function", "function": {"name": "add", "arguments": {"a": 1}}}]
    read_tools('[{"name": "add", "parameters": {…}}]', place)
        -> [{"type": "function", "function": {"name": "add", "parameters": {…}}}]

OpenAI's form nests a function and has its arguments as JSON text; others have them bare, or all of it as JSON text.
Templates write arguments by `tojson`, so that text would be quoted twice: here it becomes an object.
"""

from __future__ import annotations

import json
from typing import Any

from foresail.data.files import excerpt


def read_calls(value: Any, place: str) -> list[dict[str, Any]]:
    """Of a column `tool_calls`."""
    if isinstance(value, str):
        return read_call(value, place)
    if not isinstance(value, list):
        raise ValueError(f"{place}: tool_calls must be a list, found {excerpt(value)}")
    return [to_call(entry, place) for entry in value]


def read_call(text: str, place: str) -> list[dict[str, Any]]:
    """One call or several as JSON, as ShareGPT's `function_call` has them."""
    value = parse(text, "a tool call", place)
    return [to_call(entry, place) for entry in (value if isinstance(value, list) else [value])]


def to_call(entry: Any, place: str) -> dict[str, Any]:
    inner = entry.get("function") if isinstance(entry, dict) else None
    function = inner if isinstance(inner, dict) else entry
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        raise ValueError(f"{place}: a tool call needs the name of a function, found {excerpt(entry)}")
    arguments = function.get("arguments", function.get("parameters"))
    if isinstance(arguments, str):
        arguments = (
            parse(arguments, f"the arguments of {function['name']}", place) if arguments.strip() else {}
        )
    if not isinstance(arguments, dict | None):
        raise ValueError(
            f"{place}: the arguments of {function['name']} must be a JSON object, found {excerpt(arguments)}"
        )
    call = {"type": "function", "function": {"name": function["name"], "arguments": arguments or {}}}
    return call if not isinstance(entry.get("id"), str) else {"id": entry["id"], **call}


def read_tools(value: Any, place: str) -> tuple[dict[str, Any], ...]:
    """Of a column `tools`, which may be empty."""
    if isinstance(value, str):
        value = parse(value, "tools", place) if value.strip() else []
    if not isinstance(value, list | None) or not all(isinstance(tool, dict) for tool in value or ()):
        raise ValueError(f"{place}: tools must be a list of JSON schemas, found {excerpt(value)}")
    return tuple(
        tool if isinstance(tool.get("function"), dict) else {"type": "function", "function": tool}
        for tool in value or ()
    )


def parse(text: str, what: str, place: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{place}: {what} is not JSON ({error}): {excerpt(text)}") from error
