"""Opens the model of a table `Answerer`: a checkpoint of ours, or a server.

    answer = open_answerer(settings)
    answer([conversation, …], ["row 17", …]) -> ["…", Refused("…"), …]      # in the order of the questions

A key names a question: with the table's seed it is its noise, whatever is asked beside it and whatever came before.
A server gets the two as its `seed`, which not every server keeps to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from foresail.chat.answering import Answer, Conversations
from foresail.chat.endpoint import CUT, Note, Refused, no_note, shares
from foresail.chat.open_endpoint import check_key, open_endpoint
from foresail.recipe.tables.answerer import Answerer


def check_answerer(settings: Answerer) -> None:
    """Raises ValueError or OSError if it cannot be opened; asks and loads nothing."""
    check_key(settings)
    if settings.checkpoint is not None and not Path(settings.checkpoint, "config.json").is_file():
        raise FileNotFoundError(f"{settings.checkpoint} is no checkpoint: it has no config.json")


def open_answerer(settings: Answerer) -> Answer:
    check_answerer(settings)
    return open_endpoint(settings) if settings.endpoint is not None else open_checkpoint(settings)


def open_checkpoint(settings: Answerer) -> Answer:
    """A question that is too long for the model, alone, is refused; the others are answered together."""
    from foresail.rollout.answering.local_model import LocalModel

    assert settings.checkpoint is not None
    model = LocalModel(
        Path(settings.checkpoint),
        max_new_tokens=settings.max_new_tokens,
        sampling={"temperature": settings.temperature, "top_p": settings.top_p},
        thinking=settings.thinking,
        seed=settings.seed,
        device=settings.device,
        batch_invariant=settings.batch_invariant,
    )

    def answer(
        conversations: Conversations,
        keys: Sequence[str],
        *,
        schemas: Sequence[Mapping[str, Any]] | None = None,
        choices: Sequence[str] | None = None,
        note: Note = no_note,
    ) -> Sequence[str | Refused]:
        answers = answer_all(conversations, keys, choices)
        for number, answered in enumerate(answers):
            note(number, answered)
        return answers

    def answer_all(
        conversations: Conversations, keys: Sequence[str], choices: Sequence[str] | None
    ) -> Sequence[str | Refused]:
        if not conversations:
            return []
        try:
            if choices is not None:
                return [shares(own) for own in model.choose(conversations, choices)]
            said = model.complete(conversations, [(key, 0) for key in keys], trusted=False)
            return [Refused(CUT) if one.is_cut else one.text for one in said]
        except ValueError as error:
            if len(conversations) == 1:
                return [Refused(str(error))]
        pairs = zip(conversations, keys, strict=True)
        return [answer_all([conversation], [key], choices)[0] for conversation, key in pairs]

    return answer
