"""vLLM in actors of a Ray cluster: the native engine's tokens under every weights, also when an actor dies.

Needs both packages; `make test-vllm` has them.
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import redirect_stdout
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import psutil
import pytest

pytest.importorskip("ray", reason="needs Ray: make test-vllm")

from even_digits import learn
from real_vllm import (
    BACKSTOP,
    LLAMA,
    LONGEST,
    VOCABULARY,
    become,
    furthest,
    model_of,
    native,
    requests,
    spec_of,
)

from foresail.engine.request import Completion
from foresail.model.decoder import Decoder
from foresail.ray_cluster import open_cluster
from foresail.recipe.estimates.machine import Room
from foresail.recipe.tables.cluster import Cluster
from foresail.recipe.tables.parts import Engine, Rollout
from foresail.rollout.build import build_fleet
from foresail.rollout.fleet import Fleet
from foresail.rollout.requirements import require

SEPARATE = Cluster(kind="ray", placement="separate", worker_cpus=0.5)


def process_of(instance: Any) -> int:
    """The process id of an actor: it is in Ray's own books."""
    from ray._private.state import actors

    return actors(instance.channel.actor._actor_id.hex())["Pid"]


def draw(fleet: Fleet, disturb: Any = lambda: None) -> dict[str, Completion]:
    drawn: dict[str, Completion] = {}
    for one in requests(5):
        named = replace(one, id=f"{fleet.next_group}.{one.id}")
        fleet.launch([spec_of(named, fleet.next_group)], [named])
    deadline = time.monotonic() + BACKSTOP
    while fleet.busy:
        assert time.monotonic() < deadline, "the actors do not answer"
        for spec, completion in fleet.work():
            drawn[spec.id.partition(".")[2]] = completion
        disturb()
        time.sleep(0.001)
    return drawn


def draws_as_native(fleet: Fleet, model: Decoder, disturb: Any = lambda: None) -> list[tuple[int, ...]]:
    drawn, expected = draw(fleet, disturb), native(model, requests(5))
    assert drawn.keys() == expected.keys()
    for name, done in drawn.items():
        assert tuple(done.ids) == tuple(expected[name].ids)
        assert furthest(done, expected[name]) < 1e-4
    return [tuple(drawn[name].ids) for name in sorted(drawn)]


def test_actors_draw_the_native_engines_tokens_whatever_the_weights_and_whoever_dies(tmp_path: Path) -> None:
    model = model_of(LLAMA, 0)
    with open_cluster(Cluster(kind="ray"), Room(cpus=0, gpus=0)):
        fleet = build_fleet(
            model,
            Engine(max_running=16),
            Rollout(workers=2, backend="vllm", chunk_tokens=8),
            max_length=LONGEST,
            vocabulary=VOCABULARY,
            cluster=SEPARATE,
            logs=tmp_path / "logs",
        )
        try:
            with pytest.raises(ValueError, match="draws its own noise"):
                require(fleet.instances.values(), {"keyed_noise": True})
            before = draws_as_native(fleet, model)
            become(model, model_of(LLAMA, 1))
            fleet.update_weights(1)
            assert draws_as_native(fleet, model) != before
            become(model, model_of(LLAMA, 0))
            fleet.update_weights(2)
            names, engines = {*fleet.instances}, list[psutil.Process]()

            def kill_once() -> None:
                at_work = [instance for instance in fleet.instances.values() if instance.load]
                if {*fleet.instances} == names and at_work:
                    actor = process_of(at_work[0])
                    engines.extend(psutil.Process(actor).children(recursive=True))
                    os.kill(actor, signal.SIGKILL)
                    names.clear()

            assert draws_as_native(fleet, model, kill_once) == before
            deadline = time.monotonic() + BACKSTOP
            while len(fleet.instances) < 2:
                assert time.monotonic() < deadline, "no actor in its place"
                fleet.work()
                time.sleep(0.01)
            assert draws_as_native(fleet, model) == before
            assert engines and not psutil.wait_procs(engines, BACKSTOP)[1], "vLLM outlives its actor"
            figures = fleet.take_figures()
            assert figures["rollout/instances_lost"] == 1 and figures["perf/weight_sync_gb"] > 0
        finally:
            fleet.close()


def test_a_run_on_vllm_actors_trains_on_the_policys_own_samples(start: Path, tmp_path: Path) -> None:
    with redirect_stdout(StringIO()):
        rows = learn(start, tmp_path, seed=0, steps=3, cluster=SEPARATE, backend="vllm", workers=1)
    assert max(row["rollout/logprob_abs_diff_max"] for row in rows) < 1e-4
    assert all(row["timing_s/weight_sync"] > 0 and row["perf/weight_sync_gb"] > 0 for row in rows)
