"""The [cluster] table: what does not go together, what does not fit, and what the preflight says of it."""

from __future__ import annotations

import re
from importlib.util import find_spec
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sound_recipe import in_empty_folder, make

from foresail.ray_cluster import open_cluster
from foresail.recipe.estimates import placement
from foresail.recipe.estimates.machine import Room
from foresail.recipe.estimates.placement import (
    ROUNDING,
    Placement,
    lines_for,
    misfits,
    place,
    placement_refusals,
)
from foresail.recipe.reading.describe import describe
from foresail.recipe.reading.preflight import preflight
from foresail.recipe.tables.cluster import TORCHRUN, Cluster, head_mistakes, training_mistakes
from foresail.recipe.tables.parts import Rollout

__all__ = ["in_empty_folder"]  # a fixture for every test here


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("cluster.kind=ray", "set rollout.workers"),
        ("cluster.address=10.0.0.1:6379", 'set cluster.kind = "ray"'),
        ("cluster.placement=separate", 'set cluster.kind = "ray"'),
        ("cluster.grader_hosts=1", 'set cluster.kind = "ray"'),
    ],
)
def test_what_does_not_go_together_is_a_mistake(override: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        make(override)


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        (["cluster.ranks=3", "cluster.context=2"], "set cluster.ranks = 4, or cluster.context = 1"),
        (
            ["cluster.ranks=66", "cluster.context=2"],
            "exceeds the 32 samples .* set cluster.ranks = 64 or less",
        ),
        (["cluster.ranks=2", "micro_batch_tokens=30"], "= 60 or more, or raise cluster.context"),
        (
            ["cluster.ranks=2", "cluster.context=2", "micro_batch_tokens=29"],
            "a micro-batch of 58 tokens on 2 ranks; set micro_batch_tokens = 30 or more$",
        ),
    ],
)
def test_groups_of_ranks_that_cannot_be_are_mistakes(overrides: list[str], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        make(*overrides)


def test_a_sequence_too_long_for_one_rank_fits_several() -> None:
    recipe = make("cluster.ranks=2", "cluster.context=2", "micro_batch_tokens=30")
    assert (recipe.packed_tokens, recipe.tokens_at_once) == (60, 30)
    found = preflight(recipe)
    assert not found.refusals and "30 tokens of one micro-batch of 60 tokens" in describe(found)


def test_ranks_of_torchrun_form_groups_too(monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = make("cluster.context=2")  # a recorded recipe is read wherever one looks at it
    assert "divide the number of ranks, 1, into" in " ".join(preflight(recipe).refusals)
    for name, value in zip(TORCHRUN, ("0", "4", "0", "127.0.0.1", "1"), strict=True):
        monkeypatch.setenv(name, value)
    assert not preflight(recipe).refusals
    monkeypatch.setenv("WORLD_SIZE", "5")
    assert "divide the number of ranks, 5, into" in " ".join(preflight(recipe).refusals)


@given(st.integers(1, 12), st.integers(1, 8), st.integers(1, 12))
def test_heads_are_refused_where_queries_and_their_keys_cannot_be_dealt_alike(
    context: int, kv_heads: int, queries: int
) -> None:
    """By brute force: each rank has as many queries, in groups of one size, one group for each of its key heads."""
    heads = kv_heads * queries
    each = heads // context
    seen = [[head // queries for head in range(rank * each, (rank + 1) * each)] for rank in range(context)]
    even = heads % context == 0 and len({keys.count(key) for keys in seen for key in keys}) == 1
    said = "".join(head_mistakes(context, heads, kv_heads))
    assert bool(said) == (not even)
    for size in said.partition("it may be ")[2].split(", ") if said else []:
        assert not [*head_mistakes(int(size), heads, kv_heads)], "what it names goes"


def test_ray_places_vllm_apart_from_the_trainer_only() -> None:
    on_vllm = ("cluster.kind=ray", "rollout.workers=2", "rollout.backend=vllm", "run.deterministic=false")
    with pytest.raises(ValueError, match=r'set cluster\.placement = "separate"'):
        make(*on_vllm)
    assert make(*on_vllm, "cluster.placement=separate").cluster.placement == "separate"


def test_hosts_that_would_have_nothing_to_grade_are_a_mistake() -> None:
    with pytest.raises(ValueError, match=r"cluster\.grader_hosts have nothing to do.*set reward\.workers"):
        make("cluster.kind=ray", "cluster.grader_hosts=2")
    make("cluster.kind=ray", "cluster.grader_hosts=2", "reward.workers=3")
    make("cluster.kind=ray", "cluster.grader_hosts=2", "reward.grader=code")


def test_a_stage_that_only_trains_has_ranks_to_place_and_nothing_else() -> None:
    (said,) = training_mistakes(Cluster(kind="ray"), "sft")
    assert "places ranks beyond the first, and this sft has none" in said
    assert not [*training_mistakes(Cluster(kind="ray", ranks=2), "sft")]
    assert not [*training_mistakes(Cluster(ranks=2), "sft")]
    (said,) = training_mistakes(Cluster(kind="ray", ranks=2, grader_hosts=1), "sft")
    assert "and sft does not; remove" in said


def test_rank_0_is_this_process_and_ray_places_the_others() -> None:
    alone, four = (place(Cluster(kind="ray", ranks=ranks), Rollout(workers=2), "cuda") for ranks in (1, 4))
    assert (alone.reserved.gpus, four.reserved.gpus) == (0, 1), "nobody else gets the card of rank 0"
    assert (alone.ranks.total.gpus, four.ranks.total.gpus, four.total.gpus) == (0, 3, 4)
    elsewhere = place(Cluster(kind="ray", ranks=4, address="10.0.0.1:6379"), Rollout(), "cuda")
    assert elsewhere.total.gpus == 3, "rank 0's card is not Ray's"


def test_without_ray_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placement, "find_spec", lambda name: None if name == "ray" else find_spec(name))
    (said,) = placement_refusals(Cluster(kind="ray"), Rollout(workers=2), "cpu")
    assert "foresail[ray]" in said
    with (
        pytest.raises(ImportError, match=r"foresail\[ray\]"),
        open_cluster(Cluster(kind="ray"), Room(cpus=0, gpus=0)),
    ):
        pass  # fmt: skip


NAMED = re.compile(r"set (rollout\.workers|cluster\.grader_hosts|cluster\.ranks) = (\d+)")


@given(
    st.integers(0, 40), st.integers(1, 20), st.integers(0, 9), st.floats(0.25, 4),
    st.sampled_from([None, 0.0, 0.5, 1.0, 2.0]), st.integers(0, 64), st.integers(0, 16),
    st.sampled_from(["cpu", "cuda"]), st.sampled_from(["colocated", "separate"]),
    st.sampled_from([None, "10.0.0.1:6379"]),
)  # fmt: skip
def test_refused_is_what_does_not_fit_and_the_number_it_names_fits(
    workers: int,
    ranks: int,
    hosts: int,
    cpus: float,
    gpus: float | None,
    cores: int,
    cards: int,
    device: Any,
    placement: Any,
    address: str | None,
) -> None:
    def needed(changes: dict[str, int]) -> Placement:
        given = {"cluster.ranks": ranks, "cluster.grader_hosts": hosts, "rollout.workers": workers, **changes}
        cluster = Cluster(
            kind="ray",
            placement=placement,
            address=address,
            worker_cpus=cpus,
            worker_gpus=gpus,
            ranks=given["cluster.ranks"],
            grader_hosts=given["cluster.grader_hosts"],
            grader_cpus=2,
        )
        return place(cluster, Rollout(workers=given["rollout.workers"]), device)

    room, wanted = [Room(cpus=cores, gpus=cards)], needed({})
    refusals = [*misfits(wanted, room)]
    total = wanted.total
    assert bool(refusals) == (total.cpus > cores + ROUNDING or total.gpus > cards + ROUNDING)
    if len(refusals) == 1 and (named := NAMED.search(refusals[0])):
        key, fitting = named[1], int(named[2])
        assert not [*misfits(needed({key: fitting}), room)]
        assert [*misfits(needed({key: fitting + 1}), room)]


def test_processes_that_no_node_has_room_for_are_refused_though_the_cluster_has() -> None:
    cluster = Cluster(kind="ray", address="10.0.0.1:6379", placement="separate", worker_cpus=3, worker_gpus=1)
    wanted = place(cluster, Rollout(workers=2), "cuda")
    assert not [*misfits(wanted, [Room(cpus=4, gpus=1), Room(cpus=3, gpus=1)])]
    (told,) = misfits(wanted, [Room(cpus=4, gpus=2), Room(cpus=4, gpus=0)])
    assert "2 rollout workers need 3 CPUs and 1 GPUs each on one node" in told
    assert "2 nodes have room for 1" in told
    (told,) = misfits(wanted, [Room(cpus=2, gpus=1)] * 4)
    assert "4 nodes have room for 0" in told


def test_the_preflight_shows_the_placement_of_a_run_on_ray_and_of_no_other() -> None:
    assert "Placement" not in describe(preflight(make()))
    said = describe(preflight(make("cluster.kind=ray", "rollout.workers=2")))
    assert "Placement on a Ray cluster, started and stopped by the run" in said and "logs/" in said


def test_the_placement_says_who_is_where_and_who_waits() -> None:
    cluster = Cluster(kind="ray", placement="separate", worker_cpus=2, address="10.0.0.1:6379")
    lines = "\n".join(lines_for(cluster, Rollout(workers=3), "cuda"))
    assert "at 10.0.0.1:6379" in lines and "any host of the cluster" in lines
    assert "rollout workers      3   2 CPU, 1 GPU each" in lines
    assert "workers wait while the trainer updates and sends its weights" in lines and "ranks" not in lines
    lines = "\n".join(lines_for(Cluster(kind="ray", ranks=4, grader_hosts=2), Rollout(), "cuda"))
    assert "trainer, rank 0      1   1 CPU, 1 GPU each       this process" in lines
    assert "other ranks          3   1 CPU, 1 GPU each       this host" in lines
    assert "grader hosts         2   4 CPU, 0 GPU each" in lines and "workers" not in lines
