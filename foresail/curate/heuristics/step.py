"""The step `heuristics`: drops what is no text by measures of words, lines and repeats.

    [[step]]
    name = "heuristics"                # works without keys
    rules = "rules.toml"               # over the shipped limits, which are in rules.toml beside this file
    without = ["curly_brackets"]

A text is prose, code, maths or listing, by its content, and each kind has limits of its own. Dropped: too_short,
repeated_lines, … What is kept has the metadata `text_kind`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from pydantic import Field

from foresail.curate.document import Document, Drop
from foresail.curate.step import StepFunction
from foresail.recipe.tables.part import CheckedPart
from foresail.recipe.tables.values import Texts

if TYPE_CHECKING:
    from foresail.curate.heuristics.rules import Rules
    from foresail.curate.heuristics.stop_words import StopWords


class Heuristics(CheckedPart):
    """Drops what is no text: too short, repeated, menus, keywords, broken; limits by language and kind."""

    rules: str = Field("", description="file of limits and stop words that go over the shipped ones")
    without: Texts = Field((), description="reasons that do not count, such as curly_brackets")
    language: str = Field(
        "language",
        description="key of metadata that holds the language; without it, the one with most stop words",
    )
    domain: str = Field(
        "", description="key of metadata by which `domain` limits are chosen; default: the URL's host"
    )
    measures: Texts = Field(
        (), description="measures to write into metadata, such as words or stop_word_share"
    )

    def mistakes(self) -> Iterator[str]:
        from foresail.curate.heuristics.measures import MEASURES
        from foresail.curate.heuristics.rules import Rules, read_rules

        try:
            rules = read_rules(self.rules)
        except ValueError as error:
            yield str(error)
            rules = Rules({})
        if self.rules == "" or rules.table:
            yield from (
                f"without: no rule has the reason {name}; reasons are {', '.join(sorted(rules.reasons))}"
                for name in self.without
                if name not in rules.reasons
            )
        yield from (
            f"measures: there is none called {name}; there are {', '.join(MEASURES)}"
            for name in self.measures
            if name not in MEASURES
        )

    def files(self) -> tuple[str, ...]:
        return (self.rules,) if self.rules else ()

    def open(self) -> StepFunction:
        from foresail.curate.heuristics.rules import read_rules
        from foresail.curate.heuristics.stop_words import StopWords

        rules = read_rules(self.rules)
        return Verdicts(self, rules, StopWords(rules.stop_words, rules.odd_pairs, self.language))


@dataclass(frozen=True)
class Verdicts:
    settings: Heuristics
    rules: Rules
    stop_words: StopWords

    def __call__(self, document: Document) -> Document | Drop:
        from foresail.curate.heuristics.measure import measure

        measured = measure(document.text, document.metadata, self.stop_words)
        values = measured.values
        for limit in self.rules.limits(measured.kind, measured.language, self.domain_of(document)):
            if limit.reason not in self.settings.without and limit.broken_by(values[limit.measure]):
                return limit.drop(values[limit.measure])
        found = {
            name: round(values[name], 4) for name in self.settings.measures if values[name] == values[name]
        }
        return replace(document, metadata=document.metadata | {"text_kind": measured.kind} | found)

    def domain_of(self, document: Document) -> str:
        """The nearest domain that has limits: "a.example.org" has those of "example.org"."""
        if not self.rules.domains:
            return ""
        if self.settings.domain:
            return str(document.metadata.get(self.settings.domain, ""))
        host = host_of(document.url)
        while host and host not in self.rules.domains:
            host = host.partition(".")[2]
        return host


def host_of(url: str) -> str:
    try:
        return urlsplit(url.strip()).hostname or ""
    except ValueError:
        return ""
