"""The fleet that a recipe asks for: one engine in this process, several in processes of their own, or vLLM."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from foresail.engine.engine import build_engine
from foresail.model.decoder import Decoder
from foresail.recipe import parts
from foresail.recipe.memory import kv_pages
from foresail.rollout.drafts.compiled import numba
from foresail.rollout.drafts.warm_up import compile_beside
from foresail.rollout.fleet import Fleet
from foresail.rollout.instance import Instance
from foresail.rollout.kv_pool import KVPool
from foresail.rollout.native import NativeInstance
from foresail.rollout.native_drafting import DraftingInstance
from foresail.rollout.policies import build_policy
from foresail.rollout.requirements import choose_chunk
from foresail.rollout.vllm_engine import engine_arguments, engine_size, start_vllm
from foresail.rollout.vllm_instance import VllmInstance
from foresail.rollout.worker import WorkerInstance

GB = 10**9


def build_fleet(
    model: Decoder,
    engine: parts.Engine,
    rollout: parts.Rollout,
    *,
    max_length: int,
    vocabulary: Sequence[bytes] = (),
) -> Fleet:
    """Engines with the model's weights. Samples are at most `max_length` tokens long, prompt and all.

    `vocabulary` has the bytes of every token; stop strings need it.
    """
    instances: Sequence[Instance]
    if rollout.backend == "vllm":
        instances = start_vllm_instances(model, engine, rollout, max_length, vocabulary)
    elif rollout.workers:
        instances = start_workers(model, engine, rollout, max_length, vocabulary)
    else:
        instances = [start_here(model, engine, rollout, max_length, vocabulary)]
    return gather(instances, rollout, max_length=max_length)


def gather(instances: Sequence[Instance], rollout: parts.Rollout, *, max_length: int) -> Fleet:
    """Instances of any backend under the scheduler that the settings ask for."""
    return Fleet(
        instances,
        build_policy(choose_policy(rollout, instances)),
        KVPool(max_bytes=int(rollout.host_gb * GB)),
        chunk_tokens=choose_chunk(rollout, instances, max_length),
    )


def choose_policy(rollout: parts.Rollout, instances: Sequence[Instance]) -> str:
    """One engine does best with a queue of its own: its cache is filled, and siblings share their prompts."""
    if rollout.policy != "auto":
        return rollout.policy
    return "context" if len(instances) > 1 else "group"


def start_here(
    model: Decoder,
    engine: parts.Engine,
    rollout: parts.Rollout,
    max_length: int,
    vocabulary: Sequence[bytes],
) -> Instance:
    built = build_engine(model, engine, max_length=max_length, vocabulary=vocabulary)
    if not with_drafts(model, rollout):
        return NativeInstance("engine", built)
    if rollout.drafts == "on":
        return DraftingInstance("engine", built)
    return DraftingInstance("engine", built, ready=compile_beside())


def start_workers(
    model: Decoder,
    engine: parts.Engine,
    rollout: parts.Rollout,
    max_length: int,
    vocabulary: Sequence[bytes],
) -> Sequence[Instance]:
    """Each has its share of the rows and pages that one engine would have, and reads the same weights."""
    if model.device.type != "cpu":
        raise ValueError(
            "rollout.workers are processes on a CPU; one GPU is served by one engine: set it to 0"
        )
    if engine.kv_dtype == "fp8":
        raise ValueError('engine.kv_dtype = "fp8" needs a CUDA device; leave it at "model" on a CPU')
    options = {
        "num_pages": max(1, kv_pages(engine, max_length) // rollout.workers),
        "page_size": engine.page_size,
        "max_running": -(-engine.max_running // rollout.workers),
        "prefill_tokens": engine.prefill_tokens,
        "batch_invariant": engine.batch_invariant,
        "vocabulary": vocabulary,
    }
    return [
        WorkerInstance(f"worker {number}", model, options, drafts=with_drafts(model, rollout))
        for number in range(rollout.workers)
    ]


def start_vllm_instances(
    model: Decoder,
    engine: parts.Engine,
    rollout: parts.Rollout,
    max_length: int,
    vocabulary: Sequence[bytes],
) -> Sequence[Instance]:
    """Each has its share of the rows, and a copy of the weights."""
    device, share = model.device.type, max(1, rollout.workers)
    if device != "cpu" and share > 1:
        raise ValueError("rollout.workers are processes on a CPU; vLLM serves one GPU here: set it to 0")
    size = engine_size(engine, max_length, model.shape, device=device, share=share)
    arguments = partial(
        engine_arguments,
        size=size,
        shape=model.shape,
        dtype=str(model.dtype).removeprefix("torch."),
        value_bytes=model.dtype.itemsize,
        device=device,
        speculation=rollout.speculation,
    )
    return [
        VllmInstance(
            f"vllm {number}",
            model,
            lambda folder: start_vllm(arguments(folder)),
            size,
            vocabulary=vocabulary,
            speculation=rollout.speculation,
        )
        for number in range(share)
    ]


def with_drafts(model: Decoder, rollout: parts.Rollout) -> bool:
    """On a CPU a step's time grows with every guess, and without machine code finding them takes too long."""
    if rollout.drafts == "auto":
        return model.device.type == "cuda" and numba is not None
    return rollout.drafts == "on"
