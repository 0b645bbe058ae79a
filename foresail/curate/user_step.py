"""A user's own step, `file.py:function`: a function of a document, or a class of settings like a built-in step's.

def drop_short(document, least=100):
    return document if len(document.text) >= least else Drop("short")
"""

from __future__ import annotations

import hashlib
import inspect
from dataclasses import dataclass
from functools import partial
from typing import Any

from foresail.curate.step import StepFunction
from foresail.recipe.reading.recipe_error import RecipeError
from foresail.user_code import load_user_code, user_code_file


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
            raise RecipeError(f"{place}: {name} is no function; write the name of one that takes a document")
        if inspect.isclass(code) and hasattr(code, "open"):
            try:
                return code(**arguments)
            except (TypeError, ValueError) as error:
                raise RecipeError(f"{place}: {name}: {error}") from None
        try:
            inspect.signature(code).bind(None, **arguments)
        except TypeError as error:
            raise RecipeError(f"{place}: {name}: {error}; correct its keys, or the function") from None
        return cls(name, arguments)

    def open(self) -> StepFunction:
        return partial(load_user_code(self.name), **self.arguments)


def code_fingerprint(name: str) -> str | None:
    """Of the file behind a user's step: another content is another recipe."""
    file = user_code_file(name) if is_user_code(name) else None
    return None if file is None else hashlib.sha256(file.read_bytes()).hexdigest()
