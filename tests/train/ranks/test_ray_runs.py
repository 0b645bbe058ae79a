"""Whole runs on a Ray cluster that they start and stop: the same numbers, the first error last, nothing left.

Skipped where Ray is not installed; `make test-ray` has it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("ray", reason="needs Ray: make test-ray")

from random_delays import drawn
from random_kills import attack
from small_runs import train, weights
from stale_runs import stale_recipe

from foresail.model.hf import empty_model
from foresail.ray_cluster import open_cluster
from foresail.recipe.estimates.machine import Room
from foresail.recipe.shape.hf_config import read_shape as load_shape
from foresail.recipe.tables.cluster import Cluster
from foresail.recipe.tables.parts import Engine, Rollout
from foresail.rollout.instance import EngineFailed
from foresail.train.rollouts import engine_copy
from foresail.train.stages.rl import run_rl

EXACT = {"engine": Engine(batch_invariant=True)}


@pytest.mark.parametrize("placement", ["colocated", "separate"])
def test_a_run_on_ray_learns_what_a_run_in_one_process_learns(
    tiny_checkpoint: Path, tmp_path: Path, placement: Any
) -> None:
    import ray

    here, _ = train(tiny_checkpoint, tmp_path / "here", **EXACT)
    there, records = train(
        tiny_checkpoint,
        tmp_path / "there",
        rollout=Rollout(workers=2, chunk_tokens=4),
        cluster=Cluster(kind="ray", placement=placement, worker_cpus=0.5),
        **EXACT,
    )
    assert torch.equal(weights(there.checkpoint), weights(here.checkpoint))
    assert all(record["timing_s/weight_sync"] > 0 for record in records)
    assert {path.name for path in (there.run / "logs").iterdir()} == {"ray-0.log", "ray-1.log"}
    assert not ray.is_initialized()


def test_separate_actors_draw_one_step_ahead_what_one_process_would(
    tiny_checkpoint: Path, tmp_path: Path
) -> None:
    here = run_rl(stale_recipe(tiny_checkpoint, tmp_path / "here"))
    apart = Cluster(kind="ray", placement="separate", worker_cpus=0.5)
    there = run_rl(stale_recipe(tiny_checkpoint, tmp_path / "there", workers=2, cluster=apart))
    assert drawn(there.run) == drawn(here.run)
    assert torch.equal(weights(there.checkpoint), weights(here.checkpoint))


def test_ranks_send_their_shards_to_actors_by_a_broadcast_and_no_rank_has_the_whole_model(
    tiny_checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside the group of the ranks; the self-test has a copy of one layer."""
    copied = []

    def record(shape: Any, **options: Any) -> Any:
        copied.append(shape.num_layers)
        return empty_model(shape, **options)

    monkeypatch.setattr(engine_copy, "empty_model", record)
    here, _ = train(tiny_checkpoint, tmp_path / "here", **EXACT)
    with open_cluster(Cluster(kind="ray"), Room(cpus=0, gpus=0)):  # ranks need no CPU of their own here
        there, records = train(
            tiny_checkpoint,
            tmp_path / "there",
            rollout=Rollout(workers=2, chunk_tokens=4),
            cluster=Cluster(
                kind="ray", placement="separate", ranks=2, transport="broadcast", worker_cpus=0.4
            ),
            **EXACT,
        )
    torch.testing.assert_close(weights(there.checkpoint), weights(here.checkpoint), rtol=1e-3, atol=1e-4)
    assert all(record["perf/weight_sync_gb"] > 0 for record in records)
    assert copied == [1] and load_shape(tiny_checkpoint).num_layers > 1


def test_killed_actors_and_graders_change_no_sample_and_no_weight(
    tiny_checkpoint: Path, tmp_path: Path
) -> None:
    killer = attack(
        tiny_checkpoint,
        tmp_path,
        steps=6,
        seed=1,
        rollout=Rollout(workers=2, chunk_tokens=4),
        cluster=Cluster(kind="ray"),
    )
    assert killer.killed["engine"] and killer.killed["grader"]


def test_an_error_in_an_actor_stops_the_run_with_its_traceback_and_ends_the_cluster(
    tiny_checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import ray

    from foresail.rollout import build

    sound = build.engine_options
    monkeypatch.setattr(build, "engine_options", lambda *given: sound(*given) | {"page_size": 0})
    with pytest.raises(EngineFailed) as stopped:
        train(
            tiny_checkpoint,
            tmp_path,
            rollout=Rollout(workers=2),
            cluster=Cluster(kind="ray"),
            engine=Engine(),
        )
    last = str(stopped.value).splitlines()
    assert "the engine of instance ray 0 failed" in last[0] and any("engine_loop.py" in line for line in last)
    assert "Error" in last[-1]
    assert not ray.is_initialized()
