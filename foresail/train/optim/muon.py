"""Muon: matrices inside the blocks move by their orthogonalised momentum, all else by AdamW.

A projection is a matrix of its own, though query, key and value share one parameter, and so is every expert's. An
update is 0.2 sqrt(longer side) times as large as an orthogonal matrix, so that its numbers are about as large as
AdamW's (Moonlight): one learning rate and one weight decay do for both. `optimizer.matrix_rate` and
`optimizer.embedding_rate` set them apart.

Where ranks have rows of every weight, each parameter is gathered on one of them, which works on it while the others
work on theirs, and its rows go back.

Legend: N rows, K columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from foresail.model.decoder import Decoder
from foresail.model.hf_names import weight_parts
from foresail.model.shards import is_sharded, local
from foresail.recipe.tables.parts import Optimizer
from foresail.train.optim.gradients import GradientSums
from foresail.train.optim.masters import (
    MOMENTS,
    WHOLE,
    Shard,
    check_sizes,
    master_of,
    moments_of,
    share_pieces,
)
from foresail.train.optim.orthogonal import orthogonalize
from foresail.world import ONE_PROCESS, World

SCALE = "loss scale"  # of a float16 model
LIKE_ADAM = 0.2  # root mean square of AdamW's usual update
EMBEDDINGS = ("embed.weight", "head.weight")


def matrix_rows(model: nn.Module) -> dict[str, list[int]]:
    """By parameter, the rows of each matrix that it is made of: {"blocks.0.attention.qkv.weight": [64, 16, 16], …}.

    Only those inside blocks; routers, whose rows are scores and no projection, are left out.
    """
    if not isinstance(model, Decoder):
        raise ValueError('optimizer.name = "muon" is for decoders; set "adamw" for this one')
    found: dict[str, list[int]] = {}
    for part in weight_parts(model.shape):
        if part.parameter not in EMBEDDINGS and ".router." not in part.parameter and len(part.sizes) == 2:
            found.setdefault(part.parameter, []).append(part.sizes[0])
    return found


class Muon:
    """Backward passes, then clip() and update(), as `optimizer.MasterAdamW` has them."""

    def __init__(
        self,
        model: nn.Module,
        settings: Optimizer,
        seed: int = 0,
        world: World = ONE_PROCESS,
        shards: Mapping[str, Shard] = WHOLE,
    ) -> None:
        self.settings, self.shards, self.world = settings, shards, world
        self.trained = {name: weight for name, weight in model.named_parameters() if weight.requires_grad}
        self.names, self.weights = [*self.trained], [local(weight) for weight in self.trained.values()]
        self.gradients = GradientSums([*self.trained.values()], world)
        self.masters = {
            name: master_of(weight, seed, name, shards.get(name), world)
            for name, weight in zip(self.names, self.weights, strict=True)
        }
        self.rows = {name: rows for name, rows in matrix_rows(model).items() if name in self.trained}
        self.momenta = {name: torch.zeros_like(self.masters[name]) for name in self.rows}
        others = [name for name in self.names if name not in self.rows]
        self.adam = torch.optim.AdamW(
            [
                {"params": [master], "weight_decay": settings.weight_decay if master.ndim > 1 else 0.0}
                | {"rate": settings.embedding_rate if name in EMBEDDINGS else 1.0}
                for name in others
                for master in [self.masters[name]]
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
        gradients = {name: self.gradients[number] for number, name in enumerate(self.names)}
        for group in self.adam.param_groups:
            group["lr"] = learning_rate * group["rate"]
        for name, gradient in gradients.items():
            if name not in self.rows:
                self.masters[name].grad = gradient
        self.adam.step()
        self._move_matrices(gradients, learning_rate * self.settings.matrix_rate)
        for name, weight in zip(self.names, self.weights, strict=True):
            if weight is not self.masters[name]:
                weight.copy_(self.masters[name])
        if self.gradients.scale is not None:
            self.gradients.scale.count()
        self.zero_grad()

    def _move_matrices(self, gradients: Mapping[str, Tensor | None], rate: float) -> None:
        """As many at once as there are ranks: each has one to work on."""
        names = [name for name in self.rows if gradients[name] is not None]
        for first in range(0, len(names), self.world.size):
            some = names[first : first + self.world.size]
            ahead = [self._look_ahead(name, gradients[name]) for name in some]
            for name, step in zip(some, self._orthogonalize(some, ahead), strict=True):
                master = self.masters[name]
                master.mul_(1 - rate * self.settings.weight_decay).add_(step, alpha=-rate)

    def _look_ahead(self, name: str, gradient: Tensor | None) -> Tensor:
        """The momentum as it will be if the next gradient is this one (Nesterov)."""
        assert gradient is not None
        momentum, memory = self.momenta[name], self.settings.momentum
        momentum.lerp_(gradient, 1 - memory)
        return gradient.lerp(momentum, memory)

    def _orthogonalize(self, names: Sequence[str], mine: Sequence[Tensor]) -> list[Tensor]:
        """This rank's rows of each update."""
        if self.world.size == 1:
            return [orthogonal_parts(whole, self.rows[name]) for name, whole in zip(names, mine, strict=True)]
        weights: list[Any] = [self.trained[name] for name in names]
        wholes = [
            gather(rows, weight, to) for to, (rows, weight) in enumerate(zip(mine, weights, strict=True))
        ]
        done = [
            None if whole is None else orthogonal_parts(whole, self.rows[name])
            for name, whole in zip(names, wholes, strict=True)
        ]
        return [
            scatter(whole, rows, weight, of)
            for of, (whole, rows, weight) in enumerate(zip(done, mine, weights, strict=True))
        ]

    def zero_grad(self) -> None:
        """Drop gradients without using them."""
        self.gradients.zero_grad()
        self.adam.zero_grad(set_to_none=True)

    def state(self) -> dict[str, Tensor]:
        """Everything needed to go on exactly."""
        tensors = {f"momentum:{name}": momentum for name, momentum in self.momenta.items()}
        for name, weight in zip(self.names, self.weights, strict=True):
            master = self.masters[name]
            moments = {} if name in self.rows else moments_of(self.adam, master)
            tensors |= {f"{key}:{name}": value for key, value in moments.items()}
            if weight is not master:
                tensors[f"master:{name}"] = master
        return tensors if self.gradients.scale is None else tensors | {SCALE: self.gradients.scale.state()}

    def share_of_state(self, pieces: Mapping[str, Sequence[Tensor]]) -> dict[str, Tensor]:
        """This rank's `state()`, of a run that had more ranks, or fewer."""
        return share_pieces(pieces, self.shards, dict(zip(self.names, self.weights, strict=True)))

    @torch.no_grad()
    def load_state(self, tensors: dict[str, Tensor]) -> None:
        """Go on from `state()` of an equal optimiser; one that was never updated has no moments yet."""
        weights = dict(zip(self.names, self.weights, strict=True))
        own = [name for name in self.names if weights[name] is not self.masters[name]]
        others = [name for name in self.names if name not in self.rows]
        known = {*(f"momentum:{name}" for name in self.rows), *(f"master:{name}" for name in own)}
        known |= set() if self.gradients.scale is None else {SCALE}
        moments = {f"{key}:{name}" for key in MOMENTS for name in others}
        if tensors.keys() not in (known, known | moments):
            raise ValueError(
                "it is the state of another model, of another optimizer.name, or in another dtype"
            )
        check_sizes(tensors, weights)
        for name, momentum in self.momenta.items():
            momentum.copy_(tensors[f"momentum:{name}"])
        for name in own:
            self.masters[name].copy_(tensors[f"master:{name}"])
        if moments <= tensors.keys():
            for name in others:
                master = self.masters[name]
                self.adam.state[master] = {key: tensors[f"{key}:{name}"].to(master.device) for key in MOMENTS}
        if self.gradients.scale is not None:
            self.gradients.scale.load_state(tensors[SCALE])


