"""AdamW on float32 master weights. Where the model itself is float32, it is its own master."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from foresail.model.shards import local
from foresail.recipe.tables.parts import Optimizer
from foresail.train.optim.compact_adamw import CompactAdamW
from foresail.train.optim.gradients import GradientSums
from foresail.train.optim.masters import (
    MOMENTS,
    WHOLE,
    Shard,
    check_sizes,
    master_of,
    moments_of,
    shards_of,
    share_pieces,
)
from foresail.train.optim.muon import Muon
from foresail.world import ONE_PROCESS, World

SCALE = "loss scale"  # of a float16 model


class MasterAdamW:
    """Backward passes, then clip() and update(): gradients are summed in float32 meanwhile.

    `shards` says by a weight's name which part of it this process holds.
    """

    def __init__(
        self,
        model: nn.Module,
        settings: Optimizer,
        seed: int = 0,
        world: World = ONE_PROCESS,
        shards: Mapping[str, Shard] = WHOLE,
    ) -> None:
        self.settings, self.shards = settings, shards
        trained = {name: weight for name, weight in model.named_parameters() if weight.requires_grad}
        self.names, self.weights = list(trained), [local(weight) for weight in trained.values()]
        self.gradients = GradientSums(list(trained.values()), world)
        self.masters = [
            master_of(weight, seed, name, shards.get(name), world)
            for name, weight in zip(self.names, self.weights, strict=True)
        ]
        decay = [master for master in self.masters if master.ndim > 1]
        plain = [master for master in self.masters if master.ndim <= 1]
        groups = [
            {"params": decay, "weight_decay": settings.weight_decay},
            {"params": plain, "weight_decay": 0.0},
        ]
        betas = (settings.beta1, settings.beta2)
        self.adam = torch.optim.AdamW(groups, lr=settings.lr, betas=betas, eps=settings.eps, fused=True)

    def clip(self) -> float:
        """Scale the gradient to the largest allowed norm; its norm before."""
        return self.gradients.clip(self.settings.clip_norm)

    @torch.no_grad()
    def update(self, learning_rate: float) -> None:
        for group in self.adam.param_groups:
            group["lr"] = learning_rate
        for number, master in enumerate(self.masters):
            master.grad = self.gradients[number]
        self.adam.step()
        for weight, master in zip(self.weights, self.masters, strict=True):
            if weight is not master:
                weight.copy_(master)
        if self.gradients.scale is not None:
            self.gradients.scale.count()
        self.zero_grad()

    def zero_grad(self) -> None:
        """Drop gradients without using them."""
        self.gradients.zero_grad()
        self.adam.zero_grad(set_to_none=True)

    def state(self) -> dict[str, Tensor]:
        """Everything needed to go on exactly: moments, counters, and masters that differ from the weights."""
        tensors: dict[str, Tensor] = {}
        for name, weight, master in zip(self.names, self.weights, self.masters, strict=True):
            tensors |= {f"{key}:{name}": value for key, value in moments_of(self.adam, master).items()}
            if weight is not master:
                tensors[f"master:{name}"] = master
        return tensors if self.gradients.scale is None else tensors | {SCALE: self.gradients.scale.state()}

    def share_of_state(self, pieces: Mapping[str, Sequence[Tensor]]) -> dict[str, Tensor]:
        """This rank's `state()`, of a run that had more ranks, or fewer."""
        return share_pieces(pieces, self.shards, dict(zip(self.names, self.weights, strict=True)))

    @torch.no_grad()
    def load_state(self, tensors: dict[str, Tensor]) -> None:
        """Go on from `state()` of an equal optimiser; one that was never updated has no moments yet."""
        pairs = list(zip(self.names, self.weights, self.masters, strict=True))
        masters = {f"master:{name}" for name, weight, master in pairs if weight is not master}
        moments = {f"{key}:{name}" for key in MOMENTS for name in self.names}
        scale = self.gradients.scale
        known = masters if scale is None else masters | {SCALE}
        if tensors.keys() not in (known, known | moments):
            raise ValueError(
                "it is the state of another model, of other optimizer.states, or in another dtype"
            )
        check_sizes(tensors, dict(zip(self.names, self.weights, strict=True)))
        for name, weight, master in pairs:
            if weight is not master:
                master.copy_(tensors[f"master:{name}"])
            if moments <= tensors.keys():
                self.adam.state[master] = {key: tensors[f"{key}:{name}"].to(master.device) for key in MOMENTS}
        if scale is not None:
            scale.load_state(tensors[SCALE])


AdamW = MasterAdamW | CompactAdamW
AnyOptimizer = AdamW | Muon


def build_optimizer(
    model: nn.Module,
    settings: Optimizer,
    seed: int = 0,
    world: World = ONE_PROCESS,
    shards: Mapping[str, Shard] | None = None,
) -> AnyOptimizer:
    """The seed is for the bits of the masters that 16-bit weights do not hold."""
    kind: type[MasterAdamW] | type[CompactAdamW] | type[Muon] = MasterAdamW
    if settings.name == "muon":
        kind = Muon
    elif settings.states == "8bit":
        kind = CompactAdamW
    return kind(model, settings, seed, world, shards_of(model) if shards is None else shards)
