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
from foresail.engine.noise import noise_key
from foresail.engine.request import Request
from foresail.evaluation.checkpoint import check_context, choose_engine, open_checkpoint
from foresail.evaluation.target import Target
from foresail.recipe.tables import parts
from foresail.records import Message
from foresail.rollout.build import build_fleet

MAX_NEW_TOKENS = 512  # of an answer whose length nobody set


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
        self.max_new_tokens, self.seed = max_new_tokens or target.max_new_tokens, seed
        self.sampling = {"temperature": 0.0, "stop": target.stop, **(sampling or {})}
        self.system = target.system if system is None else system
        self.suffix, self.thinking = target.suffix, thinking
        self.model, self.tokenizer = open_checkpoint(
            target.checkpoint,
            device=device,
            max_length=self.max_new_tokens or 1,
            template_options=target.template_options,
        )

    def answer(self, prompts: Sequence[str | Sequence[Mapping[str, Any]]]) -> list[str]:
        """Answers to a user's messages, or to whole conversations."""
        return self.answer_conversations([self._to_conversation(prompt) for prompt in prompts])

    def answer_conversations(self, conversations: Sequence[Sequence[Message]]) -> list[str]:
        """All in one batch; without a length, as long as the context allows behind the longest prompt."""
        modes = [self.thinking] * len(conversations)
        prompts = [tuple(ids) for ids in self.tokenizer.encode_prompts(conversations, modes)]
        longest, context = max(map(len, prompts)), self.model.shape.max_context
        length = self.max_new_tokens or max(1, min(MAX_NEW_TOKENS, context - longest))
        check_context(longest, length, context)
        engine = choose_engine(self.model, longest + length, num_attempts=len(prompts))
        sampling = parts.Sampling(**{**self.sampling, "max_new_tokens": length})
        fleet = build_fleet(
            self.model,
            engine,
            parts.Rollout(drafts="off"),
            max_length=longest + length,
            vocabulary=self.tokenizer.token_bytes() if sampling.reads_text else (),
        )
        closing = self.tokenizer.encode_closing(sampling.thinking_budget, sampling.thinking_end)
        requests = [
            Request(
                id=f"answer {number}",
                prompt=ids,
                key=noise_key(self.seed, 0, text, repetition),
                sampling=sampling,
                stop_ids=self.tokenizer.eos_ids,
                closing=closing,
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
