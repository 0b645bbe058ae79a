"""Limits of measures, from `rules.toml` and a file of the user's on top of it.

    [all.too_short]                    # a reason
    words = {least = 20}               # a measure, and its limits

    [code.too_short]                   # instead, for texts of that kind
    words = {least = 10}

    [code]
    few_stop_words = false             # a reason that does not count there

    [language.th.prose.few_stop_words]
    stop_words = {least = 3}

    [domain."example.org".all]
    curly_brackets = false

Later ones go over earlier ones: all, kind, language, domain.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from foresail.curate.document import Drop
from foresail.curate.heuristics.kind import KINDS, Kind
from foresail.curate.heuristics.measures import MEASURES

FOLDER = Path(__file__).parent
SHIPPED, ODD_PAIRS = FOLDER / "rules.toml", FOLDER / "odd_pairs.toml"
ALL = "all"
GROUPS = (ALL, *KINDS)
ADDRESSES = ("language", "domain")


@dataclass(frozen=True, kw_only=True)
class Limit:
    reason: str
    measure: str
    least: float | None = None
    most: float | None = None

    def broken_by(self, value: float) -> bool:
        return (self.least is not None and value < self.least) or (
            self.most is not None and value > self.most
        )

    def drop(self, value: float) -> Drop:
        limit = (
            f"at least {self.least:g}"
            if self.least is not None and value < self.least
            else f"at most {self.most:g}"
        )
        number = f"{value:.0f}" if float(value).is_integer() else f"{value:.3g}"
        return Drop(self.reason, f"{MEASURES[self.measure].format(number)}; {limit}")


@dataclass(frozen=True)
class Rules:
    table: Mapping[str, Any]
    resolved: dict[tuple[str, str, str], tuple[Limit, ...]] = field(default_factory=dict)

    @cached_property
    def stop_words(self) -> dict[str, list[str]]:
        return {
            name: own["stop_words"]
            for name, own in self.table.get("language", {}).items()
            if "stop_words" in own
        }

    @cached_property
    def odd_pairs(self) -> dict[str, dict[str, list[str]]]:
        """Those of languages whose stop words are the shipped ones."""
        shipped = Rules(read_table(SHIPPED)).stop_words
        table = tomllib.loads(ODD_PAIRS.read_text(encoding="utf-8"))
        return {name: own for name, own in table.items() if self.stop_words.get(name) == shipped.get(name)}

    @cached_property
    def domains(self) -> frozenset[str]:
        return frozenset(self.table.get("domain", {}))

    def limits(self, kind: Kind, language: str, domain: str) -> tuple[Limit, ...]:
        key = (kind, language, domain)
        if key not in self.resolved:
            self.resolved[key] = tuple(self.resolve(kind, language, domain))
        return self.resolved[key]

    def resolve(self, kind: Kind, language: str, domain: str) -> Iterator[Limit]:
        layers = [
            self.table,
            *(
                self.table.get(name, {}).get(own, {})
                for name, own in zip(ADDRESSES, (language, domain), strict=True)
            ),
        ]
        reasons: dict[str, dict[str, Any]] = {}
        for layer in layers:
            for group in (ALL, kind):
                for reason, limits in layer.get(group, {}).items():
                    reasons[reason] = {} if limits is False else reasons.get(reason, {}) | limits
        for reason, measures in reasons.items():
            for measure, limits in measures.items():
                yield Limit(reason=reason, measure=measure, **limits)

    @cached_property
    def reasons(self) -> frozenset[str]:
        inner = [own for name in ADDRESSES for own in self.table.get(name, {}).values()]
        return frozenset(
            reason for layer in (self.table, *inner) for group in GROUPS for reason in layer.get(group, {})
        )


def read_rules(path: str) -> Rules:
    """The shipped rules, and those of the file at `path` over them."""
    table = read_table(SHIPPED)
    return Rules(lay_over(table, read_table(Path(path))) if path else table)


def read_table(path: Path) -> dict[str, Any]:
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ValueError(f"rules: there is no file {path}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"rules: {path} is not TOML: {error}") from None
    if mistakes := [*mistakes_of(table, "")]:
        raise ValueError(f"rules: {path}: " + "; ".join(mistakes))
    return table


def mistakes_of(table: Mapping[str, Any], place: str) -> Iterator[str]:
    for name, own in table.items():
        path = f"{place}{name}"
        if name == "stop_words" and place.startswith("language."):
            if not (isinstance(own, list) and all(map(is_word, own))):
                yield f"{path} must be a list of words without spaces"
        elif not isinstance(own, dict):
            yield f"{path} must be a table"
        elif name in ADDRESSES and not place:
            for address, inner in own.items():
                if isinstance(inner, dict):
                    yield from mistakes_of(inner, f"{path}.{address}.")
                else:
                    yield f"{path}.{address} must be a table"
        elif name not in GROUPS:
            yield f"{path}: {name} is none of {', '.join(GROUPS)}" + ("" if place else ", language, domain")
        else:
            for reason, measures in own.items():
                yield from reason_mistakes(f"{path}.{reason}", reason, measures)


def is_word(value: Any) -> bool:
    return isinstance(value, str) and value.split() == [value]


def reason_mistakes(path: str, reason: str, measures: Any) -> Iterator[str]:
    if not (reason.isidentifier() and reason.islower()):
        yield f"{path}: a reason is one word of small letters"
    if measures is False:
        return
    if not isinstance(measures, dict):
        yield f"{path} must be false or a table of measures"
        return
    for measure, limits in measures.items():
        if measure not in MEASURES:
            yield f"{path}: there is no measure {measure}; there are {', '.join(MEASURES)}"
        elif not isinstance(limits, dict) or not limits or not {*limits} <= {"least", "most"}:
            yield f"{path}.{measure} must be like {{least = 1}} or {{most = 2}}"
        elif not all(
            isinstance(limit, int | float) and not isinstance(limit, bool) for limit in limits.values()
        ):
            yield f"{path}.{measure}: limits are numbers"


def lay_over(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Tables are merged, everything else is replaced."""
    merged = dict(below)
    for name, own in above.items():
        before = merged.get(name)
        merged[name] = lay_over(before, own) if isinstance(own, dict) and isinstance(before, dict) else own
    return merged
