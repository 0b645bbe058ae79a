"""Every path that README.md or a page of docs names is there.

Checked are relative links; paths into `foresail/`, `tests/`, `benchmarks/`, `recipes/` and `docs/`, in text as in
commands; modules behind `python -m`; and Python files by the end of their path, as in `train/update/step.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FOLDERS = ("foresail", "tests", "benchmarks", "recipes", "docs")
FILES = [f"/{path.relative_to(ROOT)}" for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")]

LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
# what goes on behind it is a placeholder or a pattern: `recipe/NAME.py`, `recipes/*.toml`
ROOTED = re.compile(rf"(?<![\w./$-])((?:{'|'.join(FOLDERS)})/[\w./-]*)(?![\w*{{<…])")
MODULE = re.compile(r"python -m ((?:foresail|benchmarks)(?:\.\w+)*)")
PYTHON_FILE = re.compile(r"`([\w./-]+/\w+\.py|test_\w+\.py)`")
PLACEHOLDER = re.compile(r"\bNAME\b")


def missing(page: Path, text: str) -> Iterator[str]:
    """`[a](nowhere.md)` -> "nowhere.md"."""
    for path in LINK.findall(text):
        if "://" not in path and not (page.parent / path).exists():
            yield path
    for path in ROOTED.findall(text):
        if not PLACEHOLDER.search(path) and not (ROOT / path.rstrip(".")).exists():
            yield path
    for module in MODULE.findall(text):
        path = module.replace(".", "/")
        if not (ROOT / f"{path}.py").exists() and not (ROOT / path / "__main__.py").exists():
            yield f"python -m {module}"
    for path in PYTHON_FILE.findall(text):
        if not PLACEHOLDER.search(path) and not any(
            file.endswith(f"/{path.removeprefix('../')}") for file in FILES
        ):
            yield path


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_paths_that_a_page_names_are_there(page: Path) -> None:
    assert [*dict.fromkeys(missing(page, page.read_text(encoding="utf-8")))] == []


def test_paths_that_are_gone_are_noticed() -> None:
    text = "[a](nowhere.md#part), [b](rl.md), `train/step_of_old.py`, foresail/gone.py, python -m benchmarks.gone"
    assert [*missing(ROOT / "docs" / "data.md", text)] == [
        "nowhere.md",
        "foresail/gone.py",
        "python -m benchmarks.gone",
        "train/step_of_old.py",
    ]
    fine = "`train/update/step.py`, `recipe/NAME.py`, `recipes/*.toml`, [c](https://a.b/c.md), python -m foresail"
    assert [*missing(ROOT / "docs" / "data.md", fine)] == []
