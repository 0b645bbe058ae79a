"""Muon: matrices inside the blocks move by their orthogonalised momentum, all else by AdamW.

Query, key and value share one parameter, but each is a matrix of its own; so is each expert's. An
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
from foresail.model.shards import is_sharded
from foresail.recipe.tables.parts import Optimizer
from foresail.train.optim.master_adamw import MasterAdamW
from foresail.train.optim.masters import WHOLE, Shard, check_keys, check_sizes
from foresail.train.optim.orthogonal import orthogonalize
from foresail.world import ONE_PROCESS, World

LIKE_ADAM = 0.2  # root mean square of AdamW's usual update
EMBEDDINGS = ("embed.weight", "head.weight")


def matrix_rows(model: nn.Module) -> dict[str, list[int]]:
    """By parameter, the rows of each matrix that it is made of: {"blocks.0.attention.qkv.weight": [64, 16, 16], …}.

    Only those inside blocks; routers, whose rows are scores and no projection, are left out.
    """
    if not isinstance(model, Decoder):
        raise ValueError('optimizer.name = "muon" is for decoders; set "adamw" for this one')
    rows: dict[str, list[int]] = {}
    for part in weight_parts(model.shape):
        if part.parameter not in EMBEDDINGS and ".router." not in part.parameter and len(part.sizes) == 2:
            rows.setdefault(part.parameter, []).append(part.sizes[0])
    return rows


class Muon:
    """Backward passes, then clip() and update(). `others` has the masters of all weights, and moves those that are
    no matrices inside blocks.
    """

    def __init__(
        self,
        model: nn.Module,
        settings: Optimizer,
        seed: int = 0,
        world: World = ONE_PROCESS,
        shards: Mapping[str, Shard] = WHOLE,
    ) -> None:
        self.settings, self.world = settings, world
        self.trained = {name: weight for name, weight in model.named_parameters() if weight.requires_grad}
        self.rows = {name: rows for name, rows in matrix_rows(model).items() if name in self.trained}
        rates = dict.fromkeys(EMBEDDINGS, settings.embedding_rate)
        self.others = MasterAdamW(model, settings, seed, world, shards, without=self.rows, rates=rates)
        self.names, self.gradients = self.others.names, self.others.gradients
        masters = dict(zip(self.names, self.others.masters, strict=True))
        self.masters = {name: masters[name] for name in self.rows}
        self.momenta = {name: torch.zeros_like(master) for name, master in self.masters.items()}

    def clip(self) -> float:
        """Scale the gradient to the largest allowed norm; its norm before."""
        return self.others.clip()

    @torch.no_grad()
    def update(self, learning_rate: float) -> None:
        self._move_matrices(learning_rate * self.settings.matrix_rate)
        self.others.update(learning_rate)

    def _move_matrices(self, rate: float) -> None:
        """In groups of as many matrices as there are ranks: each rank orthogonalises one."""
        gradients = {name: self.gradients[number] for number, name in enumerate(self.names)}
        names = [name for name in self.rows if gradients[name] is not None]
        for first in range(0, len(names), self.world.size):
            some = names[first : first + self.world.size]
            momenta = [self._look_ahead(name, gradients[name]) for name in some]
            for name, step in zip(some, self._orthogonalize(some, momenta), strict=True):
                master = self.masters[name]
                master.mul_(1 - rate * self.settings.weight_decay).add_(step, alpha=-rate)

    def _look_ahead(self, name: str, gradient: Tensor | None) -> Tensor:
        """Nesterov's momentum: as if the next gradient were this one again."""
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
        self.others.zero_grad()

    def state(self) -> dict[str, Tensor]:
        """Everything that an exact resume needs."""
        return {f"momentum:{name}": momentum for name, momentum in self.momenta.items()} | self.others.state()

    def share_of_state(self, pieces: Mapping[str, Sequence[Tensor]]) -> dict[str, Tensor]:
        """This rank's `state()` from a run with another number of ranks."""
        return self.others.share_of_state(pieces)

    @torch.no_grad()
    def load_state(self, tensors: Mapping[str, Tensor]) -> None:
        """Load the `state()` of an equal optimiser; before its first update it has no moments."""
        momenta = {key: tensors[key] for name in self.rows if (key := f"momentum:{name}") in tensors}
        check_keys(momenta, {f"momentum:{name}" for name in self.rows})
        check_sizes(momenta, self.momenta)
        self.others.load_state({key: tensor for key, tensor in tensors.items() if key not in momenta})
        for name, momentum in self.momenta.items():
            momentum.copy_(momenta[f"momentum:{name}"])


def orthogonal_parts(whole_NK: Tensor, rows: Sequence[int]) -> Tensor:
    """Orthogonalises stacked matrices one by one; those of equal shape in one batch."""
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
    received = torch.empty_like(padded)
    dist.scatter(received, parts, group=mesh.get_group(), group_src=of)
    return received[: len(mine)]


def pad(mine: Tensor, weight: Any) -> Tensor:
    """With zero rows up to the length of rank 0's shard: the last ranks may have fewer rows."""
    each = -(-weight.shape[0] // weight.device_mesh.size())
    padded = mine.new_zeros(each, *mine.shape[1:])
    padded[: len(mine)] = mine
    return padded
