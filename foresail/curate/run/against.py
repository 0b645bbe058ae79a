"""Compares two finished curations: which documents the first gains and loses, and which step decided it.

    compare(new, old).describe()
    -> "gained 12 documents: 2 heuristics: too_short 12 in the other recipe", "lost 3 …"

Each changed document stands in `against.jsonl` of the first recipe's folder.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from foresail.curate.recipe import CurationRecipe
from foresail.curate.run.folders import last_phase, ledgers, phase_folders
from foresail.data.zst import open_zst
from foresail.runlog.atomic import hidden_sibling, sync

AGAINST = "against.jsonl"
NOT_READ = "not read"
SHOWN = 200  # characters of a text


@dataclass(frozen=True)
class Comparison:
    """Counts by the step and reason for which the other recipe does not have the document."""

    gained: Counter[str]
    lost: Counter[str]
    file: Path

    def describe(self) -> str:
        lines = []
        for words, counts, where in (
            ("gained", self.gained, "the other recipe drops them"),
            ("lost", self.lost, "this recipe drops them"),
        ):
            lines.append(f"{words} {sum(counts.values()):,} documents" + (f"; {where} at" if counts else ""))
            lines += [f"  {reason:<40} {count:,}" for reason, count in counts.most_common()]
        return "\n".join([*lines, f"each of them: {self.file}"])


def compare(new: CurationRecipe, old: CurationRecipe) -> Comparison:
    new_ids, old_ids = kept_ids(new), kept_ids(old)
    gained, lost = np.setdiff1d(new_ids, old_ids), np.setdiff1d(old_ids, new_ids)
    file = new.out / AGAINST
    counts: dict[str, Counter[str]] = {"gained": Counter(), "lost": Counter()}
    with hidden_sibling(file) as hidden:
        with hidden.open("wb") as written:
            for change, ids, has, lacks in (("gained", gained, new, old), ("lost", lost, old, new)):
                reasons = drop_reasons(lacks, ids)
                for row in kept_rows(has, ids):
                    reason = reasons.get(id_hash(row["id"]), NOT_READ)
                    counts[change][reason] += 1
                    line = {"id": row["id"], "change": change, "reason": reason, "text": row["text"][:SHOWN]}
                    written.write(orjson.dumps(line) + b"\n")
        sync(hidden)
        hidden.replace(file)
    return Comparison(counts["gained"], counts["lost"], file)


def kept_ids(recipe: CurationRecipe) -> Any:
    """Sorted hashes."""
    rows = (row for file in ledgers(last_phase(recipe)) for entry in lines(file) for row in entry["kept"])
    return np.unique(np.fromiter((id_hash(row["id"]) for row in rows), dtype=np.uint64))


def drop_reasons(recipe: CurationRecipe, ids: Any) -> dict[int, str]:
    """The step and reason by which these documents were dropped."""
    searched = {int(one) for one in ids}
    reasons: dict[int, str] = {}
    for folder in phase_folders(recipe):
        for file in ledgers(folder):
            for entry in lines(file):
                for drop in entry["dropped"]:
                    if (place := id_hash(drop["document"]["id"])) in searched:
                        reasons[place] = f"{drop['step']}: {drop['reason']}"
    return reasons


def kept_rows(recipe: CurationRecipe, ids: Any) -> Iterator[dict[str, Any]]:
    searched = {int(one) for one in ids}
    for file in ledgers(last_phase(recipe)):
        for entry in lines(file):
            yield from (row for row in entry["kept"] if id_hash(row["id"]) in searched)


def lines(file: Path) -> Iterator[dict[str, Any]]:
    with open_zst(file) as opened:
        for line in opened:
            yield orjson.loads(line)


def id_hash(name: str) -> int:
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little")
