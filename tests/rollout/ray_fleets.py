"""Fleets of engines in Ray's actors, what they draw, and what this process draws."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from tiny_rollouts import MAX_TOKENS, small_engine, specs, whole_requests

from foresail.model.decoder import Decoder
from foresail.recipe.tables.cluster import Cluster
from foresail.recipe.tables.parts import Engine, Rollout
from foresail.rollout.build import build_fleet
from foresail.rollout.fleet import Fleet
from foresail.rollout.plan import SampleSpec

SETTINGS = Engine(page_size=4, kv_tokens=800, max_running=8)
PATIENCE = 600.0


def open_fleet(model: Decoder, folder: Path, *, workers: int = 2, **settings: Any) -> Fleet:
    return build_fleet(
        model,
        SETTINGS,
        Rollout(workers=workers, chunk_tokens=4),
        max_length=12 + MAX_TOKENS,
        cluster=Cluster(kind="ray", worker_cpus=0.5, **settings),
        logs=folder / "logs",
    )


def draw(fleet: Fleet, disturb: Any = lambda: None) -> dict[str, list[int]]:
    """All requests by the fleet, each once."""
    requests, drawn = whole_requests(), {}
    groups: dict[int, list[SampleSpec]] = {}
    first = fleet.next_group
    for spec in specs():
        moved = SampleSpec(**{**vars(spec), "group": first + spec.group})
        groups.setdefault(moved.group, []).append(moved)
    for members in groups.values():
        fleet.launch(members, [requests[spec.id] for spec in members])
    deadline = time.monotonic() + PATIENCE
    while fleet.busy:
        assert time.monotonic() < deadline, "the actors do not answer"
        for spec, completion in fleet.work():
            assert spec.id not in drawn, "drawn twice"
            drawn[spec.id] = completion.ids
        disturb()
        time.sleep(0.001)
    return drawn


def drawn_here(model: Decoder) -> dict[str, list[int]]:
    return {c.request.id: c.ids for c in small_engine(model).generate(whole_requests().values())}
