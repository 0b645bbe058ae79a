"""A Ray cluster of several nodes on this machine, for tests; `with simulated() as nodes: nodes.add_node(…)`.

The head has no CPUs, so that whatever is placed is on another node.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from foresail.ray_cluster import PACKAGES, environment

# before Ray is loaded; `make test-ray` does it too
os.environ.setdefault("RAY_AUTH_MODE", "token")
os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))

RANKS = Path(__file__).parent


@contextmanager
def simulated() -> Iterator[Any]:
    from ray.cluster_utils import Cluster as Nodes

    paths = os.pathsep.join(
        [PACKAGES, *map(str, (RANKS, RANKS.parent, RANKS.parents[1]))]
    )  # what actors import
    with environment({"PYTHONPATH": paths, "RAY_USAGE_STATS_ENABLED": "0"}):
        nodes = Nodes(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
        try:
            yield nodes
        finally:
            nodes.shutdown()
