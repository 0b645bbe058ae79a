"""Graders on other nodes of a Ray cluster: the same run, also when their node is killed in the middle of a step.

Skipped where Ray is not installed; `make test-ray` has it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ray", reason="needs Ray: make test-ray")

from random_kills import compare, run
from ray_nodes import simulated

from foresail.ray_cluster import PACKAGES, environment, open_cluster
from foresail.recipe.estimates.machine import Room
from foresail.recipe.tables.cluster import Cluster
from foresail.recipe.tables.reward import Reward
from foresail.records import Problem, single_turn
from foresail.rewards.build import open_grading
from foresail.rewards.ray_hosts import grader_hosts
from foresail.train.rollouts import sample_groups as sample_groups

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
    nodes: Any,
    tiny_checkpoint: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    calm = run(tiny_checkpoint, tmp_path / "calm", steps=STEPS)
    placed = run(tiny_checkpoint, tmp_path / "placed", steps=STEPS, cluster=on_hosts(nodes, 2))
    compare(calm, placed, STEPS)

    verdicts, collect = iter(range(60)), sample_groups.collect

    def collect_with_a_death(fleet: Any, pick: Any, spec: Any, judge: Any, **options: Any) -> Any:
        """After some verdicts were asked for, in the middle of a step."""

        def judge_and_end(problem: Any, sample: Any) -> Any:
            if next(verdicts, None) == 59:
                thread = threading.Thread(target=nodes.remove_node, args=(nodes.far.pop(), False))
                thread.start()
            return judge(problem, sample)

        return collect(fleet, pick, spec, judge_and_end, **options)

    monkeypatch.setattr(sample_groups, "collect", collect_with_a_death)
    disturbed = run(tiny_checkpoint, tmp_path / "disturbed", steps=STEPS, cluster=on_hosts(nodes, 2))
    assert len(nodes.far) == 1
    assert (
        len([said for said in caplog.messages if "is lost" in said and "tried again elsewhere" in said]) >= 1
    )
    compare(calm, disturbed, STEPS)
    with environment({"PYTHONPATH": PACKAGES}):
        nodes.far.append(nodes.add_node(num_cpus=1))


FUNCTIONS = """import os
def score(data_source, solution_str, ground_truth, extra_info=None):
    print("graded", solution_str, flush=True)
    if solution_str == "raise":
        raise KeyError("a mistake of ours")
    return {"score": 1.0, "pid": os.getppid()}
"""


def test_what_graders_print_raise_and_cannot_load_is_told_where_the_run_is(
    nodes: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file, broken = tmp_path / "my_rewards.py", tmp_path / "broken.py"
    file.write_text(FUNCTIONS)
    broken.write_text("import no_such_module\n" + FUNCTIONS)
    settings, cluster = Reward(grader=f"{file}:score"), on_hosts(nodes, 2)
    with open_cluster(cluster, Room(cpus=0, gpus=0)), grader_hosts(cluster, tmp_path / "logs") as hosts:
        # several gradings share the room of both places
        with open_grading(settings, hosts=hosts) as one, open_grading(settings, hosts=hosts) as other:
            futures = [
                grading.submit(PROBLEM, single_turn(f"word {number}"))
                for number in range(20)
                for grading in (one, other)
            ]
            found = [future.result(PATIENCE) for future in futures]
            assert {verdict.status for verdict in found} == {"correct"}
            assert len({verdict.extra["pid"] for verdict in found}) == 4, (
                "two places, and two gradings in each"
            )
            assert one.submit(PROBLEM, single_turn("raise")).result(PATIENCE).status == "crashed"
            deadline = time.monotonic() + PATIENCE
            while "a mistake of ours" not in caplog.text:
                assert time.monotonic() < deadline
                time.sleep(0.01)
            while "graded word 3" not in "".join(
                log.read_text() for log in (tmp_path / "logs").glob("*.log")
            ):
                assert time.monotonic() < deadline
                time.sleep(0.01)
        with pytest.raises(ValueError, match=r"grader host \d: .*no_such_module"):
            open_grading(Reward(grader=f"{broken}:score"), hosts=hosts)
