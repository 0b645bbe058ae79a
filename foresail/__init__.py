"""Foresail from Python; `docs/python.md` shows it.

    import foresail

    result = foresail.rl(model="checkpoints/smollm2", data=problems, reward=score, steps=100)
    result.show()

Names are loaded when they are first used, so that the import itself takes no time.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from foresail.api.evaluate import evaluate as evaluate
    from foresail.api.generate import generate as generate
    from foresail.api.recipe import load_recipe as load_recipe
    from foresail.api.result import Result as Result
    from foresail.api.stages import distill as distill
    from foresail.api.stages import dpo as dpo
    from foresail.api.stages import kto as kto
    from foresail.api.stages import online_dpo as online_dpo
    from foresail.api.stages import pretrain as pretrain
    from foresail.api.stages import resume as resume
    from foresail.api.stages import reward_model as reward_model
    from foresail.api.stages import rl as rl
    from foresail.api.stages import sft as sft
    from foresail.maths.verdict import grade as grade

PLACES = {
    "Result": "foresail.api.result",
    "distill": "foresail.api.stages",
    "dpo": "foresail.api.stages",
    "evaluate": "foresail.api.evaluate",
    "generate": "foresail.api.generate",
    "grade": "foresail.maths.verdict",
    "kto": "foresail.api.stages",
    "load_recipe": "foresail.api.recipe",
    "online_dpo": "foresail.api.stages",
    "pretrain": "foresail.api.stages",
    "resume": "foresail.api.stages",
    "reward_model": "foresail.api.stages",
    "rl": "foresail.api.stages",
    "sft": "foresail.api.stages",
}
__all__ = sorted(PLACES)


def __getattr__(name: str) -> Any:
    if name not in PLACES:
        raise AttributeError(f"foresail has no {name}; it has {', '.join(__all__)}")
    return getattr(import_module(PLACES[name]), name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]
