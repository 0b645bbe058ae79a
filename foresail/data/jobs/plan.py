"""The plan of a job, kept in its folder, so that it resumes only with the same request.

    write_plan(folder, {"sources": [{"path": "web.jsonl", "bytes": 812, "checksum": "9f3c…"}], "separator": None})
    changed_source(folder, …) -> None, or the number of a source with other content

Only the content of sources may change (a corrected file).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from foresail.runlog.atomic import write_text

PLAN = "plan.json"


def changed_source(folder: Path, request: dict[str, Any]) -> int | None:
    """The first source whose content is not that of the plan; None if all are the same, or there is no plan."""
    file = folder / PLAN
    plan = json.loads(file.read_text(encoding="utf-8")) if file.exists() else request
    if plan == request:
        return None
    keys = [name for name in {**plan, **request} if plan.get(name) != request.get(name)]
    paths = [[entry["path"] for entry in side["sources"]] for side in (plan, request)]
    if keys != ["sources"] or paths[0] != paths[1]:
        changed = "other sources" if keys[0] == "sources" else f"another {keys[0].replace('_', ' ')}"
        raise ValueError(
            f"{folder} was begun with {changed}; give the same sources, tokenizer and options as then to go on, or "
            "remove the folder"
        )
    pairs = zip(plan["sources"], request["sources"], strict=True)
    return next(number for number, (before, now) in enumerate(pairs) if before != now)


def write_plan(folder: Path, request: dict[str, Any]) -> None:
    text = json.dumps(request, indent=1, ensure_ascii=False) + "\n"
    file = folder / PLAN
    if not file.exists() or file.read_text(encoding="utf-8") != text:
        write_text(file, text)
