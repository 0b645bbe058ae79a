"""Whether arguments of a tool call fit the tool's JSON schema: the part of JSON Schema that tools use.

    mistakes({"n": "5"}, {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n", "unit"]})
        -> ["unit is missing", 'n is "5", not an integer']

Checked: type, enum, const, required, properties, additionalProperties, items, counts and bounds, anyOf, oneOf,
allOf, $ref within the schema. Not checked: pattern and format. Types as Python writes them ("str", "List[int]",
"int, optional") are understood, and properties that stand where the schema should.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

DEEPEST = 32
MOST = 20  # mistakes of one call
SHOWN = 40  # characters of a value
NAMES = {
    "str": "string", "text": "string", "char": "string", "int": "integer", "long": "integer", "float": "number",
    "double": "number", "decimal": "number", "bool": "boolean", "dict": "object", "map": "object",
    "hash": "object", "list": "array", "tuple": "array", "set": "array", "none": "null", "nonetype": "null",
}  # fmt: skip
TYPES = ("string", "integer", "number", "boolean", "object", "array", "null")
SPOKEN = {
    "string": "a text", "integer": "an integer", "number": "a number", "boolean": "true or false",
    "object": "an object", "array": "a list", "null": "null",
}  # fmt: skip
WORD = re.compile(r"[A-Za-z]+")
BOUNDS = (
    ("minimum", lambda value, bound: value >= bound, "below"),
    ("maximum", lambda value, bound: value <= bound, "above"),
    ("exclusiveMinimum", lambda value, bound: value > bound, "not above"),
    ("exclusiveMaximum", lambda value, bound: value < bound, "not below"),
)
LENGTHS = {"minLength": str, "maxLength": str, "minItems": list, "maxItems": list}


def mistakes(value: Any, schema: Any, strict: bool = False) -> list[str]:
    """`strict`: names that the schema does not have are mistakes wherever it has properties."""
    first = []
    for mistake in check(value, schema, schema, "", strict, 0):
        first.append(mistake)
        if len(first) == MOST:
            break
    return first


def argument_schema(function: Mapping[str, Any]) -> Any:
    """Of a tool: its parameters, or properties that stand in their place."""
    schema = function.get("parameters", function.get("input_schema", function.get("arguments")))
    if not isinstance(schema, Mapping):
        return {}
    has_form = isinstance(schema.get("properties"), Mapping) or {"$ref", "anyOf", "allOf", "oneOf"} & {
        *schema
    }
    if (
        has_form
        or isinstance(schema.get("type"), str | list)
        or not all(isinstance(one, Mapping) for one in schema.values())
    ):
        return schema
    return {"type": "object", "properties": schema}


def check(value: Any, schema: Any, root: Any, path: str, strict: bool, depth: int) -> Iterator[str]:
    if depth > DEEPEST or schema is True or not isinstance(schema, Mapping | bool):
        return
    if schema is False:
        yield f"{path or 'it'} may not be there"
        return
    assert isinstance(schema, Mapping)
    if isinstance(reference := schema.get("$ref"), str):
        yield from check(value, resolve(root, reference), root, path, strict, depth + 1)
    if value is None and (schema.get("nullable") is True or schema.get("default", 0) is None):
        return
    name = path or "the arguments"
    types = types_of(schema)
    if types and not any(is_of(value, kind) for kind in types):
        yield f"{name} is {shown(value)}, not {' or '.join(SPOKEN[kind] for kind in types)}"
        return
    options = schema.get("enum")
    if (
        isinstance(options, list)
        and not any(same(value, option) for option in options)
        and not (value is None and "null" in types)
    ):
        yield f"{name} is {shown(value)}, not one of {shown(options)}"
    if "const" in schema and not same(value, schema["const"]):
        yield f"{name} is {shown(value)}, not {shown(schema['const'])}"
    yield from check_bounds(value, schema, name)
    if isinstance(value, dict):
        yield from check_object(value, schema, root, path, strict, depth)
    if isinstance(value, list):
        for place, item in enumerate(value):
            yield from check(item, schema.get("items", True), root, f"{path}[{place}]", strict, depth + 1)
    for part in listed(schema, "allOf"):
        yield from check(value, part, root, path, strict, depth + 1)
    for key in ("anyOf", "oneOf"):
        parts = listed(schema, key)
        if parts and all(next(check(value, part, root, path, strict, depth + 1), None) for part in parts):
            yield f"{name} is {shown(value)}, which fits none of {key}"


def check_object(
    value: dict[str, Any], schema: Mapping[str, Any], root: Any, path: str, strict: bool, depth: int
) -> Iterator[str]:
    properties = schema.get("properties")
    properties = properties if isinstance(properties, Mapping) else {}
    required = schema.get("required")
    for name in required if isinstance(required, list) else ():
        if isinstance(name, str) and name not in value:
            yield f"{joined(path, name)} is missing"
    others = schema.get("additionalProperties", True)
    for name, item in value.items():
        own = joined(path, name)
        if name in properties:
            yield from check(item, properties[name], root, own, strict, depth + 1)
        elif others is False or (strict and properties and others is True):
            yield f"{own} is none of its parameters"
        elif isinstance(others, Mapping):
            yield from check(item, others, root, own, strict, depth + 1)


def check_bounds(value: Any, schema: Mapping[str, Any], name: str) -> Iterator[str]:
    if is_of(value, "number"):
        for key, fits, word in BOUNDS:
            if is_of(bound := schema.get(key), "number") and not fits(value, bound):
                yield f"{name} is {shown(value)}, {word} {shown(bound)}"
    for key, kind in LENGTHS.items():
        if not isinstance(value, kind) or not is_of(bound := schema.get(key), "integer"):
            continue
        if (len(value) < bound) if key.startswith("min") else (len(value) > bound):
            yield f"{name} has {len(value)} {'characters' if kind is str else 'items'}; {key} is {bound}"


def types_of(schema: Mapping[str, Any]) -> tuple[str, ...]:
    """Of {"type": "int, optional"}: ("integer", "null"). Nothing: any type."""
    written = schema.get("type")
    names = written if isinstance(written, list) else [written]
    types: list[str] = []
    for name in names:
        if not isinstance(name, str):
            return ()
        if name in TYPES:
            types.append(name)
            continue
        words = [word.lower() for word in WORD.findall(name)]
        first = next((word for word in words if word not in ("optional", "union", "typing")), "")
        known = NAMES.get(first, first)
        if known not in TYPES or "union" in words or "|" in name:
            return ()
        types += [known, "null"] if "optional" in words else [known]
    return tuple(types)


def is_of(value: Any, kind: str) -> bool:
    match kind:
        case "string":
            return isinstance(value, str)
        case "integer":
            is_whole = isinstance(value, float) and value.is_integer()
            return (isinstance(value, int) or is_whole) and not isinstance(value, bool)
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "boolean":
            return isinstance(value, bool)
        case "object":
            return isinstance(value, dict)
        case "array":
            return isinstance(value, list)
    return value is None


def same(one: Any, other: Any) -> bool:
    """JSON's equality: 1 is 1.0 and not true."""
    return one == other and isinstance(one, bool) == isinstance(other, bool)


def resolve(root: Any, reference: str) -> Any:
    """ "#/$defs/Point"; what is elsewhere is not looked at."""
    place = root
    for part in reference.removeprefix("#").split("/")[1:] if reference.startswith("#") else ("",):
        part = part.replace("~1", "/").replace("~0", "~")
        if not isinstance(place, Mapping) or part not in place:
            return True
        place = place[part]
    return place


def listed(schema: Mapping[str, Any], key: str) -> list[Any]:
    parts = schema.get(key)
    return parts if isinstance(parts, list) else []


def joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…"
