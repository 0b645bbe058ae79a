"""The same recipe on Ray Data gives the same files, and either goes on where the other was stopped.

Skipped where Ray is not installed; `make test-ray` has it.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("ray.data", reason="needs Ray: make test-ray")

from small_recipe import output_files, small_recipe, step, write_inputs

from foresail.curate.curation import curate


def test_ray_data_writes_the_same_files(tmp_path: Path) -> None:
    write_inputs(tmp_path)
    here = curate(small_recipe(tmp_path, out=str(tmp_path / "here")))
    there = curate(small_recipe(tmp_path, out=str(tmp_path / "there"), cluster={"kind": "ray"}))
    assert output_files(tmp_path / "here") == output_files(tmp_path / "there")
    assert here.dropped() == there.dropped()


def test_a_run_goes_on_on_ray(tmp_path: Path) -> None:
    write_inputs(tmp_path)
    with (tmp_path / "in" / "a.jsonl").open("a") as file:
        file.write(json.dumps({"id": "bad", "text": "a text with KILL in it"}) + "\n")
    steps = [step(tmp_path, "short"), step(tmp_path, "deadly")]
    curate(small_recipe(tmp_path, *steps, out=str(tmp_path / "whole")))
    curate(small_recipe(tmp_path, *steps, out=str(tmp_path / "resumed")))
    for receipt in [
        *(tmp_path / "resumed" / "work" / "0").glob("00000.receipt.json"),
        *(tmp_path / "resumed" / "work").glob("sink-*/*.receipt.json"),
    ]:
        receipt.unlink()
    (tmp_path / "resumed" / "work" / "0" / "00000.ledger.jsonl.zst").unlink()
    summary = curate(small_recipe(tmp_path, *steps, out=str(tmp_path / "resumed"), cluster={"kind": "ray"}))
    assert summary.dropped()[summary.steps[2]] == {"crashed": 1}
    assert output_files(tmp_path / "whole") == output_files(tmp_path / "resumed")


def test_an_error_of_a_step_reaches_the_command(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"broken failed on [ab]0: AttributeError"):
        curate(small_recipe(tmp_path, step(tmp_path, "broken"), cluster={"kind": "ray"}))
