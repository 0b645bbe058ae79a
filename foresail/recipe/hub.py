"""Models by their name on the Hugging Face hub, such as `Qwen/Qwen2.5-0.5B`, in place of a folder.

A name is one of the hub only where nothing of that name, and no folder of its owner's name, lies here: so
`checkpoints/first` is always a folder.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel

Recipe = TypeVar("Recipe", bound=BaseModel)

FILES = ("*.json", "*.safetensors", "*.jinja", "*.py", "*.txt", "*.model")  # no weights in other formats
PLACES = ("path", "reference", "tokenizer")  # keys of a recipe that name a model or its tokenizer
_NAME = re.compile(r"[\w-][\w.-]*/[\w-][\w.-]*")


def is_hub_name(path: str) -> bool:
    """is_hub_name("Qwen/Qwen2.5-0.5B") -> True; ("runs/rl"), ("./a/b") -> False where runs/ is a folder."""
    here = Path(path).exists() or Path(path).parts[:1] == (".",) or Path(path.partition("/")[0]).is_dir()
    return _NAME.fullmatch(path) is not None and not here


def fetch(path: str) -> str:
    """The folder of a model: where it is here, else that of the hub's files, which are downloaded once."""
    if not is_hub_name(path):
        return path
    try:
        from huggingface_hub import snapshot_download
    except ImportError as error:
        raise ImportError(
            f"{path} is not a folder here; to take it from the hub: pip install huggingface_hub"
        ) from error
    try:
        return str(snapshot_download(path, allow_patterns=[*FILES]))
    except Exception as error:  # many kinds: no network, no such model, no access, no room
        why = str(error).strip().partition("\n")[0][:200] or type(error).__name__
        raise ValueError(
            f"{path} is not a folder here, and the hub did not give it ({why}); check the name and the "
            "network, or give a folder with config.json and *.safetensors"
        ) from None


def with_local_models(recipe: Recipe) -> Recipe:
    """The recipe with folders in the place of names on the hub, wherever a model or a tokenizer is named."""
    changes: dict[str, object] = {}
    for name in type(recipe).model_fields:
        value = getattr(recipe, name)
        if isinstance(value, BaseModel):
            changes[name] = with_local_models(value)
        elif isinstance(value, str) and name in PLACES:
            changes[name] = fetch(value)
    changed = {name: value for name, value in changes.items() if value is not getattr(recipe, name)}
    return recipe.model_copy(update=changed) if changed else recipe
