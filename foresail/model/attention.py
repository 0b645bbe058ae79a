"""Attention for training over sequences packed end to end, each of which sees only itself.

On CUDA a flash kernel reads the packed layout as it is (`flash.py`), and rows of one length, as in pretraining, go
to the fastest one there is (`row_attention.py`). Elsewhere the tokens are spread into a padded
rectangle for this one operation, or on a CPU, if that had much padding, taken one by one
(`segment_attention.py`); everything else in the model stays packed. A segment may also go on after another,
its parent, and see all of it (`shared_prompts.py`).

Inside `linear.batch_invariant()` the engine's kernel attends on CUDA, and what a sequence gets has the same bits
as in the engine, alone or packed with any others. On a CPU it has them up to the rounding of padded products.

Legend: T tokens, S sequences, H query heads, K key/value heads, d head size.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from foresail.model import linear
from foresail.model.flash import FlashAttention
from foresail.model.kernels import available
from foresail.model.padded import PaddedAttention
from foresail.model.row_attention import attend_rows, can_attend_rows
from foresail.model.segment_attention import SegmentAttention, is_ragged
from foresail.model.shared_prompts import SharedPromptAttention

FLASH_DTYPES = (torch.bfloat16, torch.float16)


class PackedAttention:
    """`attend` for one packed batch; build it once per forward and hand it to the model.

    The offsets are best on the host: their lengths are read there, and a device would be waited for.
    """

    def __init__(self, starts_S1: Tensor, parents_S: Tensor | None = None) -> None:
        self.starts, self.parents_S = starts_S1.cpu().to(torch.int32), parents_S
        self.lengths: list[int] = self.starts.diff().tolist()
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
        if q_THd.is_cuda and q_THd.dtype in FLASH_DTYPES and q_THd.shape[-1] % 8 == 0:
            if self.parents_S is None and can_attend_rows(self.lengths):
                return attend_rows(q_THd, k_TKd, v_TKd, self.lengths[0])
            return self.flash.attend(q_THd, k_TKd, v_TKd)
        if q_THd.device.type == "cpu" and self.segments is not None:
            return self.segments.attend(q_THd, k_TKd, v_TKd)
        if self.parents_S is not None:
            return self.shared_prompts.attend(q_THd, k_TKd, v_TKd)
        return self.padded.attend(q_THd, k_TKd, v_TKd)

    def attend_as_engine(self, q_THd: Tensor, k_TKd: Tensor, v_TKd: Tensor) -> Tensor:
        """The packed tokens as a cache with pages of one token, in order."""
        from foresail.model.kernels.chunks import attend_chunks, cut_tiles

        if self.tiles is None:  # the same in every layer
            group = q_THd.shape[1] // k_TKd.shape[1]
            self.tiles = torch.from_numpy(cut_tiles(self.lengths, group)).to(q_THd.device)
        tables_SP, contexts_S = self.contexts
        return attend_chunks(
            q_THd,
            k_TKd.contiguous()[:, None],
            v_TKd.contiguous()[:, None],
            tables_SP,
            self.starts_S1,
            contexts_S,
            self.tiles,
        )

    @cached_property
    def contexts(self) -> tuple[Tensor, Tensor]:
        """Where the tokens lie that a segment sees, its parent's and its own; and how many they are."""
        starts_S1, lengths_S = self.starts, self.starts.diff()
        parents_S = torch.full_like(lengths_S, -1) if self.parents_S is None else self.parents_S
        before_S = torch.where(parents_S >= 0, lengths_S[parents_S], 0)
        contexts_S = before_S + lengths_S
        steps_P = torch.arange(int(contexts_S.max()))
        own_SP = starts_S1[:-1, None] + steps_P - before_S[:, None]
        above_SP = starts_S1[parents_S][:, None] + steps_P
        tables_SP = torch.where(steps_P < before_S[:, None], above_SP, own_SP).to(torch.int32)
        return tables_SP.to(self.starts_S1.device), contexts_S.to(torch.int32).to(self.starts_S1.device)

    @cached_property
    def flash(self) -> FlashAttention:
        return FlashAttention(self.starts.long(), self.parents_S, self.starts_S1.device)

    @cached_property
    def segments(self) -> SegmentAttention | None:
        """None where a padded rectangle has little padding."""
        parents = [-1] * len(self.lengths) if self.parents_S is None else self.parents_S.tolist()
        return SegmentAttention(self.lengths, parents) if is_ragged(self.lengths, parents) else None

    @cached_property
    def padded(self) -> PaddedAttention:
        return PaddedAttention(self.lengths, self.starts_S1.device)

    @cached_property
    def shared_prompts(self) -> SharedPromptAttention:
        assert self.parents_S is not None
        return SharedPromptAttention(self.starts.long(), self.parents_S, self.starts_S1.device)


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
