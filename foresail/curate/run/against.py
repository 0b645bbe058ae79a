"""Compares two finished curations: which documents the first gains and loses, and which step decided it.

    compare(new, old).describe()
    -> "gained 12 documents; the other recipe drops them at", "  2 heuristics: too_short   12", "lost 3 …"

Each of these documents stands in `against/gained.jsonl` or `against/lost.jsonl` of the first recipe's folder.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import orjson

from foresail.curate.recipe import CurationRecipe
from foresail.curate.run.folders import last_phase, ledgers, phase_folders
from foresail.data.zst import open_zst
from foresail.runlog.atomic import explained, replacing_directory

AGAINST = "against"
NOT_READ = "not read"
SHOWN = 200  # characters of a text


class Reason(NamedTuple):
    step: str
    detail: str


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Counts by the step and reason for which one recipe does not have the document; `changed`: kept by both, with
    another text."""

    gained: Counter[str]
    lost: Counter[str]
    same: int
    changed: int
    folder: Path

    def describe(self) -> str:
        lines = []
        for change, counts, where in (
            ("gained", self.gained, "the other recipe drops them"),
            ("lost", self.lost, "this recipe drops them"),
        ):
            number = sum(counts.values())
            lines.append(f"{change} {number:,} documents" + (f"; {where} at" if number else ""))
            lines += [f"  {reason:<40} {count:,}" for reason, count in counts.most_common()]
            lines += [f"  each of them: {self.folder / change}.jsonl"] if number else []
        lines.append(
            f"kept by both: {self.same + self.changed:,}, {self.changed:,} of them with another text"
        )
        return "\n".join(lines)


def compare(new: CurationRecipe, old: CurationRecipe) -> Comparison:
    (new_ids, new_texts), (old_ids, old_texts) = kept_hashes(new), kept_hashes(old)
    _, in_new, in_old = np.intersect1d(new_ids, old_ids, return_indices=True)
    changed = int((new_texts[in_new] != old_texts[in_old]).sum())
    gained, lost = np.setdiff1d(new_ids, old_ids), np.setdiff1d(old_ids, new_ids)
    counts: dict[str, Counter[str]] = {"gained": Counter(), "lost": Counter()}
    with explained(new.out), replacing_directory(new.out / AGAINST) as hidden:
        for change, ids, has, lacks in (("gained", gained, new, old), ("lost", lost, old, new)):
            searched = {int(one) for one in ids}
            roots = read_ids(has, searched)
            reasons = drop_reasons(lacks, searched | {*roots.values()})
            with (hidden / f"{change}.jsonl").open("wb") as file:
                for row in kept_rows(has, searched):
                    name = id_hash(row["id"])
                    reason = reasons.get(name) or reasons.get(roots.get(name, name)) or Reason(NOT_READ, "")
                    counts[change][reason.step] += 1
                    file.write(orjson.dumps(change_row(row, reason)) + b"\n")
    same = len(in_new) - changed
    return Comparison(
        gained=counts["gained"], lost=counts["lost"], same=same, changed=changed, folder=new.out / AGAINST
    )


def change_row(row: dict[str, Any], reason: Reason) -> dict[str, Any]:
    line = {"id": row["id"], "reason": reason.step, "detail": reason.detail, "text": row["text"][:SHOWN]}
    return {**line, "url": row["url"]} if "url" in row else line


def kept_hashes(recipe: CurationRecipe) -> tuple[Any, Any]:
    """Hashes of the ids, sorted, and of the texts that belong to them."""
    pairs = (
        (id_hash(row["id"]), id_hash(row["text"]))
        for file in ledgers(last_phase(recipe))
        for entry in lines(file)
        for row in entry["kept"]
    )
    table = np.fromiter(pairs, dtype=np.dtype((np.uint64, 2))).reshape(-1, 2)
    ids, first = np.unique(table[:, 0], return_index=True)
    return ids, table[first, 1]


def read_ids(recipe: CurationRecipe, names: set[int]) -> dict[int, int]:
    """The document as it was read, of each document that steps made of it under another id."""
    roots = {name: name for name in names}
    for folder in reversed(phase_folders(recipe)):
        made_of = {}
        current = {*roots.values()}
        for file in ledgers(folder):
            for entry in lines(file):
                for row in entry["kept"]:
                    if (name := id_hash(row["id"])) in current:
                        made_of[name] = id_hash(entry["id"])
        roots = {name: made_of.get(root, root) for name, root in roots.items()}
    return {name: root for name, root in roots.items() if name != root}


def drop_reasons(recipe: CurationRecipe, searched: set[int]) -> dict[int, Reason]:
    """By which these documents were dropped."""
    reasons: dict[int, Reason] = {}
    for folder in phase_folders(recipe):
        for file in ledgers(folder):
            for entry in lines(file):
                for drop in entry["dropped"]:
                    if (place := id_hash(drop["document"]["id"])) in searched:
                        reasons[place] = Reason(f"{drop['step']}: {drop['reason']}", drop["detail"])
    return reasons


def kept_rows(recipe: CurationRecipe, searched: set[int]) -> Iterator[dict[str, Any]]:
    for file in ledgers(last_phase(recipe)):
        for entry in lines(file):
            yield from (row for row in entry["kept"] if id_hash(row["id"]) in searched)


def lines(file: Path) -> Iterator[dict[str, Any]]:
    with open_zst(file) as opened:
        for line in opened:
            yield orjson.loads(line)


def id_hash(name: str) -> int:
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little")
