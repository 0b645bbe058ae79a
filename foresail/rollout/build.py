"""The fleet that a recipe asks for: one engine in this process, or several in processes of their own."""

from __future__ import annotations

from collections.abc import Sequence

from foresail.engine.engine import Engine
from foresail.recipe.parts import Rollout
from foresail.rollout.drafts.compiled import numba
from foresail.rollout.drafts.warm_up import compile_beside
from foresail.rollout.fleet import Fleet
from foresail.rollout.instance import Instance
from foresail.rollout.kv_pool import KVPool
from foresail.rollout.native import NativeInstance
from foresail.rollout.native_drafting import DraftingInstance
from foresail.rollout.policies import build_policy
from foresail.rollout.worker import WorkerInstance

GB = 10**9
CHUNK = 64  # tokens; a shorter one would cost more than the room it saves


def build_fleet(engine: Engine, settings: Rollout, *, max_length: int) -> Fleet:
    """Samples are at most `max_length` tokens long, prompt and all."""
    instances = start_workers(engine, settings) if settings.workers else [start_here(engine, settings)]
    fits = all(one.state.kv_tokens >= one.state.max_running * max_length for one in instances)
    chunk_tokens = settings.chunk_tokens or (None if fits else CHUNK)
    pool = KVPool(max_bytes=int(settings.host_gb * GB))
    return Fleet(instances, build_policy(choose_policy(settings, instances)), pool, chunk_tokens=chunk_tokens)


def choose_policy(settings: Rollout, instances: Sequence[Instance]) -> str:
    """One engine does best with a queue of its own: its cache is filled, and siblings share their prompts."""
    if settings.policy != "auto":
        return settings.policy
    return "context" if len(instances) > 1 else "group"


def start_here(engine: Engine, settings: Rollout) -> Instance:
    if not drafts(engine, settings):
        return NativeInstance("engine", engine)
    if settings.drafts == "on":
        return DraftingInstance("engine", engine)
    return DraftingInstance("engine", engine, ready=compile_beside())


def start_workers(engine: Engine, settings: Rollout) -> Sequence[Instance]:
    """Each has its share of the engine's rows and pages, and reads its weights."""
    if engine.model.device.type != "cpu":
        raise ValueError(
            "rollout.workers are processes on a CPU; one GPU is served by one engine: set it to 0"
        )
    options = {
        "num_pages": max(1, engine.num_pages // settings.workers),
        "page_size": engine.page_size,
        "max_running": -(-len(engine.table.lengths_S) // settings.workers),
        "prefill_tokens": engine.entrance.prefill_tokens,
        "batch_invariant": engine.batch_invariant,
    }
    return [
        WorkerInstance(f"worker {number}", engine.model, options, drafts=drafts(engine, settings))
        for number in range(settings.workers)
    ]


def drafts(engine: Engine, settings: Rollout) -> bool:
    """On a CPU a step's time grows with every guess, and without machine code finding them takes too long."""
    if settings.drafts == "auto":
        return engine.model.device.type == "cuda" and numba is not None
    return settings.drafts == "on"
