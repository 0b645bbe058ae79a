"""Writing beside the run: in order, whole before it is counted on, and no error is lost."""

from __future__ import annotations

import threading
import time

import pytest

from foresail.runlog.background_writer import BackgroundWriter


def test_it_works_while_the_caller_goes_on():
    writer, gate, done = BackgroundWriter(), threading.Event(), []
    writer.start(lambda: (gate.wait(), done.append("first")))
    assert not done  # and yet `start` came back
    gate.set()
    writer.wait()
    assert done == ["first"]


def test_one_thing_after_another():
    writer, done = BackgroundWriter(), []

    def slowly(name: str) -> None:
        time.sleep(0.02)
        done.append(name)

    for name in "abc":
        writer.start(lambda name=name: slowly(name))
    writer.wait()
    assert done == ["a", "b", "c"]


def test_an_error_comes_out_once():
    writer = BackgroundWriter()
    writer.start(lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        writer.wait()
    writer.wait()
    writer.start(lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        writer.start(lambda: None)
