"""The way to an actor and back, with a Ray that is played: what is sent together, and what a death becomes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from fake_ray import FakeRay, install
from tiny_rollouts import small_engine, small_model, specs, whole_requests

from foresail import actors
from foresail.recipe.tables.parts import Rollout
from foresail.rollout.build import gather
from foresail.rollout.fleet import Fleet
from foresail.rollout.instance import EngineFailed, InstanceLost
from foresail.rollout.remote.engine_loop import EngineSpec
from foresail.rollout.remote.ray_actor import ActorPlan, RayInstance
from foresail.rollout.remote.replacements import Restarts
from foresail.rollout.weights.sync import SharedWeights
from foresail.runlog.actor_log import LogFile, OpenLog

OPTIONS = {"num_pages": 200, "page_size": 4, "max_running": 4}
PATIENCE = 600.0


@pytest.fixture(autouse=True)
def ray(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FakeRay]:
    """Actors here share this process, whose output stays where it is."""
    monkeypatch.setattr(actors, "LISTEN_SECONDS", 0.05)
    far = tmp_path / "printed"
    far.touch()

    def open_log(self: LogFile, node: str) -> OpenLog:
        return OpenLog(None if node == self.home else far.rename(tmp_path / "elsewhere"))

    monkeypatch.setattr(LogFile, "open", open_log)
    fake = install(monkeypatch)
    yield fake
    for handle in fake.handles:
        handle.die()


def plan(folder: Path, **changes: Any) -> ActorPlan:
    given: dict[str, Any] = {"model": small_model, "options": OPTIONS, "drafts": False} | changes
    spec = partial(make_spec, given)
    return ActorPlan(spec=spec, actor={}, home="home", logs=folder / "logs")


def make_spec(given: dict[str, Any], name: str) -> EngineSpec:
    return EngineSpec(name=name, **given)


def start(folder: Path, **changes: Any) -> Any:
    weights = SharedWeights(small_model().named_parameters)
    return partial(RayInstance, plan=plan(folder, **changes), weights=weights)


def draw(fleet: Fleet, disturb: Any = lambda: None) -> dict[str, list[int]]:
    requests, drawn = whole_requests(), {}
    for group in range(4):
        members = [spec for spec in specs() if spec.group == group]
        fleet.launch(members, [requests[spec.id] for spec in members])
    deadline = time.monotonic() + PATIENCE
    while fleet.busy:
        assert time.monotonic() < deadline
        for spec, completion in fleet.work():
            assert spec.id not in drawn
            drawn[spec.id] = completion.ids
        disturb()
        time.sleep(0.001)  # the engines are threads of this process
    return drawn


def expected() -> dict[str, list[int]]:
    return {c.request.id: c.ids for c in small_engine(small_model()).generate(whole_requests().values())}


def test_chunks_are_sent_together_and_draw_the_same_tokens(ray: FakeRay, tmp_path: Path) -> None:
    fleet = gather([start(tmp_path)("one")], Rollout(chunk_tokens=3), max_length=40)
    fleet.update_weights(1)
    assert draw(fleet) == expected()
    sent = [given[0] for name, given in ray.handles[0].calls if name == "orders"]
    assert max(map(len, sent)) > 1 and sum(map(len, sent)) > 12


def test_a_dead_actor_is_lost_and_another_goes_on(ray: FakeRay, tmp_path: Path) -> None:
    starter = start(tmp_path)
    both = [starter("one"), starter("two")]
    fleet = gather(both, Rollout(chunk_tokens=3), max_length=40, replacements=Restarts(starter))
    fleet.update_weights(1)
    deaths = iter([True])

    def kill_once() -> None:
        if both[0].load and next(deaths, False):
            ray.handles[0].die()

    assert draw(fleet, kill_once) == expected()
    with pytest.raises(InstanceLost):
        both[0].poll()
    assert len(ray.handles) == 3 and "one" not in fleet.instances


def test_an_engine_that_cannot_be_built_is_no_loss_but_an_error_with_its_traceback(tmp_path: Path) -> None:
    broken = start(tmp_path, options=OPTIONS | {"page_size": 0})("one")
    with pytest.raises(EngineFailed, match=r"(?s)instance one failed.*engine_loop\.py.*Error"):
        _ = broken.state


def test_an_actor_that_cannot_begin_would_not_do_so_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise ModuleNotFoundError("No module named 'foresail'")

    monkeypatch.setattr(LogFile, "open", refuse)
    with pytest.raises(EngineFailed, match="No module named 'foresail'"):
        _ = start(tmp_path)("one").state


def test_what_an_actor_prints_on_another_host_is_in_the_run_directory(ray: FakeRay, tmp_path: Path) -> None:
    ray.node = "far"
    instance = start(tmp_path)("ray 0")
    printed = ray.handles[0].actor.log.reader
    with Path(f"/proc/self/fd/{printed.fileno()}").open("ab") as file:
        file.write(b"hello\n")
    log, deadline = tmp_path / "logs" / "ray-0.log", time.monotonic() + PATIENCE
    while not log.exists():
        assert time.monotonic() < deadline
        instance.poll()
    assert log.read_bytes() == b"hello\n"
