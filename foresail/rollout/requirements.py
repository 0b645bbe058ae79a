"""Checks that engines have the capabilities a recipe needs, and chooses the chunk size.

keyed noise        `run.deterministic` needs it; without it samples cannot be repeated
log-probabilities  training needs them; an evaluation does not
parking            `rollout.chunk_tokens` needs it; without it requests run in one chunk
drafts             `rollout.drafts = "on"` needs them; with "auto" there are none
forcing            `sampling.thinking_budget` needs it
partial output     optional: without it a stream's tokens come as chunks end
memory lending     optional: without it the cache keeps its memory while the trainer works
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from foresail.recipe.tables.parts import Rollout
from foresail.rollout.instance import Instance

CHUNK = 64  # tokens; shorter chunks cost more than the capacity they save

# capability -> the effect of its lack, and advice
LACKS = {
    "keyed_noise": "draws its own noise, so that no run can be repeated; set run.deterministic = false",
    "logprobs": "gives no log-probabilities, which training compares with its own; use another backend",
    "parking": "cannot stop a request half-way; leave rollout.chunk_tokens unset: requests then run undivided",
    "drafts": 'checks no drafts; set rollout.drafts = "auto"',
    "partial_output": "tells no tokens before a chunk has ended; use the native engine",
    "forcing": "puts no tokens into a response; remove sampling.thinking_budget, or use the native engine",
}


def require(instances: Iterable[Instance], needs: Mapping[str, bool]) -> None:
    """Refuse a missing capability by name: require(…, {"keyed_noise": recipe.run.deterministic})."""
    for instance in instances:
        for capability, needed in needs.items():
            if needed and not getattr(instance.capabilities, capability):
                raise ValueError(f"backend {instance.state.name!r} {LACKS[capability]}")


def choose_chunk(rollout: Rollout, instances: Sequence[Instance], max_length: int) -> int | None:
    """Tokens of a chunk: the recipe's, else None if all rows fit at full length or engines cannot park."""
    require(instances, {"parking": bool(rollout.chunk_tokens), "drafts": rollout.drafts == "on"})
    fits = all(one.state.kv_tokens >= one.state.max_running * max_length for one in instances)
    divisible = all(one.capabilities.parking for one in instances)
    return rollout.chunk_tokens or (None if fits or not divisible else CHUNK)
