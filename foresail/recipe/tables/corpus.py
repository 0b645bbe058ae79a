"""The manifest of a corpus of token shards, which `foresail data tokenize` writes. Needs neither numpy nor torch.

corpus/manifest.json        what there is, from which tokenizer, with sizes and checksums
corpus/shard-00000.tokens   ids of all its documents, one after the other: uint16 or uint32, little-endian
corpus/shard-00000.ends     where each document ends there: int64, little-endian

read_manifest("corpora/web").tokens -> 1_204_118
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

MANIFEST = "manifest.json"
AGAIN = "remove the folder and make the corpus again"  # over a manifest the same command makes nothing
ID_BYTES = {"uint16": 2, "uint32": 4}
END_BYTES = 8
# The parts of tokenizer.json that ids depend on. The others add special tokens, truncate or pad.
DECIDING = ("normalizer", "pre_tokenizer", "model", "added_tokens")


class CorpusError(ValueError):
    """A corpus is missing, damaged, or not the one that is needed; the message says what to do."""


class ManifestRecord(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class ShardEntry(ManifestRecord):
    """Checksums are SHA-256, in hex."""

    name: str
    documents: int = Field(gt=0)
    tokens: int = Field(gt=0)
    tokens_checksum: str
    ends_checksum: str


class Manifest(ManifestRecord):
    """`empty` documents were left out; in `mended` ones half characters became question marks."""

    format: Literal[1]
    tokenizer: str  # its fingerprint
    vocab_size: int
    id_type: Literal["uint16", "uint32"]
    request: str  # a checksum of what was asked for: sources, tokenizer, options
    sources: list[str]
    documents: int = Field(gt=0)
    tokens: int = Field(gt=0)
    longest: int = Field(gt=0)
    empty: int = 0
    mended: int = 0
    shards: list[ShardEntry]


def read_manifest(folder: str | Path) -> Manifest:
    folder = Path(folder)
    file = folder / MANIFEST
    if not folder.is_dir():
        raise CorpusError(
            f"there is no corpus {folder}; make it: foresail data tokenize SOURCE --tokenizer DIR --out {folder}"
        )
    if not file.is_file():
        raise CorpusError(
            f"{folder} has no {MANIFEST}: it is not a corpus, or an unfinished one; the same `foresail "
            "data tokenize` continues it"
        )
    try:
        manifest = Manifest.model_validate_json(file.read_bytes())
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise CorpusError(f"{file} is damaged ({where} {first['msg']}); {AGAIN}") from None
    if mistakes := [*total_mistakes(manifest)]:
        raise CorpusError(f"{file} is damaged ({mistakes[0]}); {AGAIN}")
    return manifest


def total_mistakes(manifest: Manifest) -> Iterator[str]:
    for name in ("documents", "tokens"):
        total = sum(getattr(shard, name) for shard in manifest.shards)
        if total != getattr(manifest, name):
            yield f"its shards have {total} {name}, not {getattr(manifest, name)}"


def size_mistakes(folder: str | Path, manifest: Manifest) -> Iterator[str]:
    """Files that are missing, cut short or too long."""
    for shard in manifest.shards:
        sizes = {
            "tokens": shard.tokens * ID_BYTES[manifest.id_type],
            "ends": shard.documents * END_BYTES,
        }
        for suffix, size in sizes.items():
            file = Path(folder) / f"{shard.name}.{suffix}"
            if not file.is_file():
                yield f"{file} is missing; restore it, or {AGAIN}"
            elif (size_now := file.stat().st_size) != size:
                yield f"{file} has {size_now:,} bytes and not {size:,}; restore it, or {AGAIN}"


def tokenizer_mistakes(folder: str | Path, manifest: Manifest, tokenizer: str | Path) -> Iterator[str]:
    """`tokenizer` is a directory."""
    if tokenizer_fingerprint(tokenizer) != manifest.tokenizer:
        yield (
            f"{folder} was made with another tokenizer than that of {tokenizer}, whose ids mean something else; "
            f"tokenize its texts with --tokenizer {tokenizer}, or use the tokenizer that it was made with"
        )


def tokenizer_fingerprint(directory: str | Path) -> str:
    file = Path(directory) / "tokenizer.json"
    if not file.is_file():
        raise FileNotFoundError(f"{directory} has no tokenizer.json; name the directory of a tokenizer")
    return fingerprint(file.read_text(encoding="utf-8"))


@lru_cache(maxsize=4)
def fingerprint(definition: str) -> str:
    """A hash of a `tokenizer.json` that ignores the order of keys and blanks, which do not change ids."""
    content = json.loads(definition)
    deciding = {name: content.get(name) for name in DECIDING}
    text = json.dumps(deciding, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
