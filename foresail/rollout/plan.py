"""What passes between the controller, the scheduler and the instances: what to sample, who runs where, what ended.

A group is all samples of one problem, numbered in launch order. A request is one sample; it runs in chunks, and
an episode of several turns is one request that comes back with more prompt.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class SampleSpec:
    """One sample to generate: SampleSpec(id="17.3", group=17, sample=3, prompt_tokens=120, max_tokens=2048).

    `max_tokens` bounds all that may follow the first prompt: what is generated, and what is appended to it.
    """

    id: str
    group: int
    sample: int
    prompt_tokens: int
    max_tokens: int


@dataclass(frozen=True, kw_only=True)
class Dispatch:
    """A chunk to run: at most `max_tokens` more of a request that has `generated` behind its prompt already."""

    spec: SampleSpec
    instance: str
    generated: int
    max_tokens: int


@dataclass(frozen=True, kw_only=True)
class ChunkEnded:
    """What came of a dispatch; a request that is not finished goes on with its next chunk, anywhere.

    `generated` is what the chunk began with: news that comes twice is not taken for that of the next chunk.
    """

    spec: SampleSpec
    instance: str
    generated: int
    new_tokens: int
    finished: bool


@dataclass(frozen=True, kw_only=True)
class InstanceState:
    """The capacity of an instance: tokens its KV cache holds, and rows it decodes at once."""

    name: str
    kv_tokens: int
    max_running: int
    shares_prompts: bool = False  # siblings that run there hold their prompt once
