"""This machine's device, memory and disk, found without torch."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from foresail.recipe.estimates.memory import Device

MEBIBYTE = 2**20


@dataclass(frozen=True, kw_only=True)
class Room:
    """CPUs and GPUs, of a machine, a cluster, or a process in it."""

    cpus: float
    gpus: float

    def __sub__(self, other: Room) -> Room:
        return Room(cpus=self.cpus - other.cpus, gpus=self.gpus - other.gpus)


def this_machine() -> Room:
    return Room(cpus=len(os.sched_getaffinity(0)), gpus=len(visible_cards()))


def visible_cards() -> list[str]:
    """Numbers, or the names in CUDA_VISIBLE_DEVICES."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        return [card for card in visible.split(",") if card not in ("", "-1")]
    return [str(number) for number in range(len([*Path("/dev").glob("nvidia[0-9]*")]))]


def guess_device(setting: Literal["auto", "cpu", "cuda"]) -> Device:
    """What `auto` will choose: CUDA if the driver shows a card that CUDA_VISIBLE_DEVICES does not hide."""
    if setting != "auto":
        return setting
    hidden = os.environ.get("CUDA_VISIBLE_DEVICES", "all") in ("", "-1")
    cards = list(Path("/dev").glob("nvidia[0-9]*"))
    return "cuda" if cards and not hidden else "cpu"


def main_memory() -> int | None:
    """Bytes of RAM, or of the container's share of it; None where the system does not say."""
    try:
        installed = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None
    try:
        return min(installed, int(Path("/sys/fs/cgroup/memory.max").read_text()))
    except (OSError, ValueError):  # no container, or "max"
        return installed


def device_memory(device: Device) -> int | None:
    """Bytes that a run on this device can have; None where unknown."""
    return card_memory() if device == "cuda" else main_memory()


def card_memory() -> int | None:
    """Bytes of the first card a process would see, as its driver's tool says."""
    command = ["nvidia-smi", "--query-gpu=memory.total", "--format=csv,noheader,nounits"]
    try:
        output = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
        cards = [int(line) * MEBIBYTE for line in output.split()]
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    first = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]
    return cards[int(first)] if first.isdecimal() and int(first) < len(cards) else None


def free_disk(folder: Path) -> int:
    """Bytes free where a folder is, or will be."""
    return shutil.disk_usage(nearest_existing(folder)).free


def nearest_existing(path: Path) -> Path:
    """nearest_existing("/tmp/not/yet") -> "/tmp"."""
    path = path.absolute()
    while not path.exists():
        path = path.parent
    return path
