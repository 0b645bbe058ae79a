"""Whole runs on ranks: the curve of one process, checkpoints that any number of ranks goes on from, deaths."""

from __future__ import annotations

import random
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from command_line import PATIENCE, CommandLine
from random_seed import random_seed
from rank_failures import (
    fail_on_rank_0,
    fail_while_rank_2_hangs,
    follower,
    is_running,
    kill_follower,
    refuse_on_rank_1,
)
from run_ends import contents
from small_runs import curve, weights
from tiny_world import rl_recipe, sft_recipe

from foresail.recipe.reading.dump import to_toml
from foresail.recipe.reading.load import load_recipe
from foresail.recipe.stages.sft import Sft
from foresail.recipe.tables.cluster import Cluster
from foresail.recipe.tables.parts import Advantage, Checkpoints, Critic, Lora, Optimizer, Run
from foresail.recipe.tables.policy_loss import Loss
from foresail.runlog.directory import RunDirectory
from foresail.train.checkpoints.resume import extend
from foresail.train.checkpoints.shared_folder import Mark
from foresail.train.ranks.follower import RankFailed, RankLost, log_path
from foresail.train.session import Outcome
from foresail.train.stages import sft
from foresail.train.stages.rl import run_rl
from foresail.train.stages.sft import run_sft


@pytest.fixture
def recipe(tiny_tokenizer: Path, tiny_conversations: Path, tmp_path: Path) -> Callable[..., Sft]:
    """Four steps, a checkpoint every other; `recipe("name", ranks=2)`."""

    def make(name: str, ranks: int = 1, context: int = 1, **changes: Any) -> Sft:
        given = {"steps": 4, "checkpoints": Checkpoints(every=2, keep=9, resumable=9), **changes}
        run = Run(name=name, root=str(tmp_path), device="cpu")
        cluster = Cluster(ranks=ranks, context=context)
        return sft_recipe(
            tiny_tokenizer, tiny_conversations, tmp_path, run=run, cluster=cluster, batch_size=7, **given
        )

    return make


def same_curve(ours: Outcome, theirs: Outcome) -> None:
    assert len(curve(ours)) == len(curve(theirs))
    for one, other in zip(curve(ours), curve(theirs), strict=True):
        assert one == pytest.approx(other, rel=1e-4, abs=2e-5)


def resume_copy(outcome: Outcome, name: str, ranks: int, context: int = 1) -> Outcome:
    """From the checkpoint of step 2, in a copy of the run's folder."""
    folder = outcome.run.with_name(name)
    shutil.copytree(outcome.run, folder)
    shutil.rmtree(folder / "checkpoints" / "step_4")
    run = RunDirectory(folder)
    recipe = extend(run, [f"cluster.ranks={ranks}", f"cluster.context={context}"])
    where = recipe.run.model_copy(update={"name": name})
    stage: Any = run_sft if isinstance(recipe, Sft) else run_rl
    resumed: Outcome = stage(recipe.model_copy(update={"run": where}), resume=True)
    return resumed


def test_ranks_have_the_curve_of_one_process_and_any_number_goes_on(
    recipe: Callable[..., Sft], forked_workers: None
) -> None:
    alone, together = run_sft(recipe("alone")), run_sft(recipe("together", ranks=2))
    same_curve(together, alone)
    torch.testing.assert_close(weights(together.checkpoint), weights(alone.checkpoint), rtol=1e-3, atol=1e-4)
    imbalance = RunDirectory(together.run).read_metrics()[-1]["perf/rank_imbalance"]
    assert 1 <= imbalance < 1.5
    again = resume_copy(together, "again", 2)
    assert contents(again.checkpoint) == contents(together.checkpoint), "as many ranks go on bit for bit"
    assert curve(again) == curve(together)
    for ranks in (1, 3):
        other = resume_copy(together, f"on {ranks}", ranks)
        same_curve(other, alone)
        names = {path.name for path in (other.checkpoint / "trainer").glob("optimizer*")}
        assert len(names) == ranks and (ranks > 1 or names == {"optimizer.safetensors"})


