"""Loads the trainer's weights into vLLM's process: buckets go through a file in memory.

The file is on the engine's host and as large as one bucket; `weights.WorkerWeights` reads it in vLLM's process.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from foresail.recipe.shape.model_shape import ModelShape
from foresail.rollout.vllm.weights import EMBEDDING, HEAD
from foresail.rollout.weights.buckets import Content
from foresail.rollout.weights.sync import WeightsDiffer

IN_MEMORY = Path("/dev/shm")  # a file system in memory, if it exists


class Ask(Protocol):
    def __call__(self, method: str, *arguments: Any) -> Any:
        """Call a method of `WorkerWeights`."""


class VllmLoader:
    """See `remote.engine_loop.Loader`."""

    def __init__(self, name: str, shape: ModelShape, ask: Ask) -> None:
        self.name, self.shape, self.ask = name, shape, ask
        self.told_shape = shape.model_dump(mode="json")
        self.updating = False  # whether vLLM has buckets that it does not use yet

    def begin(self) -> None:
        self._finish()

    def load(self, content: Content) -> None:
        self.updating = True
        spans = [(piece.name, piece.start, len(octets)) for piece, octets in content]
        with tempfile.NamedTemporaryFile(dir=IN_MEMORY if IN_MEMORY.is_dir() else None) as bucket:
            for _, octets in content:
                bucket.write(octets.cpu().numpy().data)
            bucket.flush()
            self.ask("foresail_load", self.told_shape, bucket.name, spans)

    def checksums(self, names: Sequence[str] | None) -> dict[str, int]:
        assert names is not None, "vLLM has weights of its own, of which some were sent"
        self._finish()
        checksums: dict[str, int] = self.ask("foresail_checksums", self.told_shape, [*names])
        if self.shape.tied and EMBEDDING in checksums and checksums.pop(HEAD) != checksums[EMBEDDING]:
            raise WeightsDiffer(
                f"instance {self.name} has another {HEAD} than {EMBEDDING}, though they are one: vLLM has not "
                'taken over all weights. Resume the run with rollout.backend = "native", and report this with the '
                "versions of vLLM and PyTorch"
            )
        return checksums

    def _finish(self) -> None:
        if self.updating:
            self.ask("foresail_finish")
            self.updating = False
