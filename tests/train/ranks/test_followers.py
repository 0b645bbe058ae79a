"""Rank 0 and its followers without a run: who failed first, what an actor's end becomes, which ports are open."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fake_ray import FakeRay, install
from hypothesis import given
from hypothesis import strategies as st

from foresail import actors
from foresail.train.ranks import follower as follow
from foresail.train.ranks import ray_actors as ray_followers
from foresail.train.ranks import rendezvous as network
from foresail.train.ranks.follower import ConnectionBroken, Failure, RankFailed, RankLost, to_failure
from foresail.train.ranks.followers import first_failure, watching
from foresail.train.ranks.ray_actors import RankActor, RayFollower

PATIENCE = 300.0


# Who was first.


@given(
    st.lists(
        st.tuples(
            st.sampled_from([None, RankLost, RankFailed, ValueError, ConnectionBroken]), st.floats(1, 9)
        ),
        min_size=1,
        max_size=9,
    )
)
def test_the_first_failure_is_a_cause_before_whatever_it_broke(ends: list[tuple[Any, float]]) -> None:
    """The killed do not say when: all others lost their connection after that."""
    followers: Any = [
        SimpleNamespace(failure=kind and kind(str(number)), failed_at=0.0 if kind is RankLost else when)
        for number, (kind, when) in enumerate(ends)
    ]
    found, failed = first_failure(followers, 0.0), [each for each in followers if each.failure is not None]
    causes = [each for each in failed if not isinstance(each.failure, ConnectionBroken)]
    if not failed:
        assert found is None
        return
    earliest = min(each.failed_at for each in causes or failed)
    assert found in [each.failure for each in causes or failed if each.failed_at == earliest]


def test_a_broken_connection_waits_for_the_death_that_broke_it() -> None:
    class Dying:
        failed_at, looks = 0.0, 0

        @property
        def failure(self) -> Exception | None:
            self.looks += 1
            return RankLost("killed") if self.looks > 20 else None

    broken: Any = SimpleNamespace(failure=ConnectionBroken("closed by peer"), failed_at=1.0)
    dying: Any = Dying()
    assert isinstance(first_failure([broken, dying], PATIENCE), RankLost)
    assert first_failure([broken], 0.0) is broken.failure, "nobody else has anything to say"


def test_the_first_failure_ends_all_followers_and_stays_the_cause(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that this rank ends say that they were killed, before anything that others say."""

    class Played:
        def __init__(self) -> None:
            self.failure: Exception | None = None
            self.failed_at = 0.0

        def kill(self) -> None:
            self.failure = self.failure or RankLost("killed")

    ranks = [Played() for _ in range(5)]
    led: Any = SimpleNamespace(followers=ranks, notice_seconds=PATIENCE)
    with watching(led) as watch:
        ranks[3].failure, ranks[3].failed_at = RankFailed("a mistake of ours"), 5.0
        with pytest.raises(RankFailed, match="a mistake of ours"):
            time.sleep(PATIENCE)
    assert watch.find_cause(0.0) is ranks[3].failure
    assert all(isinstance(rank.failure, RankLost) for rank in ranks if rank is not ranks[3])


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ValueError("mend it"), ValueError),
        (OSError("no space"), ValueError),
        (RankLost("stopped"), follow.RunStopped),
        (KeyError("ours"), RankFailed),
        (RuntimeError("CUDA error"), RankFailed),
        (RuntimeError("[x/gloo/transport/tcp/pair.cc:1] Connection closed by peer"), ConnectionBroken),
        (follow.dist.DistNetworkError("the store is gone"), ConnectionBroken),
    ],
)
def test_what_a_failure_is_told_as(error: Exception, kind: type[Exception]) -> None:
    told = to_failure(3, error)
    assert type(told.error) is kind and str(told.error).startswith("rank 3")
    assert ("Traceback" in told.text or "rank 3 failed" in told.text) == issubclass(kind, RankFailed)


# An actor's end.


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeRay]:
    monkeypatch.setattr(actors, "LISTEN_SECONDS", 0.02)
    fake = install(monkeypatch)
    yield fake
    for handle in fake.handles:
        handle.die()


def failure_of(follower: RayFollower) -> Exception:
    deadline = time.monotonic() + PATIENCE
    while (found := follower.failure) is None:
        assert time.monotonic() < deadline
        time.sleep(0.001)
    return found


