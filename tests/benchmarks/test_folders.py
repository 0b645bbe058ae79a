"""Every benchmark can start: what it imports is there and is reached. benchmarks/README.md lists every script."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "benchmarks").glob("*/*.py"))
BY_NAME = {file.stem: file for file in FILES}
README = (ROOT / "benchmarks/README.md").read_text()


@cache
def syntax(file: Path) -> ast.Module:
    return ast.parse(file.read_text())


@cache
def imports(file: Path) -> list[tuple[Path, str]]:
    """What a benchmark imports from benchmarks and from foresail: file and name, "" for the module itself."""
    imported = []
    for node in ast.walk(syntax(file)):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                if (place := located(f"{node.module}.{alias.name}")) is not None:
                    imported.append((place, ""))
                elif (place := located(node.module)) is not None:
                    imported.append((place, alias.name))
                else:
                    assert not node.module.startswith("foresail"), f"{file}: no {node.module}"
        elif isinstance(node, ast.Import):
            imported += [(place, "") for alias in node.names if (place := located(alias.name)) is not None]
    return imported


def located(module: str) -> Path | None:
    """shapes -> benchmarks/shared/shapes.py; foresail.world -> foresail/world.py; numpy -> None."""
    if module in BY_NAME:
        return BY_NAME[module]
    file = ROOT / (module.replace(".", "/") + ".py")
    return file if module.startswith("foresail.") and file.exists() else None


@cache
def defined(file: Path) -> set[str]:
    names = set()
    for node in ast.walk(syntax(file)):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names |= {alias.asname or alias.name for alias in node.names}
    return names


def reached(file: Path) -> set[Path]:
    """All benchmarks that this one loads, through others too."""
    files, waiting = set(), [file]
    while waiting:
        new = {place for place, _ in imports(waiting.pop()) if place in FILES} - files
        files |= new
        waiting += new
    return files


def is_script(file: Path) -> bool:
    return 'if __name__ == "__main__":' in file.read_text()


def short(file: Path) -> str:
    return f"{file.parent.name}/{file.name}"


def test_no_two_benchmarks_have_one_name() -> None:
    assert len(BY_NAME) == len(FILES) > 80


@pytest.mark.parametrize("file", FILES, ids=short)
def test_all_that_a_benchmark_imports_is_there(file: Path) -> None:
    for place, name in imports(file):
        assert not name or name in defined(place), f"{place} has no {name}"


@pytest.mark.parametrize("file", FILES, ids=short)
def test_a_benchmark_loads_only_from_its_folder_and_from_shared(file: Path) -> None:
    folders = {place.parent.name for place in reached(file)} - {file.parent.name}
    assert folders <= {"shared"}
    if is_script(file) and folders:
        assert 'sys.path.append(str(Path(__file__).parents[1] / "shared"))' in file.read_text()


def test_the_readme_lists_every_script_and_nothing_else() -> None:
    listed = set(re.findall(r"`(\w+/\w+\.py)`", README.partition("## Processes")[2]))
    for section in README.partition("## Processes")[0].split("\n## ")[1:]:
        listed |= {
            f"{section.partition(':')[0]}/{name}" for name in re.findall(r"^\| `(\w+\.py)", section, re.M)
        }
    assert listed == {short(file) for file in FILES if is_script(file)}


def test_the_pages_that_the_readme_names_are_there() -> None:
    pages = re.findall(r"\]\((\S+)\)", README)
    assert pages and all((ROOT / "benchmarks" / page).exists() for page in pages)


def test_docs_name_benchmarks_that_are_there() -> None:
    files = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *FILES, *(ROOT / "recipes").rglob("*.toml")]
    named = {path for file in files for path in re.findall(r"benchmarks/\w+/\w+\.\w+", file.read_text())}
    assert {path for path in named if not (ROOT / path).exists()} <= {"benchmarks/proofs/LAB.py"}
