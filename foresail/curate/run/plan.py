"""What a curation folder was begun with; it goes on only with the same sources and steps.

`plan.json` holds the steps as the recipe has them, the code of users' steps, and the size and a checksum of the two
ends of every file that is read, and of the models, rules and lists of steps. Of a table that a generator makes rows
from it holds a checksum of all of it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from foresail.curate.named_step import NamedStep
from foresail.curate.read.piece import ReadPiece
from foresail.curate.read.source import first_documents, list_pieces
from foresail.curate.recipe import CurationRecipe
from foresail.curate.user_step import code_fingerprint
from foresail.data.corpus.documents import describe_file
from foresail.data.jobs.plan import PLAN
from foresail.data.made.generators import files_of
from foresail.data.made.shop.read_table import fingerprint_of
from foresail.recipe.tables.answerer import BESIDE_ANSWERS, Answerer
from foresail.runlog.atomic import write_text

FORMAT = 2


def pieces_of(recipe: CurationRecipe) -> list[ReadPiece]:
    """What is read, in the order of the recipe."""
    pieces = []
    for source in recipe.curation.source:
        listed = list_pieces(source)
        pieces += listed if recipe.limit is None else first_documents(listed, recipe.limit)
    return pieces


def plan_of(recipe: CurationRecipe, pieces: Sequence[ReadPiece]) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "sources": [describe_piece(piece) for piece in pieces],
        "steps": [
            {
                "name": step.name,
                "keys": planned_keys(step),
                "code": code_fingerprint(step.name),
                "files": describe_files(step.settings),
            }
            for step in recipe.steps
        ],
        "seed": recipe.curation.seed,
        "limits": [recipe.curation.max_cpu_seconds, recipe.curation.worker_memory_gib],
    }


def planned_keys(step: NamedStep) -> dict[str, Any]:
    """Without where a model is reached: a server may move while a curation is stopped."""
    keys = dict(step.keys)
    for name, value in keys.items():
        if isinstance(getattr(step.settings, name, None), Answerer) and isinstance(value, dict):
            keys[name] = {key: entry for key, entry in value.items() if key not in BESIDE_ANSWERS}
    return keys


def describe_files(settings: Any) -> list[dict[str, Any]]:
    """The models, rules and lists that a step reads. A folder is its files."""
    paths = [Path(path) for path in settings.files()] if hasattr(settings, "files") else []
    files = [file for path in paths for file in (sorted(path.iterdir()) if path.is_dir() else [path])]
    return [describe_file(file) for file in files if file.is_file()]


def describe_piece(piece: ReadPiece) -> dict[str, Any]:
    digest = hashlib.sha256()
    if piece.kind == "made":
        tables = {
            str(file): whole_checksum(file, file.stat().st_mtime_ns) for file in files_of(piece.files[0])
        }
        digest.update(json.dumps(tables, sort_keys=True).encode("utf-8", "surrogateescape"))
    for file in piece.files:
        path = Path(piece.folder) / file
        entry = describe_file(path) if path.is_file() else {"path": str(path)}
        digest.update(json.dumps(entry, sort_keys=True).encode("utf-8", "surrogateescape"))
    return {"piece": str(piece), "settings": piece.source.model_dump(), "checksum": digest.hexdigest()}


@lru_cache(maxsize=16)  # all pieces of a generator read the same table
def whole_checksum(file: Path, changed: int) -> str:
    """Of all of a table that a generator reads; `changed` is when."""
    return fingerprint_of(file)


def begin_plan(out: Path, plan: dict[str, Any]) -> None:
    """Write the plan, or compare it with the one that is there."""
    file = out / PLAN
    if not file.exists():
        if foreign := sorted(path.name for path in out.iterdir() if not path.name.startswith(".")):
            raise FileExistsError(
                f"{out} holds {foreign[0]} and is no curation; choose another folder for out"
            )
        write_text(file, json.dumps(plan, indent=1, ensure_ascii=False) + "\n")
        return
    before, plan = json.loads(file.read_text(encoding="utf-8")), json.loads(json.dumps(plan))
    if before == plan:
        return
    raise ValueError(
        f"{out} was begun with {difference(before, plan)}; choose another folder with out=…, or remove this one"
    )


def difference(before: dict[str, Any], plan: dict[str, Any]) -> str:
    """What has changed, in words."""
    if before.get("format") != plan["format"]:
        return "another version of Foresail"
    for number, (old, new) in enumerate(zip(before["steps"], plan["steps"], strict=False), start=1):
        if old["name"] != new["name"]:
            return f"another step#{number}: {old['name']}, not {new['name']}"
        if old["keys"] != new["keys"]:
            keys = [
                key for key in {**old["keys"], **new["keys"]} if old["keys"].get(key) != new["keys"].get(key)
            ]
            return f"another {keys[0]} of step#{number} ({new['name']})"
        if old["code"] != new["code"]:
            return f"other code of step#{number} ({new['name']})"
        if old.get("files") != new["files"]:
            return f"other files of step#{number} ({new['name']}): {other_file(old.get('files', []), new['files'])}"
    if len(before["steps"]) != len(plan["steps"]):
        return f"{len(before['steps'])} steps, not {len(plan['steps'])}"
    if before["sources"] != plan["sources"]:
        pairs = zip(before["sources"], plan["sources"], strict=False)
        changed = next((new["piece"] for old, new in pairs if old != new), None)
        return f"other content of {changed}" if changed else "more or fewer files"
    if before.get("seed") != plan["seed"]:
        return f"another seed, {before.get('seed')}"
    return "other limits of CPU time or memory"


def other_file(before: Sequence[dict[str, Any]], files: Sequence[dict[str, Any]]) -> str:
    changed = [file["path"] for file in files if file not in before]
    return str((changed or [file["path"] for file in before if file not in files])[0])
