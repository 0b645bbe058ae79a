"""Decides how many copies of each document a corpus gets. Holds about 30 bytes a document in memory.

Tiers first, then occurrences, then the groups' factors. Groups are languages, or values of another key `within`.
One whose documents are all at `most_copies` stays below its share. The figures say what each one got.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from foresail.curate.document import Document
from foresail.curate.select.copy_plan import CopyPlan

UNKNOWN = ""  # the group of documents without one
TRAITS = np.dtype(
    [("draw", "<f4"), ("quality", "<f4"), ("occurrences", "<u4"), ("group", "<u2"), ("bytes", "<u8")]
)
ROUNDS = 60  # of the groups' factors


def write_traits(settings: CopyPlan, documents: Iterable[Document], file: Path) -> None:
    """A line of JSON with the names of groups, then a record for each document."""
    names: dict[str, int] = {}
    rows = []
    for document in documents:
        metadata = document.metadata
        group = str(metadata.get(settings.within) or UNKNOWN)
        number = names.setdefault(group, len(names))
        if number > 65535:
            raise ValueError(
                f"{settings.within} has over 65,536 values in one file; name a key with fewer, such as language"
            )
        rows.append(
            (
                draw(settings.seed, document.id),
                finite(metadata.get(settings.quality)),
                occurrences_of(metadata.get(settings.occurrences)),
                number,
                len(document.text.encode("utf-8", "replace")),
            )
        )
    with file.open("wb") as opened:
        opened.write(json.dumps(list(names)).encode() + b"\n")
        opened.write(np.array(rows, TRAITS).tobytes())


def draw(seed: int, name: str) -> float:
    """From 0 up to, not including, 1."""
    digest = hashlib.blake2b(f"{seed}:{name}".encode("utf-8", "replace"), digest_size=3).digest()
    return int.from_bytes(digest, "big") / 2**24  # exact in float32


def finite(value: Any) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and math.isfinite(value) else math.nan


def occurrences_of(value: Any) -> int:
    number = finite(value)
    return 1 if math.isnan(number) else int(min(max(number, 1), 2**32 - 1))


def read_traits(files: Sequence[Path]) -> tuple[list[np.ndarray], list[str]]:
    """Of each file, with numbers of groups that hold over all files; the names by these numbers."""
    names: dict[str, int] = {}
    pieces = []
    for file in files:
        with file.open("rb") as opened:
            own = json.loads(opened.readline())
            piece = np.frombuffer(opened.read(), TRAITS).copy()
        numbers = np.array([names.setdefault(name, len(names)) for name in own] or [0], np.uint16)
        piece["group"] = numbers[piece["group"]]
        pieces.append(piece)
    return pieces, list(names)


def decide_copies(settings: CopyPlan, features: Sequence[Path], decisions: Sequence[Path]) -> dict[str, Any]:
    pieces, names = read_traits(features)
    traits = np.concatenate(pieces) if pieces else np.empty(0, TRAITS)
    tiers = tiers_of(settings, traits, len(names))
    expected = expected_copies(settings, traits, tiers)
    expected = expected * group_factors(settings, traits, expected, names)[traits["group"]]
    expected = np.minimum(expected, settings.most_copies)
    whole = np.floor(expected)
    copies = (whole + (traits["draw"] < expected - whole)).astype(np.uint16)
    ends = np.cumsum([len(piece) for piece in pieces])
    for file, own in zip(decisions, np.split(copies, ends[:-1]), strict=True):
        own.tofile(file)
    return figures(traits, tiers, copies, names)


def tiers_of(settings: CopyPlan, traits: np.ndarray, count: int) -> np.ndarray:
    """The tier of each document from 0, -1 without quality. Documents of equal quality share a tier."""
    tiers = np.full(len(traits), -1, np.int16)
    scored = ~np.isnan(traits["quality"])
    for group in range(count):
        own = np.flatnonzero(scored & (traits["group"] == group))
        if not len(own):
            continue
        quality = traits["quality"][own]
        if settings.by == "value":
            ends = np.array(settings.tiers, np.float32)
        else:
            places = np.ceil(np.array(settings.tiers) * len(own)).astype(np.int64)
            ends = np.sort(quality)[np.minimum(places, len(own) - 1)]
        tiers[own] = np.searchsorted(ends, quality, side="right")
    return tiers


def expected_copies(settings: CopyPlan, traits: np.ndarray, tiers: np.ndarray) -> np.ndarray:
    copies = np.array([*settings.copies, settings.unscored])  # tier -1 is the last
    repeat = np.array([*(settings.repeat or [0.0] * len(settings.copies)), 0.0])
    expected = copies[tiers] * traits["occurrences"].astype(np.float64) ** repeat[tiers]
    return np.minimum(expected, settings.most_copies)


def group_factors(
    settings: CopyPlan, traits: np.ndarray, expected: np.ndarray, names: Sequence[str]
) -> np.ndarray:
    """So that the text is shared as `shares` says, and stays as much as without it."""
    factors = np.ones(max(len(names), 1))
    shares = share_of_rest(settings, traits, expected, names)
    total = float(np.sum(expected * traits["bytes"]))
    if not settings.shares or not total:
        return factors
    for group in range(len(names)):
        own = traits["group"] == group
        factors[group] = reach(
            expected[own],
            traits["bytes"][own].astype(np.float64),
            shares[group] * total,
            settings.most_copies,
        )
    return factors


def share_of_rest(
    settings: CopyPlan, traits: np.ndarray, expected: np.ndarray, names: Sequence[str]
) -> np.ndarray:
    """Shares of all groups: those that are set, and the others in proportion to their text."""
    text = np.bincount(traits["group"], expected * traits["bytes"], minlength=max(len(names), 1))
    fixed = np.array([settings.share_by_group.get(name, np.nan) for name in names] or [np.nan])
    free = np.where(np.isnan(fixed), text, 0.0)
    remaining = max(1.0 - float(np.nansum(fixed)), 0.0)
    return np.where(np.isnan(fixed), free * remaining / max(float(free.sum()), 1e-300), fixed)


def reach(expected: np.ndarray, sizes: np.ndarray, target: float, most: float) -> float:
    """The factor with which the documents have `target` bytes, none above `most` copies; or the greatest."""
    base = float(np.sum(expected * sizes))
    if not base:
        return 1.0
    low, high = 0.0, max(1.0, target / base)
    while np.sum(np.minimum(expected * high, most) * sizes) < target and high < 2.0**40:
        if np.all((expected * high >= most) | (expected == 0)):
            return high
        high *= 2.0
    for _ in range(ROUNDS):
        middle = (low + high) / 2
        if np.sum(np.minimum(expected * middle, most) * sizes) < target:
            low = middle
        else:
            high = middle
    return high


def figures(
    traits: np.ndarray, tiers: np.ndarray, copies: np.ndarray, names: Sequence[str]
) -> dict[str, Any]:
    """Before and after: documents and bytes, by group and by tier, mean quality."""
    before = {"documents": len(traits), "bytes": int(traits["bytes"].sum()), "quality": mean(traits, None)}
    after = {
        "documents": int(copies.sum()),
        "bytes": int(np.sum(copies * traits["bytes"])),
        "quality": mean(traits, copies),
    }
    return {
        "before": before,
        "after": after,
        "without_quality": int(np.sum(tiers == -1)),
        "repeated": int(np.sum(copies > 1)),
        "tiers": groups(
            traits, copies, tiers, {int(tier): str(tier + 1) for tier in np.unique(tiers) if tier >= 0}
        ),
        "groups": groups(traits, copies, traits["group"], dict(enumerate(names))),
    }


def mean(traits: np.ndarray, copies: np.ndarray | None) -> float | None:
    scored = ~np.isnan(traits["quality"])
    weights = scored.astype(np.float64) if copies is None else scored * copies
    total = float(weights.sum())
    if not total:
        return None
    return round(float(np.sum(np.where(scored, traits["quality"], 0.0) * weights) / total), 4)


def groups(
    traits: np.ndarray, copies: np.ndarray, keys: np.ndarray, names: dict[int, str]
) -> dict[str, dict[str, int]]:
    table = {}
    for key, name in names.items():
        own = keys == key
        table[name or "none"] = {
            "documents": int(own.sum()),
            "documents_after": int(copies[own].sum()),
            "bytes": int(traits["bytes"][own].sum()),
            "bytes_after": int(np.sum(copies[own] * traits["bytes"][own])),
        }
    return table
