"""Translate: problems and conversations in other languages, checked by translating them back.

[[step]]
name = "translate"
languages = ["id", "vi", "th"]

[step.answerer]
endpoint = "http://localhost:8000/v1"
model = "qwen3-32b"

Each message is translated alone. Code, LaTeX, addresses, calls of tools and their results stay as they are. A row
is kept in a language only where every message passes (`translation_checks.py`). Its id is ROW~LANGUAGE.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from pydantic import Field

from foresail.chat.endpoint import Refused
from foresail.curate.asking.asking import Asking
from foresail.curate.asking.cache import AnswerCache
from foresail.curate.asking.cost import Cost
from foresail.curate.document import Document, Drop
from foresail.curate.lineage.section import FROM, MADE, row_origin
from foresail.curate.rewriting.fidelity import GuessLanguage, languages_of
from foresail.curate.rewriting.placeholders import protect, restore
from foresail.curate.rewriting.question import prompt_key, row_messages
from foresail.curate.rewriting.tagged import prompt_hash, read_tagged
from foresail.curate.rewriting.translation_checks import Limits, check_translation
from foresail.curate.rewriting.translation_prompt import NAMES, TRANSLATION, translation_prompt
from foresail.curate.rows.holds import ROWS, Holds
from foresail.curate.rows.problem import problem_of
from foresail.curate.rows.row import MESSAGES, with_row
from foresail.curate.step import Outcome
from foresail.recipe.tables.answerer import Answerer
from foresail.recipe.tables.part import Part
from foresail.recipe.tables.values import Texts

BETWEEN = "~"  # a row's id and the language
IN_WORDS = re.compile(r"[^\W\d_]{2,}")
SYMBOLS = re.compile(r"\\[A-Za-z]+")


class Translate(Part):
    """Rows in other languages, by a model; kept where every message passes."""

    takes: ClassVar[Holds] = ROWS

    answerer: Answerer = Field(description="who translates: a checkpoint, or a server")
    languages: Texts = Field(description="codes, such as id, ms, th, vi, tl, pt, zh, en")
    back: Answerer | None = Field(None, description="who translates back; default: who translates")
    source: str = Field("", description="language of the rows; default: that of each row, as it is guessed")
    keep_original: bool = Field(True, description="the row goes on beside its translations")
    least_back: float = Field(
        0.45, ge=0, le=1, description="chrF of each message with its back-translation, at least"
    )
    longest: float = Field(2.5, gt=1, description="length of a message, as a multiple of what is usual")
    batch_size: int = Field(16, ge=1, description="rows whose messages are asked about at once")

    def preflight(self) -> None:
        known = [code for code in (*self.languages, self.source) if code]
        if unknown := [code for code in known if code not in NAMES]:
            raise ValueError(f"languages: {unknown[0]!r} is none of {', '.join(NAMES)}")
        if not self.languages:
            raise ValueError("languages is empty; name some, such as id and vi")

    def cost(self, documents: int, characters: int) -> Cost:
        """Of rows with at most eight messages that are translated, on the average."""
        messages = 8 * documents
        count = 2 * messages * len(self.languages)
        tokens = (self.answerer.max_new_tokens + (self.back or self.answerer).max_new_tokens) * count // 2
        prompts = int(len(self.languages) * characters * (1 + self.longest)) + count * 600
        return Cost(requests=count, prompt_characters=prompts, answer_tokens=tokens)

    def open_asking(self, cache: AnswerCache) -> Callable[[Sequence[Document]], list[Outcome]]:
        from foresail.curate.language.step import open_model

        there, back = Asking(self.answerer, cache), Asking(self.back or self.answerer, cache)
        return Translator(self, there, back, open_model("").guess)


@dataclass
class Passage:
    """The text of one message on its way."""

    place: int
    text: str
    marked: str
    parts: list[str]
    translated: str = ""


@dataclass
class Version:
    """A row in one language."""

    document: Document
    source: str
    language: str
    passages: list[Passage] = field(default_factory=list)
    drop: Drop | None = None

    @property
    def id(self) -> str:
        return f"{self.document.id}{BETWEEN}{self.language}"


@dataclass(frozen=True)
class Translator:
    settings: Translate
    there: Asking
    back: Asking
    guess: GuessLanguage

    def __call__(self, documents: Sequence[Document]) -> list[Outcome]:
        versions = {document.id: [*self.versions(document)] for document in documents}
        every = [version for own in versions.values() for version in own if version.drop is None]
        self.translate(every)
        self.check([version for version in every if version.drop is None])
        outcomes: list[Outcome] = []
        for document in documents:
            made = [self.settled(version) for version in versions[document.id]]
            outcomes.append([document, *made] if self.settings.keep_original else made)
        return outcomes

    def settled(self, version: Version) -> Document | Drop:
        if version.drop is not None:
            return replace(
                version.drop, document=version.drop.document or replace(version.document, id=version.id)
            )
        return self.made(version)

    def versions(self, document: Document) -> list[Version]:
        texts = row_messages(document)
        words = tool_names(document)
        source = self.settings.source or next(iter(languages_of(document.text, self.guess)), "")
        if not source:
            return [
                Version(document, "", code, drop=Drop("unknown_language")) for code in self.settings.languages
            ]
        versions = []
        for code in self.settings.languages:
            if code == source:
                continue
            version = Version(document, source, code)
            for place, message in enumerate(texts):
                if message["role"] != "tool" and any(map(str.isalpha, message["content"])):
                    version.passages.append(
                        Passage(place, message["content"], *protect(message["content"], words))
                    )
            if has_answer_in_words(document):
                version.drop = Drop(
                    "answer_in_words", problem_of(document.id, document.row or {}).answer[:100]
                )
            versions.append(version)
        return versions

    def translate(self, versions: Sequence[Version]) -> None:
        pairs = [(version, passage) for version in versions for passage in version.passages]
        questions = [
            translation_prompt(one.marked, version.source, version.language) for version, one in pairs
        ]
        answers = self.there(questions, [f"{version.id}#{one.place}" for version, one in pairs])
        for (version, passage), answer in zip(pairs, answers, strict=True):
            if version.drop is not None:
                continue
            if isinstance(answer, Refused):
                version.drop = Drop("refused", answer.detail[:300])
            else:
                passage.translated = read_tagged(answer, TRANSLATION)
                if restore(passage.translated, passage.parts) is None:
                    version.drop = Drop(
                        "lost_part", f"message {passage.place + 1}: {passage.translated[:150]}"
                    )

    def check(self, versions: Sequence[Version]) -> None:
        pairs = [(version, passage) for version in versions for passage in version.passages]
        questions = [
            translation_prompt(one.translated, version.language, version.source) for version, one in pairs
        ]
        answers = self.back(questions, [f"{version.id}#{one.place}#back" for version, one in pairs])
        for (version, passage), answer in zip(pairs, answers, strict=True):
            if version.drop is not None:
                continue
            if isinstance(answer, Refused):
                version.drop = Drop("refused", answer.detail[:300])
                continue
            limits = Limits(
                language=version.language,
                source=version.source,
                least_back=self.settings.least_back,
                longest=self.settings.longest,
            )
            back = read_tagged(answer, TRANSLATION)
            try:
                drop = check_translation(passage.marked, passage.translated, back, limits, self.guess)
            except Exception as error:  # of one row; the others go on
                drop = Drop("failed", f"{type(error).__name__}: {error}"[:200])
            if drop is not None:
                version.drop = replace(
                    drop,
                    detail=f"message {passage.place + 1}: {drop.detail}",
                    document=self.made(version),
                )

    def made(self, version: Version) -> Document:
        document, row = version.document, dict(version.document.row or {})
        texts = {one.place: restore(one.translated, one.parts) or one.translated for one in version.passages}
        messages = [
            message | {"content": texts[place]} if place in texts else message
            for place, message in enumerate(row_messages(document))
        ]
        key = MESSAGES if MESSAGES in row else prompt_key(document)
        row[key] = messages[0]["content"] if isinstance(row[key], str) else messages
        made = {
            "by": "translate",
            "model": self.settings.answerer.name,
            "back": (self.settings.back or self.settings.answerer).name,
            "seed": self.settings.answerer.seed,
            "language": version.language,
            "prompt_hash": prompt_hash(translation_prompt("", version.source, version.language)),
            FROM: [row_origin(document)],
        }
        metadata = {**document.metadata, "language": version.language, MADE: made}
        translated = replace(document, id=version.id, metadata=metadata)
        return with_row(translated, row) if all(text.strip() for text in texts.values()) else translated


def has_answer_in_words(document: Document) -> bool:
    """Whether a problem's answer would have to be translated too; a number, formula or letter stays."""
    row = document.row or {}
    if MESSAGES in row:
        return False
    return IN_WORDS.search(SYMBOLS.sub(" ", problem_of(document.id, row).answer)) is not None


def tool_names(document: Document) -> list[str]:
    row = document.row or {}
    tools = [
        tool.get("function", tool).get("name", "")
        for tool in row.get("tools") or ()
        if isinstance(tool, dict)
    ]
    return [name for name in tools if isinstance(name, str)]
