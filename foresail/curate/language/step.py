"""Language: what language a document is in, and which languages stay.

[[step]]
name = "language"
keep = ["id", "ms", "en"]       # default: all stay, and are only named
confidence = 0.7
foreign_paragraphs = "cut"

It writes the metadata `language` (a code, "other" or "undecided"), `language_confidence`, and, where the first two
languages are too close to call, `language_candidates`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Literal, Protocol

from pydantic import Field

from foresail.curate.document import Document, Drop
from foresail.curate.language.guess import UNDECIDED, Guess
from foresail.curate.language.sentences import split_sentences
from foresail.curate.rows.holds import ANY, Holds
from foresail.curate.step import StepFunction
from foresail.recipe.tables.parts import Part
from foresail.recipe.tables.values import Texts

PARAGRAPH = "\n\n"
FENCE = "```"
SHORTEST_FOREIGN = 20  # letters of a paragraph that may be cut
SURE = 0.5  # margin for cutting


class Model(Protocol):
    @property
    def languages(self) -> Sequence[str]:
        """Empty if the model does not say."""
        ...

    def guess(self, text: str) -> Guess: ...


class Language(Part):
    """Names the language of each document; keeps those that are asked for."""

    takes: ClassVar[Holds] = ANY

    keep: Texts = Field((), description="languages that stay; default: all")
    confidence: float = Field(0.0, ge=0, le=1, description="documents of less confidence are dropped")
    margin: float = Field(
        0.1, ge=0, le=1, description="least confidence before the second language; below it: undecided"
    )
    keep_undecided: bool = Field(False, description="undecided documents stay if one of the candidates may")
    foreign_paragraphs: Literal["keep", "cut"] = Field(
        "keep",
        description="cut: paragraphs of a language that is not kept (or not the document's) are removed",
    )
    shares: bool = Field(False, description="metadata language_shares: share of each language, by sentence")
    model: str = Field(
        "", description="a fastText .bin or a model of train-language; default: the one shipped"
    )

    def files(self) -> tuple[str, ...]:
        return (self.model,) if self.model else ()

    def preflight(self) -> None:
        known = open_model(self.model).languages
        if known and (unknown := sorted({*self.keep} - {*known, "other", UNDECIDED})):
            raise ValueError(
                f"keep: the model does not know the language {unknown[0]}; it knows {', '.join(sorted(known))}"
            )

    def open(self) -> StepFunction:
        return Languages(self, open_model(self.model))


def open_model(path: str) -> Model:
    if path.endswith((".bin", ".ftz")):
        from foresail.curate.language.fasttext import load_fasttext

        return load_fasttext(Path(path))
    from foresail.curate.language.model import SHIPPED, load_model

    return load_model(Path(path) if path else SHIPPED)


@dataclass(frozen=True)
class Languages:
    settings: Language
    model: Model

    def __call__(self, document: Document) -> Document | Drop:
        settings = self.settings
        guess = self.model.guess(document.text)
        language = guess.language(settings.margin)
        if (drop := self.verdict(guess, language)) is not None:
            return drop
        found: dict[str, object] = {
            "language": language,
            "language_confidence": round(guess.confidence, 4),
        }
        if language == UNDECIDED:
            found["language_candidates"] = [guess.best, guess.second]
        if settings.shares:
            found["language_shares"] = self.shares(document.text)
        text = document.text
        if settings.foreign_paragraphs == "cut":
            text, found["foreign_paragraphs"] = self.cut(text, settings.keep or (language,))
        return replace(document, text=text, metadata=document.metadata | found)

    def verdict(self, guess: Guess, language: str) -> Drop | None:
        settings = self.settings
        detail = f"{guess.best} {guess.confidence:.2f}, {guess.second} {guess.second_confidence:.2f}"
        if settings.keep and language not in settings.keep:
            maybe = {guess.best, guess.second} & set(settings.keep)
            if language != UNDECIDED:
                return Drop("language", detail)
            if not (settings.keep_undecided and maybe):
                return Drop(UNDECIDED, detail)
        if guess.confidence < settings.confidence:
            return Drop("confidence", detail)
        return None

    def cut(self, text: str, keep: tuple[str, ...]) -> tuple[str, int]:
        """The text without paragraphs that are in another language, beyond doubt; and how many they were."""
        paragraphs, stay, in_code = text.split(PARAGRAPH), [], False
        for paragraph in paragraphs:
            fences = paragraph.count(FENCE)
            if in_code or fences or not self.is_foreign(paragraph, keep):
                stay.append(paragraph)
            in_code ^= fences % 2 == 1
        return PARAGRAPH.join(stay), len(paragraphs) - len(stay)

    def is_foreign(self, paragraph: str, keep: tuple[str, ...]) -> bool:
        if len(paragraph) < SHORTEST_FOREIGN:
            return False
        return self.model.guess(paragraph).language(SURE) not in (*keep, UNDECIDED)

    def shares(self, text: str) -> dict[str, float]:
        """Characters of the sentences in each language: {"id": .92, "en": .08}."""
        lengths: dict[str, int] = {}
        for sentence in split_sentences(text):
            language = self.model.guess(sentence).language(self.settings.margin)
            lengths[language] = lengths.get(language, 0) + len(sentence)
        total = sum(lengths.values())
        return {language: round(length / total, 4) for language, length in sorted(lengths.items())}
