"""What can be learnt of this machine without loading torch: its device, memory and disk."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Literal

from foresail.recipe.memory import Device


def guess_device(wanted: Literal["auto", "cpu", "cuda"]) -> Device:
    """What `auto` will most likely find: CUDA when the driver shows a card that is not hidden from us."""
    if wanted != "auto":
        return wanted
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


def free_disk(folder: Path) -> int:
    """Bytes free where a folder is, or will be."""
    return shutil.disk_usage(nearest_existing(folder)).free


def nearest_existing(path: Path) -> Path:
    """nearest_existing("/tmp/not/yet") -> "/tmp"."""
    path = path.absolute()
    while not path.exists():
        path = path.parent
    return path
