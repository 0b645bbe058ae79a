"""A request on its way through the engine."""

from __future__ import annotations

from dataclasses import dataclass, field

from foresail.engine.prefixes import Filling
from foresail.engine.request import Completion, Parked, Request, SavedKV
from foresail.records import Finish


@dataclass
class Row:
    """Its tokens so far, what was drawn of them, and the pages it owns; all but the last token are cached there."""

    request: Request
    context: tuple[int, ...]
    chunk_tokens: int | None = None
    logprobs: list[float] = field(default_factory=list)
    versions: list[int] = field(default_factory=list)
    pages: list[int] = field(default_factory=list)
    filling: Filling | None = None  # what it waits for
    saved: SavedKV | None = None

    @property
    def prefix(self) -> tuple[int, ...]:
        return self.context[:-1]

    @property
    def limit(self) -> int:
        """How many tokens it may draw from here on."""
        left = len(self.request.prompt) + self.request.sampling.max_new_tokens - len(self.context)
        return left if self.chunk_tokens is None else min(left, self.chunk_tokens)

    @property
    def drawn(self) -> list[int]:
        return list(self.context[len(self.request.prompt) :])

    def draw(self, tokens: list[int], logprobs: list[float], policy_version: int) -> None:
        """Take over what was drawn since it was seated."""
        self.context += tuple(tokens)
        self.logprobs = [*self.logprobs, *logprobs]
        self.versions = [*self.versions, *[policy_version] * len(tokens)]
        if self.chunk_tokens is not None:
            self.chunk_tokens -= len(tokens)

    def complete(self, finish: Finish) -> Completion:
        return Completion(
            request=self.request,
            ids=self.drawn,
            logprobs=self.logprobs,
            versions=self.versions,
            finish=finish,
        )

    def park(self, policy_version: int) -> Parked:
        return Parked(
            request=self.request,
            ids=self.drawn,
            logprobs=self.logprobs,
            versions=self.versions,
            policy_version=policy_version,
            kv=self.saved,
        )


def unpark(parked: Parked, policy_version: int, chunk_tokens: int | None) -> Row:
    """The row of a parked request; keys and values of other weights are left aside."""
    return Row(
        request=parked.request,
        context=(*parked.request.prompt, *parked.ids),
        chunk_tokens=chunk_tokens,
        logprobs=list(parked.logprobs),
        versions=list(parked.versions),
        saved=parked.kv if parked.policy_version == policy_version else None,
    )
