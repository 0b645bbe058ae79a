"""MTP layers as CUDA's graphs run them, with sizes known beforehand: the same drafts as on a CPU."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
import triton_interpreter  # noqa: F401
from mtp_models import MTP_MODELS
from small_engines import Engine, finish_all, mixed_requests, small_engine
from torch import Tensor

from foresail.engine.advance import SampledTokens
from foresail.engine.entries import Entries
from foresail.engine.kernels.mtp import DraftLayout
from foresail.engine.mtp import MtpDrafter, Verified
from foresail.engine.mtp_cuda import CudaMtpDrafter
from foresail.engine.runner_cpu import CpuRunner


class FixedSizes(CpuRunner):
    """Follows as CUDA's graphs do: entries and rows filled up to a size known beforehand, on a scratch row."""

    more, more_rows = 3, 2  # of the entries that fill up two have a line, as rows of their own

    def __init__(self, engine: Engine) -> None:
        size = {"num_pages": engine.num_pages + 1, "page_size": engine.page_size}
        super().__init__(engine.model, engine.table, **size, batch_invariant=False, mtp=True)
        self.scratch = len(engine.table.lengths_S) - 1
        engine.table.pages_SP[self.scratch] = engine.num_pages
        pages_SP = torch.from_numpy(engine.table.pages_SP)
        self.mtp = CudaMtpDrafter(engine.model, pages_SP, engine.page_size)  # type: ignore[assignment]

    def _look_ahead(
        self, mtp: MtpDrafter, entries: Entries, stream_ED: Tensor, positions_E: Tensor, drawn: SampledTokens
    ) -> SampledTokens:
        more = self.more

        def fill_up(array: Any, value: int) -> Tensor:
            return torch.cat((torch.as_tensor(array), torch.full((more,), value, dtype=torch.int64)))

        done = Verified(
            stream_ED=torch.cat((stream_ED, stream_ED[:1].expand(more, -1))),
            tokens_E=fill_up(drawn.tokens_E, 1),
            counts_E=fill_up(drawn.counts_E, 1),
            positions_E=fill_up(positions_E, 0),
        )
        num_rows = int((entries.offsets_E == 0).sum())
        ahead_RK = mtp.follow(
            Entries(fill_up(entries.slots_E, self.scratch), fill_up(entries.offsets_E, 0), None),
            done,
            self._attend_places,
            lambda logits_RV, slots_R, before_R: self._sample(logits_RV, slots_R.numpy(), before_R)[0],
            num_rows=num_rows + self.more_rows,
            propose=self.propose,
        )
        return replace(drawn, ahead_RK=ahead_RK.numpy())

    def _attend_places(self, layout: DraftLayout) -> Any:
        attend = self._attend(layout.slots_W.numpy(), layout.positions_W.numpy())
        assert attend.places_T.tolist() == layout.places_W.tolist()
        assert (layout.positions_W + 1).tolist() == layout.contexts_W.tolist()
        return attend


@pytest.mark.skipif(torch.cuda.is_available(), reason="test_mtp_drafts.py runs the kernels on the GPU itself")
@pytest.mark.parametrize(("layers", "most_steps"), [(1, 3), (3, 7)])
def test_sizes_known_beforehand_give_the_same_drafts(layers: int, most_steps: int) -> None:
    """Of rows whose drafts stand in every other step, so that one draws several tokens and another one."""
    model, requests = MTP_MODELS[layers], mixed_requests()[19:]
    truth = finish_all(small_engine(model), requests)
    asked, fixed = (small_engine(model, mtp=True, max_running=5) for _ in range(2))
    fixed.runner = fixed.admission.runner = fixed.slots.runner = FixedSizes(fixed)
    fixed.slots.empty.remove(4)
    for engine in (asked, fixed):
        engine.ask_for_drafts()
        for request in requests:
            engine.add(request)
    compared = stood = 0
    for step in range(most_steps):
        drafts, others = asked.mtp_drafts(), fixed.mtp_drafts()
        assert drafts.slots_R.tolist() == others.slots_R.tolist()
        assert drafts.tokens_RK.tolist() == others.tokens_RK.tolist()
        compared += len(drafts.slots_R)
        for line, slot in enumerate(drafts.slots_R if step % 2 else ()):
            request = asked.slots[int(slot)].request
            drawn = len(asked.tokens(request.id) or ()) - len(request.prompt)
            rest = truth[request.id].ids[drawn:][:layers]
            drafts.tokens_RK[line, : len(rest)] = rest
            stood += len(rest)
        for engine in (asked, fixed):
            engine.step(drafts)
    assert compared > 4 and stood > 2
