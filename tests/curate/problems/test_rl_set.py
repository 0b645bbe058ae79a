"""The shipped recipe on small files: killed, it gives the same bytes; `foresail rl` reads what it writes."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest
from code_rows import CODE, files_of
from planted_faults import FORM, sound

from foresail.curate.curation import curate
from foresail.curate.recipe import build_curation
from foresail.data.problems.problems import load_problems
from foresail.recipe.tables.parts import Problems

RECIPE = Path(__file__).parents[3] / "recipes/curate/rl-problems.toml"
RUN = """
import json, sys
from foresail.curate.curation import curate
from foresail.curate.recipe import build_curation
curate(build_curation(json.load(open(sys.argv[1]))))
"""


def write_inputs(folder: Path) -> None:
    rng = random.Random(1)
    rows = [sound(rng) for _ in range(60)]
    rows += [FORM[name](sound(rng), rng) for name in sorted(FORM) for _ in range(3)]
    rows += [rows[0], rows[1] | {"answer": "123456", "solution": ""}]
    (folder / "maths.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "code.jsonl").write_text("".join(json.dumps(row) + "\n" for row in CODE))


def table(folder: Path, out: str) -> dict:
    recipe = tomllib.loads(RECIPE.read_text())
    sources = [
        {"path": str(folder / f"{name}.jsonl"), "name": name, "holds": "problems"}
        for name in ("maths", "code")
    ]
    return recipe | {"out": str(folder / out), "source": sources, "cluster": {"workers": 1}}


def start(folder: Path, out: str) -> subprocess.Popen[bytes]:
    (folder / f"{out}.json").write_text(json.dumps(table(folder, out)))
    return subprocess.Popen([sys.executable, "-c", RUN, str(folder / f"{out}.json")])


def test_killed_or_not_the_set_is_the_same(tmp_path):
    pytest.importorskip("numba", reason="the extra curate is not installed")
    write_inputs(tmp_path)
    curate(build_curation(table(tmp_path, "whole")))
    process = start(tmp_path, "killed")
    first_ledger = tmp_path / "killed/work/0/00000.ledger.jsonl"
    while process.poll() is None and not first_ledger.exists():
        time.sleep(0.01)
    time.sleep(random.Random(3).uniform(0, 1.0))
    process.send_signal(signal.SIGKILL)
    process.wait()
    curate(build_curation(table(tmp_path, "killed")))
    assert files_of(tmp_path / "whole/documents") == files_of(tmp_path / "killed/documents")
    maths, code = (
        load_problems(Problems(source=str(tmp_path / f"whole/documents/{kind}/shard-00000.jsonl")))
        for kind in ("maths", "code")
    )
    assert len(maths) >= 40 and all(problem.answer for problem in maths)
    assert [problem.extra["metadata"]["kind"] for problem in code] == ["code"]
    assert "assert add(1, 2) == 3" in code[0].prompt[-1].content
