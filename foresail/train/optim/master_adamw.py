"""AdamW on float32 master weights. Where the model itself is float32, it is its own master."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import torch
from torch import Tensor, nn

from foresail.model.shards import local
from foresail.recipe.tables.parts import Optimizer
from foresail.train.optim.gradients import GradientSums
from foresail.train.optim.masters import WHOLE, Shard, check_keys, check_sizes, master_of
from foresail.train.state_files import share_of
from foresail.world import ONE_PROCESS, World

MOMENTS = ("step", "exp_avg", "exp_avg_sq")  # what AdamW keeps of every weight
SCALE = "loss scale"  # of a float16 model


class MasterAdamW:
    """Backward passes, then clip() and update(): gradients are summed in float32 meanwhile.

    `shards` says by a weight's name which part of it this process holds. Masters of the weights in `without` are
    moved by another optimizer before update(); `rates` multiply the learning rate of single weights.
    """

    def __init__(
        self,
        model: nn.Module,
        settings: Optimizer,
        seed: int = 0,
        world: World = ONE_PROCESS,
        shards: Mapping[str, Shard] = WHOLE,
        *,
        without: Collection[str] = (),
        rates: Mapping[str, float] | None = None,
    ) -> None:
        self.settings, self.shards = settings, shards
        trained = {name: weight for name, weight in model.named_parameters() if weight.requires_grad}
        self.names, self.weights = list(trained), [local(weight) for weight in trained.values()]
        self.gradients = GradientSums(list(trained.values()), world)
        self.masters = [
            master_of(weight, seed, name, shards.get(name), world)
            for name, weight in zip(self.names, self.weights, strict=True)
        ]
        self.numbers = [
            number for number, name in enumerate(self.names) if name not in without
        ]  # AdamW's own
        groups: dict[tuple[float, float], list[Tensor]] = {}
        for number in self.numbers:
            decay = settings.weight_decay if self.masters[number].ndim > 1 else 0.0
            rate = (rates or {}).get(self.names[number], 1.0)
            groups.setdefault((decay, rate), []).append(self.masters[number])
        self.adam = torch.optim.AdamW(
            [
                {"params": masters, "weight_decay": decay, "rate": rate}
                for (decay, rate), masters in groups.items()
            ],
            betas=(settings.beta1, settings.beta2),
            eps=settings.eps,
            fused=True,
        )

    def clip(self) -> float:
        """Scale the gradient to the largest allowed norm; its norm before."""
        return self.gradients.clip(self.settings.clip_norm)

    @torch.no_grad()
    def update(self, learning_rate: float) -> None:
        for group in self.adam.param_groups:
            group["lr"] = learning_rate * group["rate"]
        for number in self.numbers:
            self.masters[number].grad = self.gradients[number]
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
        """Everything that an exact resume needs: moments, counters, and masters that differ from the weights."""
        tensors = self._own_masters()
        for number in self.numbers:
            moments = self._moments(self.masters[number])
            tensors |= {f"{key}:{self.names[number]}": value for key, value in moments.items()}
        return tensors if self.gradients.scale is None else tensors | {SCALE: self.gradients.scale.state()}

    def _own_masters(self) -> dict[str, Tensor]:
        return {
            f"master:{name}": master
            for name, weight, master in zip(self.names, self.weights, self.masters, strict=True)
            if weight is not master
        }

    def _moments(self, master: Tensor) -> dict[str, Tensor]:
        """What AdamW keeps of it. Where others have moved and this one has had no gradient yet, as MTP layers
        whose loss weighs 0 at first, that is what it will begin with: zeros.
        """
        state = self.adam.state
        if not state or master in state:
            return dict(state.get(master, {}))
        step = torch.zeros((), device=master.device)
        return dict(zip(MOMENTS, (step, torch.zeros_like(master), torch.zeros_like(master)), strict=True))

    def share_of_state(self, pieces: Mapping[str, Sequence[Tensor]]) -> dict[str, Tensor]:
        """This rank's `state()` from a run with another number of ranks."""
        weights = dict(zip(self.names, self.weights, strict=True))
        return {
            key: share_of(parts, self.shards[name].offset, weights[name])
            if (name := key.partition(":")[2]) in weights and parts[0].ndim
            else parts[0]
            for key, parts in pieces.items()
        }

    @torch.no_grad()
    def load_state(self, tensors: Mapping[str, Tensor]) -> None:
        """Load the `state()` of an equal optimiser; before its first update it has no moments."""
        masters, scale = self._own_masters(), self.gradients.scale
        moments = {f"{key}:{self.names[number]}" for key in MOMENTS for number in self.numbers}
        required = masters.keys() if scale is None else masters.keys() | {SCALE}
        check_keys(tensors, required, required | moments)
        check_sizes(tensors, dict(zip(self.names, self.weights, strict=True)))
        for key, master in masters.items():
            master.copy_(tensors[key])
        if moments <= tensors.keys():
            for number in self.numbers:
                name, master = self.names[number], self.masters[number]
                self.adam.state[master] = {key: tensors[f"{key}:{name}"].to(master.device) for key in MOMENTS}
        if scale is not None:
            scale.load_state(tensors[SCALE])
