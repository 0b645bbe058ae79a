"""What a process said before it died, in the error of the one that started it."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from multiprocessing import spawn
from pathlib import Path

import pytest

from foresail.recipe.tables.reward import Reward
from foresail.records import Message, Problem, RunStopped, single_turn
from foresail.rewards.build import open_grading
from foresail.rollout.instance import InstanceLost
from foresail.rollout.remote.instance import RemoteInstance
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


class Gone:
    """A channel whose process has died."""

    def send(self, *order: object) -> None:
        raise InstanceLost("worker 0")

    receive = send
    close = None


def test_an_engine_that_dies_ends_in_one_line(tmp_path: Path) -> None:
    log = ProcessLog(tmp_path / "worker-0.log")
    log.path.write_text("loading\nRuntimeError: head_dim 12 is not supported\n")
    instance = RemoteInstance("worker 0", Gone(), None, log=log)  # type: ignore[arg-type]
    for call in (lambda: instance.order("begin", None), lambda: instance.poll()):
        with pytest.raises(RunStopped) as told:
            call()
        assert str(told.value).endswith("ends: loading / RuntimeError: head_dim 12 is not supported")
        assert "\n" not in str(told.value) and instance.loss is told.value


def test_a_grader_that_dies_is_told_with_its_last_words(tmp_path: Path) -> None:
    (tmp_path / "dying.py").write_text(
        "import os\ndef score(response, answer):\n    print('no licence', flush=True)\n    os._exit(7)\n"
    )
    problem = Problem(id="1", prompt=(Message(role="user", content="?"),), answer="1")
    prints = tmp_path / "reward.log"
    with open_grading(Reward(grader=f"{tmp_path}/dying.py:score", workers=1), prints=prints) as grading:
        verdict = grading.submit(problem, single_turn("1")).result()
    assert verdict.status == "crashed"
    assert verdict.detail.endswith(f"died 3 times; exit code 7; its log {prints} ends: no licence")
