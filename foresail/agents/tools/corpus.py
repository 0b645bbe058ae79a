"""Reads passages for search from a JSONL file, also compressed (.gz), with a title and a text on each line.

    {"title": "Paris", "text": "Paris is the capital of France."}

`contents` may replace `text`, with the title in quotes on its first line, as in other projects' Wikipedia files.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import NamedTuple


class CorpusPassage(NamedTuple):
    title: str
    text: str


def read_corpus(path: str | Path) -> list[CorpusPassage]:
    """A ValueError names the line that has no text."""
    file = Path(path)
    if not file.is_file():
        raise ValueError(f"the corpus {file} does not exist (looked in {Path.cwd()}); check the path")
    with (
        gzip.open(file, "rt", encoding="utf-8")
        if file.suffix == ".gz"
        else file.open(encoding="utf-8") as lines
    ):
        passages = [read_passage(line, number, file) for number, line in enumerate(lines, 1) if line.strip()]
    if not passages:
        raise ValueError(f"the corpus {file} is empty")
    return passages


def read_passage(line: str, number: int, file: Path) -> CorpusPassage:
    try:
        row = json.loads(line)
        if "contents" in row:
            first, _, rest = row["contents"].partition("\n")
            return CorpusPassage(first.strip().strip('"'), rest.strip())
        title, text = row.get("title") or "", row["text"]
    except (ValueError, TypeError, KeyError, AttributeError):
        title = text = None
    if not isinstance(text, str) or not isinstance(title, str):
        raise ValueError(
            f'{file}, line {number}: a passage is {{"title": …, "text": …}}, not {line[:60].strip()!r}'
        )
    return CorpusPassage(title, text)
