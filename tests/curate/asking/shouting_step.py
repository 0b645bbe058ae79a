"""A step that asks a model to shout, for tests of steps that ask; other processes import it from here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from foresail.chat.endpoint import Refused
from foresail.curate.asking.asking import Asking
from foresail.curate.asking.cache import AnswerCache
from foresail.curate.asking.cost import Cost
from foresail.curate.document import Document, Drop
from foresail.curate.named_step import NamedStep
from foresail.curate.rows.holds import ANY, Holds
from foresail.recipe.tables.answerer import Answerer
from foresail.recipe.tables.part import Part
from foresail.records import Message


class Shout(Part):
    takes: ClassVar[Holds] = ANY

    answerer: Answerer
    batch_size: int = 8

    def cost(self, documents: int, characters: int) -> Cost:
        return Cost(requests=documents, prompt_characters=characters, answer_tokens=10 * documents)

    def open_asking(self, cache: AnswerCache) -> Callable[[Sequence[Document]], list[Document | Drop]]:
        ask = Asking(self.answerer, cache)

        def shout(documents: Sequence[Document]) -> list[Document | Drop]:
            questions = [[Message(role="user", content=document.text)] for document in documents]
            answers = ask(questions, ["" for _ in documents])
            return [
                Drop("refused", answer.detail)
                if isinstance(answer, Refused)
                else replace(document, text=answer)
                for document, answer in zip(documents, answers, strict=True)
            ]

        return shout


def shout_step(number: int, url: str, **keys: Any) -> NamedStep:
    answerer = {"endpoint": url, "model": "m", "parallel": 4, "patience": 0.0, **keys}
    return NamedStep(number, "shout", Shout(answerer=Answerer(**answerer)), {"answerer": answerer})
