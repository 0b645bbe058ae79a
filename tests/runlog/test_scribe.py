"""Writing beside the run: in order, whole before it is counted on, and no error is lost."""

from __future__ import annotations

import threading
import time

import pytest

from foresail.runlog.scribe import Scribe


def test_it_works_while_the_caller_goes_on():
    scribe, gate, done = Scribe(), threading.Event(), []
    scribe.start(lambda: (gate.wait(), done.append("first")))
    assert not done  # and yet `start` came back
    gate.set()
    scribe.wait()
    assert done == ["first"]


def test_one_thing_after_another():
    scribe, done = Scribe(), []

    def slowly(name: str) -> None:
        time.sleep(0.02)
        done.append(name)

    for name in "abc":
        scribe.start(lambda name=name: slowly(name))
    scribe.wait()
    assert done == ["a", "b", "c"]


def test_an_error_comes_out_once():
    scribe = Scribe()
    scribe.start(lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        scribe.wait()
    scribe.wait()
    scribe.start(lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        scribe.start(lambda: None)
