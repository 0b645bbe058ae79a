"""A checkpoint that is loaded once and answers conversations in the native engine.

model = LocalModel(Path("checkpoint"), max_new_tokens=512, sampling={"temperature": 0.7})
model.answer([conversation, …], keys=["row 17", …])     # texts; equal keys and seeds: equal noise
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foresail.engine.noise import noise_key
from foresail.engine.request import Request
from foresail.recipe.tables import parts
from foresail.records import Message
from foresail.rollout.build import build_fleet
from foresail.rollout.checkpoint import check_context, choose_engine, open_checkpoint

MAX_NEW_TOKENS = 512  # of an answer whose length nobody set


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """An answer. `is_cut`: it had not ended when it was as long as it may be."""

    text: str
    is_cut: bool


class LocalModel:
    """`max_new_tokens`: None is as long as the context allows behind the longest prompt, up to 512."""

    def __init__(
        self,
        checkpoint: Path,
        *,
        max_new_tokens: int | None = None,
        sampling: Mapping[str, Any] | None = None,
        thinking: bool | None = None,
        seed: int = 0,
        device: str = "auto",
        template_options: Mapping[str, Any] | None = None,
        batch_invariant: bool = False,
    ) -> None:
        self.max_new_tokens, self.seed, self.thinking = max_new_tokens, seed, thinking
        self.sampling = {"temperature": 0.0, **(sampling or {})}
        self.batch_invariant = batch_invariant
        self.model, self.tokenizer = open_checkpoint(
            checkpoint, device=device, max_length=max_new_tokens or 1, template_options=template_options
        )

    def answer(
        self,
        conversations: Sequence[Sequence[Message]],
        keys: Sequence[tuple[str, int]],
        *,
        trusted: bool = True,
    ) -> list[str]:
        """The texts, also of answers that were cut at their longest."""
        return [said.text for said in self.complete(conversations, keys, trusted=trusted)]

    def complete(
        self, conversations: Sequence[Sequence[Message]], keys: Sequence[tuple[str, int]], *, trusted: bool
    ) -> list[Said]:
        """All in one batch. A key is a text and a number; noise is keyed by both, and by the seed.

        Special tokens in the words of messages that are not trusted lose their meaning.
        """
        prompts = [tuple(ids) for ids in self._encode(conversations, trusted=trusted)]
        longest, context = max(map(len, prompts)), self.model.shape.max_context
        length = self.max_new_tokens or max(1, min(MAX_NEW_TOKENS, context - longest))
        check_context(longest, length, context)
        engine = choose_engine(self.model, longest + length, num_attempts=len(prompts))
        sampling = parts.Sampling(**{**self.sampling, "max_new_tokens": length})
        fleet = build_fleet(
            self.model,
            engine.model_copy(update={"batch_invariant": self.batch_invariant}),
            parts.Rollout(drafts="off"),
            max_length=longest + length,
            vocabulary=self.tokenizer.token_bytes() if sampling.reads_text else (),
        )
        closing = self.tokenizer.encode_closing(sampling.thinking_budget, sampling.thinking_end)
        requests = [
            Request(
                id=f"answer {number}",
                prompt=ids,
                key=noise_key(self.seed, 0, *key),
                sampling=sampling,
                stop_ids=self.tokenizer.eos_ids,
                closing=closing,
            )
            for number, (ids, key) in enumerate(zip(prompts, keys, strict=True))
        ]
        completions = {completion.request.id: completion for completion in fleet.generate(requests)}
        return [
            Said(
                text=self.tokenizer.decode(completions[request.id].ids, skip_special_tokens=True),
                is_cut=completions[request.id].finish == "length",
            )
            for request in requests
        ]

    def _encode(self, conversations: Sequence[Sequence[Message]], *, trusted: bool) -> list[list[int]]:
        if trusted:
            return self.tokenizer.encode_prompts(conversations, [self.thinking] * len(conversations))
        return [self.tokenizer.encode_request(messages, thinking=self.thinking) for messages in conversations]

    def choose(self, conversations: Sequence[Sequence[Message]], choices: Sequence[str]) -> list[list[float]]:
        """The log-probability of each choice as the beginning of the answer. Messages are not trusted."""
        from foresail.rollout.answering.choosing import choice_logprobs

        prompts = self._encode(conversations, trusted=False)
        ids = [self.tokenizer.encode(choice) for choice in choices]
        longest = max(map(len, prompts))
        check_context(longest, max(map(len, ids)), self.model.shape.max_context)
        groups = [[prompt] for prompt in prompts] if self.batch_invariant else [prompts]
        return [row for group in groups for row in choice_logprobs(self.model, group, ids)]
