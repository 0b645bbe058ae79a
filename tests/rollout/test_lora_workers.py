"""Low-rank pairs in shared memory: a worker draws from what the trainer has learned."""

from __future__ import annotations

import time

import pytest
import torch
from tiny_rollouts import small_engine, small_model, specs, whole_requests

from foresail.model.decoder import Decoder
from foresail.model.lora import attach
from foresail.recipe.tables.parts import Lora
from foresail.rollout.instance import ChunkOrder
from foresail.rollout.plan import Dispatch
from foresail.rollout.remote.worker import WorkerInstance


def drawn_here(model: Decoder) -> dict[str, list[int]]:
    return {c.request.id: c.ids for c in small_engine(model).generate(whole_requests().values())}


def drawn_there(worker: WorkerInstance) -> dict[str, list[int]]:
    requests, drawn = whole_requests(), {}
    for spec in specs():
        dispatch = Dispatch(spec=spec, instance=worker.name, generated=0, max_tokens=spec.max_tokens)
        worker.submit(ChunkOrder(dispatch=dispatch, work=requests[spec.id]))
    deadline = time.monotonic() + 600
    while len(drawn) < len(requests):
        assert time.monotonic() < deadline, "the worker does not answer"
        drawn |= {report.event.spec.id: report.completion.ids for report in worker.poll()}
        time.sleep(0.002)
    return drawn


@pytest.mark.usefixtures("forked_workers")
def test_a_worker_draws_from_updated_pairs() -> None:
    model = small_model()
    attach(model, Lora(rank=2), seed=0)
    before = drawn_here(model)
    worker = WorkerInstance("one", model, {"num_pages": 200, "page_size": 4})
    try:
        assert drawn_there(worker) == before
        with torch.no_grad():
            for block in model.blocks:
                for path in ("attention.qkv", "attention.out", "mlp.gate_up", "mlp.down"):
                    block.get_submodule(path).get_parameter("B").normal_(
                        generator=torch.Generator().manual_seed(1)
                    )
        worker.update_weights(1)  # raises unless checksums agree, pairs included
        assert drawn_there(worker) == drawn_here(model) != before
    finally:
        worker.close()
