"""A grading process: it loads one grader and judges one response at a time, for `GradingPool`.

It is a fresh interpreter that imports what the grader imports and nothing else: no torch, no CUDA context,
no copy of the caller's memory. Pickles go over the socket it inherits:

    <- the grader                     -> None once it is loaded, or the Graded that tells why it cannot be
    <- [(problem, response), …]       -> [Graded, …], any time
"""

from __future__ import annotations

import os
import pickle
import select
import signal
import threading
from multiprocessing.connection import Connection

from foresail.rewards.guard import Graded, crashed, grade_guarded


def serve(descriptor: int) -> None:
    threading.Thread(target=die_with_parent, args=(descriptor,), daemon=True).start()
    os.set_inheritable(
        descriptor, False
    )  # else a program it starts would keep the socket open after its death
    # There is a worker per core, so each must do with one thread where a library would take all.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    parent = Connection(descriptor)
    try:
        grader = pickle.loads(parent.recv_bytes())
        load = getattr(grader, "load", None)
        if load is not None:
            load()
    except (Exception, SystemExit) as error:
        parent.send(crashed(error))
        return
    parent.send(None)
    while True:
        try:
            items = parent.recv_bytes()
        except EOFError:
            return
        parent.send(grade_items(grader, items))


def grade_items(grader: object, items: bytes) -> list[Graded]:
    try:
        pairs = pickle.loads(items)
    except Exception as error:  # a column of a type that this process cannot import
        return [crashed(error)]
    return [grade_guarded(grader, problem, response) for problem, response in pairs]  # type: ignore[arg-type]


def die_with_parent(descriptor: int) -> None:
    """Even in the midst of an endless grader: when the other end is gone, so are we and all we started."""
    poller = select.poll()
    poller.register(descriptor, 0)  # a hang-up is always reported, whatever one asks for
    poller.poll()
    os.killpg(0, signal.SIGKILL)