def test_a_killed_actor_is_a_lost_rank_and_the_message_says_how_to_resume(ray: FakeRay) -> None:
    follower = RayFollower(2, Path("runs/rl"), {})
    assert follower.wait_for("here") == "10.0.0.7" and not follower.ended
    ray.handles[0].die()
    lost = failure_of(follower)
    assert isinstance(lost, RankLost) and follower.failed_at == 0.0 and follower.ended
    assert "rank 2 on 10.0.0.7 is lost" in str(lost) and "foresail resume runs/rl" in str(lost)


def test_a_silent_actor_is_lost_too(ray: FakeRay, monkeypatch: pytest.MonkeyPatch) -> None:
    follower = RayFollower(1, Path("runs/rl"), {})
    follower.wait_for("here")
    follower.line.heard_at -= actors.PATIENCE + 1
    monkeypatch.setattr(follower.line, "receive", lambda seconds: [])  # its call is under way for ever
    assert "no sign of life for 600 s" in str(failure_of(follower))


def test_an_actor_tells_its_rank_s_error_and_its_end(ray: FakeRay, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(rank: int, size: int, meet: Any, tell: Any, **_: Any) -> None:
        tell(Failure(kind=RankFailed, text=f"rank {rank} failed: a mistake of ours"))
        raise KeyError("a mistake of ours")

    place = ray_followers.RankPlace(rank=1, size=2, address="127.0.0.1", port=1, device="cpu")
    failing, ending = (RayFollower(1, Path("runs/rl"), {}) for _ in range(2))
    monkeypatch.setattr(ray_followers, "follow", fail)
    failing.begin(place)
    assert str(failure_of(failing)) == "rank 1 failed: a mistake of ours" and failing.failed_at > 0
    monkeypatch.setattr(ray_followers, "follow", lambda *given, **named: None)
    ending.begin(place)
    deadline = time.monotonic() + PATIENCE
    while not ending.ended:
        assert time.monotonic() < deadline
        time.sleep(0.001)
    assert ending.failure is None


def test_an_actor_that_cannot_begin_is_a_failure_with_its_traceback(
    ray: FakeRay, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Any, folder: str) -> None:
        raise ModuleNotFoundError("No module named 'foresail'")

    monkeypatch.setattr(RankActor, "__init__", refuse)
    with pytest.raises(RankFailed, match="No module named 'foresail'"):
        RayFollower(1, Path("runs/rl"), {}).wait_for("here")


def test_a_host_without_the_folder_or_the_way_to_rank_0_is_told_of_before_rank_0_joins(
    ray: FakeRay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_followers, "MEETING", timedelta(seconds=0.1))
    store = network.open_store("127.0.0.1")
    place = ray_followers.RankPlace(rank=1, size=2, address="127.0.0.2", port=store.port, device="cpu")
    astray, homeless = (RayFollower(1, Path("runs/rl"), {}) for _ in range(2))
    astray.begin(place)
    with pytest.raises(ValueError, match=r"rank 1: host .* does not reach rank 0 at 127\.0\.0\.2"):
        astray.wait_for("met")
    ray.handles[1].actor.folder = str(tmp_path / "not here")
    homeless.begin(place)
    with pytest.raises(ValueError, match=r"rank 1: host .* cannot enter .*a folder that all hosts share"):
        homeless.wait_for("met")


# Ports.


def test_the_store_listens_at_its_address_alone() -> None:
    store = network.open_store("127.0.0.1")
    socket.create_connection(("127.0.0.1", store.port)).close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", store.port))  # as much this host


def test_a_card_is_found_by_the_address_it_has_or_is_near_to(monkeypatch: pytest.MonkeyPatch) -> None:
    assert network.card_of("127.0.0.1") == network.card_of("127.0.0.2") == "lo"
    assert network.card_of("203.0.113.99") is None and network.card_of("fe80::1") is None
    monkeypatch.delenv(network.GLOO, raising=False)
    monkeypatch.setenv(network.NCCL, "ib0")
    with network.between_hosts("127.0.0.1"):
        assert (network.os.environ[network.GLOO], network.os.environ[network.NCCL]) == ("lo", "ib0")
    assert network.GLOO not in network.os.environ
