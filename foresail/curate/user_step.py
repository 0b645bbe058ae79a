"""A user's own step, `file.py:function`: a function of a document, or a class of settings like a built-in step's.

def drop_short(document, least=100):
    return document if len(document.text) >= least else Drop("short")
"""

from __future__ import annotations

import hashlib
import inspect
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any

from foresail.curate.step import StepFunction
from foresail.recipe.reading.recipe_error import RecipeError
from foresail.user_code import is_file, load_file, load_module, load_user_code, split_name, user_code_file


def is_user_code(name: str) -> bool:
    return ":" in name


@dataclass(frozen=True)
class UserStep:
    """A function and its keyword arguments."""

    name: str
    arguments: dict[str, Any]

    @classmethod
    def check(cls, place: str, name: str, arguments: dict[str, Any]) -> Any:
        """The step behind a name: this, or a class of the user's with `open`, made with these arguments."""
        try:
            code = load_user_code(name)
        except (OSError, ImportError, SyntaxError) as error:
            raise RecipeError(f"{place}: {name} cannot be loaded: {error}") from None
        if not callable(code):
            raise RecipeError(f"{place}: {name} is no function; {other_name(name)}")
        if inspect.isclass(code) and hasattr(code, "open"):
            try:
                return code(**arguments)
            except (TypeError, ValueError) as error:
                raise RecipeError(f"{place}: {name}: {error}") from None
        try:
            inspect.signature(code).bind(None, **arguments)
        except TypeError as error:
            takes = ", ".join([*inspect.signature(code).parameters][1:]) or "nothing beside the document"
            raise RecipeError(f"{place}: {name}: {error}; it takes {takes}") from None
        return cls(name, arguments)

    def open(self) -> StepFunction:
        return partial(load_user_code(self.name), **self.arguments)


def other_name(name: str) -> str:
    """A hint for a function that is not there."""
    file, function = split_name(name)
    module = load_file(Path(file)) if is_file(file) else load_module(file)
    names = [key for key, value in vars(module).items() if callable(value) and not key.startswith("_")]
    near = get_close_matches(function, names, n=1)
    return f"did you mean {near[0]}?" if near else "write the name of one that takes a document"


def code_fingerprint(name: str) -> str | None:
    """Of the file behind a user's step: another content is another recipe."""
    file = user_code_file(name) if is_user_code(name) else None
    return None if file is None else hashlib.sha256(file.read_bytes()).hexdigest()
