"""The step `blocked_words`: drops documents that have several words of a list.

    [[step]]
    name = "blocked_words"
    lists = ["blocked"]        # a folder with a file for each language: blocked/en, blocked/th.txt
    least = 3                  # different words
    share = 0.02               # or so many of all words

In a folder, each file is for the language of its name; a file that is named itself is for all documents. Words are
matched whole; in scripts without spaces between words, anywhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from pydantic import Field

from foresail.curate.document import Document, Drop
from foresail.curate.lists.entries import list_files, mistakes_in, read_entries
from foresail.curate.lists.phrases import Phrases
from foresail.curate.rows.holds import ANY, Holds
from foresail.curate.step import StepFunction
from foresail.recipe.tables.part import CheckedPart
from foresail.recipe.tables.values import Texts

LANGUAGE = re.compile(r"[a-z]{2,3}(-[A-Za-z]{2,4})?")
LIST_SUFFIXES = ("", ".txt", ".gz", ".xz")  # others in a folder are a README
SHOWN = 3  # words in a detail
ALL = ""  # the list for documents of every language


class BlockedWords(CheckedPart):
    """Drops documents with several words of a list, by language."""

    takes: ClassVar[Holds] = ANY

    lists: Texts = Field(
        description="files with a word or phrase in a line, for all documents; folders of files named by a "
        "language, such as en or en.txt"
    )
    least: int = Field(3, ge=1, description="different words from which a document is dropped")
    share: float = Field(
        1.0, ge=0, le=1, description="of a document's words; it is dropped if more are blocked"
    )
    language: str = Field("language", description="key of metadata that holds the language")
    default: str = Field("", description="the language of documents without one, such as en; default: none")

    def mistakes(self) -> Iterator[str]:
        if not self.lists:
            yield 'lists is empty; write lists = ["words.txt"]'
        if mistakes := [*mistakes_in(self.lists)]:
            yield from mistakes
            return
        files = [*files_by_language(self.lists)]
        for language, file in files:
            if not (language == ALL or LANGUAGE.fullmatch(language)):
                yield f"{file} is not named by a language, such as en.txt; to use it for all, write it into lists"
        languages = sorted({language for language, _ in files} - {ALL})
        if self.default and self.default not in languages:
            yield f"default: no list is for {self.default}; lists are for {', '.join(languages) or 'all languages'}"

    def files(self) -> list[Path]:
        return list_files(self.lists)

    def open(self) -> StepFunction:
        entries: dict[str, list[str]] = {ALL: []}
        for language, file in files_by_language(self.lists):
            entries.setdefault(language, []).extend(read_entries(file))
        for_all = entries[ALL]
        return WordVerdicts(self, {name: Phrases.of((*own, *for_all)) for name, own in entries.items()})


def files_by_language(paths: Iterable[str]) -> Iterator[tuple[str, Path]]:
    """blocked (a folder) -> ("en", blocked/en.txt), …; slurs.txt -> ("", slurs.txt)"""
    for path in paths:
        for file in list_files([path]):
            if not Path(path).is_dir():
                yield ALL, file
            elif file.suffix in LIST_SUFFIXES and file.name.upper() != "LICENSE":
                yield file.name.partition(".")[0], file


@dataclass(frozen=True)
class WordVerdicts:
    settings: BlockedWords
    phrases: dict[str, Phrases]

    def __call__(self, document: Document) -> Document | Drop:
        language = str(document.metadata.get(self.settings.language) or self.settings.default)
        names = (language, language.partition("-")[0], ALL)
        phrases = next(self.phrases[name] for name in names if name in self.phrases)
        found = phrases.count(document.text)
        shown = ", ".join(found.different[:SHOWN])
        if len(found.different) >= self.settings.least:
            return Drop("blocked_words", f"{len(found.different)} different ones, such as {shown}")
        if found.share > self.settings.share:
            return Drop("blocked_words", f"{found.share:.3f} of the words, such as {shown}")
        return document
