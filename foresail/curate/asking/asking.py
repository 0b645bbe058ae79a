"""Questions to the model of a table `Answerer`, behind a cache: how a step asks.

    class Judge(Part):
        answerer: Answerer
        batch_size: int = 64

        def cost(self, documents: int, characters: int) -> Cost: ...      # shown before the step begins

        def open_asking(self, cache: AnswerCache) -> BatchFunction:       # instead of `open`
            ask = Asking(self.answerer, cache)
            return lambda documents: [… for answer in ask([question, …], [document.id, …])]

The model is opened at the first question whose answer is not in the cache.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from foresail.chat.answering import Answer
from foresail.chat.endpoint import Note, Refused, no_note
from foresail.curate.asking.cache import AnswerCache, NotAsked
from foresail.recipe.tables.answerer import Answerer
from foresail.records import Message
from foresail.rollout.answering.answerer import open_answerer


class Asking:
    def __init__(self, settings: Answerer, cache: AnswerCache) -> None:
        self.settings, self.cache = settings, cache
        self.identity = json.dumps(settings.answers_by(), sort_keys=True)
        self._answer: Answer | None = None

    def __call__(
        self,
        conversations: Sequence[Sequence[Message]],
        keys: Sequence[str],
        *,
        schemas: Sequence[Mapping[str, Any]] | None = None,
        choices: Sequence[str] | None = None,
        note: Note = no_note,
    ) -> list[str | Refused]:
        """As `Answer` has it. Equal questions are asked once."""
        forms: Sequence[Mapping[str, Any] | None] = [*schemas] if schemas is not None else [None] * len(keys)
        names = [self.name(*question, choices) for question in zip(conversations, keys, forms, strict=True)]
        answers = {name: self.cache.find(name) for name in dict.fromkeys(names)}
        missing = [names.index(name) for name, answer in answers.items() if answer is None]
        if missing:
            if not self.cache.writes:
                raise NotAsked
            if self._answer is None:
                self._answer = open_answerer(self.settings)

            def keep(place: int, answer: str | Refused) -> None:
                self.cache.note(names[missing[place]], answer)

            with self.cache.beating():
                asked = self._answer(
                    [conversations[number] for number in missing],
                    [keys[number] for number in missing],
                    schemas=None if schemas is None else [schemas[number] for number in missing],
                    choices=choices,
                    note=keep,
                )
            answers |= {names[number]: answer for number, answer in zip(missing, asked, strict=True)}
        settled = [answer for name in names if (answer := answers[name]) is not None]
        for number, answer in enumerate(settled):
            note(number, answer)
        return settled

    def name(
        self,
        conversation: Sequence[Message],
        key: str,
        schema: Mapping[str, Any] | None,
        choices: Sequence[str] | None,
    ) -> str:
        messages = [[message.role, message.content] for message in conversation]
        text = json.dumps([self.identity, messages, key, schema, choices], sort_keys=True)
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
