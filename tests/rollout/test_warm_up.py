"""Drafts begin when their machine code is there, and then nothing is left to compile."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from tiny_rollouts import small_engine, small_model

from foresail.rollout.native_drafting import DraftingInstance

LEFT_TO_COMPILE = """
from foresail.rollout.drafts import continuations, rows, suffixes
from foresail.rollout.drafts.drafting import GroupDrafts
import numpy as np
drafts = GroupDrafts()
drafts.register(7, (1, 2, 3))
drafts.append(7, "x", 0, [4, 5] * 100)
drafts.append_rows(np.array([drafts.join(7, "y")]), np.array([0]), np.array([2]), np.array([4, 5]))
drafts.draft_rows(np.array([0, 1]), np.array([3, 3]))
functions = [entry for module in (continuations, rows, suffixes) for entry in vars(module).values()]
print(sum(sum(entry.stats.cache_misses.values()) for entry in functions if hasattr(entry, "stats")))
"""


def test_after_the_warm_up_nothing_is_compiled(tmp_path):
    pytest.importorskip("numba", reason="without it nothing is compiled")
    env = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-m", "foresail.rollout.drafts.warm_up"], env=env, check=True)
    found = subprocess.run(
        [sys.executable, "-c", LEFT_TO_COMPILE], env=env, check=True, capture_output=True, text=True
    )
    assert found.stdout == "0\n"


def test_an_instance_drafts_from_the_first_weights_after_it_is_ready():
    answers = iter([False, False, True])
    instance = DraftingInstance("a", small_engine(small_model()), ready=lambda: next(answers))
    assert not instance.drafts
    instance.update_weights(1)
    assert not instance.drafts
    instance.update_weights(2)
    assert instance.drafts
    instance.update_weights(3)  # nobody asks any more
    assert instance.drafts
