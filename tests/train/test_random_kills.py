"""Engines and graders that are killed at random moments of a run: no sample lost or doubled, the same weights.

`python tests/train/random_kills.py --kills 200` is the long attack.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from random_kills import attack

from foresail.recipe.tables.parts import Rollout


@pytest.mark.usefixtures("forked_workers")
def test_killed_engines_and_graders_change_no_sample_and_no_weight(
    tiny_checkpoint: Path, tmp_path: Path
) -> None:
    killer = attack(tiny_checkpoint, tmp_path, steps=2, seed=0, rollout=Rollout(workers=2, chunk_tokens=4))
    assert killer.killed["engine"] and killer.killed["grader"]
