"""The page docs/python.md: every block of code on it runs, in order, where a quickstart has been."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")


@pytest.fixture
def after_quickstart(tiny_sft_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a run at runs/quickstart/sft and the recipes beside it."""
    shutil.copytree(tiny_sft_run, tmp_path / "runs" / "quickstart" / "sft")
    (tmp_path / "recipes").symlink_to(ROOT / "recipes")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(
        "PYTHONPATH", str(ROOT)
    )  # for a notebook's kernel: this Foresail, not an installed one
    return tmp_path


def test_the_page_runs(after_quickstart: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {"__name__": "page"}
    blocks = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    assert len(blocks) == 7
    for number, block in enumerate(blocks, start=1):
        exec(compile(block, f"docs/python.md, block {number}", "exec"), names)
    said = capsys.readouterr().out
    assert "correct" in said.splitlines()  # of foresail.grade
    assert [path.name for path in sorted((after_quickstart / "runs").iterdir())] == [
        "dpo", "quickstart", "rl", "rl-2", "rl-3", "rl-4", "sft", "sft-2",
    ]  # fmt: skip


def test_the_notebook_runs(after_quickstart: Path) -> None:
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    notebook = nbformat.read(ROOT / "docs" / "notebook.ipynb", as_version=4)
    client = nbclient.NotebookClient(
        notebook, timeout=600, resources={"metadata": {"path": after_quickstart}}
    )
    client.execute()
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    pictures = [output for output in outputs if "image/png" in output.get("data", {})]
    assert pictures, "the curves are shown as a picture"
    texts = "".join(output.get("text", "") for output in outputs)
    assert "\x1b[" not in texts, "no control codes of a terminal"
    assert "rl 3/3" in "".join(str(output.get("data", "")) for output in outputs)
