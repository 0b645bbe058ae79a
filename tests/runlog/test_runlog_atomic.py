"""Files and folders are whole or not there, whatever stops the writer."""

import errno
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from foresail.runlog import atomic
from foresail.runlog.atomic import clean_leftovers, explained, replacing_directory, write_atomically


def full_disk(path: Path) -> None:
    path.write_text("half of it")
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_written_aside_then_renamed(tmp_path):
    seen_while_writing = []

    def write(aside: Path) -> None:
        aside.write_text("new")
        seen_while_writing.append((tmp_path / "file.txt").read_text())

    (tmp_path / "file.txt").write_text("old")
    write_atomically(tmp_path / "file.txt", write)
    assert seen_while_writing == ["old"]
    assert (tmp_path / "file.txt").read_text() == "new"
    assert names(tmp_path) == ["file.txt"]


def test_full_disk_leaves_the_old_file_and_says_what_to_do(tmp_path):
    (tmp_path / "file.txt").write_text("old")
    with pytest.raises(OSError, match=r"cannot write in .*free some space") as caught:
        write_atomically(tmp_path / "file.txt", full_disk)
    assert caught.value.errno == errno.ENOSPC
    assert str(tmp_path) in str(caught.value)
    assert (tmp_path / "file.txt").read_text() == "old"
    assert names(tmp_path) == ["file.txt"]


def test_folder_that_is_a_file(tmp_path):
    (tmp_path / "blocked").write_text("")
    with pytest.raises(NotADirectoryError, match=r"cannot write in .*blocked: .*a file stands where"):
        write_atomically(tmp_path / "blocked" / "file.txt", lambda temporary: temporary.touch())


def test_errors_that_are_not_about_writing_stay_what_they_are(tmp_path):
    with pytest.raises(FileNotFoundError, match="source"):
        write_atomically(tmp_path / "copy", lambda temporary: shutil.copy(tmp_path / "source", temporary))
    with pytest.raises(ZeroDivisionError):
        write_atomically(tmp_path / "copy", lambda temporary: 1 // 0)
    assert names(tmp_path) == []


def test_foreign_error_that_tells_its_number_is_explained_by_it(tmp_path):
    told = "cannot write in .*: Permission denied; make the folder writable"
    with pytest.raises(PermissionError, match=told), explained(tmp_path):
        raise RuntimeError("Error while serializing: I/O error: Permission denied (os error 13)")
    with pytest.raises(RuntimeError, match="os error 2"), explained(tmp_path):
        raise RuntimeError("I/O error: No such file (os error 2)")


def test_foreign_error_on_a_full_disk_is_called_a_full_disk(tmp_path, monkeypatch):
    def save(aside: Path) -> None:
        raise RuntimeError("PytorchStreamWriter failed")

    monkeypatch.setattr(atomic, "FULL_BELOW", shutil.disk_usage(tmp_path).total + 1)
    with pytest.raises(OSError, match="PytorchStreamWriter failed") as caught:
        write_atomically(tmp_path / "weights", save)
    assert caught.value.errno == errno.ENOSPC


def test_directory_appears_whole(tmp_path):
    final = tmp_path / "checkpoints" / "step_3"
    with replacing_directory(final) as aside:
        (aside / "deep").mkdir()
        (aside / "deep" / "weights").write_text("w")
        assert not final.exists()
    assert (final / "deep" / "weights").read_text() == "w"
    assert names(final.parent) == ["step_3"]


def test_directory_replaces_an_old_one(tmp_path):
    final = tmp_path / "step_3"
    final.mkdir()
    (final / "stale").touch()
    with replacing_directory(final) as aside:
        (aside / "fresh").touch()
    assert names(final) == ["fresh"]
    assert names(tmp_path) == ["step_3"]


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "full"), KeyboardInterrupt(), ValueError("no")])
def test_failed_block_keeps_the_old_directory(tmp_path, error):
    final = tmp_path / "step_3"
    final.mkdir()
    (final / "old").touch()

    def write_half() -> None:
        with replacing_directory(final) as aside:
            (aside / "half").touch()
            raise error

    with pytest.raises(type(error)):
        write_half()
    assert names(final) == ["old"]
    assert names(tmp_path) == ["step_3"]


def test_failed_rename_puts_the_old_directory_back(tmp_path, monkeypatch):
    final = tmp_path / "step_3"
    final.mkdir()
    (final / "old").touch()
    rename = os.replace

    def fail_for_the_new_one(source, target):
        if Path(source).name.startswith(atomic.ASIDE):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        rename(source, target)

    monkeypatch.setattr(os, "replace", fail_for_the_new_one)
    with pytest.raises(OSError, match="the disk itself fails"), replacing_directory(final) as aside:
        (aside / "new").touch()
    assert names(final) == ["old"]
    assert names(tmp_path) == ["step_3"]


# Kills itself at the N-th rename, which is the only moment that matters: before, `final` is untouched.
KILLED = """
import os, signal, sys
from pathlib import Path
from foresail.runlog.atomic import replacing_directory
rename, left = os.replace, [int(sys.argv[2])]
def dying(source, target):
    if left[0] == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    left[0] -= 1
    rename(source, target)
os.replace = dying
with replacing_directory(Path(sys.argv[1])) as aside:
    (aside / "new").touch()
"""


@pytest.mark.parametrize("renames_before_the_kill", [0, 1])
def test_killed_swap_is_undone_at_the_next_start(tmp_path, renames_before_the_kill):
    final = tmp_path / "step_3"
    final.mkdir()
    (final / "old").touch()
    command = [sys.executable, "-c", KILLED, str(final), str(renames_before_the_kill)]
    assert subprocess.run(command, cwd=Path(__file__).parents[2]).returncode == -signal.SIGKILL
    assert len(names(tmp_path)) == 2, "the killed writer left something behind"
    clean_leftovers(tmp_path)
    assert names(tmp_path) == ["step_3"]
    assert names(final) == ["old"]


def test_clean_leftovers_drops_the_old_directory_once_the_new_is_in_place(tmp_path):
    for name in ("step_3", ".old-step_3", ".tmp-99-step_4"):
        (tmp_path / name).mkdir()
        (tmp_path / name / name).touch()
    (tmp_path / ".tmp-99-file.txt").touch()
    clean_leftovers(tmp_path)
    assert names(tmp_path) == ["step_3"]
    assert names(tmp_path / "step_3") == ["step_3"]
    clean_leftovers(tmp_path / "not there")
