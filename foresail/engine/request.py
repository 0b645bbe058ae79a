"""What the engine takes and gives: token ids in; ids, log-probabilities and policy versions out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from torch import Tensor

from foresail.recipe.parts import Sampling
from foresail.recipe.shape import ModelShape
from foresail.records import Finish

MAX_STOPS = 16
MAX_DRAFT = 16  # tokens; with the root, 17 bits say who sees whom


@dataclass(frozen=True, kw_only=True)
class Request:
    """One response to draw. Requests with equal prompts share the prompt's work and pages."""

    id: str
    prompt: tuple[int, ...]
    key: int
    sampling: Sampling
    stop_ids: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Parked:
    """A request that left its engine half-way, with its keys and values in host memory.

    Any engine with the same weights goes on from there: `engine.resume(parked)`. Without keys and values, or
    under other weights, they are computed again; the tokens are the same either way.
    """

    request: Request
    ids: Sequence[int]
    logprobs: Sequence[float]
    versions: Sequence[int]
    policy_version: int
    kv: SavedKV | None = None

    def without_kv(self) -> Parked:
        return replace(self, kv=None)


@dataclass(frozen=True, kw_only=True)
class SavedKV:
    """Whole pages of all layers on the host: (keys and values, layers, pages, page_size, heads, head size)."""

    pages: Tensor
    num_tokens: int
    ready: object | None = None  # a CUDA event: the copy has arrived

    def wait(self) -> None:
        if self.ready is not None:
            self.ready.synchronize()  # type: ignore[attr-defined]


@dataclass(frozen=True, kw_only=True)
class Completion:
    """What was drawn: a stop token, if one ended it, is the last of `ids`. After a chunk there may be more."""

    request: Request
    ids: Sequence[int]
    logprobs: Sequence[float]
    versions: Sequence[int]
    finish: Finish


@dataclass(frozen=True, kw_only=True)
class Draft:
    """Guesses at what a row draws next; guess i follows guess parents[i], or the context where that is -1.

    Draft(tokens=(5, 9, 2)) is one path; Draft(tokens=(5, 9, 7), parents=(-1, 0, -1)) says 5 9 or 7.
    """

    tokens: tuple[int, ...]
    parents: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if len(self.tokens) > MAX_DRAFT:
            raise ValueError(f"a draft of {len(self.tokens)} tokens; the most is {MAX_DRAFT}: cut it")
        if self.parents is None:
            return
        if len(self.parents) != len(self.tokens):
            raise ValueError(f"a draft has {len(self.tokens)} tokens and {len(self.parents)} parents")
        if any(not -1 <= parent < place for place, parent in enumerate(self.parents)):
            raise ValueError(f"in a draft every parent comes before its child; got {self.parents}")
        guesses = list(zip(self.parents, self.tokens, strict=True))
        if len(set(guesses)) < len(guesses):
            twice = next(guess for guess in guesses if guesses.count(guess) > 1)
            raise ValueError(f"a draft guesses {twice[1]} twice after the same token; give each guess once")


def check(request: Request, shape: ModelShape, num_pages: int, page_size: int) -> None:
    """Refuse what could never run."""
    max_context = shape.max_context
    longest = len(request.prompt) + request.sampling.max_new_tokens
    # One more: the half-filled last page of a prompt is held twice for a moment.
    pages = -(-longest // page_size) + 1
    if not request.prompt:
        raise ValueError(f"request {request.id} has an empty prompt; give it at least one token")
    if min(request.prompt) < 0 or max(request.prompt) >= shape.vocab_size:
        strange = next(id for id in request.prompt if not 0 <= id < shape.vocab_size)
        raise ValueError(
            f"request {request.id} holds token {strange}, and the model knows 0 to {shape.vocab_size - 1}; "
            "is this the tokenizer of another model?"
        )
    if len(request.stop_ids) > MAX_STOPS:
        raise ValueError(
            f"request {request.id} has {len(request.stop_ids)} stop ids; the most is {MAX_STOPS}"
        )
    if longest > max_context:
        raise ValueError(
            f"request {request.id}: {len(request.prompt)} prompt tokens + {request.sampling.max_new_tokens} new "
            f"ones exceed the model's context of {max_context}; shorten the prompt or lower sampling.max_new_tokens"
        )
    if pages > num_pages:
        raise ValueError(
            f"request {request.id} needs {pages} KV pages and the engine has {num_pages}; "
            f"raise engine.kv_tokens to at least {pages * page_size}"
        )
