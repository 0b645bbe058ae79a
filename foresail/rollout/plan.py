"""Records that controller, scheduler and instances exchange: samples, dispatches, ends of chunks, capacities.

A group is all samples of one problem, numbered in launch order. A request is one sample and runs in chunks. An
episode of several turns is one request, whose prompt grows between turns.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class SampleSpec:
    """One sample to generate: SampleSpec(id="17.3", group=17, sample=3, prompt_tokens=120, max_tokens=2048).

    `max_tokens` limits all tokens after the first prompt, generated and appended.
    """

    id: str
    group: int
    sample: int
    prompt_tokens: int
    max_tokens: int


@dataclass(frozen=True, kw_only=True)
class Dispatch:
    """A chunk to run: at most `max_tokens` more for a request with `generated` tokens after its prompt."""

    spec: SampleSpec
    instance: str
    generated: int
    max_tokens: int


@dataclass(frozen=True, kw_only=True)
class ChunkEnded:
    """The end of a dispatch; an unfinished request continues with its next chunk, on any instance.

    `generated` is the count at the chunk's start, so a repeated report is not taken for the next chunk's.
    """

    spec: SampleSpec
    instance: str
    generated: int
    new_tokens: int
    finished: bool


@dataclass(frozen=True, kw_only=True)
class InstanceState:
    """The capacity of an instance: tokens in its KV cache, and rows decoded at the same time."""

    name: str
    kv_tokens: int
    max_running: int
    shares_prompts: bool = False  # siblings there store their prompt once
