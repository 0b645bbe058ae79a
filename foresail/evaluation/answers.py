"""Generates a checkpoint's answers to prompts and conversations: `foresail generate`, and the same from Python.

model = AnsweringModel(find_target(Path("runs/rl")), sampling={"temperature": 0.7})
(answer,) = model.answer(["2+2?"])
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from foresail.data.chats.messages import to_messages
from foresail.evaluation.target import Target
from foresail.records import Message
from foresail.rollout.answering.local_model import LocalModel


class AnsweringModel:
    """A checkpoint that is loaded once and answers any number of prompts.

    Of a run, its recipe says how prompts look, how long answers are and where they stop, unless that is given here.
    """

    def __init__(
        self,
        target: Target,
        *,
        system: str | None = None,
        max_new_tokens: int | None = None,
        sampling: Mapping[str, Any] | None = None,
        thinking: bool | None = None,
        seed: int = 0,
        device: str = "auto",
    ) -> None:
        self.system = target.system if system is None else system
        self.suffix = target.suffix
        self.model = LocalModel(
            target.checkpoint,
            max_new_tokens=max_new_tokens or target.max_new_tokens,
            sampling={"stop": target.stop, **(sampling or {})},
            thinking=thinking,
            seed=seed,
            device=device,
            template_options=target.template_options,
        )

    def answer(self, prompts: Sequence[str | Sequence[Mapping[str, Any]]]) -> list[str]:
        """Answers to a user's messages, or to whole conversations."""
        return self.answer_conversations([self._to_conversation(prompt) for prompt in prompts])

    def answer_conversations(self, conversations: Sequence[Sequence[Message]]) -> list[str]:
        return self.model.answer(conversations, [*count_repetitions(conversations)])

    def converse(self) -> None:
        """A conversation on the terminal; an empty line or Ctrl-D ends it."""
        conversation = [*self._opening()]
        while text := ask():
            conversation.append(Message(role="user", content=text + self.suffix))
            (answer,) = self.answer_conversations([conversation])
            print(answer)
            conversation.append(Message(role="assistant", content=answer))

    def _to_conversation(self, prompt: str | Sequence[Mapping[str, Any]]) -> Sequence[Message]:
        """ "2+2?" -> (Message(system, "Be brief."), Message(user, "2+2?")), with the suffix behind it."""
        if isinstance(prompt, str):
            return (*self._opening(), Message(role="user", content=prompt + self.suffix))
        return (*self._opening(), *to_messages([dict(message) for message in prompt], "prompt"))

    def _opening(self) -> Sequence[Message]:
        return () if self.system is None else (Message(role="system", content=self.system),)


def count_repetitions(conversations: Sequence[Sequence[Message]]) -> Iterator[tuple[str, int]]:
    """The last message of each, and how often it came before: the same prompt twice gets two answers."""
    counts: Counter[str] = Counter()
    for conversation in conversations:
        text = conversation[-1].content
        yield text, counts[text]
        counts[text] += 1


def ask() -> str:
    try:
        return input("> " if sys.stdin.isatty() else "").strip()
    except EOFError:
        return ""
