"""Near duplicates: MinHash signatures, cut into bands; documents with an equal band are candidates.

    [[step]]
    name = "minhash"
    threshold = 0.8

Signatures are those of datasketch 2 on the shingles of `shingles.py`, and so are the candidates.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, partial
from math import ceil
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from pydantic import Field

from foresail.curate.deduplicate.bands import best_bands
from foresail.curate.deduplicate.blocks import Array
from foresail.curate.deduplicate.candidates import keys_of_band, settle_candidates
from foresail.curate.deduplicate.characters import character_tables, composed
from foresail.curate.deduplicate.collected import Collected, collect_blocks
from foresail.curate.deduplicate.groups import equal_groups
from foresail.curate.deduplicate.permutations import permutations
from foresail.curate.deduplicate.verdicts import KEEP, Apply, Keep, Verdicts, own_numbers, write_verdicts
from foresail.curate.document import Document
from foresail.curate.rows.holds import ANY, Holds
from foresail.recipe.tables.part import CheckedPart

EMPTY = 2**32 - 1
# of false and of missed duplicates; datasketch's, or with a comparison afterwards, which removes false ones
WEIGHTS = {False: (0.5, 0.5), True: (0.1, 0.9)}


class Minhash(CheckedPart):
    """Drops documents that are nearly the same as an earlier one."""

    takes: ClassVar[Holds] = ANY

    threshold: float = Field(
        0.8, gt=0, lt=1, description="Jaccard similarity from which two repeat each other"
    )
    permutations: int = Field(128, ge=1, le=4096, description="numbers of a signature")
    bands: int = Field(0, ge=0, description="bands of a signature; 0: chosen by the threshold")
    rows: int = Field(0, ge=0, description="numbers of a band; 0: chosen by the threshold")
    ngram: int = Field(5, ge=1, le=100, description="words of a shingle")
    ngram_characters: int = Field(
        8,
        ge=1,
        le=100,
        description="characters of a shingle in scripts without spaces between words: Thai, Han",
    )
    seed: int = Field(1, ge=0, lt=2**32, description="of the permutations; datasketch's default is 1")
    verify: bool = Field(
        True,
        description="compare the signatures of candidates with the threshold, and choose bands that miss less; "
        "false: whoever shares a band is a duplicate, and so are duplicates of duplicates",
    )
    keep: Keep = Field("first", description=KEEP)
    memory_gib: float = Field(2.0, gt=0, description="memory for sorting; what is more goes to the disk")

    def mistakes(self) -> Iterator[str]:
        if bool(self.bands) != bool(self.rows):
            yield "bands and rows: write both, or neither"
        if self.bands * self.rows > self.permutations:
            yield f"bands × rows is {self.bands * self.rows}, more than the {self.permutations} permutations"

    @cached_property
    def cut(self) -> tuple[int, int]:
        """Bands and rows."""
        return (
            (self.bands, self.rows)
            if self.bands
            else best_bands(self.threshold, self.permutations, WEIGHTS[self.verify])
        )

    def collect(self, documents: Iterable[Document], features: Path) -> None:
        collect_blocks(documents, features, self.columns)

    def columns(self, batch: Sequence[Document]) -> dict[str, Array]:
        signatures_nP, shingles_n = self.signatures([document.text for document in batch])
        keys = {"keys": self.keys(signatures_nP, shingles_n)}
        return keys | {"signatures": signatures_nP} if self.verify else keys

    def signatures(self, texts: Sequence[str]) -> tuple[Array, Array]:
        """Signatures, and how many shingles each text has: 0 if it has no word."""
        from foresail.curate.deduplicate.kernels.signatures import find_composable, sign_texts

        content = [text.encode("utf-8", "replace") for text in texts]
        composable_n = np.zeros(len(texts), np.uint8)
        find_composable(
            np.frombuffer(b"".join((*content, bytes(2))), np.uint8), ends_of(content), composable_n
        )
        for n in np.flatnonzero(composable_n).tolist():
            content[n] = composed(texts[n])
        signatures_nP = np.full((len(texts), self.permutations), EMPTY, np.uint32)
        shingles_n = np.zeros(len(texts), np.int64)
        sign_texts(
            np.frombuffer(b"".join(content), np.uint8),
            ends_of(content),
            *character_tables(),
            self.ngram_characters,
            self.ngram,
            self.ngram * self.ngram_characters,
            *permutations(self.permutations, self.seed),
            signatures_nP,
            shingles_n,
        )
        return signatures_nP, shingles_n

    def keys(self, signatures_nP: Array, shingles_n: Array) -> Array:
        """A row of keys for each band."""
        from foresail.curate.deduplicate.kernels.signatures import band_keys

        bands, rows = self.cut
        keys_bn = np.zeros((bands, len(signatures_nP)), np.uint64)
        band_keys(signatures_nP, shingles_n, rows, keys_bn)
        return keys_bn

    def decide(self, features: Sequence[Path], decisions: Sequence[Path], scratch: Path) -> dict[str, Any]:
        collected = Collected.open(features)
        first_n = own_numbers(scratch / "first", collected.documents)
        bands, rows = self.cut
        figures = {"bands": bands, "rows": rows}
        groups = self.groups(collected, scratch / "groups")
        if self.verify:
            least = ceil(self.threshold * self.permutations)
            figures |= settle_candidates(collected, groups, least, first_n, scratch)
        else:
            connect(first_n, groups)
        return figures | write_verdicts(collected, first_n, decisions, scratch)

    def groups(self, collected: Collected, scratch: Path) -> Iterator[tuple[Array, Array]]:
        """Documents with an equal band, as `equal_groups` has them, band after band."""
        memory = int(self.memory_gib * 2**30)
        for band in range(self.cut[0]):
            keys = partial(keys_of_band, collected, band)
            yield from equal_groups(keys, collected.documents, memory, scratch)

    def open(self, decisions: Path) -> Apply:
        return Verdicts(decisions, "near_duplicate", self.keep)


def ends_of(content: Sequence[bytes]) -> Array:
    return np.cumsum([len(text) for text in content], dtype=np.int64)


def connect(first_n: Array, groups: Iterable[tuple[Array, Array]]) -> None:
    """Who shares a group with another, or with one that does, is of one cluster."""
    from foresail.curate.deduplicate.kernels.clusters import flatten, join_groups

    for numbers, starts in groups:
        join_groups(first_n, numbers, starts)
    flatten(first_n)
