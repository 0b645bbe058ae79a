"""Machine code for drafts, made beside the run: the first time that takes ten seconds, and it is kept on the disk.

ready = compile_beside()
…
if ready(): …     # from here on nothing is compiled any more
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable

import numpy as np

from foresail.rollout.drafts.drafting import GroupDrafts


def compile_beside() -> Callable[[], bool]:
    """Start a process that does what drafting does; whether it has ended, well or not.

    Where there can be none, or no folder to keep the code in, the run compiles by itself.
    """
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", __name__],
            env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, sys.path))},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # an interrupt is for the run
        )
    except (OSError, TypeError):  # an interpreter inside another program has no path
        return lambda: True
    return lambda: process.poll() is not None


def draft_a_little() -> None:
    """Every function once, with the types it always has."""
    drafts = GroupDrafts()
    drafts.register(0, range(4))
    rows = np.array([drafts.join(0, "a"), drafts.join(0, "b")])
    for text in (range(3), range(3, 200)):  # the second makes its slab grow
        drafts.append(0, "a", text.start, text)
    drafts.draft_rows(rows, np.array([4, 4]))
    drafts.drop(0)


if __name__ == "__main__":
    draft_a_little()