def test_exact_weights_and_bytes_of_states_go_on_too(
    recipe: Callable[..., Sft], forked_workers: None
) -> None:
    """Weights that are rounded for others, moments of a byte, ranks that share micro-batches: bit for bit too."""
    settings = {
        "optimizer": Optimizer(lr=5e-3, states="8bit"),
        "checkpoints": Checkpoints(every=2, keep=9, resumable=9, dtype="bfloat16"),
    }
    together = run_sft(recipe("together", ranks=2, context=2, **settings))
    again = resume_copy(together, "again", 2, context=2)
    assert contents(again.checkpoint) == contents(together.checkpoint)
    assert resume_copy(together, "alone", 1).finished


@pytest.mark.parametrize("kind", ["plain", "rich"])
def test_reinforcement_on_ranks_draws_the_same_samples(
    tiny_checkpoint: Path, tmp_path: Path, forked_workers: None, kind: str
) -> None:
    """The rich one has low-rank pairs, a critic and a reference, which every rank has a share of. The plain one
    goes on with ranks that share every micro-batch.
    """
    rich = {
        "lora": Lora(rank=4),
        "critic": Critic(),
        "advantage": Advantage(kind="gae"),
        "loss": Loss(kl_weight=0.05, reference=str(tiny_checkpoint), old_logprobs="trainer"),
        "recompute": True,
        "updates_per_step": 2,
    }
    settings = {
        "steps": 4,
        "checkpoints": Checkpoints(every=2, keep=9, resumable=9),
        **(rich if kind == "rich" else {}),
    }

    def train(name: str, ranks: int) -> Outcome:
        run = Run(name=name, root=str(tmp_path), device="cpu")
        return run_rl(rl_recipe(tiny_checkpoint, tmp_path, run=run, cluster=Cluster(ranks=ranks), **settings))

    alone, together = train("alone", 1), train("together", 2)
    same_curve(together, alone)
    assert drawn(together) == drawn(alone)
    again = resume_copy(together, "again", 2, context=1 if kind == "rich" else 2)
    same_curve(again, alone)
    assert drawn(again) == drawn(alone)
    if kind == "rich":
        assert contents(again.checkpoint) == contents(together.checkpoint)


def drawn(outcome: Outcome) -> list[list[int]]:
    run = RunDirectory(outcome.run)
    return [row["ids"] for step in run.rollout_steps() for row in run.read_rollouts(step)]


# Errors and deaths.


@pytest.mark.parametrize(
    ("update", "error", "words"),
    [
        (fail_while_rank_2_hangs, RankFailed, "(?s)rank 1 failed.*in fail_on_rank_1.*a mistake of ours"),
        (refuse_on_rank_1, ValueError, "rank 1: the disk of rank 1 is full; free some space"),
        (fail_on_rank_0, RuntimeError, "^of rank 0 itself$"),
    ],
)
def test_the_first_error_of_any_rank_is_the_runs(
    recipe: Callable[..., Sft],
    forked_workers: None,
    monkeypatch: pytest.MonkeyPatch,
    update: Any,
    error: type[Exception],
    words: str,
) -> None:
    monkeypatch.setattr(sft, "update", update)
    with pytest.raises(error, match=words):
        run_sft(recipe("failing", ranks=3))


def test_a_killed_follower_ends_the_run_which_then_goes_on_as_if_nothing_had_been(
    recipe: Callable[..., Sft], forked_workers: None
) -> None:
    """At random moments: while models load, in the middle of updates, between them, while saving."""
    undisturbed, numbers = run_sft(recipe("undisturbed", ranks=2, steps=8)), random.Random(random_seed())
    for number in range(3):
        killed = recipe(f"killed {number}", ranks=2, steps=8)
        when = numbers.randint(0, 6) if number else 0, numbers.uniform(0, 0.05)  # once while models load
        thread = threading.Thread(target=kill_follower, args=(killed.run.folder, *when))
        thread.start()
        try:
            outcome = run_sft(killed)  # it may be over before
        except RankLost:
            outcome = run_sft(killed, resume=True)
        thread.join()
        assert curve(outcome) == curve(undisturbed), f"killed at {when}"
        assert contents(outcome.checkpoint) == contents(undisturbed.checkpoint), f"killed at {when}"


