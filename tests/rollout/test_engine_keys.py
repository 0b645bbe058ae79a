"""Every key of [engine] reaches engines of every backend, or is refused before a model loads."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tiny_rollouts import small_model

from foresail.recipe.estimates.engines import cache_refusals, engine_refusals, engine_share, num_shares
from foresail.recipe.tables.backend import backend_mistakes
from foresail.recipe.tables.cluster import Cluster
from foresail.recipe.tables.parts import Engine, Rollout, Run, Sampling
from foresail.rollout import build
from foresail.rollout.vllm.engine import engine_arguments

# Another value than the default, of every key: a new one must be told of here.
CHANGED: dict[str, Any] = {
    "max_running": 6,
    "page_size": 64,
    "kv_tokens": 1280,
    "kv_dtype": "fp8",
    "prefill_tokens": 100,
    "batch_invariant": True,
    "replay_routing": True,
}
LOCAL, RAY, APART = Cluster(), Cluster(kind="ray"), Cluster(kind="ray", placement="separate")
BACKENDS = {
    "in this process": (Rollout(), LOCAL),
    "in processes": (Rollout(workers=2), LOCAL),
    "in actors beside the trainer": (Rollout(workers=2), RAY),
    "in actors anywhere": (Rollout(workers=2), APART),
    "vLLM": (Rollout(backend="vllm"), LOCAL),
    "two of vLLM": (Rollout(backend="vllm", workers=2), LOCAL),
    "vLLM in actors": (Rollout(backend="vllm", workers=2), APART),
}
MODEL = small_model()


@pytest.fixture
def engines(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What every engine is started with, that is then not started."""
    started: list[dict[str, Any]] = []

    def gather_remote(start: Any, kind: str, rollout: Rollout, *, max_length: int) -> Any:
        plan = getattr(start, "keywords", {})
        if "engine_options" in plan:
            started.append(plan["engine_options"])
        else:
            note(plan["plan"].spec("ray 0")) if "plan" in plan else start("vllm 0")
        return SimpleNamespace(update_weights=lambda version: None, close=lambda: None)

    def note(spec: Any, weights: Any = None, log: Any = None) -> None:
        if hasattr(spec, "options"):
            started.append(dict(spec.options))
        else:
            arguments = engine_arguments(
                Path("x"),
                spec.size,
                spec.shape,
                dtype="float32",
                value_bytes=4,
                device="cpu",
                speculation="none",
            )
            started.append({**asdict(spec.size), **arguments})

    monkeypatch.setattr("foresail.engine.build.Engine", lambda model, **options: started.append(options))
    monkeypatch.setattr(build, "NativeInstance", lambda name, engine: None)
    monkeypatch.setattr(build, "gather", lambda *given, **named: None)
    monkeypatch.setattr(build, "gather_remote", gather_remote)
    monkeypatch.setattr(build, "ThreadInstance", note)
    for name in ("this_node", "beside_trainer", "this_address"):
        monkeypatch.setattr(build, name, lambda: "here")
    monkeypatch.setattr(build, "spread_out", lambda cpus, gpus: {})
    return started


def refusals(engine: Engine, rollout: Rollout, cluster: Cluster) -> str:
    told = [*backend_mistakes(rollout, Run(), engine, Sampling())]
    return "\n".join([*told, *engine_refusals(engine, rollout, cluster, "cpu")])


def test_every_key_is_looked_at() -> None:
    assert CHANGED.keys() == Engine.model_fields.keys()
    assert all(getattr(Engine(), key) != value for key, value in CHANGED.items())


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_key_reaches_the_engine_or_is_refused(backend: str, engines: list[dict[str, Any]]) -> None:
    rollout, cluster = BACKENDS[backend]
    build.build_fleet(MODEL, Engine(), rollout, max_length=64, cluster=cluster)
    (usual,) = engines
    for key, value in CHANGED.items():
        engine = Engine(**{key: value})
        said = refusals(engine, rollout, cluster)
        if f"engine.{key}" in said:
            continue
        assert not said
        engines.clear()
        build.build_fleet(MODEL, engine, rollout, max_length=64, cluster=cluster)
        assert engines != [usual], f"{key} is dropped in silence"


@pytest.mark.parametrize("backend", ["in processes", "in actors beside the trainer", "in actors anywhere"])
def test_native_engines_are_built_alike(backend: str, engines: list[dict[str, Any]]) -> None:
    """One alone, wherever it is, is the engine of the process itself."""
    rollout, cluster = BACKENDS[backend]
    for changes in ({}, {key: value for key, value in CHANGED.items() if key != "kv_dtype"}):
        engine = Engine(**changes)
        engines.clear()
        build.build_fleet(MODEL, engine, Rollout(drafts="off"), max_length=64)
        alone = rollout.model_copy(update={"workers": 1})
        build.build_fleet(MODEL, engine, alone, max_length=64, cluster=cluster)
        here, there = engines
        assert {key: value for key, value in here.items() if key != "mtp"} == there


def test_engines_on_a_cpu_share_what_one_on_a_card_has() -> None:
    engine = Engine(max_running=7, kv_tokens=1000)
    assert (engine_share(engine, 3).max_running, engine_share(engine, 3).kv_tokens) == (3, 333)
    assert engine_share(Engine(), 2).kv_tokens is None
    workers = Rollout(workers=4)
    assert num_shares(LOCAL, workers, "cpu") == 4 and num_shares(APART, workers, "cuda") == 1
    assert num_shares(APART.model_copy(update={"worker_gpus": 0.0}), workers, "cuda") == 4


@pytest.mark.parametrize(
    ("engine", "rollout", "cluster", "device", "told"),
    [
        ({"kv_dtype": "fp8"}, {}, LOCAL, "cpu", 'leave it at "model" on a CPU'),
        (
            {"kv_dtype": "fp8"},
            {"workers": 2},
            APART.model_copy(update={"worker_gpus": 0.0}),
            "cuda",
            "on a CPU",
        ),
        ({}, {"workers": 2}, LOCAL, "cuda", "one GPU is served by one engine: set it to 0"),
        ({}, {"workers": 2, "backend": "vllm"}, LOCAL, "cuda", "vLLM serves one GPU here"),
        ({"page_size": 24}, {}, LOCAL, "cuda", "is not a power of two, as a GPU needs; try 16"),
        ({"page_size": 8}, {"backend": "vllm"}, LOCAL, "cpu", "multiples of 32 tokens; set it to 32"),
    ],
)
def test_what_an_engine_cannot_on_its_device(
    engine: dict[str, Any], rollout: dict[str, Any], cluster: Cluster, device: Any, told: str
) -> None:
    (said,) = engine_refusals(Engine(**engine), Rollout(**rollout), cluster, device)
    assert told in said
    assert not [*engine_refusals(Engine(), Rollout(workers=1, backend="vllm"), LOCAL, "cuda")]


def test_a_cache_that_is_shared_out_must_hold_a_sample_in_each_engine() -> None:
    engine = Engine(kv_tokens=1000)
    assert not [*cache_refusals(engine, 1, 800)]
    (said,) = cache_refusals(engine, 2, 800)
    assert "engine.kv_tokens 1000, shared out to 2 engines, cannot hold one sample of 800 tokens" in said
    assert said.endswith("set engine.kv_tokens = 1632 or more")
    assert not [*cache_refusals(Engine(kv_tokens=1632), 2, 800)]
