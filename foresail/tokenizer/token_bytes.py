"""The bytes of every token: what each id adds to the decoded text, also where that is a part of a character."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import tokenizers

BYTE_TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2})>")
SPACE = "\N{LOWER ONE EIGHTH BLOCK}"  # SentencePiece's


def token_bytes(core: tokenizers.Tokenizer) -> list[bytes]:
    """By id; b"" where there is no such token. For byte-level and SentencePiece tokenizers."""
    kinds = {decoder["type"] for decoder in decoders(json.loads(core.to_str())["decoder"])}
    if "ByteLevel" in kinds:
        spell = spell_byte_level
    elif kinds & {"ByteFallback", "Metaspace"}:
        spell = spell_piece
    else:
        raise ValueError(
            "stop strings need a byte-level or SentencePiece tokenizer, of which the bytes of a token are known; "
            f"the decoder of this one is {', '.join(sorted(kinds)) or 'missing'}"
        )
    vocabulary = core.get_vocab(with_added_tokens=True)
    spelled = [b""] * (max(vocabulary.values()) + 1)
    for token, number in vocabulary.items():
        spelled[number] = spell(token)
    return spelled


def decoders(definition: dict[str, Any] | None) -> Iterator[dict[str, Any]]:
    """The decoders that a definition is made of."""
    if definition is None:
        return
    yield definition
    for inner in definition.get("decoders", ()):
        yield from decoders(inner)


def spell_byte_level(token: str) -> bytes:
    """spell_byte_level("Ġthe") -> b" the"."""
    try:
        return bytes(BYTES[symbol] for symbol in token)
    except KeyError:  # an added token; the library, too, takes it as it is
        return token.encode()


def spell_piece(token: str) -> bytes:
    """spell_piece("▁the") -> b" the", spell_piece("<0x0A>") -> b"\\n"."""
    if match := BYTE_TOKEN.fullmatch(token):
        return bytes([int(match[1], 16)])
    return token.replace(SPACE, " ").encode()


def byte_symbols() -> dict[str, int]:
    """The characters that stand for bytes: printable ones for themselves, the others from U+0100 on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {
        chr(256 + number): byte for number, byte in enumerate(others)
    }


BYTES = byte_symbols()
