"""Drafts begin when their machine code is there, and then nothing is left to compile."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from tiny_rollouts import MAX_TOKENS, small_engine, small_model, specs, whole_requests

from foresail.rollout.drafts.warm_up import compile_beside
from foresail.rollout.fleet import Fleet
from foresail.rollout.kv_pool import KVPool
from foresail.rollout.native_drafting import DraftingInstance
from foresail.rollout.policies import build_policy

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
stats = [entry.stats for entry in functions if hasattr(entry, "stats")]
print(any(entry.cache_hits for entry in stats), [entry.cache_misses for entry in stats if entry.cache_misses])
"""


def test_after_the_warm_up_nothing_is_compiled(tmp_path):
    pytest.importorskip("numba", reason="without it nothing is compiled")
    env = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-m", "foresail.rollout.drafts.warm_up"], env=env, check=True)
    found = subprocess.run(
        [sys.executable, "-c", LEFT_TO_COMPILE], env=env, check=True, capture_output=True, text=True
    )
    assert found.stdout == "True []\n"


def test_an_instance_drafts_when_it_is_ready_also_for_rows_under_way():
    answers = iter([False] * 5 + [True])
    instance = DraftingInstance("a", small_engine(small_model()), ready=lambda: next(answers))
    fleet = Fleet([instance], build_policy("group"), KVPool(max_bytes=0), chunk_tokens=None)
    requests, first = whole_requests(), [spec for spec in specs() if spec.group == 0]
    fleet.launch(first, [requests[spec.id] for spec in first])
    while fleet.busy:
        fleet.work()
    row_drafts = instance.speculation.row_drafts
    assert instance.awake and 0 < instance.speculation.tally.steps < MAX_TOKENS
    assert set(row_drafts.specs) == {spec.id for spec in first}


@pytest.mark.parametrize("interpreter", ["", None, "no/such/python"])
def test_without_an_interpreter_to_start_the_run_compiles_by_itself(interpreter, monkeypatch):
    monkeypatch.setattr(sys, "executable", interpreter)
    assert compile_beside()()
