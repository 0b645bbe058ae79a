"""Drafts by the model's own MTP layers, which follow every decode step with their keys and values.

Layer k's key at a place needs the decoder's stream there and the k tokens after it. After a decode step one token
after the last place is known, so layer 1 is exact there and predicts the token after it; layer 2 uses that
prediction as the token, and so on: one drafted token per layer. Keys made with drafted tokens are computed again at
the next step from the stored streams of a row's last places.

A drafted token is sampled with the noise of its position, as the decoder will: similar distributions then give the
same token at any temperature.

On CUDA `mtp_cuda.py` does the same with fixed sizes.

Legend: S slots, E entries, R rows, K MTP layers, J = K - 1 places kept of a row, W places computed, D hidden size,
V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from foresail.engine.entries import Entries
from foresail.model.decoder import CachedAttend, Decoder
from foresail.model.mtp import MtpHeads
from foresail.model.readouts import logits

AttendPlaces = Callable[[Tensor, Tensor], Any]  # a CachedAttend, of slots and positions
Sampler = Callable[[Tensor, Tensor, Tensor], Tensor]  # of logits, slots, and positions before the tokens


@dataclass(frozen=True, kw_only=True)
class Verified:
    """The result of a decode step: stream and token at every entry, and each row's number of kept tokens."""

    stream_ED: Tensor
    tokens_E: Tensor
    counts_E: Tensor  # at a row's first entry
    positions_E: Tensor


class MtpState:
    """The stored state of every row; `forget` resets slots with new rows."""

    def __init__(self, model: Decoder, num_slots: int) -> None:
        self.model, self.layers = model, model.shape.mtp
        self.kept = self.layers - 1
        hidden, device = model.shape.hidden_size, model.device
        self.stream_SJD = torch.zeros(num_slots, self.kept, hidden, device=device)
        self.next_SJ = torch.zeros(num_slots, self.kept, dtype=torch.int64, device=device)
        self.known_S = torch.zeros(num_slots, dtype=torch.int64, device=device)  # stored places of each row
        # The last drafts. One of the slot's previous row is harmless: drafts are checked.
        self.ahead_SK = torch.zeros(num_slots, self.layers, dtype=torch.int64, device=device)

    @property
    def heads(self) -> MtpHeads:
        head = self.model.head
        return self.model.mtp_heads(self.model.embed.weight if head is None else head.weight)

    def forget(self, slots: Tensor) -> None:
        """Reset slots whose stored places are of another row."""
        self.known_S[slots] = 0

    def fill(
        self, stream_TD: Tensor, heads: MtpHeads, ids_KT: Tensor, positions_T: Tensor, attend: CachedAttend
    ) -> None:
        """Compute keys and values of a prompt; line k of ids_KT has the tokens k + 1 places later."""
        for number, ids_T in enumerate(ids_KT):
            last = number == self.kept
            stream_TD, _ = heads.run(number, stream_TD, ids_T, positions_T, attend, fill=last)


