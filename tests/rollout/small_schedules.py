"""A scheduler with a few instances, groups for it, and news from them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from foresail.rollout.plan import ChunkEnded, Dispatch, InstanceState, SampleSpec
from foresail.rollout.policies import build_policy
from foresail.rollout.scheduler import Event, Scheduler

POLICIES = ("fifo", "group", "context", "oracle")


def build(
    policy: str = "fifo",
    *,
    chunk_tokens: int | None = 10,
    record: Callable[[Event], None] | None = None,
    **rooms: int,
) -> Scheduler:
    """build(a=100) has one instance, of 100 KV tokens."""
    optional: dict[str, Any] = {} if record is None else {"record": record}
    scheduler = Scheduler(
        build_policy(policy, true_length=lambda spec: spec.max_tokens), chunk_tokens=chunk_tokens, **optional
    )
    for name, kv_tokens in rooms.items():
        scheduler.add_instance(InstanceState(name=name, kv_tokens=kv_tokens, max_running=4))
    return scheduler


def group(number: int, size: int = 1, *, prompt: int = 5, max_tokens: int = 40) -> list[SampleSpec]:
    return [
        SampleSpec(
            id=f"{number}.{sample}", group=number, sample=sample, prompt_tokens=prompt, max_tokens=max_tokens
        )
        for sample in range(size)
    ]


def ended(dispatch: Dispatch, new_tokens: int | None = None, *, finished: bool = False) -> ChunkEnded:
    tokens = dispatch.max_tokens if new_tokens is None else new_tokens
    return ChunkEnded(
        spec=dispatch.spec,
        instance=dispatch.instance,
        generated=dispatch.generated,
        new_tokens=tokens,
        finished=finished,
    )


def places(dispatches: list[Dispatch]) -> list[tuple[str, str]]:
    return [(dispatch.spec.id, dispatch.instance) for dispatch in dispatches]
