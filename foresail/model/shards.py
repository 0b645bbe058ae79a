"""Weights sharded over ranks by FSDP2: each rank has some consecutive rows of every weight.

    shard(model, mesh)            # every block and the rest; before it has memory, or after
    local(weight)                 # this rank's rows, in place; a weight that is not sharded is all there
    put_rows(weight, 4, rows)     # rows 4, 5, … as far as this rank has them
    gather_whole(weight, to=2)    # the whole weight on rank 2; None elsewhere

Of 10 rows on 4 ranks, the ranks have 3, 3, 3 and 1; of 2 rows, 1, 1, 0 and 0.
"""

from __future__ import annotations

import warnings
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from foresail.model.decoder import Decoder
from foresail.model.router import routers_of


def shard(model: Decoder, mesh: Any) -> None:
    """Each block or MTP layer is gathered for its pass and freed after it; so are the other weights."""
    for module in (*model.blocks, *model.mtp, model):
        shard_module(module, mesh)


def shard_module(module: nn.Module, mesh: Any) -> None:
    """Its own weights, without those of modules inside that are sharded already. Gradients are summed in float32.

    They are no means over ranks: a token's weight in the loss holds the normaliser of the whole update.
    """
    from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard  # a second to import

    wide = torch.float32 if mesh.size() > 1 else None  # one rank has nothing to sum
    fully_shard(
        module,
        mesh=mesh,
        ignored_params=corrections_of(module),
        reshard_after_forward=True,  # the root's too: between passes every weight is a shard
        mp_policy=MixedPrecisionPolicy(reduce_dtype=wide, cast_forward_inputs=False),
    )
    # no caller adds in place to the outputs of a pass
    warnings.filterwarnings("ignore", message="FSDP2-wrapped module .* returned a view tensor")
    assert isinstance(module, FSDPModule)
    module.set_gradient_divide_factor(1.0)
    module.set_force_sum_reduction_for_comms(True)


def corrections_of(module: nn.Module) -> set[nn.Parameter]:
    """Routers' few numbers in another dtype than the weights beside them: every rank has them whole."""
    return {router.correction for router in routers_of(module) if router.correction is not None}


def is_sharded(tensor: Any) -> bool:
    """Whether it is a DTensor, asked without importing what those are."""
    return hasattr(tensor, "device_mesh")


@torch.no_grad()
def local(tensor: Any) -> Tensor:
    mine: Tensor = tensor.to_local() if is_sharded(tensor) else tensor
    return mine


@torch.no_grad()
def full_weight(weight: Any) -> Tensor:
    """The whole weight on every rank; all call it."""
    whole: Tensor = weight.full_tensor() if is_sharded(weight) else weight
    return whole.detach()


def first_row(weight: Any) -> int:
    """Of those that this rank has; where it has none, the number of rows."""
    if not is_sharded(weight):
        return 0
    each = -(-weight.shape[0] // weight.device_mesh.size())
    first: int = min(each * weight.device_mesh.get_local_rank(), weight.shape[0])
    return first


def own_rows(weight: Tensor, start: int, count: int) -> range:
    """Those of `count` rows from `start` on that this rank has: it has 5 to 9, and of 4, 5, 6 these are 5 and 6."""
    first, mine = first_row(weight), len(local(weight))
    begin = max(start, first)
    return range(begin, max(begin, min(start + count, first + mine)))


@torch.no_grad()
def put_rows(weight: Tensor, start: int, rows: Tensor) -> None:
    """`rows` are those of the whole weight from `start` on."""
    first, held = first_row(weight), own_rows(weight, start, len(rows))
    local(weight)[held.start - first : held.stop - first].copy_(rows[held.start - start : held.stop - start])


@torch.no_grad()
def gather_whole(weight: Any, *, to: int) -> Tensor | None:
    """Every rank calls it, and one gets the weight. What is not sharded all have: in one process every weight, on
    ranks the routers' corrections.
    """
    if not is_sharded(weight):
        return full_weight(weight)
    mesh, mine = weight.device_mesh, local(weight)
    each, here = -(-weight.shape[0] // mesh.size()), mesh.get_local_rank() == to
    padded = mine.new_zeros(each, *weight.shape[1:])
    padded[: len(mine)] = mine
    parts = [torch.empty_like(padded) for _ in range(mesh.size())] if here else None
    dist.gather(padded, parts, group=mesh.get_group(), group_dst=to)
    return None if parts is None else torch.cat(parts)[: weight.shape[0]]
