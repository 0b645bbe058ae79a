"""The command line that starts a zygote inside bubblewrap, for hosts where only its setuid helper may unshare."""

from __future__ import annotations

import shutil
from pathlib import Path

from foresail.rewards.sandbox.paths import DEVICES, library_paths, toolchain_paths

SCRATCH_BYTES = 64 << 20


def wrap(command: list[str], package: Path, packages: tuple[Path, ...]) -> list[str]:
    """wrap(["python", …], …) -> ["bwrap", "--unshare-all", …, "--", "python", …]."""
    bwrap = shutil.which("bwrap")
    if bwrap is None:
        raise FileNotFoundError("bubblewrap is not installed")
    shown = [*library_paths(map(str, packages)), *toolchain_paths(), str(package / "foresail"), command[0]]
    binds = [part for path in shown for part in ("--ro-bind", path, path)]
    devices = [part for path in DEVICES for part in ("--dev-bind", path, path)]
    return [
        bwrap, "--unshare-all", "--die-with-parent", "--cap-drop", "ALL", *binds, *devices,
        "--size", str(SCRATCH_BYTES), "--tmpfs", "/tmp", "--remount-ro", "/", "--chdir", "/tmp", "--", *command,
    ]  # fmt: skip
