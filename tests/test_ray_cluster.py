"""A Ray cluster before it is opened: tokens, cards, and an address where nothing answers. Ray is not needed."""

from __future__ import annotations

import pytest

from foresail import ray_cluster
from foresail.ray_cluster import cluster_refusals, environment, start_environment
from foresail.recipe.estimates.machine import Room, visible_cards
from foresail.recipe.tables.cluster import Cluster
from foresail.recipe.tables.parts import Rollout


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
        assert visible_cards() == ["5"]
    assert visible_cards() == ["3", "5", "7"]
    assert "FORESAIL_NEW" not in ray_cluster.os.environ


@pytest.mark.parametrize(
    "address", ["127.0.0.1:1", "ray://127.0.0.1:10001", "somewhere", ":6379", "127.0.0.1:"]
)
def test_a_cluster_that_is_not_there_is_refused_at_once(address: str) -> None:
    with pytest.raises(ValueError, match=r"cluster\.address = "):
        ray_cluster.check_reachable(address)


def test_the_nodes_of_a_cluster_are_asked_and_one_out_of_reach_is_a_refusal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings = Cluster(kind="ray", address="10.0.0.1:6379", placement="separate")
    monkeypatch.setattr(ray_cluster, "ray_is_there", lambda: True)
    monkeypatch.setattr(ray_cluster, "ask_nodes", lambda cluster: [Room(cpus=2, gpus=0)])
    assert [*cluster_refusals(settings, Rollout(workers=2), "cpu")] == []
    (said,) = cluster_refusals(settings, Rollout(workers=3), "cpu")
    assert "3 rollout workers need 3 CPUs and the cluster has 2; set rollout.workers = 2" in said

    def refuse(cluster: Cluster) -> list[Room]:
        raise ValueError("nothing answers there")

    monkeypatch.setattr(ray_cluster, "ask_nodes", refuse)
    assert [*cluster_refusals(settings, Rollout(workers=2), "cpu")] == ["nothing answers there"]
    assert [*cluster_refusals(Cluster(kind="ray"), Rollout(workers=900), "cpu")] == [], (
        "of this machine: elsewhere"
    )
