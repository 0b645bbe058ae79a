"""Word documents of 1997 to 2003; the file is written by `benchmarks/curate/small_doc.py`, byte by byte."""

from __future__ import annotations

import random
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from foresail.curate.document import Document, Drop
from foresail.curate.extract.doc.step import ExtractDoc
from foresail.curate.read.kinds import MEDIA_TYPES

BENCHMARKS = Path(__file__).parents[3] / "benchmarks/curate"
LETTER = """## Ships[^1]

Dear crew, we sail.
Soon.

มนุษย์ทั้งหลายเกิดมามีอิสระ

- rope

| port | wind |
| --- | --- |
| Bergen | 5 Bft |

The end.

[^1]: A note."""


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import small_doc

    monkeypatch.delitem(sys.modules, "small_doc")
    return small_doc


@pytest.fixture
def read() -> Callable[[bytes], str]:
    extract = ExtractDoc().open()

    def text_or_reason(content: bytes) -> str:
        outcome = extract(Document(id="a", content=content, media_type=MEDIA_TYPES["doc"]))
        assert isinstance(outcome, Document | Drop)
        return outcome.reason if isinstance(outcome, Drop) else outcome.text

    return text_or_reason


def test_headings_fields_lists_tables_and_notes(small: ModuleType, read: Callable[[bytes], str]) -> None:
    assert read(small.old_letter()) == LETTER


def test_what_cannot_be_read_says_why(small: ModuleType, read: Callable[[bytes], str]) -> None:
    letter = small.old_letter()
    assert read(small.small_doc([("a", "\r", small.PLAIN)], flags=0x0300)) == "encrypted"
    assert read(small.small_doc([("", "\r", small.PLAIN)])) == "empty"
    assert read(small.compound({"Workbook": b"x"})) == "damaged"
    assert read(small.compound({"WordDocument": struct.pack("<HH", 0xA5DC, 104)})) == "doc_unsupported"
    assert read(letter[:700]) == "damaged"


def test_damage_ends_in_text_or_a_reason(small: ModuleType, read: Callable[[bytes], str]) -> None:
    """Chains of sectors that loop, lengths that lie: 3,000 files with some bytes changed."""
    letter, chance = small.old_letter(), random.Random(3)
    for _ in range(3000):
        content = bytearray(letter)
        for _ in range(chance.choice([1, 2, 8])):
            place = chance.choice([chance.randrange(2200), chance.randrange(len(content))])
            fill = chance.choice([b"\xff\xff\xff\xff", b"\0\0\0\0", chance.randbytes(1), b"\1\0\0\0"])
            content[place : place + len(fill)] = fill
        assert isinstance(read(bytes(content)), str)
