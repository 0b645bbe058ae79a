"""Drafts by MTP layers on CUDA: `mtp.py` with fixed sizes, for CUDA graphs.

Legend: E entries, R rows, K MTP layers, W places computed, S slots, P pages per row, V vocabulary, D
hidden size, d head size.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from foresail.engine.entries import Entries
from foresail.engine.kernels.mtp import DraftLayout, join_inputs, keep, lay_out
from foresail.engine.mtp import MtpState, Sampler, Verified
from foresail.model.decoder import Decoder
from foresail.model.readouts import logits


class CudaMtpDrafter(MtpState):
    """The drafter of a device's table, whose last row is the scratch row."""

    def __init__(self, model: Decoder, pages_SP: Tensor, page_size: int) -> None:
        super().__init__(model, num_slots=len(pages_SP))
        self.pages_SP, self.page_size = pages_SP, page_size

    def follow(
        self,
        entries: Entries,
        done: Verified,
        attend_places: Callable[[DraftLayout], Any],
        sample: Sampler,
        *,
        num_rows: int,
        propose: bool,
    ) -> Tensor:
        """As `MtpDrafter.follow`. `num_rows` is at least the number of rows; further lines are unused."""
        layout = lay_out(
            entries,
            done.tokens_E,
            done.counts_E,
            done.positions_E,
            self.next_SJ,
            self.known_S,
            self.pages_SP,
            num_rows=num_rows,
            page_size=self.page_size,
        )
        attend, heads = attend_places(layout), self.heads
        cos_Wd, sin_Wd = (table[layout.positions_W].to(heads.embed_VD.dtype) for table in heads.rotary)
        drafts_RK = done.tokens_E.new_zeros(num_rows, self.layers)
        stream_WD = torch.cat((self.stream_SJD[layout.slots_R].flatten(0, 1), done.stream_ED))
        for number, layer in enumerate(heads.layers):
            both_W2D = join_inputs(
                stream_WD,
                layout.tokens_KW[number],
                layout.rows_W,
                drafts_RK,
                heads.embed_VD,
                layer.hidden_norm.weight,
                layer.token_norm.weight,
                layer.token_norm.eps,
            )
            fill = not propose and number == self.kept
            stream_WD = layer.go_on(both_W2D, cos_Wd, sin_Wd, attend, fill)
            if propose:
                logits_RV = heads.read(layer.norm(stream_WD[layout.last_R]), logits)
                drafts_RK[:, number] = sample(logits_RV, layout.slots_R, layout.before_KR[number])
        keep(layout, done.stream_ED, done.tokens_E, self.stream_SJD, self.next_SJ, self.known_S)
        if propose:
            self.ahead_SK[layout.slots_R] = drafts_RK
        return drafts_RK
