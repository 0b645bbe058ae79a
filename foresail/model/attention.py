"""Attention for training: sequences packed end to end, none of which sees another.

On CUDA PyTorch's variable-length flash kernel reads the packed layout as it is. Elsewhere the tokens
are spread into a padded rectangle for this one operation; everything else in the model stays packed.
There a segment may also go on after another, its parent, and see all of it: a prompt that several answers share.

Inside `linear.batch_invariant()` the engine's kernel attends on CUDA, and what a sequence gets has the same bits
as in the engine, alone or packed with any others. On a CPU it has them up to the rounding of padded products.

Legend: T tokens, S sequences, C those with a parent, H query heads, K key/value heads, d head size.
"""

from __future__ import annotations

import inspect
from functools import cache, cached_property, partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from foresail.model import linear
from foresail.model.kernels import available


@cache
def flash_kernel() -> Any:
    """Causal attention over packed sequences, or None where PyTorch has none yet (before 2.10).

    Imported when first needed: it brings in PyTorch's compiler, a second that CPU commands would lose.
    """
    try:
        from torch.nn.attention.varlen import varlen_attn
    except ImportError:
        return None
    # 2.10 says is_causal, later ones take a window: all of the past, nothing of the future
    options = inspect.signature(varlen_attn).parameters
    causal: dict[str, Any] = {"window_size": (-1, 0)} if "window_size" in options else {"is_causal": True}
    if "enable_gqa" in options:
        return partial(varlen_attn, **causal, enable_gqa=True)
    return partial(attend_repeated, partial(varlen_attn, **causal))


def attend_repeated(kernel: Any, q_THd: Tensor, k_TKd: Tensor, v_TKd: Tensor, *sizes: Any) -> Tensor:
    """For a kernel that wants as many key heads as query heads."""
    repeat = q_THd.shape[1] // k_TKd.shape[1]
    return kernel(q_THd, k_TKd.repeat_interleave(repeat, 1), v_TKd.repeat_interleave(repeat, 1), *sizes)


class PackedAttention:
    """`attend` for one packed batch; build it once per forward and hand it to the model.

    The offsets are best on the host: their lengths are read there, and a device would be waited for.
    """

    def __init__(self, starts_S1: Tensor, parents_S: Tensor | None = None) -> None:
        self.starts, self.parents_S = starts_S1.cpu().to(torch.int32), parents_S
        self.lengths: list[int] = self.starts.diff().tolist()
        self.num_sequences, self.longest = len(self.lengths), max(self.lengths)
        self.tiles: Tensor | None = None
        self._move(starts_S1.device)

    def _move(self, device: torch.device) -> None:
        self.starts_S1 = self.starts.to(device, non_blocking=True)

    def __call__(self, layer: int, q_THd: Tensor, k_TKd: Tensor, v_TKd: Tensor) -> Tensor:
        if self.starts_S1.device != q_THd.device:
            self._move(q_THd.device)
        if linear.is_batch_invariant() and available.can_fuse(q_THd):
            return InvariantAttention.apply(q_THd, k_TKd, v_TKd, self)
        return self.attend(q_THd, k_TKd, v_TKd)

    def attend(self, q_THd: Tensor, k_TKd: Tensor, v_TKd: Tensor) -> Tensor:
        if self.parents_S is not None:
            return self._after_parents(q_THd, k_TKd, v_TKd)
        half = q_THd.dtype in (torch.bfloat16, torch.float16)
        if q_THd.is_cuda and half and q_THd.shape[-1] % 8 == 0 and flash_kernel() is not None:
            starts, longest = self.starts_S1, self.longest
            return flash_kernel()(q_THd, k_TKd, v_TKd, starts, starts, longest, longest)
        return self._padded(q_THd, k_TKd, v_TKd)

    def attend_as_engine(self, q_THd: Tensor, k_TKd: Tensor, v_TKd: Tensor) -> Tensor:
        """The packed tokens as a cache with pages of one token, in order."""
        from foresail.model.kernels.chunks import attend_chunks, cut_tiles

        if self.tiles is None:  # the same in every layer
            group = q_THd.shape[1] // k_TKd.shape[1]
            self.tiles = torch.from_numpy(cut_tiles(self.lengths, group)).to(q_THd.device)
        return attend_chunks(
            q_THd,
            k_TKd.contiguous()[:, None],
            v_TKd.contiguous()[:, None],
            torch.arange(len(q_THd), dtype=torch.int32, device=q_THd.device)[
                :, None
            ],  # row s begins at token s
            self.starts_S1,
            self.starts_S1.diff(),
            self.tiles,
            slots_C=self.starts_S1[:-1],
        )

    def _padded(self, q_THd: Tensor, k_TKd: Tensor, v_TKd: Tensor) -> Tensor:
        q, k, v = (self._spread(x) for x in (q_THd, k_TKd, v_TKd))
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=q.shape[1] != k.shape[1])
        return out.transpose(1, 2).flatten(0, 1)[self.cells_T]

    def _spread(self, x_Thd: Tensor) -> Tensor:
        """Packed tokens -> (sequences, heads, longest, d); the cells past a sequence's end stay zero."""
        padded = x_Thd.new_zeros(self.num_sequences * self.longest, *x_Thd.shape[1:])
        padded = padded.index_copy(0, self.cells_T, x_Thd)
        return padded.unflatten(0, (self.num_sequences, self.longest)).transpose(1, 2)

    @cached_property
    def cells_T(self) -> Tensor:
        """Where in that rectangle, its rows laid end to end, each token goes."""
        rows_T = torch.repeat_interleave(torch.arange(self.num_sequences), self.starts.diff())
        places_T = torch.arange(len(rows_T)) - self.starts[rows_T]
        return (rows_T * self.longest + places_T).to(self.starts_S1.device)

    def _after_parents(self, q_THd: Tensor, k_TKd: Tensor, v_TKd: Tensor) -> Tensor:
        """Segments without a parent by themselves; the others over their parent's keys and their own."""
        family = self.family
        tokens = family.roots_T, family.children_T
        q_roots, q_children = (q_THd.index_select(0, places) for places in tokens)
        k_roots, v_roots = (x.index_select(0, family.roots_T) for x in (k_TKd, v_TKd))
        out_roots = family.roots.attend(q_roots, k_roots, v_roots)
        out_children = family.attend(q_children, k_TKd, v_TKd)
        return torch.cat((out_roots, out_children)).index_select(0, family.back_T)

    @cached_property
    def family(self) -> Family:
        assert self.parents_S is not None
        return Family(self.starts.long(), self.parents_S, self.starts_S1.device)


