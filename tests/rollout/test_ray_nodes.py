"""A Ray cluster of several nodes, simulated on this machine and joined by its address: a whole node may go.

Skipped where Ray is not installed; `make test-ray` has it.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

if find_spec("ray") is None:
    pytest.skip("needs Ray: make test-ray", allow_module_level=True)
os.environ.setdefault("RAY_AUTH_MODE", "token")  # before Ray is loaded; `make test-ray` does it too
os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))

from ray_fleets import PATIENCE, SETTINGS, draw, drawn_here
from tiny_rollouts import MAX_TOKENS, small_model

from foresail.ray_cluster import PACKAGES, cluster_refusals, environment, open_cluster
from foresail.recipe.estimates.machine import Room
from foresail.recipe.tables.cluster import Cluster
from foresail.recipe.tables.parts import Rollout
from foresail.rollout.build import build_fleet


@pytest.fixture(scope="module")
def nodes() -> Iterator[Any]:
    from ray.cluster_utils import Cluster as Nodes

    with environment({"PYTHONPATH": PACKAGES, "RAY_USAGE_STATS_ENABLED": "0"}):
        nodes = Nodes(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
        nodes.far = [nodes.add_node(num_cpus=1) for _ in range(2)]
    yield nodes
    nodes.shutdown()


def test_engines_on_other_nodes_are_replaced_when_their_node_goes(nodes: Any, tmp_path: Path) -> None:
    settings = Cluster(kind="ray", address=nodes.address, placement="separate")
    assert [*cluster_refusals(settings, Rollout(workers=2), "cpu")] == []
    (said,) = cluster_refusals(settings, Rollout(workers=3), "cpu")
    assert "3 rollout workers need 3 CPUs and the cluster has 2; set rollout.workers = 2" in said
    model = small_model()
    with open_cluster(settings, Room(cpus=0, gpus=0)):
        fleet = build_fleet(
            model,
            SETTINGS,
            Rollout(workers=2, chunk_tokens=4),
            max_length=12 + MAX_TOKENS,
            cluster=settings,
            logs=tmp_path / "logs",
        )
        try:
            assert draw(fleet) == drawn_here(model)
            gone: list[Any] = []

            def end_a_node() -> None:
                if not gone:
                    gone.append(nodes.far.pop())
                    nodes.remove_node(gone[0], allow_graceful=False)

            assert draw(fleet, end_a_node) == drawn_here(model)
            deadline = time.monotonic() + PATIENCE
            while len(fleet.instances) == 2:  # until Ray has noticed
                assert time.monotonic() < deadline
                fleet.work()
                time.sleep(0.01)
            with environment({"PYTHONPATH": PACKAGES}):
                nodes.far.append(nodes.add_node(num_cpus=1))
            while len(fleet.instances) < 2:
                assert time.monotonic() < deadline
                fleet.work()
                time.sleep(0.01)
            assert draw(fleet) == drawn_here(model)
        finally:
            fleet.close()
