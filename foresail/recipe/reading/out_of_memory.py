"""Out-of-memory errors of any library become one error that names the keys to lower.

    with explaining_memory(recipe):
        …    # MemoryError, torch.OutOfMemoryError, "can't allocate memory" … become OutOfMemory

Errors are known by their names and words, so that torch need not be loaded to tell them.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager

from foresail.recipe.stages.stage import Stage
from foresail.recipe.tables.parts import Engine

WORDS = re.compile(
    r"out of memory|not enough memory|can(?:no|')t allocate memory|DefaultCPUAllocator|bad_alloc|ALLOC_FAILED"
    r"|can't start new thread",
    re.IGNORECASE,
)
# of libraries in Rust, as tokenizers: their threads could not be started
PANIC = re.compile(
    r"Resource temporarily unavailable|Cannot allocate memory|memory allocation", re.IGNORECASE
)
LONGEST = 200  # characters of what was said


class OutOfMemory(MemoryError):
    """The message says what to lower."""


def is_out_of_memory(error: BaseException) -> bool:
    """Of Python, the system, torch on a CPU or on a GPU."""
    if isinstance(error, MemoryError) or any(
        kind.__name__ == "OutOfMemoryError" for kind in type(error).mro()
    ):
        return True
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    if type(error).__name__ == "PanicException":  # derived from BaseException
        return PANIC.search(str(error)) is not None
    return isinstance(error, RuntimeError) and WORDS.search(str(error)) is not None


@contextmanager
def explaining_memory(recipe: Stage) -> Iterator[None]:
    """Wraps a run; a run that has made a step can be resumed with lower settings."""
    try:
        yield
    except BaseException as error:
        if isinstance(error, OutOfMemory) or not is_out_of_memory(error):
            raise
        raise OutOfMemory(describe(recipe, error)) from error


def describe(recipe: Stage, error: BaseException) -> str:
    settings, folder = [*smaller_settings(recipe)], recipe.run.folder
    then = "then start it again"
    if (folder / "recipe.toml").is_file():
        then = f"checkpoints are intact; to go on: foresail resume {folder} {settings[0].split(' (')[0]}"
    return (
        f"no memory left ({in_short(error)}). Set {', or '.join(settings)}; on a GPU, see that no other "
        f"process has its memory; {then}"
    )


def smaller_settings(recipe: Stage) -> Iterator[str]:
    """Settings to lower when a run is resumed, in the order to try them."""
    tokens, longest = recipe.micro_batch_tokens, recipe.max_length
    if tokens // 2 >= longest:
        yield f"micro_batch_tokens={tokens // 2} (now {tokens})"
    if not recipe.recompute:
        yield "recompute=true"
    engine = getattr(recipe, "engine", None)
    if isinstance(engine, Engine):
        yield f"engine.max_running={max(1, engine.max_running // 2)} (now {engine.max_running})"
    yield "cluster.ranks=… (more GPUs share the weights)"


def in_short(error: BaseException) -> str:
    """The first line, without the advice for programmers that torch appends."""
    text = str(error).strip() or type(error).__name__
    line = text.splitlines()[0].split(". If reserved")[0]
    return line[:LONGEST] + ("…" if len(line) > LONGEST else "")
