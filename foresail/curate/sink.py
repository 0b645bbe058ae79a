"""Sinks of a curation recipe: JSONL, parquet, token shards."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from foresail.recipe.tables.part import CheckedPart


class Sink(CheckedPart):
    """Where the documents go; folders and files are made below the recipe's `out`."""

    kind: Literal["jsonl", "parquet", "tokens"] = Field(
        "jsonl",
        description="tokens: shards for foresail pretrain; conversations and problems go to jsonl only",
    )
    folder: str = Field("", description="its name below out; default: documents, parquet or tokens")
    by: str | None = Field(
        None, description="a key of metadata, such as language: a folder for each of its values"
    )
    compression: Literal["zst", "gz", "none"] = Field("zst", description="of JSONL")
    shard_mib: int = Field(256, gt=0, description="text in one file, before compression")
    tokenizer: str | None = Field(None, description="folder of the tokenizer; kind = tokens needs it")

    encoder: Literal["tokenizers", "gigatoken", "auto"] = Field(
        "tokenizers", description="of tokens; gigatoken: faster, auto: where it gives the same ids"
    )

    def mistakes(self) -> Iterator[str]:
        if self.kind == "tokens" and self.tokenizer is None:
            yield 'kind = "tokens" needs tokenizer = "…", the folder of a tokenizer or a checkpoint'
        if self.kind != "tokens" and self.tokenizer is not None:
            yield f'tokenizer is for kind = "tokens"; remove it from the sink of {self.kind}'
        if self.kind != "tokens" and self.encoder != "tokenizers":
            yield f'encoder is for kind = "tokens"; remove it from the sink of {self.kind}'
        if "/" in self.folder or self.folder in (".", "..", "work"):
            yield f'folder = "{self.folder}" is one name below out; choose another one'

    @property
    def name(self) -> str:
        return self.folder or {"jsonl": "documents", "parquet": "parquet", "tokens": "tokens"}[self.kind]
