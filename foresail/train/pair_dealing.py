"""An update's preference pairs dealt to the ranks, as `dealing.py` deals sequences: no pair is torn apart.

batches = [*pack_pair_share(pairs, world, max_tokens=8192, device=device)]
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from foresail.data.pair_packing import no_pairs, pack_pairs, pair_tokens, plan_pairs, shared_tokens
from foresail.records import PackedBatch, TrainPair
from foresail.train.dealing import idle_batch, longest_first
from foresail.train.updates import WORTH_SHARING
from foresail.world import World, context_size


def pack_pair_share(
    pairs: Sequence[TrainPair], world: World, *, max_tokens: int, device: torch.device, share: bool = True
) -> Iterator[PackedBatch]:
    """This rank's micro-batches, as many as the rank with most has. `pairs` are all of the update, on every rank:
    a pair weighs the same wherever it is computed.

    Each batch is made when it is asked for: beside a device that works on the one before.
    """
    data, context = world.data, world.context
    sizes = [pair_tokens(pair, shared_tokens(pair)) for pair in pairs]
    own = [pairs[number] for number in sorted(longest_first(sizes, data.size)[data.rank])]
    plans = plan_pairs(
        own,
        max_tokens=max_tokens * context_size(world),
        share_from=WORTH_SHARING[device.type] if share else None,
    )
    num_idle = data.max(len(plans)) - len(plans)
    chosen_tokens = sum(sum(pair.chosen.loss_mask) for pair in pairs)
    for plan in plans:
        yield pack_pairs(
            own, plan, num_pairs=len(pairs), chosen_tokens=chosen_tokens, device=device, context=context
        )
    for _ in range(num_idle):
        idle = idle_batch([pairs[0].chosen], device, context)
        yield no_pairs(idle, with_reference=pairs[0].ref_logprobs is not None)
