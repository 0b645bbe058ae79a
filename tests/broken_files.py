"""Files as accidents leave them: values of another type, keys that are gone, ends cut off, bytes turned.

`mutations(content, seed)` gives changed versions of one file's bytes, the same ones for the same seed.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

STRANGE: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    1,
    -1,
    7,
    10**30,
    0.5,
    -2.5,
    1e308,
    float("nan"),
    float("inf"),
    "",
    "text",
    "12",
    "\ud800",
    "{{ 1 // 0 }}{% for",
    [],
    [None],
    [1, "a", {}],
    [[[]]],
    {},
    {"content": 3},
    {"a": {"b": [1]}},
)


def mutations(content: bytes, seed: str, count: int) -> Iterator[bytes]:
    """`count` versions; of JSON most are still JSON."""
    chance = random.Random(seed)
    try:
        tree = json.loads(content)
    except ValueError:
        tree = None
    for _ in range(count):
        if tree is not None and chance.random() < 0.75:
            yield json.dumps(changed(tree, chance)).encode()
        else:
            yield torn(content, chance)


def changed(tree: Any, chance: random.Random) -> Any:
    """One or two places of a JSON value with something strange in them, or nothing."""
    tree = deepcopy(tree)
    for _ in range(chance.choice((1, 1, 2))):
        places = list(containers(tree))
        if not places or chance.random() < 0.03:
            return chance.choice(STRANGE)
        place = chance.choice(places[:1] * 3 + places)  # the top of a file is where most keys are that matter
        key = chance.choice(list(place) if isinstance(place, dict) else range(len(place)))
        if chance.random() < 0.25:
            del place[key]
        else:
            place[key] = deepcopy(chance.choice(STRANGE))
    return tree


def containers(tree: Any) -> Iterator[Any]:
    if isinstance(tree, dict | list) and tree:
        yield tree
        for inner in tree.values() if isinstance(tree, dict) else tree:
            yield from containers(inner)


def torn(content: bytes, chance: random.Random) -> bytes:
    place = chance.randrange(len(content) + 1)
    kind = chance.randrange(6)
    if kind == 0:
        return content[:place]
    if kind == 1:
        return content[:place] + bytes([chance.randrange(256)]) + content[place + 1 :]
    if kind == 2:
        return content[:place] + b"\x00\xff\xfe" + content[place:]
    if kind == 3:
        return content[:place] + content[place + chance.randrange(1, 40) :]
    if kind == 4:
        return b"[" * 100_000
    return chance.choice((b"", b"null", b"[]", b"\xef\xbb\xbf" + content, b'"text"'))
