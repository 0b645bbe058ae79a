"""Figures of a ledger, which add up over pieces: counts by reason, flow, lengths, languages, domains, examples.

count_ledger(path, Form(labels=("read", "1 extract"))).as_json()
-> {"inputs": 812, "flow": {"read": [812, 4017000], "1 extract": [790, 1203311]}, "dropped": {…}, …}

All of them are bounded, and the same for any number of processes.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from foresail.curate.run.excerpt import place_of, shorten
from foresail.curate.run.tops import Tops
from foresail.data.zst import open_zst

EXAMPLES = 4  # of each reason, and three times as many that were kept
REASONS = 300  # of one step; more are counted together
OTHERS = "other reasons"
SHOWN_METADATA = 400  # characters
DOMAINS, LANGUAGES = 500, 200
HOST = re.compile(r"[a-zA-Z][\w+.-]*://(?:[^/?#@\s]*@)?(?:www\.)?(\[[0-9a-fA-F:.]+\]|[^/?#:\s]{1,100})")


@dataclass(frozen=True, kw_only=True)
class Form:
    """What a ledger's counts mean. `labels`: of what its documents went through, in order."""

    labels: tuple[str, ...]
    seed: int = 0


@dataclass
class Side:
    """Documents that are kept, or that are dropped. `lengths`: documents by the bits of their number of bytes."""

    documents: int = 0
    bytes: int = 0
    lengths: Counter[int] = field(default_factory=Counter)
    languages: Tops = field(default_factory=lambda: Tops(LANGUAGES))
    domains: Tops = field(default_factory=lambda: Tops(DOMAINS))

    def add(self, row: dict[str, Any]) -> None:
        size = size_of_row(row)
        self.documents += 1
        self.bytes += size
        self.lengths[size.bit_length()] += 1
        language = row.get("metadata", {}).get("language")
        self.languages.add(str(language)[:40] if language else "unknown")
        if domain := domain_of(row.get("url", "")):
            self.domains.add(domain)

    def merge(self, other: Side) -> None:
        self.documents += other.documents
        self.bytes += other.bytes
        self.lengths += other.lengths
        self.languages.merge(other.languages)
        self.domains.merge(other.domains)

    def as_json(self) -> dict[str, Any]:
        return {
            "documents": self.documents,
            "bytes": self.bytes,
            "lengths": lengths_json(self.lengths),
            "languages": self.languages.as_json(),
            "domains": self.domains.as_json(),
        }

    @classmethod
    def from_json(cls, row: dict[str, Any]) -> Side:
        return cls(
            row["documents"],
            row["bytes"],
            lengths_of(row["lengths"]),
            Tops.from_json(LANGUAGES, row["languages"]),
            Tops.from_json(DOMAINS, row["domains"]),
        )


