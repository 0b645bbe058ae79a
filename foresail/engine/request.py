"""What the engine takes and gives: token ids in; ids, log-probabilities and policy versions out."""

from __future__ import annotations

from dataclasses import dataclass

from foresail.recipe.parts import Sampling
from foresail.records import Finish


@dataclass(frozen=True, kw_only=True)
class Request:
    """One response to draw. Requests with equal prompts share the prompt's work and pages."""

    id: str
    prompt: tuple[int, ...]
    key: int
    sampling: Sampling
    stop_ids: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Completion:
    """What was drawn: a stop token, if one ended it, is the last of `ids`."""

    request: Request
    ids: list[int]
    logprobs: list[float]
    versions: list[int]
    finish: Finish
