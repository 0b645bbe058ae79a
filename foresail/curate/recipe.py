"""A curation recipe: sources, steps in their order, sinks.

    out = "curated/web"

    [[source]]
    path = "crawl/*.warc.gz"

    [[step]]
    name = "extract"

    [[step]]
    name = "cleaning.py:fix_quotes"     # your own: document in; document, documents or Drop out
    style = "english"                   # its keyword arguments

    [[sink]]
    kind = "jsonl"

A step's keys depend on its name (`curate/steps.py`). `step#2.style=french` on the command line changes the second.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from foresail.curate.hints import step_hint, take_unknown
from foresail.curate.mixture import Mixture
from foresail.curate.named_step import NamedStep, build_user_step
from foresail.curate.read.source import Source
from foresail.curate.sink import Sink
from foresail.curate.steps import STEPS, step_type
from foresail.curate.user_step import is_user_code
from foresail.recipe.keys import Tables
from foresail.recipe.reading.load import RecipeError, check_table, complaint, read_toml
from foresail.recipe.reading.overrides import parse_value, split_overrides
from foresail.recipe.tables.part import CheckedPart, Part

OF_STEP = re.compile(r"step#(\d+)\.(.+)")


class CurationCluster(Part):
    """Where the processes are."""

    kind: Literal["local", "ray"] = Field(
        "local",
        description="local: processes of this machine; ray: Ray Data on a cluster, with the same output",
    )
    workers: int = Field(0, ge=0, description="processes; 0: one for every core")
    address: str | None = Field(
        None, description="address of a running Ray cluster, or auto; default: start one on this machine"
    )


class Curation(CheckedPart):
    """What a recipe says beside its steps."""

    out: str = Field(description="folder of the output, the report, and what a stopped run goes on with")
    seed: int = Field(0, description="of the examples in the report, which are drawn at random")
    max_cpu_seconds: float = Field(
        60.0, gt=0, description="CPU time for one document; one that needs more is dropped as stalled"
    )
    worker_memory_gib: float = Field(
        8.0, gt=0, description="memory of one process; a document that needs more is dropped"
    )
    source: Tables[Source] = Field((), description="what is read, in this order")
    sink: Tables[Sink] = Field((), description="what is written; default: JSONL")
    mixture: Tables[Mixture] = Field((), description="for the stages of a pretraining")
    cluster: CurationCluster = CurationCluster()

    def mistakes(self) -> Iterator[str]:
        tokens = [sink.name for sink in self.sink if sink.kind == "tokens"]
        for mixture in self.mixture:
            if mixture.sink not in tokens:
                yield (
                    f'mixture {mixture.name}: there is no sink {mixture.sink!r} of kind = "tokens"; '
                    + (f"one of: {', '.join(tokens)}" if tokens else 'add [[sink]] with kind = "tokens"')
                )
        names = [mixture.name for mixture in self.mixture]
        yield from (f"mixture {name} is there twice; name one of them anew" for name in repeated(names))


def repeated(names: Sequence[str]) -> set[str]:
    return {name for name in names if names.count(name) > 1}


@dataclass(frozen=True)
class CurationRecipe:
    """`limit`: documents of every source, where a recipe is tried on the first of them."""

    curation: Curation
    steps: tuple[NamedStep, ...]
    limit: int | None = None

    @property
    def out(self) -> Path:
        return Path(self.curation.out)

    def limited(self, limit: int | None) -> CurationRecipe:
        """For a try: the first documents of every source, into a folder beside the recipe's own."""
        if limit is None:
            return self
        out = self.out.with_name(f"{self.out.name}-first-{limit}")
        return replace(self, curation=self.curation.model_copy(update={"out": str(out)}), limit=limit)


def load_curation(path: str | Path, overrides: Sequence[str] = ()) -> CurationRecipe:
    return build_curation(read_toml(Path(path)), str(path), overrides)


def build_curation(
    table: dict[str, Any], name: str = "recipe", overrides: Sequence[str] = ()
) -> CurationRecipe:
    """The recipe that nested dicts describe; one error lists all mistakes."""
    settings, mistakes = split_overrides(overrides)
    entries = table.pop("step", [])
    for written in (table, settings):
        mistakes += take_unknown("", written, (*Curation.model_fields, "step"))
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise complaint(name, ["step: write each step as a table, [[step]]"])
    change_steps(entries, settings, mistakes)
    steps = []
    for number, entry in enumerate(entries, start=1):
        try:
            steps.append(build_step(number, entry))
        except RecipeError as error:
            mistakes.append(str(error))
    try:
        curation = check_table(name, table, settings, [], Curation)
    except RecipeError as error:
        mistakes.append(str(error).removeprefix(f"{name}: "))
    else:
        if not curation.source:
            mistakes.append('source is missing; add [[source]] with path = "…"')
        mistakes += row_mistakes(curation, steps)
    if mistakes:
        raise complaint(name, mistakes)
    return CurationRecipe(curation, tuple(steps))


def row_mistakes(curation: Curation, steps: Sequence[NamedStep]) -> Iterator[str]:
    """Sources that hold different things; steps and sinks that do not take what comes to them."""
    holds = sorted({source.holds for source in curation.source})
    if len(holds) > 1:
        yield f"the sources hold {' and '.join(holds)}; write a recipe for each"
    elif holds:
        held = holds[0]
        for step in steps:
            if held not in step.takes:
                takes = " or ".join(step.takes)
                yield f"step#{step.number} ({step.name}) takes {takes}, and what comes to it are {held}"
            held = getattr(step.settings, "gives", held)
        if holds != ["documents"]:
            kinds = {sink.kind for sink in curation.sink} - {"jsonl"}
            yield from (f'a sink of kind = "{kind}" takes documents; use jsonl' for kind in sorted(kinds))


def change_steps(entries: list[dict[str, Any]], settings: dict[str, str], mistakes: list[str]) -> None:
    """Lay overrides such as `step#2.min_chars=100` over the steps, and take them out of `settings`."""
    for key in [*settings]:
        if not (match := OF_STEP.fullmatch(key)):
            continue
        number, text = int(match[1]), settings.pop(key)
        if not 1 <= number <= len(entries):
            mistakes.append(f"{key}: there are {len(entries)} steps; count from 1")
        else:
            put_inside(entries[number - 1], match[2].split("."), parse_value(text, None))


def put_inside(entry: dict[str, Any], path: Sequence[str], value: Any) -> None:
    """put_inside(entry, ["answerer", "model"], "m") sets a key of a step's table."""
    *tables, key = path
    for name in tables:
        inside = entry.get(name)
        entry[name] = entry = {**inside} if isinstance(inside, dict) else {}
    entry[key] = value


def build_step(number: int, entry: dict[str, Any]) -> NamedStep:
    place = f"step#{number}"
    name = entry.get("name")
    keys = {key: value for key, value in entry.items() if key != "name"}
    if not isinstance(name, str):
        hint = step_hint("", STEPS)
        raise RecipeError(f'{place}: name is missing; write name = "…"; {hint}')
    if is_user_code(name):
        return build_user_step(number, name, keys)
    if name not in STEPS:
        raise RecipeError(f"{place}: there is no step {name!r}; {step_hint(name, STEPS)}")
    kind = step_type(name)
    unknown = [*take_unknown("", left := dict(keys), kind.model_fields)]
    return NamedStep(number, name, check_table(f"{place} ({name})", left, {}, unknown, kind), keys)