class Family:
    """Segments that go on after others: which tokens are whose, and what each may see.

    A rectangle has a row for every child: on the left its parent's tokens, on the right its own.
    """

    def __init__(self, starts_S1: Tensor, parents_S: Tensor, device: torch.device) -> None:
        lengths_S, is_child_S = starts_S1.diff(), parents_S >= 0
        segment_T = torch.repeat_interleave(torch.arange(len(lengths_S)), lengths_S)
        self.roots_T, self.children_T = (
            torch.nonzero(wanted[segment_T]).squeeze(1).to(device) for wanted in (~is_child_S, is_child_S)
        )
        self.back_T = torch.argsort(torch.cat((self.roots_T, self.children_T)))
        self.roots = PackedAttention(torch.cat((torch.zeros(1), lengths_S[~is_child_S].cumsum(0))))
        self.children = PackedAttention(torch.cat((torch.zeros(1), lengths_S[is_child_S].cumsum(0))))
        parents_C = parents_S[is_child_S]
        before = places_of(starts_S1[parents_C], lengths_S[parents_C])
        own = places_of(starts_S1[:-1][is_child_S], lengths_S[is_child_S])
        self.keys_CK, there_CK = (torch.cat(halves, 1).to(device) for halves in zip(before, own, strict=True))
        # a token sees all of the parent, and of its own segment itself and what came before
        later = torch.ones(own[0].shape[1], own[0].shape[1], dtype=torch.bool).triu(1)
        future = F.pad(later, (before[0].shape[1], 0)).to(device)
        self.seen_C1LK = (there_CK[:, None] & ~future)[:, None]

    def attend(self, q_children: Tensor, k_TKd: Tensor, v_TKd: Tensor) -> Tensor:
        q = self.children._spread(q_children)
        k, v = (self._gather(x) for x in (k_TKd, v_TKd))
        out = F.scaled_dot_product_attention(
            q, k, v, attn_mask=self.seen_C1LK, enable_gqa=q.shape[1] != k.shape[1]
        )
        return out.transpose(1, 2).flatten(0, 1).index_select(0, self.children.cells_T)

    def _gather(self, x_TKd: Tensor) -> Tensor:
        rows = x_TKd.index_select(0, self.keys_CK.flatten())
        return rows.unflatten(0, self.keys_CK.shape).transpose(1, 2)


def places_of(starts_C: Tensor, lengths_C: Tensor) -> tuple[Tensor, Tensor]:
    """Starts [7, 2], lengths [1, 3] -> places [[7, 7, 7], [2, 3, 4]], of which [[1, 0, 0], [1, 1, 1]] are there."""
    steps_L = torch.arange(int(lengths_C.max()))
    there_CL = steps_L < lengths_C[:, None]
    return starts_C[:, None] + torch.where(there_CL, steps_L, 0), there_CL


class InvariantAttention(torch.autograd.Function):
    """Forward by the engine's kernel; the derivative is that of the usual one, computed anew."""

    @staticmethod
    def forward(ctx: Any, q_THd: Tensor, k_TKd: Tensor, v_TKd: Tensor, packed: PackedAttention) -> Tensor:
        ctx.save_for_backward(q_THd, k_TKd, v_TKd)
        ctx.packed = packed
        return packed.attend_as_engine(q_THd, k_TKd, v_TKd)

    @staticmethod
    def backward(ctx: Any, grad_THd: Tensor) -> tuple[Tensor | None, ...]:
        inputs = [x.detach().requires_grad_() for x in ctx.saved_tensors]
        with torch.enable_grad():
            out_THd = ctx.packed.attend(*inputs)
        return *torch.autograd.grad(out_THd, inputs, grad_THd), None