def test_followers_do_not_outlive_a_killed_leader(recipe: Callable[..., Sft], foresail: CommandLine) -> None:
    """As a user starts it, in processes of its own; then one process goes on."""
    made = recipe("killed", ranks=2, steps=2000)
    path = foresail.folder / "recipe.toml"
    path.write_text(to_toml(made))
    command = foresail.start("sft", path)
    run = RunDirectory(made.run.folder)
    command.until(lambda: run.path.exists() and len(run.checkpoint_steps()) > 0)
    process = follower(made.run.folder)
    command.send(signal.SIGKILL)
    command.wait()
    deadline = time.monotonic() + PATIENCE
    while is_running(process):
        assert time.monotonic() < deadline, "the follower is still there"
        time.sleep(0.05)
    done = run.checkpoint_steps()[-1]
    finished = foresail.run("resume", run.path, "cluster.ranks=1", f"steps={done + 1}")
    assert finished.code == 0, finished.err


def test_ranks_of_torchrun_find_each_other(
    recipe: Callable[..., Sft], foresail: CommandLine, forked_workers: None
) -> None:
    """What torchrun sets is an environment; every process gets the same words. They share micro-batches, too."""
    alone, made = run_sft(recipe("alone")), recipe("torchrun", context=2)
    path = foresail.folder / "recipe.toml"
    path.write_text(to_toml(made))
    place = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    commands = [
        foresail.start("sft", path, RANK=str(rank), LOCAL_RANK=str(rank), **place) for rank in range(2)
    ]
    ended = [command.wait() for command in commands]
    assert [each.code for each in ended] == [0, 0], ended
    assert "checkpoint: " in ended[0].out and not ended[1].out
    run = load_recipe(path).run.folder
    checkpoint = run / "checkpoints" / "step_4"
    same_curve(Outcome(run=run, checkpoint=checkpoint, finished=True), alone)
    assert len([*(checkpoint / "trainer").glob("optimizer-*-of-00002.safetensors")]) == 2


def free_port() -> int:
    import socket

    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


# Mistakes.


def test_more_ranks_than_samples_are_refused(recipe: Callable[..., Sft], tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"cluster.ranks 8 exceeds the 7 samples of an update.*7 or less"):
        recipe("many", ranks=8)
    with pytest.raises(ValueError, match=r"cluster.ranks 49 exceeds the 48 samples"):
        rl_recipe(tmp_path, tmp_path, cluster=Cluster(ranks=49))


def test_the_model_below_pairs_is_no_reference_on_ranks(tmp_path: Path) -> None:
    settings = {"lora": Lora(rank=4), "loss": Loss(kl_weight=0.1)}
    rl_recipe(tmp_path, tmp_path, **settings)
    with pytest.raises(ValueError, match=r"set loss.reference = .*, or cluster.ranks = 1"):
        rl_recipe(tmp_path, tmp_path, cluster=Cluster(ranks=2), **settings)


def test_a_rank_that_does_not_see_the_runs_folder_is_told_of_before_models_are_loaded(
    recipe: Callable[..., Sft], forked_workers: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextmanager
    def on_another_host(folder: Path) -> Iterator[Mark]:
        yield Mark(path=tmp_path / "elsewhere" / folder.name / "mark", seconds=0.0)

    monkeypatch.setattr("foresail.train.session.marked", on_another_host)
    made = recipe("not shared", ranks=2)
    with pytest.raises(ValueError, match=r"rank 1: host .* does not see the run's folder .*set run.root to"):
        run_sft(made)
    assert not log_path(made.run.folder, 1).exists() and not (tmp_path / "elsewhere").exists()