class MtpDrafter(MtpState):
    """follow every decode step."""

    def follow(
        self,
        entries: Entries,
        done: Verified,
        attend_places: AttendPlaces,
        sample: Sampler,
        *,
        propose: bool,
    ) -> Tensor:
        """Write the layers' keys and values of kept tokens; with `propose`, also draft K tokens for each row."""
        rows = DraftRows.of(entries, done)
        window = self._window(entries, done, rows)
        last_R = len(rows.slots_R) * self.kept + rows.firsts_R + rows.counts_R - 1
        window, last_R = window.only_needed(), (window.needed_W.cumsum(0) - 1)[last_R]
        attend, heads = attend_places(window.slots_W, window.positions_W), self.heads
        drafts_RK = done.tokens_E.new_zeros(len(rows.slots_R), self.layers)
        stream_WD = window.stream_WD
        for number in range(self.layers):
            ids_W = self._token_at(rows, done, drafts_RK, window.rows_W, window.steps_W + number + 1)
            fill = not propose and number == self.kept
            stream_WD, normed_WD = heads.run(number, stream_WD, ids_W, window.positions_W, attend, fill=fill)
            if propose:
                before_R = rows.positions_R + rows.counts_R + number
                logits_RV = heads.read(normed_WD[last_R], logits)
                drafts_RK[:, number] = sample(logits_RV, rows.slots_R, before_R)
        self._keep(rows, done, drafts_RK)
        if propose:
            self.ahead_SK[rows.slots_R] = drafts_RK
        return drafts_RK

    def _window(self, entries: Entries, done: Verified, rows: DraftRows) -> DraftWindow:
        """The stored places of every row, then all entries; known places and kept tokens are needed."""
        num_rows, device = len(rows.slots_R), rows.slots_R.device
        kept_J = torch.arange(-self.kept, 0, device=device)
        before_RJ = kept_J.expand(num_rows, -1)
        is_known_RJ = -before_RJ <= self.known_S[rows.slots_R][:, None]
        rows_W = torch.cat((torch.arange(num_rows, device=device).repeat_interleave(self.kept), rows.rows_E))
        steps_W = torch.cat((before_RJ.flatten(), entries.offsets_E.long()))
        return DraftWindow(
            rows_W=rows_W,
            steps_W=steps_W,
            slots_W=rows.slots_R[rows_W],
            positions_W=rows.positions_R[rows_W] + steps_W,
            needed_W=torch.cat((is_known_RJ.flatten(), rows.stands_E)),
            stream_WD=torch.cat((self.stream_SJD[rows.slots_R].flatten(0, 1), done.stream_ED)),
        )

    def _token_at(
        self, rows: DraftRows, done: Verified, drafts_RK: Tensor, rows_W: Tensor, steps_W: Tensor
    ) -> Tensor:
        """The token at a distance from a row's last one before the step: stored, sampled, or drafted."""
        counts_W, firsts_W = rows.counts_R[rows_W], rows.firsts_R[rows_W]
        sampled_W = done.tokens_E[(firsts_W + steps_W - 1).clamp(0, len(done.tokens_E) - 1)]
        drafted_W = drafts_RK[rows_W, (steps_W - counts_W - 1).clamp(0, self.layers - 1)]
        tokens_W = torch.where(steps_W > counts_W, drafted_W, sampled_W)
        if not self.kept:
            return tokens_W
        kept_W = self.next_SJ[rows.slots_R[rows_W], (self.kept + steps_W - 1).clamp(0, self.kept - 1)]
        return torch.where(steps_W <= 0, kept_W, tokens_W)

    def _keep(self, rows: DraftRows, done: Verified, drafts_RK: Tensor) -> None:
        """Store the last places of every row for the next step."""
        if not self.kept:
            return
        num_rows, device = len(rows.slots_R), rows.slots_R.device
        steps_RJ = rows.counts_R[:, None] - self.kept + torch.arange(self.kept, device=device)
        rows_RJ = torch.arange(num_rows, device=device)[:, None].expand(-1, self.kept)
        places_RJ = (rows.firsts_R[:, None] + steps_RJ).clamp(0, len(done.tokens_E) - 1)
        old_RJD = self.stream_SJD[rows.slots_R[:, None], (self.kept + steps_RJ).clamp(0, self.kept - 1)]
        stream_RJD = torch.where(steps_RJ[..., None] >= 0, done.stream_ED[places_RJ], old_RJD)
        tokens_RJ = self._token_at(rows, done, drafts_RK, rows_RJ, steps_RJ + 1)
        known_R = (self.known_S[rows.slots_R] + rows.counts_R).clamp(max=self.kept)
        self.stream_SJD[rows.slots_R], self.next_SJ[rows.slots_R] = stream_RJD, tokens_RJ
        self.known_S[rows.slots_R] = known_R


@dataclass(frozen=True, kw_only=True)
class DraftRows:
    """A step's rows by number: slots, first entries, positions there, and numbers of kept tokens."""

    slots_R: Tensor
    firsts_R: Tensor
    positions_R: Tensor
    counts_R: Tensor
    rows_E: Tensor
    stands_E: Tensor

    @staticmethod
    def of(entries: Entries, done: Verified) -> DraftRows:
        offsets_E, slots_E = entries.offsets_E.long(), entries.slots_E.long()
        firsts_R = (offsets_E == 0).nonzero().squeeze(1)
        rows_E = (offsets_E == 0).cumsum(0) - 1
        counts_R = done.counts_E.long()[firsts_R].clamp(min=1)
        return DraftRows(
            slots_R=slots_E[firsts_R],
            firsts_R=firsts_R,
            positions_R=done.positions_E[firsts_R],
            counts_R=counts_R,
            rows_E=rows_E,
            stands_E=offsets_E < counts_R[rows_E],
        )


@dataclass(frozen=True, kw_only=True)
class DraftWindow:
    """Places to compute: their rows, distances from the row's last one before the step, and streams."""

    rows_W: Tensor
    steps_W: Tensor
    slots_W: Tensor
    positions_W: Tensor
    needed_W: Tensor
    stream_WD: Tensor

    def only_needed(self) -> DraftWindow:
        chosen = self.needed_W.nonzero().squeeze(1)
        return DraftWindow(**{name: getattr(self, name)[chosen] for name in self.__dataclass_fields__})
