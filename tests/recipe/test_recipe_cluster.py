"""The [cluster] table: what does not go together, what does not fit, and what the preflight says of it."""

from __future__ import annotations

from importlib.util import find_spec

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sound_recipe import make

from foresail.recipe import ray_cluster
from foresail.recipe.cluster import Cluster, worker_mistakes
from foresail.recipe.describe import describe
from foresail.recipe.parts import Rollout
from foresail.recipe.placement import lines_for, misfits, place, placement_refusals
from foresail.recipe.preflight import preflight
from foresail.recipe.ray_cluster import Room, environment, start_environment


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("cluster.kind=ray", "set rollout.workers"),
        ("cluster.address=10.0.0.1:6379", 'set cluster.kind = "ray"'),
        ("cluster.placement=separate", 'set cluster.kind = "ray"'),
    ],
)
def test_what_does_not_go_together_is_a_mistake(override: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        make(override)


def test_ray_places_vllm_apart_from_the_trainer_only() -> None:
    on_vllm = ("cluster.kind=ray", "rollout.workers=2", "rollout.backend=vllm", "run.deterministic=false")
    with pytest.raises(ValueError, match=r'set cluster\.placement = "separate"'):
        make(*on_vllm)
    assert make(*on_vllm, "cluster.placement=separate").cluster.placement == "separate"
    (said,) = worker_mistakes(Cluster(kind="ray"), "sft")
    assert "places rollout workers, and sft has none" in said
    assert not [*worker_mistakes(Cluster(ranks=2), "sft")]


def test_the_trainer_s_place_is_that_of_all_its_ranks() -> None:
    alone, four = (place(Cluster(kind="ray", ranks=ranks), Rollout(workers=2), "cuda") for ranks in (1, 4))
    assert (alone.trainer.total.gpus, four.trainer.total.gpus) == (1, 4)


def test_without_ray_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_cluster, "find_spec", lambda name: None if name == "ray" else find_spec(name))
    (said,) = placement_refusals(Cluster(kind="ray"), Rollout(workers=2), "cpu")
    assert "foresail[ray]" in said
    with (
        pytest.raises(ImportError, match=r"foresail\[ray\]"),
        ray_cluster.open_cluster(Cluster(kind="ray"), Room(cpus=0, gpus=0)),
    ):
        pass  # fmt: skip


@given(
    st.integers(1, 40), st.floats(0.25, 4), st.sampled_from([None, 0.0, 0.5, 1.0, 2.0]), st.integers(0, 64),
    st.integers(0, 16), st.sampled_from(["cpu", "cuda"]), st.sampled_from(["colocated", "separate"]),
    st.sampled_from([None, "10.0.0.1:6379"]),
)  # fmt: skip
def test_refused_is_what_does_not_fit_and_the_number_it_names_fits(
    workers: int,
    cpus: float,
    gpus: float | None,
    cores: int,
    cards: int,
    device: str,
    placement: str,
    address: str | None,
) -> None:
    cluster = Cluster(kind="ray", placement=placement, address=address, worker_cpus=cpus, worker_gpus=gpus)
    room = Room(cpus=cores, gpus=cards)
    needed = place(cluster, Rollout(workers=workers), device).total
    refusals = [*misfits(place(cluster, Rollout(workers=workers), device), room)]
    assert bool(refusals) == (needed.cpus > cores or needed.gpus > cards)
    named = [
        int(said.split("rollout.workers = ")[1].split()[0])
        for said in refusals
        if "rollout.workers = " in said
    ]
    if refusals and len(named) == len(refusals):
        fitting = min(named)
        assert not [*misfits(place(cluster, Rollout(workers=fitting), device), room)]
        assert [*misfits(place(cluster, Rollout(workers=fitting + 1), device), room)]


def test_the_preflight_shows_the_placement_of_a_run_on_ray_and_of_no_other() -> None:
    assert "Placement" not in describe(preflight(make()))
    said = describe(preflight(make("cluster.kind=ray", "rollout.workers=2")))
    assert "Placement on a Ray cluster, started and stopped by the run" in said and "logs/" in said


def test_the_placement_says_who_is_where_and_who_waits() -> None:
    cluster = Cluster(kind="ray", placement="separate", worker_cpus=2, address="10.0.0.1:6379")
    lines = "\n".join(lines_for(cluster, Rollout(workers=3), "cuda"))
    assert "at 10.0.0.1:6379" in lines and "any host of the cluster" in lines
    assert "rollout workers      3   2 CPU, 1 GPU each" in lines
    assert "workers wait while the trainer updates and sends its weights" in lines


def test_tokens_are_not_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_cluster, "ray_is_there", lambda: True)
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    with (
        pytest.raises(ValueError, match="with tokens only; unset it"),
        ray_cluster.open_cluster(Cluster(kind="ray"), Room(cpus=0, gpus=0)),
    ):
        pass  # fmt: skip


def test_a_local_cluster_does_not_get_the_trainers_cards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,5,7")
    assert start_environment(1)["CUDA_VISIBLE_DEVICES"] == "5,7"
    with environment({"CUDA_VISIBLE_DEVICES": "5", "FORESAIL_NEW": "1"}):
        assert ray_cluster.visible_cards() == ["5"]
    assert ray_cluster.visible_cards() == ["3", "5", "7"]
    assert "FORESAIL_NEW" not in ray_cluster.os.environ


@pytest.mark.parametrize(
    "address", ["127.0.0.1:1", "ray://127.0.0.1:10001", "somewhere", ":6379", "127.0.0.1:"]
)
def test_a_cluster_that_is_not_there_is_refused_at_once(address: str) -> None:
    with pytest.raises(ValueError, match=r"cluster\.address = "):
        ray_cluster.check_reachable(address)
