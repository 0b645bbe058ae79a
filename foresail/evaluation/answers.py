"""Answers of a checkpoint to prompts and conversations: `foresail generate`, and the same from Python.

model = AnsweringModel(Path("runs/rl/checkpoints/step_30"), sampling={"temperature": 0.7})
(answer,) = model.answer([[Message(role="user", content="2+2?")]])
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from foresail.data.rows import to_messages
from foresail.engine.noise import noise_key
from foresail.engine.request import Request
from foresail.evaluation.checkpoint import check_context, choose_engine, open_checkpoint
from foresail.recipe import parts
from foresail.records import Message
from foresail.rollout.build import build_fleet

MOST_NEW_TOKENS = 512  # of an answer whose length nobody set


class AnsweringModel:
    """A checkpoint that is loaded once and answers as often as asked."""

    def __init__(
        self,
        checkpoint: Path,
        *,
        max_new_tokens: int | None = None,
        sampling: Mapping[str, Any] | None = None,
        seed: int = 0,
        device: str = "auto",
        template_options: Mapping[str, Any] | None = None,
    ) -> None:
        self.model, self.tokenizer = open_checkpoint(
            checkpoint, device=device, max_length=max_new_tokens or 1, template_options=template_options
        )
        self.max_new_tokens, self.sampling, self.seed = max_new_tokens, dict(sampling or {}), seed

    def answer(self, conversations: Sequence[Sequence[Message]]) -> list[str]:
        """As long as asked for, else as the context leaves for the longest prompt; all of them at once."""
        prompts = [tuple(ids) for ids in self.tokenizer.encode_prompts(conversations)]
        longest, context = max(map(len, prompts)), self.model.shape.max_context
        length = self.max_new_tokens or max(1, min(MOST_NEW_TOKENS, context - longest))
        check_context(longest, length, context)
        engine = choose_engine(self.model, longest + length, num_attempts=len(prompts))
        fleet = build_fleet(self.model, engine, parts.Rollout(drafts="off"), max_length=longest + length)
        sampling = parts.Sampling(**{**self.sampling, "max_new_tokens": length})
        requests = [
            Request(
                id=f"answer {number}",
                prompt=ids,
                key=noise_key(self.seed, 0, text, repetition),
                sampling=sampling,
                stop_ids=self.tokenizer.eos_ids,
            )
            for number, (ids, (text, repetition)) in enumerate(
                zip(prompts, count_repetitions(conversations), strict=True)
            )
        ]
        completions = {completion.request.id: completion for completion in fleet.generate(requests)}
        return [
            self.tokenizer.decode(completions[request.id].ids, skip_special_tokens=True)
            for request in requests
        ]


def count_repetitions(conversations: Sequence[Sequence[Message]]) -> Iterator[tuple[str, int]]:
    """What was said last, and how often it was before: the same prompt twice gets two answers."""
    seen: Counter[str] = Counter()
    for conversation in conversations:
        text = conversation[-1].content
        yield text, seen[text]
        seen[text] += 1


def to_conversation(prompt: str | Sequence[Mapping[str, Any]], system: str | None) -> tuple[Message, ...]:
    """to_conversation("2+2?", "Be brief.") -> (Message(system, "Be brief."), Message(user, "2+2?"))."""
    opening = () if system is None else (Message(role="system", content=system),)
    if isinstance(prompt, str):
        return (*opening, Message(role="user", content=prompt))
    return (*opening, *to_messages([dict(message) for message in prompt], "prompt"))


def converse(model: AnsweringModel, system: str | None, suffix: str = "") -> None:
    """A conversation on the terminal, which each answer sees whole; an empty line or Ctrl-D ends it."""
    said: list[Message] = [] if system is None else [Message(role="system", content=system)]
    while text := ask():
        said.append(Message(role="user", content=text + suffix))
        (answer,) = model.answer([said])
        print(answer)
        said.append(Message(role="assistant", content=answer))


def ask() -> str:
    try:
        return input("> " if sys.stdin.isatty() else "").strip()
    except EOFError:
        return ""
