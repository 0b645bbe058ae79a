"""Opens any tokenizer to measure: a directory, tokenizer.json, ranks of tiktoken; .xz and .gz too."""

from __future__ import annotations

import gzip
import lzma
import zlib
from dataclasses import dataclass
from pathlib import Path

import tokenizers

from foresail.tokenizer.report.ranks import open_ranks
from foresail.tokenizer.token_bytes import token_bytes
from foresail.tokenizer.tokenizer import parse_definition, unknown_id


@dataclass(frozen=True, kw_only=True)
class Rival:
    """`partial`: ids of tokens that are no whole characters, or unknown ones."""

    name: str
    core: tokenizers.Tokenizer
    partial: frozenset[int]

    @property
    def size(self) -> int:
        """Rows of an embedding that it needs."""
        return max(self.core.get_vocab(with_added_tokens=True).values()) + 1


def open_rival(path: Path) -> Rival:
    """open_rival(Path("tokenizers/gemma3/tokenizer.json.xz")).name -> "gemma3"."""
    if path.is_dir():
        inside = [
            file
            for name in ("tokenizer.json", "tokenizer.json.xz", "tokenizer.json.gz")
            if (file := path / name).is_file()
        ]
        if not inside:
            raise FileNotFoundError(f"{path} has no tokenizer.json; name a tokenizer's file or its folder")
        path = inside[0]
    text, stem = read_packed(path), path.name.removesuffix(".xz").removesuffix(".gz")
    if stem.endswith(".tiktoken"):
        name = stem.removesuffix(".tiktoken")
        core = open_ranks(text.splitlines(), name)
    else:
        name = path.resolve().parent.name if stem == "tokenizer.json" else stem.removesuffix(".json")
        try:
            core = parse_definition(text)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error
    core.post_processor = None
    return Rival(name=name, core=core, partial=partial_tokens(core))


def partial_tokens(core: tokenizers.Tokenizer) -> frozenset[int]:
    unknown = unknown_id(core)
    return frozenset(
        number
        for number, spelled in enumerate(token_bytes(core))
        if number == unknown or spelled != spelled.decode(errors="ignore").encode()
    )


def read_packed(path: Path) -> str:
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist; name a tokenizer's file or its folder")
    try:
        content = path.read_bytes()
        if path.suffix == ".xz":
            content = lzma.decompress(content)
        elif path.suffix == ".gz":
            content = gzip.decompress(content)
        return content.decode("utf-8")
    except (lzma.LZMAError, zlib.error, EOFError, gzip.BadGzipFile, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is damaged or no text ({error}); fetch it again") from error
