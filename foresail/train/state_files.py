"""The trainer's tensors in a checkpoint: one file, or one for each rank with its shards.

    write_state(folder, "optimizer", tensors, world)  # optimizer.safetensors, optimizer-00002-of-00004.safetensors
    pieces = open_state(folder, "optimizer")          # pieces["low:norm.weight"]: what each rank had of it
    share_of(pieces["low:norm.weight"], 12, mine)     # as many numbers as `mine` has, from the 12th of the whole on

The files of all ranks, end to end, hold the whole state, so a run can resume with any number of ranks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from foresail.world import World


def state_path(folder: Path, stem: str, rank: int = 0, size: int = 1) -> Path:
    return folder / f"{stem}{f'-{rank + 1:05}-of-{size:05}' if size > 1 else ''}.safetensors"


def state_paths(folder: Path, stem: str) -> list[Path]:
    """The files that make up a whole state, in the order of their ranks; none where one is missing."""
    if (single := state_path(folder, stem)).is_file():
        return [single]
    paths = sorted(folder.glob(f"{stem}-*-of-*.safetensors"))
    complete_paths = [state_path(folder, stem, rank, len(paths)) for rank in range(len(paths))]
    return complete_paths if paths == complete_paths else []


def write_state(folder: Path, stem: str, tensors: Mapping[str, Tensor], world: World) -> None:
    """Every rank its own file."""
    contiguous = {name: tensor.detach().contiguous() for name, tensor in tensors.items()}
    save_file(contiguous, state_path(folder, stem, world.rank, world.size))


class Pieces(Mapping[str, list[Tensor]]):
    """By name, each rank's shard of a tensor; read lazily."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self.files = [safe_open(path, framework="pt") for path in paths]

    def __getitem__(self, name: str) -> list[Tensor]:
        return [file.get_tensor(name) for file in self.files]

    def __iter__(self) -> Iterator[str]:
        return iter(self.files[0].keys())

    def __len__(self) -> int:
        return len(self.files[0].keys())

    def of_rank(self, rank: int) -> dict[str, Tensor]:
        return {name: self.files[rank].get_tensor(name) for name in self.files[rank].keys()}  # noqa: SIM118


def open_state(folder: Path, stem: str) -> Pieces:
    """Raises ValueError where it cannot be read."""
    paths = state_paths(folder, stem)
    try:
        return Pieces(paths or [state_path(folder, stem)])
    except (OSError, SafetensorError) as error:
        raise ValueError(
            f"{paths[0] if paths else state_path(folder, stem)} cannot be read ({error})"
        ) from error


def share_of(pieces: Sequence[Tensor], offset: int, like: Tensor) -> Tensor:
    """The part of the whole that begins at number `offset` and has the shape of `like`."""
    whole_N = torch.cat([piece.flatten() for piece in pieces])
    if offset + like.numel() > len(whole_N):
        raise ValueError(f"{len(whole_N)} numbers have no {like.numel()} from the {offset}th on")
    return whole_N[offset : offset + like.numel()].view(like.shape)
