"""The step `responses`: drops conversations with responses that are cut off, refuse, loop, or mix languages.

    [[step]]
    name = "responses"
    drop = ["empty", "incomplete", "repeating"]      # default: every reason; the others are noted
    cut = true                                       # keep what stands before the first fault

Dropped: empty, incomplete, refused, repeating, mixed_language, other_language. Only responses that are trained on
are looked at. The metadata `response_faults` lists the reasons that do not drop.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

from pydantic import Field

from foresail.curate.conversations.cut import CUT, cut_document
from foresail.curate.conversations.responses.completeness import cut_off
from foresail.curate.conversations.responses.language_mixture import Mixture
from foresail.curate.conversations.responses.parts import Response, read_response
from foresail.curate.conversations.responses.refusals import refusal
from foresail.curate.conversations.responses.repetition import repeats, said_before
from foresail.curate.conversations.responses.stray_letters import stray_letters
from foresail.curate.document import Document, Drop
from foresail.curate.language.step import open_model
from foresail.curate.rows.holds import Holds
from foresail.curate.rows.row import MESSAGES
from foresail.curate.step import Outcome, StepFunction
from foresail.recipe.tables.part import CheckedPart
from foresail.recipe.tables.values import Texts

REASONS = ("empty", "refused", "repeating", "incomplete", "other_language", "mixed_language")
OF_LANGUAGE = ("other_language", "mixed_language")


class Responses(CheckedPart):
    """Drops conversations with responses that are empty, cut off, refuse, loop, or mix languages."""

    takes: ClassVar[Holds] = ("conversations",)

    drop: Texts = Field(REASONS, description="reasons that drop; the others are noted in response_faults")
    cut: bool = Field(False, description=f"true: conversations are {CUT}; false: they are dropped")
    points: bool = Field(
        True,
        description="false: a last sentence without a point is whole unless it ends in a word that ends none",
    )
    model: str = Field(
        "", description="of languages: a fastText .bin or a model of train-language; default: the one shipped"
    )

    def mistakes(self) -> Iterator[str]:
        yield from (
            f"drop: there is no reason {name}; there are {', '.join(REASONS)}"
            for name in self.drop
            if name not in REASONS
        )

    def files(self) -> tuple[str, ...]:
        return (self.model,) if self.model else ()

    def preflight(self) -> None:
        open_model(self.model)

    def open(self) -> StepFunction:
        return ResponseCheck(self, Mixture(open_model(self.model)))


class Fault(NamedTuple):
    place: int
    reason: str
    detail: str


@dataclass(frozen=True)
class ResponseCheck:
    settings: Responses
    mixture: Mixture

    def __call__(self, document: Document) -> Outcome:
        assert document.row is not None
        noted: list[str] = []
        for fault in self.faults(document.row):
            if fault.reason in self.settings.drop:
                if self.settings.cut and (left := self.up_to(document, fault)) is not None:
                    return with_faults(left, noted)
                return Drop(fault.reason, fault.detail)
            if fault.reason not in noted:
                noted.append(fault.reason)
        return with_faults(document, noted)

    def up_to(self, document: Document, fault: Fault) -> Document | None:
        left = cut_document(document, fault.place, fault.reason)
        if left is None or left.row is None:
            return None
        return left if any(is_trained_on(message) for message in left.row[MESSAGES]) else None

    def faults(self, row: Mapping[str, Any]) -> Iterator[Fault]:
        messages = row[MESSAGES]
        for place, message in enumerate(messages):
            if is_trained_on(message):
                for reason, detail in self.response_faults(messages[:place], message):
                    yield Fault(place, reason, detail)

    def response_faults(
        self, before: Sequence[Mapping[str, Any]], message: Mapping[str, Any]
    ) -> Iterator[tuple[str, str]]:
        content, calls = message["content"], bool(message.get("tool_calls"))
        response = read_response(content)
        question = next((one["content"] for one in reversed(before) if one["role"] == "user"), "")
        if is_empty(response):
            if not calls:
                yield "empty", content[:100].strip()
            return
        if detail := refusal(response, question):
            yield "refused", detail
        if detail := repeats(response) or said_before(response, question, answered(before)):
            yield "repeating", detail
        if not calls and (detail := cut_off(response, question, self.settings.points)):
            yield "incomplete", detail
        yield from self.language_faults(before, response, question)

    def language_faults(
        self, before: Sequence[Mapping[str, Any]], response: Response, question: str
    ) -> Iterator[tuple[str, str]]:
        if not response.answer:
            return
        asked = [one["content"] for one in before if one["role"] in ("system", "user", "tool")]
        languages = self.mixture.asked(asked)
        if detail := self.mixture.other(response, languages):
            yield "other_language", detail
        if detail := self.mixture.sentence(response, languages) or stray_letters(
            response, question, languages
        ):
            yield "mixed_language", detail


def is_trained_on(message: Mapping[str, Any]) -> bool:
    return message["role"] == "assistant" and message.get("train") is not False


def is_empty(response: Response) -> bool:
    """Nothing but blanks, signs of punctuation and empty blocks; a thought without an answer."""
    if response.is_open_thought:
        return False
    text = response.answer.replace("```", "")
    return not any(not (sign.isspace() or sign in "*_~#-.…\"'`|>") for sign in text)


def answered(before: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Questions and what was answered to them."""
    pairs, question = [], ""
    for message in before:
        if message["role"] == "user":
            question = message["content"]
        elif message["role"] == "assistant" and message["content"]:
            pairs.append((question, message["content"]))
    return pairs


def with_faults(document: Document, noted: list[str]) -> Document:
    if not noted:
        return document
    return replace(document, metadata=document.metadata | {"response_faults": noted})
