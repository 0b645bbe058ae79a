"""Rows that cost far more than their bytes: JSONL and parquet, and text that is none.

ROWS["deep.jsonl"](2**30) -> good rows between lists in lists in lists, a million deep
"""

from __future__ import annotations

import io
import struct

from bomb_streams import Maker
from small_files import parquet_rows


def lying_parquet(found: bytes, put: bytes) -> Maker:
    """The footer says more rows than there are, or lengths that end behind the file."""

    def make(size: int) -> bytes:
        content = bytearray(parquet_rows(compression="none", use_dictionary=False))
        length = int.from_bytes(content[-8:-4], "little")
        footer = bytes(content[-8 - length : -8])
        assert found in footer
        content[-8 - length : -8] = footer.replace(found, put)
        return bytes(content)

    return make


def parquet_bomb(size: int) -> bytes:
    """A column of one text, a million times: dictionary and runs pack it into few bytes."""
    import pyarrow
    import pyarrow.parquet

    indices = pyarrow.array([0], pyarrow.int32()).take(pyarrow.array([0] * (size // 1024), pyarrow.int32()))
    text = pyarrow.DictionaryArray.from_arrays(indices, pyarrow.array(["0" * 65_536]))
    sink = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table({"text": text}), sink, compression="zstd")
    return sink.getvalue()


def parquet_value(size: int) -> bytes:
    """One value of 1 GB."""
    import pyarrow
    import pyarrow.parquet

    sink = io.BytesIO()
    table = pyarrow.table({"text": pyarrow.array(["a", "0" * size, "b"], pyarrow.large_string())})
    pyarrow.parquet.write_table(table, sink, compression="zstd", use_dictionary=False)
    return sink.getvalue()


def deep_json(size: int) -> bytes:
    good = b'{"text": "a row"}\n'
    deep = [b"[" * 10**6, b'{"a":' * 10**6, b"[" * 10**6 + b"]" * 10**6, b'{"text":"a","b":' + b"[" * 10**6]
    return good + b"".join(line + b"\n" + good for line in deep)


def wide_json(size: int) -> bytes:
    """A row of 60 MB with 20 million lists in it, and one with a million keys."""
    values = min(size // 48, 20 * 10**6)
    keys = b",".join(b'"k%d":0' % n for n in range(values // 20))
    return (
        b'{"text":"a","b":[' + b"[]," * values + b'0]}\n{"text":"a",' + keys + b"}\n" + b'{"text": "a row"}\n'
    )


def long_numbers(size: int) -> bytes:
    digits = b"9" * min(size // 100, 10**7)
    rows = (
        digits,
        b"-" + digits,
        b"0." + digits,
        b"1e" + digits,
        b'"' + b"\\ud800" * (len(digits) // 6) + b'"',
    )
    return b"".join(b'{"text":"a","n":' + row + b"}\n" for row in rows)


ROWS: dict[str, Maker] = {
    "broken.txt": lambda size: b"caf\xc3 \xe9t\xe9 \xff\xfe\xed\xa0\x80 \xf4\x90\x80\x80 " * 40_000,
    "nul.txt": lambda size: b"text\0" * 10**6,
    "nul.html": lambda size: b"<p>te\0xt</p>" * 50_000,
    "nul.jsonl": lambda size: b'{"text": "a\0b"}\n{"text": "a\\u0000b"}\n\0\0\0\n' * 1000,
    "deep.jsonl": deep_json,
    "wide.jsonl": wide_json,
    "numbers.jsonl": long_numbers,
    "rows.parquet": lying_parquet(b"\x16\x50", b"\x16\x7e"),
    "offsets.parquet": lying_parquet(b"\x26\x08", b"\x26\x7e"),
    "column.parquet": parquet_bomb,
    "value.parquet": parquet_value,
    "footer.parquet": lambda size: b"PAR1" + bytes(100) + struct.pack("<I", 2**31 - 1) + b"PAR1",
    "empty.parquet": lambda size: b"",
    "old.doc": lambda size: b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(10**5),
}
