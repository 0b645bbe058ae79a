"""The engines of a recipe: their device, the share of [engine] that each has, and settings it cannot use there.

    engine_share(Engine(max_running=512, kv_tokens=80_000), 4) -> Engine(max_running=128, kv_tokens=20_000)

Preflight and `rollout/build.py` both use this, so engines are built with what preflight has checked.
"""

from __future__ import annotations

from collections.abc import Iterator

from foresail.recipe.estimates.memory import Device, kv_pages, pages_per_sample
from foresail.recipe.estimates.placement import worker_gpus
from foresail.recipe.tables.cluster import Cluster, on_ray
from foresail.recipe.tables.parts import Engine, Rollout

VLLM_CPU_PAGE = 32  # tokens, of which vLLM's pages on a CPU are multiples


def engine_device(cluster: Cluster, rollout: Rollout, device: Device) -> Device:
    """The trainer's, unless Ray places engines elsewhere."""
    if on_ray(cluster, rollout) and cluster.placement == "separate":
        return "cuda" if worker_gpus(cluster, device) else "cpu"
    return device


def num_shares(cluster: Cluster, rollout: Rollout, device: Device) -> int:
    """Engines that have the rows and the cache of [engine] together: those on a CPU. One on a card has all."""
    return max(1, rollout.workers) if engine_device(cluster, rollout, device) == "cpu" else 1


def engine_share(engine: Engine, shares: int) -> Engine:
    """[engine] of each of several engines that share one table."""
    kv_tokens = None if engine.kv_tokens is None else engine.kv_tokens // shares
    return engine.model_copy(update={"max_running": -(-engine.max_running // shares), "kv_tokens": kv_tokens})


def vllm_page(engine: Engine, device: Device) -> int:
    """Tokens of a page: on a CPU 32, unless page_size is a multiple of it."""
    return VLLM_CPU_PAGE if device == "cpu" and engine.page_size % VLLM_CPU_PAGE else engine.page_size


def engine_refusals(engine: Engine, rollout: Rollout, cluster: Cluster, device: Device) -> Iterator[str]:
    """Settings that engines cannot use on their device."""
    theirs, vllm = engine_device(cluster, rollout, device), rollout.backend == "vllm"
    if not on_ray(cluster, rollout) and device == "cuda" and rollout.workers > vllm:
        who = "vLLM serves one GPU here" if vllm else "one GPU is served by one engine"
        yield f"rollout.workers are processes on a CPU; {who}: set it to 0"
    if engine.kv_dtype == "fp8" and theirs == "cpu":
        yield 'engine.kv_dtype = "fp8" needs a CUDA device; leave it at "model" on a CPU'
    if theirs == "cuda" and engine.page_size & (engine.page_size - 1):
        yield f"engine.page_size {engine.page_size} is not a power of two, as a GPU needs; try 16"
    usual = Engine().page_size
    if vllm and theirs == "cpu" and engine.page_size not in (usual, vllm_page(engine, theirs)):
        yield (
            f"engine.page_size {engine.page_size}: vLLM's pages on a CPU are multiples of {VLLM_CPU_PAGE} tokens; "
            f"set it to {VLLM_CPU_PAGE}, or leave it out"
        )


def cache_refusals(engine: Engine, shares: int, max_length: int) -> Iterator[str]:
    """A cache that cannot hold one sample of full length."""
    page, pages = engine.page_size, pages_per_sample(engine.page_size, max_length)
    if kv_pages(engine_share(engine, shares), max_length) < pages:
        among = "" if shares == 1 else f", shared out to {shares} engines,"
        yield (
            f"engine.kv_tokens {engine.kv_tokens}{among} cannot hold one sample of {max_length} tokens "
            f"({pages} pages of {page}); set engine.kv_tokens = {shares * pages * page} or more"
        )
