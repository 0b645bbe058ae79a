"""A process that starts within the shield does not see Ctrl-C; this one still does."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from foresail.signals import shielded_from_interrupts

WAITS = "import sys, time; print('there', flush=True); sys.stdin.read(); print('done')"


def test_ctrl_c_does_not_reach_a_shielded_process() -> None:
    pipe = subprocess.PIPE
    with shielded_from_interrupts():
        child = subprocess.Popen([sys.executable, "-c", WAITS], stdin=pipe, stdout=pipe, text=True)
    with child:
        assert child.stdout is not None and child.stdout.readline() == "there\n"
        child.send_signal(signal.SIGINT)
        out, _ = child.communicate("")
    assert (child.returncode, out) == (0, "done\n")


def test_ctrl_c_that_comes_meanwhile_waits() -> None:
    passed = []

    def start() -> None:
        with shielded_from_interrupts():
            signal.raise_signal(signal.SIGINT)
            passed.append("the shield")
        passed.append("nothing")

    with pytest.raises(KeyboardInterrupt):
        start()
    assert passed == ["the shield"]
