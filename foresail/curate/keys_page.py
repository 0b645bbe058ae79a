"""docs/curate-keys.md: every key of a curation recipe, from the types themselves.

python -m foresail.curate.keys_page > docs/curate-keys.md
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from foresail.curate.mixture import Mixture
from foresail.curate.read.source import Source
from foresail.curate.recipe import Curation, CurationCluster
from foresail.curate.sink import Sink
from foresail.curate.steps import STEPS, step_type
from foresail.recipe.keys import item_type, table_type

OPENING = """# Every key of a curation

Made from the types in `foresail/curate/` by `python -m foresail.curate.keys_page`. [curate.md](curate.md) says how
a recipe is written. `none` means unset. "required" keys have no default.
"""


def keys_page() -> str:
    sections = [
        section("Above the tables", "", Curation),
        section("[[source]]", "What is read ([curate-sources.md](curate-sources.md)).", Source),
        section("[[sink]]", "What is written.", Sink),
        section("[[mixture]]", f"{first_sentence(Mixture)} [curate.md](curate.md#mixtures)", Mixture),
        section("[cluster]", first_sentence(CurationCluster), CurationCluster),
        "## [[step]]\n\n`name` is required: one of these, or `file.py:function`, whose keys are its arguments.",
        *(step_section(name) for name in sorted(STEPS)),
    ]
    return "\n\n".join([OPENING.rstrip(), *sections]) + "\n"


def step_section(name: str) -> str:
    kind = step_type(name)
    return section(f'name = "{name}"', first_sentence(kind), kind, level="###")


def section(title: str, words: str, table: type[BaseModel], level: str = "##") -> str:
    rows = [*key_rows(table)]
    lines = [f"{level} {title}", *([words] if words else [])]
    if rows:
        lines.append("\n".join(["| key | default | meaning |", "|---|---|---|", *rows]))
    return "\n\n".join(lines)


def key_rows(table: type[BaseModel], prefix: str = "") -> Iterator[str]:
    """A row for every key; those of tables inside follow their own."""
    for name, field in table.model_fields.items():
        inner = table_type(field.annotation) or item_type(field.annotation)
        if table is Curation and inner is not None:
            continue  # a section of its own
        meaning = field.description or (first_sentence(inner) if inner is not None else "")
        choices = one_of(field.annotation)
        if choices and not all(choice in meaning for choice in choices):
            meaning += f"; one of {', '.join(f'`{choice}`' for choice in choices)}"
        yield f"| `{prefix}{name}` | {default_of(field)} | {cell(meaning)} |"
        if inner is not None:
            yield from key_rows(inner, f"{prefix}{name}.")


def default_of(field: FieldInfo) -> str:
    value = field.get_default(call_default_factory=True) if not field.is_required() else PydanticUndefined
    if value is PydanticUndefined:
        return "required"
    if value is None or value == ():
        return "none"
    if isinstance(value, BaseModel):
        return "a table"
    return f"`{cell(json.dumps(value, ensure_ascii=False, default=str))}`"


def one_of(annotation: Any) -> list[str]:
    """The words that a key takes, in order."""
    if get_origin(annotation) is Literal:
        return [str(choice) for choice in get_args(annotation)]
    if get_origin(annotation) in (Union, UnionType):
        return [choice for option in get_args(annotation) for choice in one_of(option)]
    return []


def first_sentence(kind: type) -> str:
    lines = (kind.__doc__ or "").strip().split("\n\n")[0].split("\n")
    return " ".join(line.strip() for line in lines)


def cell(text: str) -> str:
    return text.replace("|", "\\|").replace("](", "]\\(").replace("\n", " ")


if __name__ == "__main__":
    print(keys_page(), end="")