def orthogonal_parts(whole_NK: Tensor, rows: Sequence[int]) -> Tensor:
    """Matrices one below the other, each by itself; equal ones at once."""
    steps = []
    for matrices_GNK in group_equal(whole_NK, rows):
        longer = max(matrices_GNK.shape[1:])
        steps.append(orthogonalize(matrices_GNK).mul_(LIKE_ADAM * longer**0.5).flatten(0, 1))
    return steps[0] if len(steps) == 1 else torch.cat(steps)


def group_equal(whole_NK: Tensor, rows: Sequence[int]) -> list[Tensor]:
    """Of rows [4, 2, 2]: one matrix of 4 rows, and two of 2."""
    groups: list[list[int]] = []
    for count in rows:
        if groups and groups[-1][0] == count:
            groups[-1].append(count)
        else:
            groups.append([count])
    parts = whole_NK.split([sum(group) for group in groups])
    return [part.unflatten(0, (len(group), -1)) for part, group in zip(parts, groups, strict=True)]


# Rows of a sharded weight to one rank, and back.


def gather(mine: Tensor, weight: Any, to: int) -> Tensor | None:
    """All rows on that rank; None elsewhere."""
    assert is_sharded(weight)
    mesh = weight.device_mesh
    padded = pad(mine, weight)
    here = mesh.get_local_rank() == to
    parts = [torch.empty_like(padded) for _ in range(mesh.size())] if here else None
    dist.gather(padded, parts, group=mesh.get_group(), group_dst=to)
    return None if parts is None else torch.cat(parts)[: weight.shape[0]]


def scatter(whole: Tensor | None, mine: Tensor, weight: Any, of: int) -> Tensor:
    """This rank's rows of what that rank has."""
    mesh = weight.device_mesh
    padded = pad(mine, weight)
    parts = None
    if whole is not None:
        missing = len(padded) * mesh.size() - len(whole)
        parts = [*torch.cat([whole, whole.new_zeros(missing, *whole.shape[1:])]).split(len(padded))]
    found = torch.empty_like(padded)
    dist.scatter(found, parts, group=mesh.get_group(), group_src=of)
    return found[: len(mine)]


def pad(mine: Tensor, weight: Any) -> Tensor:
    """Ranks have equally many rows, but for the last ones."""
    each = -(-weight.shape[0] // weight.device_mesh.size())
    padded = mine.new_zeros(each, *mine.shape[1:])
    padded[: len(mine)] = mine
    return padded