@dataclass
class Statistics:
    """`lost` are documents as they came to the step that dropped them, `after` those that go on.

    `flow`: documents and bytes that leave each step. `dropped` counts by step and reason; `examples` are by step
    and reason too, "kept" for those that stay.
    """

    inputs: int = 0
    input_bytes: int = 0
    input_lengths: Counter[int] = field(default_factory=Counter)
    flow: dict[str, list[int]] = field(default_factory=lambda: defaultdict(lambda: [0, 0]))
    lost: Side = field(default_factory=Side)
    after: Side = field(default_factory=Side)
    dropped: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    examples: dict[str, list[dict[str, Any]]] = field(default_factory=lambda: defaultdict(list))
    checksum: str = ""

    def add(self, entry: dict[str, Any], form: Form) -> None:
        self.inputs += 1
        self.input_bytes += entry["bytes"]
        self.input_lengths[entry["bytes"].bit_length()] += 1
        for label, (documents, size) in zip(form.labels, entry["flow"], strict=False):
            self.flow[label][0] += documents
            self.flow[label][1] += size
        seen = entry.get("seen")
        for row in entry["kept"]:
            self.after.add(row)
            self.show("kept", row, "", seen, form.seed)
        for drop in entry["dropped"]:
            self.lost.add(drop["document"])
            reasons = self.dropped[drop["step"]]
            reason = shorten(drop["reason"], 60, 0)
            reason = reason if reason in reasons or len(reasons) < REASONS else OTHERS
            reasons[reason] += 1
            self.show(f"{drop['step']}: {reason}", drop["document"], drop["detail"], seen, form.seed)

    def show(self, kind: str, row: dict[str, Any], detail: str, seen: str | None, seed: int) -> None:
        """Keep the examples with the smallest hashes: chosen at random, and equal whatever the order."""
        place = place_of(seed, row["id"])
        rank = (kind == "kept" and seen is None, place, shorten(row["id"], SHOWN_METADATA, 0))
        shown = self.examples[kind]
        if len(shown) == room_for(kind) and rank >= rank_of(shown[-1]):
            return
        example = {
            "place": place,
            "id": shorten(row["id"], SHOWN_METADATA, 0),
            "url": shorten(row.get("url", ""), SHOWN_METADATA, 0),
            "detail": shorten(detail, SHOWN_METADATA, 0),
            "text": shorten(row["text"]),
            "characters": len(row["text"]),
            "metadata": shorten(orjson.dumps(row.get("metadata", {})).decode(), SHOWN_METADATA, 0),
        }
        if seen is not None:
            example["seen"] = seen
        if kind == "kept":
            example["late"] = seen is None
        self.examples[kind] = ranked([*shown, example], kind)

    def merge(self, other: Statistics) -> None:
        self.inputs += other.inputs
        self.input_bytes += other.input_bytes
        self.input_lengths += other.input_lengths
        for label, (documents, size) in other.flow.items():
            self.flow[label][0] += documents
            self.flow[label][1] += size
        self.lost.merge(other.lost)
        self.after.merge(other.after)
        for step, reasons in other.dropped.items():
            self.dropped[step] = fold(self.dropped[step] + reasons)
        known = {f"{step}: {reason}" for step, reasons in self.dropped.items() for reason in reasons}
        for kind in {*self.examples, *other.examples}:
            shown = ranked([*self.examples[kind], *other.examples.get(kind, ())], kind)
            if kind == "kept" or kind in known:
                self.examples[kind] = shown
            else:
                del self.examples[kind]

    def as_json(self) -> dict[str, Any]:
        return {
            "inputs": self.inputs,
            "input_bytes": self.input_bytes,
            "input_lengths": lengths_json(self.input_lengths),
            "flow": dict(self.flow),
            "lost": self.lost.as_json(),
            "after": self.after.as_json(),
            "dropped": {
                step: dict(sorted(reasons.items())) for step, reasons in sorted(self.dropped.items())
            },
            "examples": dict(sorted(self.examples.items())),
            "checksum": self.checksum,
        }

    @classmethod
    def from_json(cls, row: dict[str, Any]) -> Statistics:
        statistics = cls(row["inputs"], row["input_bytes"], lengths_of(row["input_lengths"]))
        statistics.flow.update(row["flow"])
        statistics.lost, statistics.after = Side.from_json(row["lost"]), Side.from_json(row["after"])
        statistics.dropped.update({step: Counter(reasons) for step, reasons in row["dropped"].items()})
        statistics.examples.update(row["examples"])
        return statistics


def count_ledger(path: Path, form: Form, beat: Callable[[], None] = lambda: None) -> Statistics:
    """Of a finished ledger, with its checksum. `beat` is called at every line."""
    statistics = Statistics()
    with open_zst(path) as file:
        for line in file:
            statistics.add(orjson.loads(line), form)
            beat()
    with path.open("rb") as raw:
        statistics.checksum = hashlib.file_digest(raw, "sha256").hexdigest()
    return statistics


def add_up(receipts: Iterable[dict[str, Any]]) -> Statistics:
    """Of all pieces of a phase."""
    total = Statistics()
    for receipt in receipts:
        total.merge(Statistics.from_json(receipt))
    return total


def fold(reasons: Counter[str]) -> Counter[str]:
    """A step that writes figures into its reasons has endless many: the rare ones become one."""
    if len(reasons) <= REASONS + 1:
        return reasons
    ranking = sorted(reasons.items(), key=lambda item: (item[0] == OTHERS, -item[1], item[0]))
    folded = Counter(dict(ranking[:REASONS]))
    folded[OTHERS] += sum(count for _, count in ranking[REASONS:])
    return folded


def rank_of(example: dict[str, Any]) -> tuple[bool, str, str]:
    return example.get("late", False), example["place"], example["id"]


def ranked(examples: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return sorted(examples, key=rank_of)[: room_for(kind)]


def room_for(kind: str) -> int:
    return EXAMPLES * 3 if kind == "kept" else EXAMPLES


def size_of_row(row: dict[str, Any]) -> int:
    content = row.get("content", "")
    return len(row["text"].encode()) + len(content) // 4 * 3 - content[-2:].count("=")


def domain_of(url: str) -> str:
    """domain_of("https://www.A.org:8080/b") -> "a.org"."""
    host = HOST.match(url[:2000])
    return "" if host is None else host[1].lower().rstrip(".")


def lengths_json(lengths: Counter[int]) -> dict[str, int]:
    return {str(bits): lengths[bits] for bits in sorted(lengths)}


def lengths_of(row: dict[str, int]) -> Counter[int]:
    return Counter({int(bits): count for bits, count in row.items()})
