"""What a process said before it died, in the error of the one that started it."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from multiprocessing import spawn
from pathlib import Path

from foresail.runlog.process_log import ProcessLog, last_words, spawned_print_to


def speak_and_die() -> None:
    print("nothing of note", flush=True)
    os.write(2, b"CUDA error: an illegal memory access\n")
    os.kill(os.getpid(), signal.SIGKILL)


def test_last_words_are_the_last_lines_in_one(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    log = ProcessLog(path)
    assert log.ends() == "" == last_words(path)
    path.write_text("one\n\ntwo\n  three\n   ^^^~~\nfour  five\n")
    assert log.ends() == f"; its log {path} ends: two / three / four five"
    later = ProcessLog(path)
    assert later.ends() == "", "others said that"
    path.write_text(path.read_text() + "x" * 10_000)
    assert last_words(path) == "x" * 400


def test_what_a_library_spawns_prints_to_a_file(tmp_path: Path) -> None:
    log = ProcessLog(tmp_path / "it's here" / "lib.log")
    with spawned_print_to(log.path):
        process = multiprocessing.get_context("spawn").Process(target=speak_and_die)
        process.start()
    assert os.fsdecode(spawn.get_executable()) == sys.executable
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert log.ends().endswith("ends: nothing of note / CUDA error: an illegal memory access")
