"""A curation that is killed, or meets a full disk: the same command goes on, and the bytes are the same."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from random_seed import random_seed
from small_recipe import output_files, small_recipe, step, write_inputs

from foresail.curate.curation import curate
from foresail.curate.recipe import CurationRecipe
from foresail.curate.run.folders import WORK
from foresail.curate.run.ledger import DONE, OPEN

ROWS = 100
PATIENCE = 300.0


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the inputs, and a run in one go."""
    folder = tmp_path_factory.mktemp("whole")
    write_inputs(folder, rows=ROWS)
    curate(recipe_in(folder, folder / "whole", workers=1))
    return folder


def recipe_in(folder: Path, out: Path, workers: int = 2) -> CurationRecipe:
    steps = step(folder, "short"), step(folder, "halves"), step(folder, "Exact"), step(folder, "slow")
    return small_recipe(folder, *steps, out=str(out), cluster={"workers": workers})


def run_as_group(folder: Path, out: Path) -> None:
    os.setsid()
    curate(recipe_in(folder, out))


def lines_so_far(out: Path) -> int:
    """Lines in ledgers: what a run has come to, whatever the clock says."""
    opened = out.glob(f"{WORK}/*/*{OPEN}")
    finished = len([*out.glob(f"{WORK}/*/*{DONE}")])
    try:
        return finished * ROWS + sum(file.read_bytes().count(b"\n") for file in opened)
    except FileNotFoundError:  # finished just now
        return 0


def leads_group(pid: int) -> bool:
    """It does not yet when it has just begun, and lines of an earlier try are there."""
    try:
        return os.getpgid(pid) == pid
    except ProcessLookupError:
        return False


def kill_at(folder: Path, out: Path, lines: int) -> bool:
    """Kill the whole process group once there are so many lines; False: the run came to its end before."""
    process = multiprocessing.get_context("fork").Process(target=run_as_group, args=(folder, out))
    process.start()
    assert process.pid is not None
    deadline = time.monotonic() + PATIENCE
    while process.is_alive() and not (leads_group(process.pid) and lines_so_far(out) >= lines):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    killed = process.is_alive()
    if killed:
        os.killpg(process.pid, signal.SIGKILL)
    process.join()
    return killed


def test_killed_at_any_moment_it_goes_on_to_the_same_bytes(whole: Path, tmp_path: Path) -> None:
    chance = random.Random(random_seed())
    moments = sorted([chance.randrange(1, ROWS), *(chance.randrange(2 * ROWS, 4 * ROWS) for _ in range(2))])
    out = tmp_path / "killed"
    killed = [kill_at(whole, out, lines) for lines in moments]
    assert killed[0], moments
    curate(recipe_in(whole, out, workers=1))
    assert output_files(out) == output_files(whole / "whole"), moments
    assert figures(out) == figures(whole / "whole"), moments


def figures(out: Path) -> dict[str, object]:
    summary: dict[str, object] = json.loads((out / "summary.json").read_text())
    del summary["work"]  # CPU seconds
    return summary


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    if shutil.which("mount") is None:
        pytest.skip("there is no mount command here")
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)], capture_output=True, text=True
    )
    if mounted.returncode != 0:
        pytest.skip(f"no disk of our own can be mounted here: {mounted.stderr.strip()}")
    try:
        yield disk
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


def test_a_full_disk_is_a_clear_error_and_the_run_goes_on_once_there_is_room(
    whole: Path, small_disk: Path
) -> None:
    filler = small_disk / "filler"
    chance = random.Random(random_seed())
    page = os.sysconf("SC_PAGE_SIZE")
    needed = used(whole / "whole") // page
    for room in sorted(chance.sample(range(2, needed), 2)):
        filler.write_bytes(bytes(2**20 - max(room * page, used(small_disk / "out"))))
        with pytest.raises(
            (OSError, ValueError), match=r"cannot write in .*No space left.*; free some space"
        ):
            curate(recipe_in(whole, small_disk / "out", workers=1))
        filler.unlink()
    curate(recipe_in(whole, small_disk / "out", workers=1))
    assert output_files(small_disk / "out") == output_files(whole / "whole")


def used(folder: Path) -> int:
    page = os.sysconf("SC_PAGE_SIZE")
    sizes = (file.stat().st_size for file in folder.rglob("*") if file.is_file())
    return sum(-(-size // page) * page for size in sizes)
