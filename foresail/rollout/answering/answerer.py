"""Opens the model of a table `Answerer`: a checkpoint of ours, or a server.

    answer = open_answerer(settings)
    answer([conversation, …], ["row 17", …]) -> ["…", Refused("…"), …]      # in the order of the questions

A key names a question: with the table's seed it is its noise, whatever is asked beside it and whatever came before.
A server gets the two as its `seed`, which not every server keeps to.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from foresail.chat.endpoint import Endpoint, Refused
from foresail.recipe.tables.answerer import Answerer
from foresail.records import Message

Conversations = Sequence[Sequence[Message]]
Answer = Callable[[Conversations, Sequence[str]], Sequence[str | Refused]]


def check_answerer(settings: Answerer) -> None:
    """Raises ValueError or OSError if it cannot be opened; asks and loads nothing."""
    if settings.key_env is not None and settings.key_env not in os.environ:
        raise ValueError(
            f"the environment has no {settings.key_env}; set it to the server's key, or leave key_env out"
        )
    if settings.checkpoint is not None and not Path(settings.checkpoint, "config.json").is_file():
        raise FileNotFoundError(f"{settings.checkpoint} is no checkpoint: it has no config.json")


def open_answerer(settings: Answerer) -> Answer:
    check_answerer(settings)
    return open_endpoint(settings) if settings.endpoint is not None else open_checkpoint(settings)


def open_endpoint(settings: Answerer) -> Answer:
    assert settings.endpoint is not None
    endpoint = Endpoint(
        url=settings.endpoint,
        model=settings.model,
        key=os.environ[settings.key_env] if settings.key_env is not None else "",
        parallel=settings.parallel,
        max_tokens=settings.max_new_tokens,
        temperature=settings.temperature,
        top_p=settings.top_p,
        seed=settings.seed,
    )
    return endpoint.answer


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

    def answer(conversations: Conversations, keys: Sequence[str]) -> Sequence[str | Refused]:
        if not conversations:
            return []
        try:
            return model.answer(conversations, [(key, 0) for key in keys])
        except ValueError as error:
            if len(conversations) == 1:
                return [Refused(str(error))]
        pairs = zip(conversations, keys, strict=True)
        return [answer([conversation], [key])[0] for conversation, key in pairs]

    return answer
