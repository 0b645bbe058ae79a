"""The optimizer that a recipe names."""

from __future__ import annotations

from collections.abc import Mapping

from torch import nn

from foresail.recipe.tables.parts import Optimizer
from foresail.train.optim.compact_adamw import CompactAdamW
from foresail.train.optim.master_adamw import MasterAdamW
from foresail.train.optim.masters import Shard, shards_of
from foresail.train.optim.muon import Muon
from foresail.world import ONE_PROCESS, World

AdamW = MasterAdamW | CompactAdamW
AnyOptimizer = AdamW | Muon


def build_optimizer(
    model: nn.Module,
    settings: Optimizer,
    seed: int = 0,
    world: World = ONE_PROCESS,
    shards: Mapping[str, Shard] | None = None,
) -> AnyOptimizer:
    """The seed sets the low bits of the float32 masters, which 16-bit weights do not hold."""
    kind: type[MasterAdamW] | type[CompactAdamW] | type[Muon] = MasterAdamW
    if settings.name == "muon":
        kind = Muon
    elif settings.states == "8bit":
        kind = CompactAdamW
    return kind(model, settings, seed, world, shards_of(model) if shards is None else shards)
