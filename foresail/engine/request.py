"""The engine's requests and completions: token ids in; ids, log-probabilities and policy versions out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from torch import Tensor

from foresail.recipe.shape.model_shape import ModelShape
from foresail.recipe.tables.parts import Sampling
from foresail.records import Finish

MAX_STOPS = 16


@dataclass(frozen=True, kw_only=True)
class Request:
    """One response to sample. Requests with equal prompts share the prompt's work and pages."""

    id: str
    prompt: tuple[int, ...]
    key: int
    sampling: Sampling
    stop_ids: tuple[int, ...] = ()
    begun: int = (
        0  # number of the prompt's last tokens that belong to the response: stop strings may begin there
    )
    closing: tuple[
        int, ...
    ] = ()  # inserted at sampling.thinking_budget to close open thinking: see `thinking`


@dataclass(frozen=True, kw_only=True)
class Parked:
    """An unfinished request outside an engine, with its keys and values in host memory.

    Any engine with the same weights continues it: `engine.resume(parked)`. Missing keys and values, or those of
    other weights, are computed again; the tokens are the same. They may also cover only the first tokens, for a
    request with a longer prompt: then the rest is computed.
    """

    request: Request
    ids: Sequence[int]
    logprobs: Sequence[float]
    versions: Sequence[int]
    forced: Sequence[int] = ()
    side: Mapping[str, list[Any]] = field(default_factory=dict)  # named data, see `Completion`
    policy_version: int
    kv: SavedKV | None = None

    def without_kv(self) -> Parked:
        return replace(self, kv=None)


@dataclass(frozen=True, kw_only=True)
class SavedKV:
    """Whole pages of all layers on the host: (keys and values, layers, pages, page_size, heads, head size)."""

    pages: Tensor
    num_tokens: int
    routes: Tensor | None = None  # experts of the tokens: (layers with experts, pages, page_size, active)
    ready: object | None = None  # a CUDA event: the copy has arrived

    def from_page(self, first: int) -> SavedKV:
        """The pages from this one on."""
        if not first:
            return self
        routes = None if self.routes is None else self.routes[:, first:]
        return replace(self, pages=self.pages[:, :, first:], routes=routes)

    def wait(self) -> None:
        if self.ready is not None:
            self.ready.synchronize()  # type: ignore[attr-defined]


@dataclass(frozen=True, kw_only=True)
class Completion:
    """The sampled tokens; a stop token, or the one that completes a stop string, is the last of `ids`.

    After a chunk more may follow. `forced` are the positions in `ids` of inserted tokens, with log-probability 0.
    `side` is named data of the last tokens of prompt and `ids`, at least of all `ids`.
    """

    request: Request
    ids: Sequence[int]
    logprobs: Sequence[float]
    versions: Sequence[int]
    forced: Sequence[int] = ()
    side: Mapping[str, list[Any]] = field(default_factory=dict)
    finish: Finish


def check(request: Request, shape: ModelShape, num_pages: int, page_size: int) -> None:
    """Refuse a request that could never run."""
    max_context = shape.max_context
    longest = len(request.prompt) + request.sampling.max_new_tokens
    # One more: a prompt's half-filled last page is briefly held twice.
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
