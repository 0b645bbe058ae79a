"""Engines in actors of a real Ray cluster: same tokens, proven weights, and deaths that lose nothing.

Skipped where Ray is not installed; `make test-ray` has it.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("ray", reason="needs Ray: make test-ray")

from ray_fleets import PATIENCE, draw, drawn_here, open_fleet
from tiny_rollouts import small_model

from foresail.model.decoder import Decoder
from foresail.ray_cluster import open_cluster
from foresail.recipe.estimates.machine import Room
from foresail.recipe.tables.cluster import Cluster
from foresail.rollout.fleet import Fleet


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    with open_cluster(Cluster(kind="ray"), Room(cpus=0, gpus=0)):
        yield


@pytest.fixture(params=["colocated", "separate"])
def fleet(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Decoder, Fleet]]:
    model = small_model()
    opened = open_fleet(model, tmp_path, placement=request.param)
    try:
        yield model, opened
    finally:
        opened.close()


def process_of(instance: Any) -> int:
    """The process id of an actor: it is in Ray's own books."""
    from ray._private.state import actors

    return actors(instance.channel.actor._actor_id.hex())["Pid"]


def test_actors_draw_what_the_process_itself_draws_whatever_the_weights(fleet: tuple[Decoder, Fleet]) -> None:
    model, actors = fleet
    before = drawn_here(model)
    assert draw(actors) == before
    with torch.no_grad():
        model.embed.weight.mul_(1.5)
    actors.update_weights(1)
    assert draw(actors) == drawn_here(model) != before
    assert actors.take_figures()["timing_s/weight_sync"] > 0


def test_a_killed_actor_is_replaced_and_no_token_changes(fleet: tuple[Decoder, Fleet]) -> None:
    model, actors = fleet
    actors.update_weights(1)
    numbers, names = random.Random(0), {*actors.instances}

    def kill_once() -> None:
        at_work = [instance for instance in actors.instances.values() if instance.load]
        if {*actors.instances} == names and at_work:
            os.kill(process_of(numbers.choice(at_work)), signal.SIGKILL)
            names.clear()

    assert draw(actors, kill_once) == drawn_here(model)
    deadline = time.monotonic() + PATIENCE
    while len(actors.instances) < 2:
        assert time.monotonic() < deadline, "no actor in its place"
        actors.work()
        time.sleep(0.01)
    assert draw(actors) == drawn_here(model)
    figures = actors.take_figures()
    assert figures["rollout/instances_lost"] == 1 and figures["rollout/recovery_s"] > 0
