"""The fleet that a recipe asks for: one engine in this process, several in processes of their own, or vLLM."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from foresail.engine.engine import build_engine, engine_options
from foresail.model.decoder import Decoder
from foresail.recipe import parts
from foresail.recipe.cluster import Cluster
from foresail.recipe.memory import kv_pages
from foresail.recipe.placement import worker_gpus
from foresail.recipe.ray_cluster import this_node
from foresail.rollout.drafts.compiled import numba
from foresail.rollout.drafts.warm_up import compile_beside
from foresail.rollout.fleet import Fleet
from foresail.rollout.instance import Instance
from foresail.rollout.kv_pool import KVPool
from foresail.rollout.model_handle import EmptyModel, SharedModel
from foresail.rollout.native import NativeInstance
from foresail.rollout.native_drafting import DraftingInstance
from foresail.rollout.policies import build_policy
from foresail.rollout.ray_instance import (
    EnginePlan,
    ObjectTransport,
    RayInstance,
    beside_trainer,
    spread_out,
)
from foresail.rollout.remote import RemoteInstance
from foresail.rollout.replacements import Replacements, Restarts
from foresail.rollout.requirements import choose_chunk
from foresail.rollout.vllm_engine import engine_arguments, engine_size, start_vllm
from foresail.rollout.vllm_instance import VllmInstance
from foresail.rollout.weight_sync import CopiedWeights, SharedWeights, WeightSync
from foresail.rollout.worker import WorkerInstance

GB = 10**9
Start = Callable[[str], RemoteInstance]  # an engine with this name


def build_fleet(
    model: Decoder,
    engine: parts.Engine,
    rollout: parts.Rollout,
    *,
    max_length: int,
    vocabulary: Sequence[bytes] = (),
    cluster: Cluster | None = None,
    logs: Path = Path("logs"),
) -> Fleet:
    """Engines with the model's weights. Samples are at most `max_length` tokens long, prompt and all.

    `vocabulary` has the bytes of every token; stop strings need it. With a `cluster` of Ray it is open; what its
    actors print goes to `logs`.
    """
    if rollout.backend == "vllm":
        instances = start_vllm_instances(model, engine, rollout, max_length, vocabulary)
        return gather(instances, rollout, max_length=max_length)
    if not rollout.workers:
        here = start_here(model, engine, rollout, max_length, vocabulary)
        return gather([here], rollout, max_length=max_length)
    if cluster is not None and cluster.kind == "ray":
        start = ray_starter(model, engine, rollout, cluster, max_length, vocabulary, logs)
        fleet = gather_remote(start, "ray", rollout, max_length=max_length)
        fleet.update_weights(0)  # actors may have none yet
        return fleet
    start = worker_starter(model, engine, rollout, max_length, vocabulary)
    return gather_remote(start, "worker", rollout, max_length=max_length)


def gather(
    instances: Sequence[Instance],
    rollout: parts.Rollout,
    *,
    max_length: int,
    weights: WeightSync | None = None,
    replacements: Replacements | None = None,
) -> Fleet:
    """Instances of any backend under the scheduler that the settings ask for."""
    return Fleet(
        instances,
        build_policy(choose_policy(rollout, instances)),
        KVPool(max_bytes=int(rollout.host_gb * GB)),
        chunk_tokens=choose_chunk(rollout, instances, max_length),
        weights=weights,
        replacements=replacements,
    )


def gather_remote(start: Start, kind: str, rollout: parts.Rollout, *, max_length: int) -> Fleet:
    """`rollout.workers` engines that start side by side; one that is lost is replaced."""
    instances = [start(f"{kind} {number}") for number in range(rollout.workers)]
    try:
        return gather(
            instances,
            rollout,
            max_length=max_length,
            weights=instances[0].weights,
            replacements=Restarts(start),
        )
    except BaseException:
        for instance in instances:
            instance.close()
        raise


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


def worker_starter(
    model: Decoder,
    engine: parts.Engine,
    rollout: parts.Rollout,
    max_length: int,
    vocabulary: Sequence[bytes],
) -> Start:
    """Processes on this machine, which read the model's own weights."""
    if model.device.type != "cpu":
        raise ValueError(
            "rollout.workers are processes on a CPU; one GPU is served by one engine: set it to 0"
        )
    weights = SharedWeights(model.named_parameters)
    return partial(
        WorkerInstance,
        model=model,
        engine_options=shared_out(engine, rollout.workers, max_length, vocabulary),
        drafts=with_drafts(model, rollout),
        weights=weights,
    )


def ray_starter(
    model: Decoder,
    engine: parts.Engine,
    rollout: parts.Rollout,
    cluster: Cluster,
    max_length: int,
    vocabulary: Sequence[bytes],
    logs: Path,
) -> Start:
    """Actors: on the trainer's memory where they are placed beside it, with copies of the weights elsewhere."""
    shared = shared_out(engine, rollout.workers, max_length, vocabulary)
    drafts, home = with_drafts(model, rollout), this_node()
    if cluster.placement == "colocated":
        beside = EnginePlan(
            model=SharedModel.of(model),
            options=shared,
            drafts=drafts,
            actor=beside_trainer(),
            home=home,
            logs=logs,
        )
        return partial(RayInstance, plan=beside, weights=SharedWeights(model.named_parameters))
    on_cards = worker_gpus(cluster, "cuda" if model.device.type == "cuda" else "cpu")
    apart = EnginePlan(
        model=EmptyModel.of(model, device="cuda" if on_cards else "cpu"),
        options=engine_options(engine, max_length, vocabulary) if on_cards else shared,
        drafts=drafts,
        actor=spread_out(cluster.worker_cpus, on_cards),
        home=home,
        logs=logs,
    )
    return partial(RayInstance, plan=apart, weights=CopiedWeights(model.named_parameters, ObjectTransport()))


def shared_out(
    engine: parts.Engine, num_engines: int, max_length: int, vocabulary: Sequence[bytes]
) -> dict[str, Any]:
    """Of each engine on a CPU: its share of the rows and pages that one engine would have."""
    if engine.kv_dtype == "fp8":
        raise ValueError('engine.kv_dtype = "fp8" needs a CUDA device; leave it at "model" on a CPU')
    return {
        "num_pages": max(1, kv_pages(engine, max_length) // num_engines),
        "page_size": engine.page_size,
        "max_running": -(-engine.max_running // num_engines),
        "prefill_tokens": engine.prefill_tokens,
        "batch_invariant": engine.batch_invariant,
        "vocabulary": vocabulary,
    }


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
