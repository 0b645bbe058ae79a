"""Where pieces are worked on: processes of this machine, or Ray Data. Both give the same files.

with open_executor(cluster, note) as executor:
    executor.named("2 minhash")(pieces, open_worker, folder=folder)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from foresail.curate.run.tracker import Standing, Tracker
from foresail.data.jobs.pool import Receipt, Worker, run_pieces
from foresail.data.jobs.rescue import Rescue

Note = Callable[[Standing], None]


class RunPieces(Protocol):
    """As `run_pieces` of data/jobs, without the number of processes."""

    def __call__(
        self,
        pieces: Mapping[str, Any],
        open_worker: Callable[[], Worker[Any]],
        *,
        folder: Path,
        rescue: Rescue | None = None,
    ) -> dict[str, Receipt]: ...


class Executor(Protocol):
    def named(self, label: str) -> RunPieces:
        """What runs pieces, under a name for the display."""
        ...


@dataclass(frozen=True)
class LocalExecutor:
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
            track = tracking(label, folder, pieces, self.note)
            return run_pieces(
                pieces, open_worker, folder=folder, workers=self.workers, note=track, rescue=rescue
            )

        return run


def tracking(
    label: str, folder: Path, pieces: Mapping[str, Any], note: Note | None
) -> Callable[[int, int], None]:
    """What a pool calls now and then: it turns finished pieces and progress files into a Standing."""
    if note is None:
        return lambda done, total: None
    tracker = Tracker(label, folder, list(pieces))
    return lambda done, total: note(tracker.look(done, total))
