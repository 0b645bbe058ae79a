"""The long-context tasks by name: RULER's, as its paper defines them, and line retrieval.

    make_item("niah_single", seed=0, index=3, length=4096, depth=0.5, encode=tokenizer.encode)

An item is a pure function of these arguments. Single: one needle. Multi-key: one of several needles. Multi-value:
all codes of one key. Multi-query: the codes of several keys. `vt`, `cwe` and `fwe` have no depth: their answers
are all over the text.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from foresail.data.long_context.filler import Filler, made_filler
from foresail.data.long_context.fit import Encode
from foresail.data.long_context.haystack import niah, variable_tracking
from foresail.data.long_context.item import Item
from foresail.data.long_context.lists import common_words, frequent_words, line_retrieval

Maker = Callable[[Random, int, float, Encode, Filler], Item]


def niah_maker(task: str, **counts: int) -> Maker:
    return lambda rng, length, depth, encode, filler: niah(task, rng, length, depth, encode, filler, **counts)


MAKERS: dict[str, Maker] = {
    "niah_single": niah_maker("niah_single"),
    "niah_multikey": niah_maker("niah_multikey", keys=4),
    "niah_multivalue": niah_maker("niah_multivalue", values=4),
    "niah_multiquery": niah_maker("niah_multiquery", keys=4, queries=4),
    "vt": lambda rng, length, depth, encode, filler: variable_tracking(rng, length, encode, filler),
    "cwe": lambda rng, length, depth, encode, filler: common_words(rng, length, encode),
    "fwe": lambda rng, length, depth, encode, filler: frequent_words(rng, length, encode),
    "line_retrieval": lambda rng, length, depth, encode, filler: line_retrieval(rng, length, depth, encode),
}
TASKS = tuple(MAKERS)
WITHOUT_DEPTH = ("vt", "cwe", "fwe")


def make_item(
    task: str,
    *,
    seed: int,
    index: int,
    length: int,
    encode: Encode,
    depth: float = 0.5,
    filler: Filler = made_filler,
) -> Item:
    """`length` counts the prompt's tokens, all of them; `encode` is the tokenizer's."""
    check_task(task)
    if not 0 <= depth <= 1:
        raise ValueError(f"depth {depth} is not between 0, the beginning, and 1, the end")
    rng = Random(f"{task} {seed} {index} {length}")
    return MAKERS[task](rng, length, depth, encode, filler)


def check_task(task: str) -> None:
    if task not in MAKERS:
        raise ValueError(f"there is no long-context task {task!r}; use some of {', '.join(TASKS)}")


def spread_depths(count: int) -> tuple[float, ...]:
    """spread_depths(3) -> (0.0, 0.5, 1.0); one alone is in the middle."""
    return (0.5,) if count == 1 else tuple(number / (count - 1) for number in range(count))
