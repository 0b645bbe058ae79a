"""What steps of an engine take, as measured: the file that `benchmarks/engine_gpu.py --drafts` writes.

{"columns": ["batch", "draft_length", "context", "milliseconds"], "7B": [[256, 0, 521, 8.99], …], …}
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple


class MeasuredStep(NamedTuple):
    """A step of `batch` rows, each with a draft of so many tokens and so many tokens cached."""

    batch: float
    draft_length: float
    context: float
    milliseconds: float


def read_step_table(path: Path, shape: str) -> list[MeasuredStep]:
    try:
        table = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ValueError(
            f"the table of step costs {path} is not there; run this in the folder of the repository, "
            "or give its path"
        ) from None
    if table.get("columns") != list(MeasuredStep._fields) or shape not in table:
        known = ", ".join(
            name for name, rows in table.items() if name != "columns" and isinstance(rows, list)
        )
        raise ValueError(
            f'{path} has no table of {", ".join(MeasuredStep._fields)} for "{shape}", only for '
            f"{known or 'nothing'}; choose another, or measure it with benchmarks/engine_gpu.py --drafts"
        )
    return [MeasuredStep(*row) for row in table[shape]]
