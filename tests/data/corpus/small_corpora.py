"""Corpora of random ids, written as `foresail data tokenize` would; the ids tell document and place."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from foresail.data.corpus.corpus import Corpus


def id_at(document: int, place: int) -> int:
    return (document * 977 + place) % 60_000


def write_corpus(folder: Path, lengths: Sequence[int], *, shards: int = 3, tokenizer: str = "t") -> Corpus:
    folder.mkdir(parents=True)
    entries, first = [], 0
    for number, some in enumerate(np.array_split(np.array(lengths), shards)):
        if not len(some):
            continue
        tokens = np.concatenate(
            [[id_at(first + d, t) for t in range(length)] for d, length in enumerate(some)]
        ).astype("<u2")
        ends = np.cumsum(some).astype("<i8")
        name, first = f"shard-{number:05}", first + len(some)
        for suffix, array in (("tokens", tokens), ("ends", ends)):
            (folder / f"{name}.{suffix}").write_bytes(array.tobytes())
        entries.append(
            {
                "name": name,
                "documents": len(some),
                "tokens": int(ends[-1]),
                "tokens_checksum": hashlib.sha256(tokens.tobytes()).hexdigest(),
                "ends_checksum": hashlib.sha256(ends.tobytes()).hexdigest(),
            }
        )
    manifest = {
        "format": 1, "tokenizer": tokenizer, "vocab_size": 60_000, "id_type": "uint16", "request": "",
        "sources": [],
        "documents": len(lengths), "tokens": int(sum(lengths)), "longest": int(max(lengths)), "shards": entries,
    }  # fmt: skip
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return Corpus(folder)
