"""A run's folder belongs to one process at a time."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from foresail.runlog.lock import FolderInUse, lock_folder

HOLD = """
import sys
from pathlib import Path
from foresail.runlog.lock import lock_folder
held = lock_folder(Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""


def test_a_folder_in_use_says_by_whom_and_is_free_once_that_is_dead(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "run"
    owner = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert owner.stdout is not None and owner.stdout.readline() == "held\n"
    try:
        with pytest.raises(FolderInUse, match=f"in use by process {owner.pid}; wait for it, stop it"):
            lock_folder(folder)
    finally:
        owner.kill()
        owner.wait()
    with lock_folder(folder):
        assert (folder / ".lock").read_text() == str(os.getpid())
        with pytest.raises(FolderInUse, match=f"process {os.getpid()};"):
            lock_folder(folder)
    lock_folder(folder).close()
