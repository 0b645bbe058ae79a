"""Tiny models in a real vLLM, and the native engine beside it: what both draw."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from foresail.data.packing import pack
from foresail.engine.engine import Engine
from foresail.engine.request import Completion, Request
from foresail.engine.sampling import SamplingRows, truncated
from foresail.model.decoder import Decoder
from foresail.model.hf import build_model
from foresail.model.packed import run_packed
from foresail.model.readouts import logits_at
from foresail.recipe.shape.model_shape import ModelShape
from foresail.recipe.tables.parts import Engine as EngineSettings
from foresail.recipe.tables.parts import Rollout, Sampling
from foresail.records import TrainSequence
from foresail.rollout.build import vllm_starter
from foresail.rollout.fleet import Fleet
from foresail.rollout.instance import ChunkOrder, Report
from foresail.rollout.plan import Dispatch, SampleSpec
from foresail.rollout.remote.instance import RemoteInstance

LONGEST = 96
# The bytes of every token: the letters a, b, c, … one each, so that stop strings can be told.
VOCABULARY = [bytes([97 + token % 26]) for token in range(97)]
LLAMA = ModelShape(
    vocab_size=97, hidden_size=64, intermediate_size=96, num_layers=2, num_heads=2, num_kv_heads=1, head_dim=32,
    max_context=128,
)  # fmt: skip
QWEN3 = LLAMA.model_copy(update={"family": "qwen3", "qk_norm": True, "tied": False})
BACKSTOP = 600.0  # seconds


def model_of(shape: ModelShape, seed: int = 0) -> Decoder:
    return build_model(shape, seed=seed)


@contextmanager
def vllm_of(model: Decoder, *, max_running: int = 16, **rollout: Any) -> Iterator[RemoteInstance]:
    settings = Rollout(backend="vllm", **rollout)
    start = vllm_starter(
        model,
        EngineSettings(max_running=max_running),
        settings,
        LONGEST,
        VOCABULARY,
        lambda read: read(model),
    )
    instance = start("vllm 0")
    try:
        instance.update_weights(0)
        yield instance
    finally:
        instance.close()


def become(model: Decoder, other: Decoder) -> None:
    """In place, as the optimiser does."""
    with torch.no_grad():
        for ours, theirs in zip(model.parameters(), other.parameters(), strict=True):
            ours.copy_(theirs)


def requests(count: int = 4, **sampling: Any) -> list[Request]:
    """With prompts of 1 to 40 tokens, some of which begin alike."""
    wanted = Sampling(**{"temperature": 0.0, "max_new_tokens": 24} | sampling)
    return [
        Request(id=f"{n}.0", prompt=tuple(range(3, 4 + 13 * n)), key=1000 + n, sampling=wanted)
        for n in range(count)
    ]


def native(model: Decoder, wanted: Sequence[Request]) -> dict[str, Completion]:
    engine = Engine(model, num_pages=400, page_size=16, vocabulary=VOCABULARY)
    return {done.request.id: done for done in engine.generate(wanted)}


def spec_of(request: Request, group: int) -> SampleSpec:
    return SampleSpec(
        id=request.id,
        group=group,
        sample=0,
        prompt_tokens=len(request.prompt),
        max_tokens=request.sampling.max_new_tokens,
    )


def order(instance: RemoteInstance, request: Request, group: int = 0) -> ChunkOrder:
    """All of it as one chunk."""
    spec = spec_of(request, group)
    dispatch = Dispatch(spec=spec, instance=instance.name, generated=0, max_tokens=spec.max_tokens)
    return ChunkOrder(dispatch=dispatch, work=request)


def wait_until(instance: RemoteInstance, enough: Callable[[list[Report]], bool]) -> list[Report]:
    """Poll until the reports suffice."""
    reports: list[Report] = []
    deadline = time.monotonic() + BACKSTOP
    while not enough(reports):
        assert time.monotonic() < deadline, f"after {BACKSTOP} s there is only {reports}"
        reports += instance.poll()
        time.sleep(0.002)
    return reports


def finish(fleet: Fleet) -> dict[str, Completion]:
    """All requests of a fleet to their end."""
    ended: dict[str, Completion] = {}
    deadline = time.monotonic() + BACKSTOP
    while fleet.busy:
        assert time.monotonic() < deadline, "the fleet does not end"
        ended |= {done.spec.id: done.completion for done in fleet.work()}
        time.sleep(0.001)
    return ended


def furthest(one: Completion, other: Completion) -> float:
    """The largest difference of two completions' log-probabilities."""
    return max(abs(a - b) for a, b in zip(one.logprobs, other.logprobs, strict=True))


@torch.no_grad()
def scored(model: Decoder, done: Completion) -> list[float]:
    """The log-probabilities of its tokens by the trainer's logits and the native engine's cut-offs."""
    sampling, start = done.request.sampling, len(done.request.prompt)
    ids = [*done.request.prompt, *done.ids]
    mask = [0] * start + [1] * len(done.ids)
    sequence = TrainSequence(name="one", ids=ids, loss_mask=mask, rollout_logprobs=[0.0] * len(ids))
    (batch,) = pack([sequence], [1.0], max_tokens=len(ids), device=model.device)
    logits_TV = run_packed(model, batch, logits_at(batch.sources_M)).value
    logprobs_TV = torch.log_softmax(logits_TV / sampling.temperature, dim=-1)
    if sampling.truncates:
        rows = len(logits_TV)
        settings = SamplingRows(
            temperature_B=torch.full((rows,), sampling.temperature),
            top_p_B=torch.full((rows,), sampling.top_p),
            top_k_B=torch.full((rows,), sampling.top_k),
            min_p_B=torch.full((rows,), sampling.min_p),
        )
        logprobs_TV = truncated(logprobs_TV, settings)
    assert len(logprobs_TV) == len(done.ids)
    found: list[float] = logprobs_TV.gather(1, torch.tensor(done.ids)[:, None]).squeeze(1).tolist()
    return found
