"""Fleets whose instances draft always, or now and then, and what they draw."""

from __future__ import annotations

import random
from typing import Any

from tiny_rollouts import small_engine, small_model, specs, whole_requests

from foresail.model.decoder import Decoder
from foresail.rollout.drafts.allocation import Lengths
from foresail.rollout.drafts.pacing import PLAIN, Pacing
from foresail.rollout.fleet import Fleet
from foresail.rollout.kv_pool import KVPool
from foresail.rollout.native import NativeInstance
from foresail.rollout.native_drafting import DraftingInstance
from foresail.rollout.policies import build_policy

MODEL = small_model()


class AlwaysDraft(Pacing):
    def lengths(self, num_high, num_low, context):
        return Lengths(6, 3)


class SometimesDraft(Pacing):
    """Changes its mind at random, so that plain steps are under way when drafts are asked for."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.numbers = random.Random(seed)

    def lengths(self, num_high, num_low, context):
        return Lengths(*self.numbers.choices(range(7), k=2)) if self.numbers.random() < 0.6 else PLAIN


def drafting(name: str, pacing: Pacing, model: Decoder = MODEL, **options: Any) -> DraftingInstance:
    instance = DraftingInstance(name, small_engine(model, **options))
    instance.speculation.pacing = pacing
    return instance


def finish(
    instances: list[NativeInstance], *, chunk_tokens: int | None = None, policy: str = "context"
) -> dict[str, list[int]]:
    fleet = Fleet(instances, build_policy(policy), KVPool(10**6), chunk_tokens=chunk_tokens)
    requests = whole_requests()
    for group in sorted({spec.group for spec in specs()}):
        members = [spec for spec in specs() if spec.group == group]
        fleet.launch(members, [requests[spec.id] for spec in members])
    drawn: dict[str, list[int]] = {}
    while fleet.busy:
        drawn |= {spec.id: list(completion.ids) for spec, completion in fleet.work()}
    return drawn
