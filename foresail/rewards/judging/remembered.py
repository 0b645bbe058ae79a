"""An `Answer` that asks no question twice: a trained policy writes the same answer again and again.

ask = Remembered(answer); ask([conversation], ["key"]); ask([conversation], ["key"])      # asked once
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from foresail.chat.answering import Answer, Conversations
from foresail.chat.endpoint import Note, Refused, no_note

MOST_ANSWERS = 65_536  # the oldest is forgotten first


class Remembered:
    """By keys, so equal keys must be equal questions. A refusal is not remembered."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.answers: dict[str, str] = {}

    def __call__(
        self,
        conversations: Conversations,
        keys: Sequence[str],
        *,
        schemas: Sequence[Mapping[str, Any]] | None = None,
        choices: Sequence[str] | None = None,
        note: Note = no_note,
    ) -> Sequence[str | Refused]:
        new = [number for number, key in enumerate(keys) if key not in self.answers]
        replies: dict[str, str | Refused] = {key: self.answers[key] for key in keys if key in self.answers}
        if new:
            asked = self.answer(
                [conversations[number] for number in new],
                [keys[number] for number in new],
                schemas=None if schemas is None else [schemas[number] for number in new],
                choices=choices,
            )
            for number, reply in zip(new, asked, strict=True):
                replies[keys[number]] = reply
                if isinstance(reply, str):
                    self.answers[keys[number]] = reply
        while len(self.answers) > MOST_ANSWERS:
            del self.answers[next(iter(self.answers))]
        for number, key in enumerate(keys):
            note(number, replies[key])
        return [replies[key] for key in keys]

    def stop(self) -> None:
        """End the wait for a server."""
        if (stop := getattr(self.answer, "stop", None)) is not None:
            stop()
