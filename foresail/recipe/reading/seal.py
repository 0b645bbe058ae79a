"""The first line of a run's recipe.toml: a checksum of the rest, so that a resume detects changes and damage.

    seal("steps = 2\\n")                         -> "# checksum 9a1be2c4 of recipe 1, …\\nsteps = 2\\n"
    read_seal("# checksum … of recipe 1, …\\nsteps = 3\\n") -> Seal("broken", 0)

At the top, and not at the end: a file that was cut in half has lost its end. The number tells the recipe from those
before it, which a run keeps as recipe.1.toml, recipe.2.toml, …
"""

from __future__ import annotations

import re
import zlib
from typing import Literal, NamedTuple

HEAD = "# checksum"
LINE = re.compile(rf"{HEAD} ([0-9a-f]{{8}}) of recipe (\d{{1,9}}), [^\n]*\n")
MEANING = "all below, which a run goes on with; foresail resume RUN KEY=VALUE sets what may change"


class Seal(NamedTuple):
    """none: there is no such line, as in recipes that were written before there was one."""

    state: Literal["whole", "broken", "none"]
    number: int = 0


def seal(text: str, number: int = 1) -> str:
    return f"{HEAD} {checksum(text, number)} of recipe {number}, {MEANING}\n{text}"


def read_seal(text: str) -> Seal:
    if not text.startswith(HEAD):
        return Seal("none")
    line = LINE.match(text)
    if line is None or line[1] != checksum(text[line.end() :], int(line[2])):
        return Seal("broken")
    return Seal("whole", int(line[2]))


def checksum(text: str, number: int) -> str:
    return f"{zlib.crc32(f'{number} {text}'.encode()):08x}"
