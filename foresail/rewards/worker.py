"""A grading process: it loads one grader and does one job at a time, for `GradingPool`.

It is a fresh interpreter that imports what the grader imports and nothing else: no torch, no CUDA context,
no copy of the caller's memory. Pickles go over the socket it inherits:

    <- the grader                     -> its GraderTraits once it is loaded, or a Graded that says why it cannot be
    <- (part, pairs)                  -> Graded, any time
"""

from __future__ import annotations

import os
import pickle
import select
import signal
import threading
from multiprocessing.connection import Connection

from foresail.rewards.grading import Graded, Grader, crashed, failure, grade_guarded, load_grader
from foresail.rewards.loading import LoadingTooLong, explain_loading, loading_limit


def serve(descriptor: int, loading_seconds: float) -> None:
    threading.Thread(target=die_with_parent, args=(descriptor,), daemon=True).start()
    os.set_inheritable(descriptor, False)  # else what it starts would keep the socket open after its death
    # There is a worker per core, so each must do with one thread where a library would take all.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    parent = Connection(descriptor)
    try:
        with loading_limit(loading_seconds):
            grader = pickle.loads(parent.recv_bytes())
            traits = load_grader(grader)
    except (Exception, SystemExit, LoadingTooLong) as error:
        # for these two the one-line error is enough
        trace = "" if isinstance(error, ModuleNotFoundError | LoadingTooLong) else crashed(error).trace
        parent.send(Graded([failure(explain_loading(error))], trace))
        return
    parent.send(traits)
    while True:
        try:
            item = parent.recv_bytes()
        except EOFError:
            return
        parent.send(grade_item(grader, item))


def grade_item(grader: Grader, item: bytes) -> Graded:
    try:
        part, pairs = pickle.loads(item)
    except Exception as error:  # a column of a type that this process cannot import
        return crashed(error)
    return grade_guarded(grader, part, pairs)


def die_with_parent(descriptor: int) -> None:
    """End this process and all it started when the other end closes, even during an endless grader."""
    poller = select.poll()
    poller.register(descriptor, 0)  # a hang-up is always reported, whatever one asks for
    poller.poll()
    os.killpg(0, signal.SIGKILL)
