"""`Answer`: a function that answers conversations, by a server or by a checkpoint of ours.

answer([conversation, …], ["row 17", …]) -> ["…", Refused("…"), …]          # in the order of the questions
answer([conversation], [""], choices=["A", "B"]) -> ["[0.93, 0.07]"]        # how likely each of them is
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from foresail.chat.endpoint import Note, Refused, no_note
from foresail.records import Message

Conversations = Sequence[Sequence[Message]]


class Answer(Protocol):
    """A key names a question: with a seed it is the noise of its sampling.

    `schemas`: of the objects that the answers have to be, for servers that keep to them. `choices`: instead of an
    answer in words the probabilities of these, as a JSON list that sums to 1. `note` gets each answer, with the
    number of its question, as soon as it is there, from any thread.
    """

    def __call__(
        self,
        conversations: Conversations,
        keys: Sequence[str],
        *,
        schemas: Sequence[Mapping[str, Any]] | None = None,
        choices: Sequence[str] | None = None,
        note: Note = no_note,
    ) -> Sequence[str | Refused]: ...
