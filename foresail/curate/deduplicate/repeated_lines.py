"""Lines or paragraphs that many documents of a domain have: menus, notices, footers. They are cut from the text.

    [[step]]
    name = "repeated_lines"
    within = "domain"

A document of which nothing is left is dropped, and names the one in which its first cut line stands first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import numpy as np
from pydantic import Field

from foresail.curate.deduplicate.address import host_name
from foresail.curate.deduplicate.blocks import Array, BlockWriter
from foresail.curate.deduplicate.collected import NONE, Collected, collect_blocks, id_check, key_of, names_of
from foresail.curate.deduplicate.groups import equal_groups
from foresail.curate.deduplicate.units import Unit, comparable, units_of, without
from foresail.curate.deduplicate.verdicts import (
    Apply,
    DecidedBlocks,
    name_of,
    read_name,
    scratch_array,
    write_names,
)
from foresail.curate.document import Document, Drop
from foresail.curate.step import Outcome
from foresail.recipe.tables.parts import Part


class RepeatedLines(Part):
    """Cuts lines that several documents have."""

    unit: Unit = Field("line", description="line, or paragraph: what is between empty lines")
    within: Literal["domain", "corpus"] = Field(
        "domain",
        description="where documents are counted; domain: the host of the address; without one, lines stay",
    )
    documents: int = Field(3, ge=2, description="a line that so many documents have is cut")
    min_chars: int = Field(20, ge=1, description="shorter lines stay")
    keep: Literal["first", "none"] = Field(
        "first", description="first: the first document keeps the line; none: it is cut everywhere"
    )
    memory_gib: float = Field(2.0, gt=0, description="memory for sorting; what is more goes to the disk")

    def collect(self, documents: Iterable[Document], features: Path) -> None:
        collect_blocks(documents, features, self.columns)

    def columns(self, batch: Sequence[Document]) -> dict[str, Array]:
        keys = [self.keys(document) for document in batch]
        return {
            "keys": np.array([key for own in keys for key in own], np.uint64).reshape(-1, 2),
            "line_ends": np.cumsum([len(own) for own in keys], dtype=np.int64),
        }

    def keys(self, document: Document) -> list[tuple[int, int]]:
        """A key for each line; NONE for those that stay."""
        place = domain(document.url) if self.within == "domain" else "corpus"
        lines = units_of(document.text, self.unit)
        if not place:
            return [NONE] * len(lines)
        may_be_cut = comparable(lines, self.min_chars)
        return [
            key_of(f"{place}\n{' '.join(line.split()).casefold()}".encode("utf-8", "replace"))
            if cut
            else NONE
            for line, cut in zip(lines, may_be_cut, strict=True)
        ]

    def decide(self, features: Sequence[Path], decisions: Sequence[Path], scratch: Path) -> dict[str, Any]:
        collected = Collected.open(features)
        line_starts_n = scratch_array(scratch / "line_starts", collected.documents + 1, np.int64)
        for start, block in collected.blocks():
            ends = block["line_ends"]
            line_starts_n[start + 1 : start + 1 + len(ends)] = line_starts_n[start] + ends
        lines = int(line_starts_n[-1])

        def keys() -> Iterator[tuple[Array, Array]]:
            for start, block in collected.blocks():
                first = int(line_starts_n[start])
                yield block["keys"], np.arange(first, first + len(block["keys"]))

        first_l = scratch_array(scratch / "first", lines, np.int64)  # document + 1; 0: the line stays
        memory = int(self.memory_gib * 2**30)
        for numbers, starts in equal_groups(keys, lines, memory, scratch / "groups"):
            self.mark(numbers, starts, line_starts_n, first_l)
        return write_cuts(collected, line_starts_n, first_l, decisions, scratch)

    def mark(self, numbers: Array, starts: Array, line_starts_n: Array, first_l: Array) -> None:
        """Lines of groups that stand in enough documents."""
        owners = np.searchsorted(line_starts_n, numbers, side="right") - 1
        is_new = np.append(True, owners[1:] != owners[:-1])
        is_new[starts[:-1]] = True
        firsts = np.repeat(owners[starts[:-1]], np.diff(starts))
        cut = np.repeat(
            np.add.reduceat(is_new, starts[:-1], dtype=np.int64) >= self.documents, np.diff(starts)
        )
        if self.keep == "first":
            cut &= owners != firsts
        first_l[numbers[cut]] = firsts[cut] + 1

    def open(self, decisions: Path) -> Apply:
        return Cuts(decisions, self.unit)


def domain(url: str) -> str:
    """ "https://www.A.org/b" -> "a.org" """
    try:
        return host_name(urlsplit(url.strip()).hostname or "").removeprefix("www.")
    except ValueError:
        return ""


def write_cuts(
    collected: Collected, line_starts_n: Array, first_l: Array, decisions: Sequence[Path], scratch: Path
) -> dict[str, Any]:
    """For each document: which lines are cut, and the id of where its first cut line stands first."""
    named_n = scratch_array(scratch / "named", collected.documents, np.uint8)
    figures = {"documents": collected.documents, "changed": 0, "lines": len(first_l), "cut": 0}
    for _, own_l in lines_of(collected, line_starts_n, first_l):
        cut = np.flatnonzero(own_l)
        if len(cut):
            named_n[own_l[cut[0]] - 1] = 1
            figures["changed"] += 1
            figures["cut"] += len(cut)
    places_n = scratch_array(scratch / "places", collected.documents, np.int64)
    names = write_names(collected, named_n, places_n, scratch / "names")
    blocks, lines = collected.blocks(), lines_of(collected, line_starts_n, first_l)
    for sizes, path in zip(collected.block_sizes, decisions, strict=True):
        with BlockWriter(path) as file:
            for size in sizes:
                _, block = next(blocks)
                firsts = [own_l for _, (_, own_l) in zip(range(size), lines, strict=False)]
                texts = [
                    read_name(names, int(places_n[own_l[own_l > 0][0] - 1])) if own_l.any() else b""
                    for own_l in firsts
                ]
                file.add(
                    checks=np.array([id_check(name) for name in names_of(block)], np.uint32),
                    cut=np.concatenate([own_l > 0 for own_l in firsts]),
                    line_ends=block["line_ends"],
                    names=np.frombuffer(b"".join(texts), np.uint8),
                    name_ends=np.cumsum([len(text) for text in texts], dtype=np.int64),
                )
    return figures


def lines_of(collected: Collected, line_starts_n: Array, first_l: Array) -> Iterator[tuple[int, Array]]:
    """The lines of each document in order."""
    for number in range(collected.documents):
        yield number, np.array(first_l[line_starts_n[number] : line_starts_n[number + 1]])


class Cuts(DecidedBlocks):
    def __init__(self, path: Path, unit: Unit) -> None:
        super().__init__(path)
        self.unit: Unit = unit

    def __call__(self, n: int, document: Document) -> Outcome:
        block, number = self.find(n, document)
        begin = int(block["line_ends"][number - 1]) if number else 0
        cut = block["cut"][begin : int(block["line_ends"][number])]
        if not cut.any():
            return document
        lines = units_of(document.text, self.unit)
        if len(lines) != len(cut):
            raise ValueError(f"{self.path} has {len(cut)} lines of {document.id}, which has {len(lines)}")
        text = without(lines, cut.tolist(), self.unit)
        if not text.strip():
            return Drop("repeated_lines", f"repeats {name_of(block, number).decode()}")
        return replace(document, text=text)
