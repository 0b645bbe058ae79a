"""Builds a recipe's fleet: one engine in this process, several in their own processes, or vLLM."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from foresail.engine.build import build_engine, engine_options
from foresail.model.decoder import Decoder
from foresail.ray_cluster import this_node
from foresail.recipe.estimates.engines import engine_refusals, engine_share, num_shares
from foresail.recipe.estimates.memory import Device
from foresail.recipe.estimates.placement import worker_gpus
from foresail.recipe.tables import parts
from foresail.recipe.tables.cluster import Cluster, on_ray, transport_of
from foresail.rollout.drafts.compiled import numba
from foresail.rollout.drafts.warm_up import compile_beside
from foresail.rollout.fleet import Fleet
from foresail.rollout.instance import Instance
from foresail.rollout.kv_pool import KVPool
from foresail.rollout.native import NativeInstance
from foresail.rollout.native_drafting import DraftingInstance
from foresail.rollout.policies import build_policy
from foresail.rollout.remote.engine_loop import EngineSpec, Spec
from foresail.rollout.remote.instance import RemoteInstance
from foresail.rollout.remote.ray_actor import (
    ActorPlan,
    ObjectTransport,
    RayInstance,
    beside_trainer,
    spread_out,
    this_address,
)
from foresail.rollout.remote.replacements import Replacements, Restarts
from foresail.rollout.remote.thread import ThreadInstance
from foresail.rollout.remote.worker import WorkerInstance
from foresail.rollout.requirements import choose_chunk
from foresail.rollout.vllm.engine import engine_size
from foresail.rollout.vllm.instance import VllmSpec
from foresail.rollout.vllm.weights import layer_of, saved_weights
from foresail.rollout.weights.broadcast import Broadcast, Kind
from foresail.rollout.weights.buckets import Named, whole_weights
from foresail.rollout.weights.model_handle import EmptyModel, ModelHandle, SharedModel
from foresail.rollout.weights.sync import CopiedWeights, HandedOver, SharedWeights, Transport, WeightSync
from foresail.runlog.process_log import ProcessLog

GB = 10**9
Start = Callable[[str], RemoteInstance]  # an engine with this name
Stream = Callable[[Callable[[Decoder], Named]], Named]  # reads weights from the trained model on all ranks


def build_fleet(
    model: Decoder,
    engine: parts.Engine,
    rollout: parts.Rollout,
    *,
    max_length: int,
    vocabulary: Sequence[bytes] = (),
    cluster: Cluster | None = None,
    logs: Path | None = None,
    stream: Stream | None = None,
) -> Fleet:
    """Engines with the model's weights, for samples of at most `max_length` tokens including the prompt.

    Each option of [engine] is applied to every engine or refused; engines on a CPU share the rows and the cache.

    `vocabulary` has the bytes of every token, for stop strings. A Ray `cluster` is already open. The output of
    engines' processes goes to `logs`. `stream` makes the other ranks send their part of sharded weights.
    """
    stream, cluster = stream or (lambda read: read(model)), cluster or Cluster()
    device: Device = "cuda" if model.device.type == "cuda" else "cpu"
    for refused in engine_refusals(engine, rollout, cluster, device):
        raise ValueError(refused)
    each = engine_share(engine, num_shares(cluster, rollout, device))
    by_ray = on_ray(cluster, rollout)
    if rollout.backend == "native" and not by_ray:
        if not rollout.workers:
            here = start_here(model, each, rollout, max_length, vocabulary)
            return gather([here], rollout, max_length=max_length)
        start = worker_starter(model, each, rollout, max_length, vocabulary, logs)
        return gather_remote(start, "worker", rollout, max_length=max_length)
    if by_ray:
        start = ray_starter(
            model, each, rollout, cluster, max_length, vocabulary, logs or Path("logs"), stream
        )
    else:
        start = vllm_starter(model, each, rollout, max_length, vocabulary, stream, logs)
    fleet = gather_remote(start, "ray" if by_ray else "vllm", rollout, max_length=max_length)
    try:
        fleet.update_weights(0)  # engines may have none yet
    except BaseException:
        fleet.close()
        raise
    return fleet


def gather(
    instances: Sequence[Instance],
    rollout: parts.Rollout,
    *,
    max_length: int,
    weights: WeightSync | None = None,
    replacements: Replacements | None = None,
) -> Fleet:
    """A fleet of instances with the recipe's scheduler."""
    return Fleet(
        instances,
        build_policy(choose_policy(rollout, instances)),
        KVPool(max_bytes=int(rollout.host_gb * GB)),
        chunk_tokens=choose_chunk(rollout, instances, max_length),
        weights=weights,
        replacements=replacements,
    )


