"""Tests as the next reader needs them: what they share lies in helpers, and what is drawn at random has a seed."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parent
TREES = {file: ast.parse(file.read_text()) for file in sorted(TESTS.rglob("*.py"))}
# Drawn from the system or the clock: no failure shows what it was. `random_seed` prints it.
WITHOUT_SEED = ("SystemRandom(", "Random()", "default_rng()", "Random(time.", "manual_seed(time.")


def imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            yield node.module or ""
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def test_no_test_imports_another() -> None:
    """What two tests share lies in a helper whose name says what it is, such as `tests/train/run_ends.py`."""
    names = {file.stem for file in TREES if file.stem.startswith("test_")}
    assert [
        f"{file.relative_to(TESTS)} imports {name}"
        for file, tree in TREES.items()
        for name in imported(tree)
        if name.rpartition(".")[2] in names
    ] == []


def test_what_is_drawn_at_random_has_a_seed() -> None:
    allowed = (TESTS / "random_seed.py", Path(__file__))
    assert [
        f"{file.relative_to(TESTS)}: {source}"
        for file in TREES
        if file not in allowed
        for source in WITHOUT_SEED
        if source in file.read_text()
    ] == []


def test_files_of_one_name_would_hide_each_other() -> None:
    """Folders of tests are no packages: `pythonpath` in pyproject.toml and pytest find modules by name alone."""
    files = [file.stem for file in TREES if file.stem != "conftest" and "contest_solutions" not in file.parts]
    assert sorted(files) == sorted({*files})
