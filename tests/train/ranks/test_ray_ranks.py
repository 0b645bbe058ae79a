"""Ranks that Ray places on other nodes: the run of local ranks bit for bit, and deaths that end it at once.

Skipped where Ray is not installed; `make test-ray` has it.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ray", reason="needs Ray: make test-ray")

from random_seed import random_seed
from rank_failures import fail_while_rank_2_hangs, follower, kill_follower, refuse_on_rank_1
from ray_nodes import simulated
from run_ends import contents
from small_runs import curve
from tiny_world import rl_recipe, sft_recipe

from foresail.recipe.stages.sft import Sft
from foresail.recipe.tables.cluster import Cluster
from foresail.recipe.tables.parts import Checkpoints, Engine, Rollout, Run
from foresail.runlog.directory import RunDirectory
from foresail.train.ranks.follower import RankFailed, RankLost, log_path
from foresail.train.session import Outcome
from foresail.train.stages import sft
from foresail.train.stages.rl import run_rl
from foresail.train.stages.sft import run_sft

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
        (fail_while_rank_2_hangs, RankFailed, "(?s)rank 1 failed.*in fail_on_rank_1.*a mistake of ours"),
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


def test_a_lost_rank_or_host_ends_the_run_which_then_goes_on_as_if_nothing_had_been(
    nodes: Any, recipe: Callable[..., Sft], forked_workers: None
) -> None:
    """At random moments: while models load, in the middle of updates, between them, while saving."""
    steps, numbers = 30, random.Random(random_seed())
    undisturbed = run_sft(recipe("undisturbed", Cluster(ranks=3), steps=steps))

    def end_a_rank(folder: Path, after: int, delay: float) -> None:
        kill_follower(folder, after, delay)

    def end_a_host(folder: Path, after: int, delay: float) -> None:
        wait_for_steps(folder, after, delay)
        nodes.remove_node(nodes.far, allow_graceful=False)

    for end in (end_a_rank, end_a_host):
        disturbed = recipe(end.__name__, on_ray(nodes, 3), steps=steps)
        when = numbers.randint(0, steps - 5), numbers.uniform(0, 0.05)
        thread = threading.Thread(target=end, args=(disturbed.run.folder, *when))
        thread.start()
        with pytest.raises(RankLost, match=r"rank \d on .* is lost.*foresail resume"):
            run_sft(disturbed)
        thread.join()
        if end is end_a_host:
            nodes.far = nodes.add_node(num_cpus=1, node_ip_address=OTHER_HOST)
        outcome = run_sft(disturbed, resume=True)
        assert curve(outcome) == curve(undisturbed), f"{end.__name__} at {when}"
        assert contents(outcome.checkpoint) == contents(undisturbed.checkpoint), f"{end.__name__} at {when}"


def wait_for_steps(folder: Path, steps: int, delay: float) -> None:
    follower(folder)
    run, deadline = RunDirectory(folder), time.monotonic() + PATIENCE
    while len(run.read_metrics()) < steps:
        assert time.monotonic() < deadline, "the run does not go on"
        time.sleep(0.001)
    time.sleep(delay)
