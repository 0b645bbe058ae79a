"""Personal data: e-mail and IP addresses, phone numbers, cards, accounts, national ids and secrets are masked.

[[step]]
name = "mask_pii"
kinds = ["email", "phone", "national_id"]    # default: all
replacement = "shape"                        # ann@b.org becomes xxx@x.xxx; default: <email>
most_per_1000_words = 50                     # documents with more are dropped

It writes the metadata `pii`, how many of each kind were masked: {"email": 2, "phone": 1}. A document without any
has no such metadata.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, Strict

from foresail.curate.document import Document, Drop
from foresail.curate.pii.find import KINDS, Kind, find
from foresail.curate.pii.finding import Finding
from foresail.curate.step import StepFunction
from foresail.recipe.tables.part import Part
from foresail.recipe.tables.values import one_text

Replacement = Literal["placeholder", "shape"]
CHARACTERS_PER_WORD = 6  # at most; Thai and Chinese have no spaces between words
ROUNDS = 4  # what is masked may have hidden something beside it; the second round mostly has nothing left
FEWEST_WORDS = 100  # a shorter text is taken to be so long, or one address would be too many for it


class MaskPii(Part):
    """Masks personal data: e-mail, IP, phone, card, IBAN, national id, secret."""

    kinds: Annotated[tuple[Kind, ...], Strict(False), BeforeValidator(one_text)] = Field(
        KINDS, min_length=1, description="what is masked"
    )
    replacement: Replacement = Field(
        "placeholder", description="placeholder: `<email>`; shape: x for letters, 0 for digits, signs stay"
    )
    most_per_1000_words: float | None = Field(
        None, ge=0, description="documents with more personal data are dropped; none: all stay"
    )

    def open(self) -> StepFunction:
        return Mask(self)


@dataclass(frozen=True)
class Mask:
    settings: MaskPii

    def __call__(self, document: Document) -> Document | Drop:
        settings, text = self.settings, document.text
        kinds: Counter[str] = Counter()
        for _ in range(ROUNDS):
            if not (findings := self.unmasked(text)):
                break
            kinds.update(finding.kind for finding in findings)
            text = masked(text, findings, settings.replacement)
        if not kinds:
            return document
        counts = dict(sorted(kinds.items()))
        per_1000 = 1000 * kinds.total() / max(num_words(document.text), FEWEST_WORDS)
        if settings.most_per_1000_words is not None and per_1000 > settings.most_per_1000_words:
            return Drop("personal_data", f"{per_1000:.3g} per 1000 words: {counts}")
        return replace(document, text=text, metadata=document.metadata | {"pii": counts})

    def unmasked(self, text: str) -> list[Finding]:
        """What is not masked yet: the shape of a shape is itself."""
        return [
            finding
            for finding in find(text, self.settings.kinds)
            if shape(part := text[finding.start : finding.end]) != part
        ]


def num_words(text: str) -> int:
    return max(len(text.split()), len(text) // CHARACTERS_PER_WORD)


def masked(text: str, findings: Sequence[Finding], replacement: Replacement) -> str:
    """masked("Mail ann@b.org", [Finding("email", 5, 14)], "placeholder") -> "Mail <email>" """
    parts, place = [], 0
    for kind, start, end in findings:
        parts += [text[place:start], shape(text[start:end]) if replacement == "shape" else f"<{kind}>"]
        place = end
    return "".join([*parts, text[place:]])


def shape(text: str) -> str:
    """shape("Ann.b2@c.org") -> "Xxx.x0@x.xxx" """
    return "".join(map(shape_of_sign, text))


def shape_of_sign(sign: str) -> str:
    if sign.isdecimal():
        return "0"
    if sign.isalpha():
        return "X" if sign.isupper() else "x"
    return sign
