"""Ranks that Ray places on other nodes: the run of local ranks bit for bit, and deaths that end it at once.

Skipped where Ray is not installed; `make test-ray` has it.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ray", reason="needs Ray: make test-ray")

from ray_nodes import process_of, simulated
from test_rank_runs import contents, curve, fail_on_rank_1, refuse_on_rank_1
from tiny_world import rl_recipe, sft_recipe

from foresail.recipe.cluster import Cluster
from foresail.recipe.parts import Checkpoints, Engine, Rollout, Run
from foresail.recipe.sft import Sft
from foresail.runlog.directory import RunDirectory
from foresail.train import ray_followers, sft, shared_folder
from foresail.train.follow import RankFailed, RankLost, log_path
from foresail.train.rl import run_rl
from foresail.train.session import Outcome
from foresail.train.sft import run_sft

OTHER_HOST = "127.0.0.2"  # an address that the trainer's node does not have
PATIENCE = 600.0


@pytest.fixture(scope="module")
def nodes() -> Iterator[Any]:
    """One node with the trainer's address, and one with another, as another host has."""
    with simulated() as nodes:
        nodes.add_node(num_cpus=1)
        nodes.far = nodes.add_node(num_cpus=1, node_ip_address=OTHER_HOST)
        yield nodes


@pytest.fixture
def recipe(tiny_tokenizer: Path, tiny_conversations: Path, tmp_path: Path) -> Callable[..., Sft]:
    def make(name: str, cluster: Cluster, **changes: Any) -> Sft:
        given = {"steps": 4, "checkpoints": Checkpoints(every=2), "batch_size": 7, **changes}
        run = Run(name=name, root=str(tmp_path), device="cpu")
        return sft_recipe(tiny_tokenizer, tiny_conversations, tmp_path, run=run, cluster=cluster, **given)

    return make


def on_ray(nodes: Any, ranks: int) -> Cluster:
    return Cluster(kind="ray", ranks=ranks, address=nodes.address)


def test_ranks_on_two_hosts_are_the_run_of_local_ranks_bit_for_bit(
    nodes: Any, tiny_checkpoint: Path, tmp_path: Path, forked_workers: None
) -> None:
    def train(name: str, cluster: Cluster) -> Outcome:
        run = Run(name=name, root=str(tmp_path), device="cpu")
        exact = {"engine": Engine(batch_invariant=True), "rollout": Rollout()}
        return run_rl(rl_recipe(tiny_checkpoint, tmp_path, run=run, cluster=cluster, **exact))

    local, placed = train("local", Cluster(ranks=3)), train("placed", on_ray(nodes, 3))
    assert curve(placed) == curve(local)
    ours, theirs = contents(placed.checkpoint), contents(local.checkpoint)
    assert len([name for name in ours if name.startswith("trainer/optimizer-")]) == 3
    assert ours == theirs
    for rank in (1, 2):
        assert f"rank {rank} of 3" in log_path(placed.run, rank).read_text()


@pytest.mark.parametrize(
    ("update", "error", "words"),
    [
        (fail_on_rank_1, RankFailed, "(?s)rank 1 failed.*in fail_on_rank_1.*a mistake of ours"),
        (refuse_on_rank_1, ValueError, "rank 1: the disk of rank 1 is full; free some space"),
    ],
)
def test_the_first_error_of_any_rank_is_the_runs(
    nodes: Any,
    recipe: Callable[..., Sft],
    monkeypatch: pytest.MonkeyPatch,
    update: Any,
    error: type[Exception],
    words: str,
) -> None:
    monkeypatch.setattr(sft, "update", update)
    with pytest.raises(error, match=words):
        run_sft(recipe("failing", on_ray(nodes, 3)))