def gather_remote(start: Start, kind: str, rollout: parts.Rollout, *, max_length: int) -> Fleet:
    """`rollout.workers` engines, at least one, which start at the same time; a lost one is replaced."""
    instances = [start(f"{kind} {number}") for number in range(max(1, rollout.workers))]
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
    """Whole groups for a single engine, so that its own queue fills the cache and siblings share prompts."""
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
    drafts = with_drafts(model, rollout)
    built = build_engine(model, engine, max_length=max_length, vocabulary=vocabulary, drafts=drafts)
    if not drafts:
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
    logs: Path | None,
) -> Start:
    """Starts processes on this machine, which read the model's weights in shared memory."""
    weights = SharedWeights(model.named_parameters)
    return partial(
        WorkerInstance,
        model=model,
        engine_options=engine_options(engine, max_length, vocabulary),
        drafts=with_drafts(model, rollout),
        weights=weights,
        logs=logs,
    )


def ray_starter(
    model: Decoder,
    engine: parts.Engine,
    rollout: parts.Rollout,
    cluster: Cluster,
    max_length: int,
    vocabulary: Sequence[bytes],
    logs: Path,
    stream: Stream,
) -> Start:
    """Starts Ray actors, with the weights in shared memory on the trainer's host or with copies elsewhere."""
    home, here = this_node(), model.device.type
    options = engine_options(engine, max_length, vocabulary)
    if cluster.placement == "colocated":
        drafts = with_drafts(model, rollout)
        beside = ActorPlan(
            spec=native_spec(SharedModel.of(model), options, drafts=drafts),
            actor=beside_trainer(),
            home=home,
            logs=logs,
        )
        return partial(RayInstance, plan=beside, weights=SharedWeights(model.named_parameters))
    on_cards = worker_gpus(cluster, "cuda" if here == "cuda" else "cpu")
    device: Device = "cuda" if on_cards else "cpu"
    if rollout.backend == "vllm":
        spec = vllm_spec(model, engine, rollout, max_length, vocabulary, device=device)
        # through host memory: vLLM's memory on a GPU belongs to another process
        transport = make_transport(cluster, "gloo", on_cards=False)
        weights = CopiedWeights(partial(stream, saved_weights), transport, unit=layer_of)
    else:
        spec = native_spec(EmptyModel.of(model, device=device), options, drafts=with_drafts(model, rollout))
        on_both = bool(on_cards) and here == "cuda"
        transport = make_transport(cluster, "nccl" if on_both else "gloo", on_cards=on_both)
        weights = CopiedWeights(partial(stream, whole_weights), transport)
    actor = spread_out(cluster.worker_cpus, on_cards)
    return partial(RayInstance, plan=ActorPlan(spec=spec, actor=actor, home=home, logs=logs), weights=weights)


def make_transport(cluster: Cluster, kind: Kind, *, on_cards: bool) -> Transport:
    if transport_of(cluster, on_cards=on_cards) == "objects":
        return ObjectTransport()
    return Broadcast(this_address(), kind)


def native_spec(model: ModelHandle, options: dict[str, Any], *, drafts: bool) -> Callable[[str], Spec]:
    return lambda name: EngineSpec(name=name, model=model, options=options, drafts=drafts)


def vllm_spec(
    model: Decoder,
    engine: parts.Engine,
    rollout: parts.Rollout,
    max_length: int,
    vocabulary: Sequence[bytes],
    *,
    device: Device,
    log: Path | None = None,
) -> Callable[[str], Spec]:
    if model.shape.experts is not None:
        raise ValueError(
            'the weights of experts are not yet sent to vLLM as it keeps them; set rollout.backend = "native"'
        )
    size = engine_size(engine, max_length, model.shape, device=device)
    return lambda name: VllmSpec(
        name=name,
        shape=model.shape.without_mtp(),  # vLLM drafts by its own means
        dtype=str(model.dtype).removeprefix("torch."),
        value_bytes=model.dtype.itemsize,
        size=size,
        device=device,
        vocabulary=vocabulary,
        speculation=rollout.speculation,
        log=log,
    )


def vllm_starter(
    model: Decoder,
    engine: parts.Engine,
    rollout: parts.Rollout,
    max_length: int,
    vocabulary: Sequence[bytes],
    stream: Stream,
    logs: Path | None = None,
) -> Start:
    """Starts vLLM engines beside the trainer, each in its own processes with a copy of the weights.

    All of them print to one file, `vllm.log`.
    """
    path = None if logs is None else logs / "vllm.log"
    device: Device = "cuda" if model.device.type == "cuda" else "cpu"
    spec = vllm_spec(model, engine, rollout, max_length, vocabulary, device=device, log=path)
    weights = CopiedWeights(partial(stream, saved_weights), HandedOver(), unit=layer_of)
    return lambda name: ThreadInstance(spec(name), weights, log=None if path is None else ProcessLog(path))


def with_drafts(model: Decoder, rollout: parts.Rollout) -> bool:
    """Whether to draft. On a CPU the cost of a step grows with its drafts, and uncompiled search is too slow."""
    if rollout.drafts == "auto":
        return model.device.type == "cuda" and numba is not None
    return rollout.drafts == "on"
