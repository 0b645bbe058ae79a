"""Difficulty levels of problems, 1 (easy) to 5 (hard), from a file by problem id or from a column."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from foresail.recipe.tables.inputs import LARGEST_COUNTED, first_line, reach
from foresail.recipe.tables.parts import Problems
from foresail.recipe.tables.sources import named
from foresail.recipe.tables.values import NUM_LEVELS, Mix

T = TypeVar("T")


def to_level(value: Any) -> int | None:
    """to_level(3), to_level("3") and MATH's to_level("Level 3") -> 3; to_level(None) -> None."""
    if value is None:
        return None
    digits = re.fullmatch(r"(?:level )?(\d)(?:\.0)?", str(value).strip().lower())
    if digits is None or not 1 <= int(digits[1]) <= NUM_LEVELS:
        raise ValueError(
            f"{value!r} is not a difficulty level;  use whole numbers from 1 (easy) to {NUM_LEVELS} (hard)"
        )
    return int(digits[1])


def read_levels(path: Path) -> dict[str, int | None]:
    """Levels by problem id, from lines like {"id": "gsm8k:17", "level": 3}; null: not gradable."""
    return read_by_id(path, "level", to_level)


def read_by_id(path: Path, key: str, convert: Callable[[Any], T]) -> dict[str, T]:
    """One column of a file that `foresail data grade-difficulty` wrote, by problem id."""
    what = key.replace("_", " ")
    if not path.is_file():
        hint = f"name a file in it, like {path / 'difficulty.jsonl'}" if path.is_dir() else "check the path"
        raise ValueError(f"{path} is not a file of difficulty levels or pass rates; {hint}")
    values: dict[str, T] = {}
    with path.open(encoding="utf-8-sig") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                entry = json.loads(line)
                values[str(entry["id"])] = convert(entry[key])
            except (TypeError, KeyError, RecursionError, json.JSONDecodeError):
                raise ValueError(
                    f"{path}:{number} does not have a problem's {what}; each line must be an object with id and "
                    f"{key}, as `foresail data grade-difficulty` writes it"
                ) from None
            except ValueError as error:
                raise ValueError(f"{path}:{number}: {error}") from None
    return values


def level_refusals(data: Sequence[Problems], mixes: Mapping[str, tuple[Mix, int]]) -> Iterator[str]:
    """Levels that cannot be read, and weights on levels that no problem has.

    `mixes` are the weights and a step's prompts, by the words that say where they hold.
    """
    counts: Counter[int] = Counter()
    for place, source in named("data", data):
        try:
            of_source = count_levels(source)
        except (OSError, ValueError) as error:
            yield f"{place}.{'difficulty' if source.difficulty is not None else 'difficulty_key'}: {error}"
            return
        if of_source is None:
            return
        counts += of_source
    for where, (mix, prompts_per_step) in mixes.items():
        yield from (where + line for line in mix_refusals(mix, counts, prompts_per_step))


def mix_refusals(mix: Mix | None, counts: Mapping[int, int], prompts_per_step: int) -> Iterator[str]:
    """mix_refusals((1, 1, 0, 0, 0), {1: 30}, 64) -> level 2 has none; 30 are too few for a step of 64."""
    weighted = [level for level, weight in enumerate(mix or (), start=1) if weight]
    there = ", ".join(f"{level}: {counts[level]}" for level in sorted(counts)) or "none"
    if missing := [level for level in weighted if not counts.get(level)]:
        levels = " and ".join(map(str, missing))
        yield (
            f"mix gives weight to level {levels}, which no problem has; set that weight to 0 (problems by "
            f"level: {there})"
        )
    elif weighted and (total := sum(counts[level] for level in weighted)) < prompts_per_step:
        yield (
            f"mix draws from {total} problems and prompts_per_step is {prompts_per_step}; lower that, or give "
            f"weight to more levels (problems by level: {there})"
        )


def count_levels(data: Problems) -> Counter[int] | None:
    """Problems by level; None if there are no levels, or counting would take too long."""
    if data.difficulty is not None:
        path = Path(data.difficulty)
        if path.is_file() and path.stat().st_size > LARGEST_COUNTED:
            return None
        return Counter(level for level in read_levels(path).values() if level is not None)
    file = Path(data.source)
    if data.difficulty_key is None or file.suffix != ".jsonl" or not file.is_file():
        return None
    if file.stat().st_size > LARGEST_COUNTED or first_line(file).startswith(b"["):
        return None
    return count_column(file, data.difficulty_key, data.limit)


def count_column(file: Path, key: str, limit: int | None) -> Counter[int]:
    """Lines that are not JSON objects are skipped here; other checks report them."""
    counts: Counter[int] = Counter()
    with file.open(encoding="utf-8-sig") as lines:
        filled = ((number, line) for number, line in enumerate(lines, start=1) if line.strip())
        for number, line in islice(filled, limit):
            try:
                value = json.loads(line)
            except (ValueError, RecursionError):
                continue
            try:
                level = to_level(reach(value, key))
            except ValueError as error:
                raise ValueError(f"{file}:{number}: {error}") from None
            if level is not None:
                counts[level] += 1
    return counts
