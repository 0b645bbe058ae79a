"""The words of a TOML file beside this one, joined to patterns.

words_of("refusals.toml")["en"]["apology"] -> ["i(?:'m| am) sorry", …]
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

UNSPACED = re.compile("[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff]")  # scripts without spaces between words


@cache
def words_of(file: str) -> Mapping[str, Any]:
    return tomllib.loads(Path(__file__).with_name(file).read_text(encoding="utf-8"))


def any_of(words: Iterable[str]) -> str:
    """A pattern: whole words in scripts with spaces, anywhere in the others."""
    spaced: list[str] = []
    unspaced: list[str] = []
    for word in words:
        (unspaced if UNSPACED.search(word) else spaced).append(word)
    parts = [rf"(?<!\w)(?:{'|'.join(spaced)})(?!\w)"] if spaced else []
    return f"(?:{'|'.join([*parts, *unspaced])})"


def compiled(words: Iterable[str]) -> re.Pattern[str]:
    return re.compile(any_of(words), re.IGNORECASE)
