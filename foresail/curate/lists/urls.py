"""The step `blocked_urls`: drops documents by their address.

    [[step]]
    name = "blocked_urls"
    lists = ["blacklists/adult/domains", "blacklists/adult/urls"]   # hosts and addresses, one in a line
    words = ["casino", "viagra"]                                     # whole words in the address
    patterns = ["/tag/[0-9]+$"]
    allow = ["health.example.org"]

Lists may also be hosts files (`0.0.0.0 example.org`). A host blocks its subdomains, an address what begins with it.
Documents without an address stay.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from pydantic import Field

from foresail.curate.document import Document, Drop
from foresail.curate.lists.entries import list_files, mistakes_in, read_entries
from foresail.curate.lists.hosts import BlockedHosts
from foresail.curate.step import StepFunction
from foresail.recipe.tables.part import CheckedPart
from foresail.recipe.tables.values import Texts

WORD = re.compile(r"[^\W_]+")


class BlockedUrls(CheckedPart):
    """Drops documents whose address is on a list of hosts and addresses, or has a word or pattern."""

    lists: Texts = Field(
        (),
        description="files of hosts and addresses, one in a line, or hosts files; patterns and folders too",
    )
    domains: Texts = Field((), description="more of them, such as example.org or example.org/shop")
    word_lists: Texts = Field((), description="files of words, one in a line")
    words: Texts = Field((), description="more words; a whole word of the address must be equal, in any case")
    patterns: Texts = Field(
        (), description="regular expressions that are searched in the address, in any case"
    )
    allow: Texts = Field((), description="hosts and addresses that stay, whatever else says")
    allow_lists: Texts = Field((), description="files of them")

    def mistakes(self) -> Iterator[str]:
        if not (self.lists or self.domains or self.word_lists or self.words or self.patterns):
            yield 'blocked_urls blocks nothing; write lists = ["domains.txt"], domains, words or patterns'
        yield from mistakes_in((*self.lists, *self.word_lists, *self.allow_lists))
        for pattern in self.patterns:
            try:
                re.compile(pattern)
            except re.error as error:
                yield f"patterns: {pattern} is no regular expression: {error}"

    def files(self) -> list[Path]:
        return list_files((*self.lists, *self.word_lists, *self.allow_lists))

    def open(self) -> StepFunction:
        return UrlVerdicts(
            blocked=BlockedHosts.of((*entries_of(self.lists), *self.domains)),
            allowed=BlockedHosts.of((*entries_of(self.allow_lists), *self.allow)),
            words=frozenset(word.casefold() for word in (*entries_of(self.word_lists), *self.words)),
            patterns=tuple(re.compile(pattern, re.IGNORECASE) for pattern in self.patterns),
        )


def entries_of(paths: tuple[str, ...]) -> Iterator[str]:
    for file in list_files(paths):
        yield from read_entries(file)


@dataclass(frozen=True, kw_only=True)
class UrlVerdicts:
    blocked: BlockedHosts
    allowed: BlockedHosts
    words: frozenset[str]
    patterns: tuple[re.Pattern[str], ...]

    def __call__(self, document: Document) -> Document | Drop:
        url = document.url
        if not url:
            return document
        drop = self.verdict(url)
        return document if drop is None or self.allowed.find(url) is not None else drop

    def verdict(self, url: str) -> Drop | None:
        if (entry := self.blocked.find(url)) is not None:
            return Drop("blocked_address" if "/" in entry else "blocked_domain", f"{entry} is on a list")
        if self.words:
            for word in WORD.findall(unquote(url).casefold()):
                if word in self.words:
                    return Drop("blocked_url_word", f"the address has the word {word}")
        for pattern in self.patterns:
            if match := pattern.search(url):
                return Drop("blocked_url_pattern", f"{pattern.pattern} is in the address: {match[0]}")
        return None
