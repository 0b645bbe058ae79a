"""Loads a user's own code by its name in recipes and commands: `rewards.py:score`, or `package.module:score`.

    load_user_code("my/rewards.py:score")(response, answer)
    user_code_file("my/rewards.py:score") -> Path("my/rewards.py")     # nothing is run

The caller checks what it must be: a reward function, an environment, a tool.
"""

from __future__ import annotations

import importlib.util
import sys
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any


def split_name(name: str) -> tuple[str, str]:
    """split_name("my/rewards.py:score") -> ("my/rewards.py", "score")."""
    place, _, attribute = name.rpartition(":")
    return place, attribute


def is_file(place: str) -> bool:
    """Whether a file is meant, not a module: by its ending, or by a path's slash."""
    return place.endswith(".py") or "/" in place


def user_code_file(name: str) -> Path | None:
    """The file that would be loaded; None where there is no such module. A named file need not exist."""
    place, _ = split_name(name)
    return Path(place) if is_file(place) else find_module(place)


def find_module(name: str) -> Path | None:
    """The file of a module, without importing it; its parent packages are imported."""
    local = Path(*name.split("."))
    for file in (local.with_suffix(".py"), local / "__init__.py"):
        if file.is_file():
            return file
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return None
    return Path(spec.origin) if spec is not None and spec.origin and spec.has_location else None


def load_user_code(name: str) -> Any:
    """The named object; None where the file or module does not have it."""
    place, attribute = split_name(name)
    module = load_file(Path(place)) if is_file(place) else load_module(place)
    return getattr(module, attribute, None)


@cache
def load_file(path: Path) -> ModuleType:
    """A file as a module, once for all its names; those beside it can be imported from it."""
    if not path.is_file():
        raise FileNotFoundError(f"the file {path} does not exist (looked in {Path.cwd()}); check the path")
    look_in(path.parent.resolve())
    name = f"user_code_{path.stem}"  # a file math.py must not take the place of Python's own
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def load_module(name: str) -> ModuleType:
    """An installed module, or one that lies where the command runs."""
    look_in(Path.cwd())
    return importlib.import_module(name)


def look_in(folder: Path) -> None:
    if str(folder) not in sys.path:
        sys.path.append(str(folder))  # last: what is installed comes first
