"""Graders on other nodes of a Ray cluster: the same run, also when their node is killed in the middle of a step.

Skipped where Ray is not installed; `make test-ray` has it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ray", reason="needs Ray: make test-ray")

from random_kills import compare, run
from ray_nodes import simulated

from foresail.recipe.cluster import Cluster
from foresail.records import Problem
from foresail.train import rl

STEPS, PATIENCE = 4, 600.0
PROBLEM = Problem(id="p", prompt=(), answer="7")


@pytest.fixture(scope="module")
def nodes() -> Iterator[Any]:
    with simulated() as nodes:
        nodes.far = [nodes.add_node(num_cpus=1) for _ in range(2)]
        yield nodes


def on_hosts(nodes: Any, count: int) -> Cluster:
    return Cluster(kind="ray", address=nodes.address, grader_hosts=count, grader_cpus=1)


def test_graders_on_other_nodes_give_the_same_run_also_when_a_node_is_killed(
    nodes: Any, tiny_checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calm = run(tiny_checkpoint, tmp_path / "calm", steps=STEPS)
    placed = run(tiny_checkpoint, tmp_path / "placed", steps=STEPS, cluster=on_hosts(nodes, 2))
    compare(calm, placed, STEPS)

    verdicts, collect = iter(range(60)), rl.collect

    def collect_with_a_death(fleet: Any, pick: Any, spec: Any, judge: Any, **options: Any) -> Any:
        """After some verdicts were asked for, in the middle of a step."""

        def judge_and_end(problem: Any, sample: Any) -> Any:
            if next(verdicts, None) == 59:
                thread = threading.Thread(target=nodes.remove_node, args=(nodes.far.pop(), False))
                thread.start()
            return judge(problem, sample)

        return collect(fleet, pick, spec, judge_and_end, **options)

    monkeypatch.setattr(rl, "collect", collect_with_a_death)
    disturbed = run(tiny_checkpoint, tmp_path / "disturbed", steps=STEPS, cluster=on_hosts(nodes, 2))
    assert len(nodes.far) == 1
    compare(calm, disturbed, STEPS)
