"""Runs pieces on Ray Data: a task runs one piece as the pool of one machine would, on a folder that all hosts see.

Receipts, ledgers and shards are the same files, so the same run can go on with either.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foresail.curate.recipe import CurationCluster
from foresail.curate.run.executor import Note, RunPieces, tracking
from foresail.data.jobs.pool import USER_ERRORS, Receipt, Worker, receipt_file, run_pieces
from foresail.data.jobs.rescue import Rescue
from foresail.ray_cluster import open_cluster
from foresail.recipe.estimates.machine import Room
from foresail.recipe.tables.cluster import Cluster


@contextmanager
def open_ray_executor(cluster: CurationCluster, note: Note | None) -> Iterator[RayExecutor]:
    with open_cluster(Cluster(kind="ray", address=cluster.address), trainer=Room(cpus=0, gpus=0)):
        yield RayExecutor(cluster.workers, note)


@dataclass(frozen=True)
class Task:
    """What a host needs to run pieces."""

    open_worker: Callable[[], Worker[Any]]
    folder: Path
    rescue: Rescue | None

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        """A row names a piece; the row that comes back says what went wrong, if anything."""
        piece = {row["name"]: row["piece"]}
        try:
            run_pieces(piece, self.open_worker, folder=self.folder, workers=1, rescue=self.rescue)
        except USER_ERRORS as error:
            return {"name": row["name"], "error": str(error)}
        return {"name": row["name"], "error": ""}


@dataclass(frozen=True)
class RayExecutor:
    workers: int
    note: Note | None

    def named(self, label: str) -> RunPieces:
        def run(
            pieces: Mapping[str, Any],
            open_worker: Callable[[], Worker[Any]],
            *,
            folder: Path,
            rescue: Rescue | None = None,
        ) -> dict[str, Receipt]:
            import ray

            folder = folder.resolve()  # hosts run elsewhere
            track = tracking(label, folder, pieces, self.note)
            rows = [
                {"name": name, "piece": piece}
                for name, piece in pieces.items()
                if not receipt_file(folder, name).exists()
            ]
            done = len(pieces) - len(rows)
            track(done, len(pieces))
            if rows:
                blocks = min(len(rows), 10_000)
                tasks = ray.data.from_items(rows, override_num_blocks=blocks).map(
                    Task(open_worker, folder, rescue), concurrency=self.workers or None
                )
                for row in tasks.iter_rows():
                    if row["error"]:
                        raise ValueError(row["error"])
                    done += 1
                    track(done, len(pieces))
            return {
                name: json.loads(receipt_file(folder, name).read_text(encoding="utf-8")) for name in pieces
            }

        return run
