"""Figures of a ledger, which add up over pieces: counts by reason, lengths, languages, examples.

count_ledger(path).as_json() -> {"documents": 812, "kept": 790, "dropped": {"2 length": {"too_short": 22}}, …}
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from foresail.data.zst import open_zst

EXAMPLES = 4  # of each reason, and three times as many that were kept
SHOWN = 600  # characters of an example


@dataclass
class Side:
    """Documents before or after a phase. `lengths`: documents by the bits of their number of characters."""

    documents: int = 0
    bytes: int = 0
    lengths: Counter[int] = field(default_factory=Counter)
    languages: Counter[str] = field(default_factory=Counter)

    def add(self, row: dict[str, Any]) -> None:
        self.documents += 1
        self.bytes += len(row["text"].encode()) + len(row.get("content", "")) * 3 // 4
        self.lengths[len(row["text"]).bit_length()] += 1
        language = row.get("metadata", {}).get("language")
        self.languages[str(language) if language else "unknown"] += 1

    def merge(self, other: Side) -> None:
        self.documents += other.documents
        self.bytes += other.bytes
        self.lengths += other.lengths
        self.languages += other.languages

    def as_json(self) -> dict[str, Any]:
        return {
            "documents": self.documents,
            "bytes": self.bytes,
            "lengths": {str(bits): self.lengths[bits] for bits in sorted(self.lengths)},
            "languages": dict(sorted(self.languages.items(), key=lambda item: (-item[1], item[0]))),
        }

    @classmethod
    def from_json(cls, row: dict[str, Any]) -> Side:
        lengths = Counter({int(bits): count for bits, count in row["lengths"].items()})
        return cls(row["documents"], row["bytes"], lengths, Counter(row["languages"]))


@dataclass
class Statistics:
    """`dropped` counts by step and reason; `examples` by step and reason too, "kept" for those that stay."""

    inputs: int = 0
    input_bytes: int = 0
    before: Side = field(default_factory=Side)
    after: Side = field(default_factory=Side)
    dropped: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    examples: dict[str, list[dict[str, Any]]] = field(default_factory=lambda: defaultdict(list))
    checksum: str = ""

    def add(self, entry: dict[str, Any]) -> None:
        self.inputs += 1
        self.input_bytes += entry["bytes"]
        for row in entry["kept"]:
            self.before.add(row)
            self.after.add(row)
            self.show("kept", row, "")
        for drop in entry["dropped"]:
            self.before.add(drop["document"])
            self.dropped[drop["step"]][drop["reason"]] += 1
            self.show(f"{drop['step']}: {drop['reason']}", drop["document"], drop["detail"])

    def show(self, kind: str, row: dict[str, Any], detail: str) -> None:
        """Keep the examples with the smallest hashes: chosen at random, and equal whatever the order."""
        place = hashlib.blake2b(row["id"].encode("utf-8", "replace"), digest_size=8).hexdigest()
        shown = self.examples[kind]
        room = EXAMPLES * 3 if kind == "kept" else EXAMPLES
        if len(shown) == room and place >= shown[-1]["place"]:
            return
        shown.append(
            {
                "place": place,
                "id": row["id"],
                "url": row.get("url", ""),
                "detail": detail,
                "text": row["text"][:SHOWN],
                "characters": len(row["text"]),
                "metadata": row.get("metadata", {}),
            }
        )
        shown.sort(key=lambda example: (example["place"], example["id"]))
        del shown[room:]

    def as_json(self) -> dict[str, Any]:
        return {
            "inputs": self.inputs,
            "input_bytes": self.input_bytes,
            "before": self.before.as_json(),
            "after": self.after.as_json(),
            "dropped": {
                step: dict(sorted(reasons.items())) for step, reasons in sorted(self.dropped.items())
            },
            "examples": dict(sorted(self.examples.items())),
            "checksum": self.checksum,
        }


def count_ledger(path: Path) -> Statistics:
    """Of a finished ledger, with its checksum."""
    statistics = Statistics()
    with open_zst(path) as file:
        for line in file:
            statistics.add(orjson.loads(line))
    with path.open("rb") as raw:
        statistics.checksum = hashlib.file_digest(raw, "sha256").hexdigest()
    return statistics


def add_up(receipts: Iterable[dict[str, Any]]) -> Statistics:
    """Of all pieces of a phase."""
    total = Statistics()
    for receipt in receipts:
        total.inputs += receipt["inputs"]
        total.input_bytes += receipt["input_bytes"]
        total.before.merge(Side.from_json(receipt["before"]))
        total.after.merge(Side.from_json(receipt["after"]))
        for step, reasons in receipt["dropped"].items():
            total.dropped[step].update(reasons)
        for kind, shown in receipt["examples"].items():
            merged = sorted(
                [*total.examples[kind], *shown], key=lambda example: (example["place"], example["id"])
            )
            total.examples[kind] = merged[: EXAMPLES * 3 if kind == "kept" else EXAMPLES]
    return total
