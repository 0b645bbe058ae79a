"""The error of a recipe that cannot be used. It imports nothing: workers that run only parts of it know it, too."""

from __future__ import annotations


class RecipeError(ValueError):
    """A recipe cannot be used; the message lists all mistakes, one per line."""
