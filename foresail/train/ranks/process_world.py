"""The ranks of a run as PyTorch's process group: `World` over gloo on CPUs and NCCL on GPUs.

    with joined(rank, size, store, device, context=2) as world:
        world.sum(tensor)        # over all ranks
        world.data.sum(tensor)   # over context groups: ranks 0 and 1 are one, 2 and 3 the next

The model's tensors go by the device's own backend, numbers and other objects by gloo, all with a time limit. Only
the wait for orders has none in practice, since a rollout may take long; a rank that dies breaks its connections,
which ends the wait.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from foresail.world import ContextGroup, Shared, Value, World

ORDERS = timedelta(days=30)  # how long an order may be waited for
COLLECTIVE = timedelta(minutes=30)  # limit for all other collective operations


class ProcessWorld:
    """See `World`; this process is one of them. `context` consecutive ranks are a context group; rank 0 knows."""

    def __init__(self, mesh: Any, context: int = 1) -> None:
        self.mesh = mesh  # a DeviceMesh
        self.rank, self.size = dist.get_rank(), dist.get_world_size()
        self.device = torch.device(mesh.device_type)
        self.orders = dist.new_group(backend="gloo", timeout=ORDERS)
        self.objects = dist.new_group(backend="gloo", timeout=COLLECTIVE)
        self.context: ContextGroup | None = None
        self.data: World = self
        if (context := self.broadcast(context)) > 1:
            group, _ = dist.new_subgroups(context, timeout=COLLECTIVE)
            self.context = ContextGroup(self.rank % context, context, group)
            self.data = DataWorld(self, self.context)

    def sum(self, value: Value) -> Value:
        return self._reduce(value, dist.ReduceOp.SUM)

    def max(self, value: Value) -> Value:
        """gloo and NCCL lose a NaN among other numbers, so NaNs are counted in a reduction of their own."""
        tensor = value if isinstance(value, Tensor) else torch.tensor(value, dtype=torch.float64)
        if not tensor.is_floating_point():
            return self._reduce(value, dist.ReduceOp.MAX)
        missing = tensor.isnan()
        greatest = self._reduce(torch.where(missing, -torch.inf, tensor), dist.ReduceOp.MAX)
        result = torch.where(self._reduce(missing.int(), dist.ReduceOp.MAX) > 0, torch.nan, greatest)
        return result if isinstance(value, Tensor) else type(value)(result.item())

    def broadcast(self, value: Shared) -> Shared:
        box: list[Any] = [value if self.rank == 0 else None]
        dist.broadcast_object_list(box, src=0, group=self.orders, device=torch.device("cpu"))
        shared: Shared = value if self.rank == 0 else box[0]
        return shared

    def all_gather(self, value: Shared) -> list[Shared]:
        values: list[Any] = [None] * self.size
        dist.all_gather_object(values, value, group=self.objects)
        return values

    def _reduce(self, value: Any, how: Any) -> Any:
        if isinstance(value, Tensor):
            # on the device of the mesh's backend, and back
            total = value.to(self.device, copy=True)
            dist.all_reduce(total, how)
            return total.to(value.device)
        dtype = torch.int64 if isinstance(value, int) else torch.float64
        total = torch.tensor(value, dtype=dtype)
        dist.all_reduce(total, how, group=self.objects)
        return type(value)(total.item())


class DataWorld:
    """See `World.data`: its ranks are the context groups of another world, and the first member speaks for each.

    Everybody gets the same bits, though members may have computed the same number with another rounding.
    """

    def __init__(self, whole: ProcessWorld, context: ContextGroup) -> None:
        self.whole, self.context, self.mesh = whole, context, whole.mesh
        self.rank, self.size = whole.rank // context.size, whole.size // context.size
        self.speaks = context.rank == 0

    @property
    def data(self) -> World:
        return self

    def sum(self, value: Value) -> Value:
        nothing: Any = torch.zeros_like(value) if isinstance(value, Tensor) else type(value)(0)
        return self.whole.sum(value if self.speaks else nothing)

    def max(self, value: Value) -> Value:
        return self.whole.max(value)

    def broadcast(self, value: Shared) -> Shared:
        return self.whole.broadcast(value)

    def all_gather(self, value: Shared) -> list[Shared]:
        values: list[Any] = self.whole.all_gather(value if self.speaks else None)
        return values[:: self.context.size]


@contextmanager
def joined(
    rank: int, size: int, store: Any, device: torch.device, *, context: int = 1
) -> Iterator[ProcessWorld]:
    """One of `size` processes, which meet in `store`; `device` is this one's, `context` what rank 0 says."""
    from torch.distributed.device_mesh import init_device_mesh  # it takes a second

    backend = "nccl" if device.type == "cuda" else "gloo"
    if device.type == "cuda":
        torch.cuda.set_device(device)
    dist.init_process_group(backend, store=store, rank=rank, world_size=size, timeout=COLLECTIVE)
    try:
        yield ProcessWorld(init_device_mesh(device.type, (size,)), context)
    finally:
        dist.destroy_process_group()
