"""Compiles the drafting code in a process beside the run; it takes ten seconds once, then it is cached on disk.

ready = compile_beside()
…
if ready(): …     # nothing is compiled from here on
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable

import numpy as np

from foresail.rollout.drafts.drafting import GroupDrafts


def compile_beside() -> Callable[[], bool]:
    """Start a process that compiles by drafting a little; the result says whether it has ended, even with an error.

    If the process or the cache folder is impossible, the run compiles by itself.
    """
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", __name__],
            env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, sys.path))},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is for the run only
        )
    except (OSError, TypeError):  # an interpreter inside another program has no path
        return lambda: True
    return lambda: process.poll() is not None


def draft_a_little() -> None:
    """Call every function once, with its usual types."""
    drafts = GroupDrafts()
    drafts.register(0, range(4))
    rows = np.array([drafts.join(0, "a"), drafts.join(0, "b")])
    for text in (range(3), range(3, 200)):  # the second one makes the slab grow
        drafts.append(0, "a", text.start, text)
    drafts.draft_rows(rows, np.array([4, 4]))
    drafts.drop(0)


if __name__ == "__main__":
    draft_a_little()
