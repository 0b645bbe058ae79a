"""An update's preferences split over the ranks, as sequences are (`split.py`); pairs stay together.

batches = [*pack_answer_share(pairs, world, max_tokens=8192, device=device)]
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from foresail.data.preferences.packing import (
    good_tokens,
    no_answers,
    pack_answers,
    packed_tokens,
    plan_answers,
    shared_tokens,
)
from foresail.records import PackedBatch, Preference
from foresail.train.trainer import Trainer
from foresail.train.update.batches import WORTH_SHARING
from foresail.train.update.split import idle_batch, longest_first
from foresail.world import World, context_size


def answer_batches(trainer: Trainer[Any], preferences: Sequence[Preference]) -> Iterator[PackedBatch]:
    """`pack_answer_share` with the trainer's micro-batches, device and ranks."""
    tokens = trainer.recipe.micro_batch_tokens
    return pack_answer_share(preferences, trainer.world, max_tokens=tokens, device=trainer.device)


def pack_answer_share(
    preferences: Sequence[Preference],
    world: World,
    *,
    max_tokens: int,
    device: torch.device,
) -> Iterator[PackedBatch]:
    """This rank's micro-batches, as many as the rank with most has. `preferences` are all of the update, on every
    rank: one weighs the same wherever it is computed.

    A generator: each is packed while the device computes the one before.
    """
    data, context = world.data, world.context
    sizes = [packed_tokens(preference, shared_tokens(preference)) for preference in preferences]
    local = [preferences[number] for number in sorted(longest_first(sizes, data.size)[data.rank])]
    plans = plan_answers(
        local,
        max_tokens=max_tokens * context_size(world),
        share_from=WORTH_SHARING[device.type],
    )
    num_idle = data.max(len(plans)) - len(plans)
    good = good_tokens(preferences)
    for plan in plans:
        yield pack_answers(local, plan, count=len(preferences), good=good, device=device, context=context)
    for _ in range(num_idle):
        idle = idle_batch(preferences[0].answers[:1], device, context)
        yield no_answers(idle, preferences[0])
