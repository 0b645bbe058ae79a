"""Opens the server of a table `Answerer`.

open_endpoint(Answerer(endpoint="http://judge:8000/v1", model="judge-7b"))(conversations, keys)
"""

from __future__ import annotations

import os

from foresail.chat.endpoint import Endpoint, growing_pauses
from foresail.recipe.tables.answerer import Answerer


def check_key(settings: Answerer) -> None:
    if settings.key_env is not None and settings.key_env not in os.environ:
        raise ValueError(
            f"the environment has no {settings.key_env}; set it to the server's key, or leave key_env out"
        )


def open_endpoint(settings: Answerer) -> Endpoint:
    assert settings.endpoint is not None
    check_key(settings)
    return Endpoint(
        url=settings.endpoint,
        model=settings.model,
        key=os.environ[settings.key_env] if settings.key_env is not None else "",
        parallel=settings.parallel,
        max_tokens=settings.max_new_tokens,
        temperature=settings.temperature,
        top_p=settings.top_p,
        seed=settings.seed,
        pauses=growing_pauses(settings.patience),
    )
