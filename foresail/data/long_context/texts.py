"""Texts of a corpus in files, plain or packed: JSONL with a column `text`, or text with a document a paragraph."""

from __future__ import annotations

import gzip
import json
import lzma
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

OPENERS: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".xz": lzma.open}


def read_texts(path: Path, column: str = "text") -> Iterator[str]:
    """read_texts(Path("en.jsonl.xz")) -> "She looked down the road.", …"""
    name = path.name.removesuffix(path.suffix) if path.suffix in OPENERS else path.name
    with OPENERS.get(path.suffix, open)(path, "rt", encoding="utf-8") as file:
        if not name.endswith((".jsonl", ".json")):
            yield from (part for part in file.read().split("\n\n") if part.strip())
            return
        for number, line in enumerate(file, start=1):
            if line.strip():
                row = json.loads(line)
                if not isinstance(row.get(column), str):
                    raise ValueError(
                        f"line {number} of {path} has no text in {column!r}; it has {', '.join(row)}"
                    )
                yield row[column]
