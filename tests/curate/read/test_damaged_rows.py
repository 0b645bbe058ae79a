"""Damaged rows are counted, and the rows behind them are read."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from source_files import read, reasons, rows

from foresail.curate.document import Document


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"{", "not_json"),
        (b'{"text": "\xff\xfe"}', "broken_encoding"),
        (b"[" * 100_000, "not_json"),
        (b'{"text": ' + b"1" * 5000 + b"}", "not_json"),
        (b"[1, 2]", "not_object"),
        (b"7", "not_object"),
        (b'{"body": "a"}', "no_text"),
        (b'{"text": null}', "not_text"),
        (b'{"text": ["a"]}', "not_text"),
        (b'{"text": "' + b"x" * 10_000 + b'"}', "too_large"),
        (b'"a line of text"', "document"),
        (b'{"text": "\\ud800 half"}', "document"),
        (b'{"text": "a", "deep": ' + b"[" * 500 + b"]" * 500 + b"}", "document"),
        (b'{"text": "a", "n": NaN, "m": 1e999, "long": ' + b"9" * 4000 + b"}", "document"),
        (b'{"text": "\\u0000\\u2028", "id": "\\n"}', "document"),
    ],
)
def test_a_line_is_a_document_or_one_drop(tmp_path: Path, line: bytes, reason: str):
    path = tmp_path / "a.jsonl"
    path.write_bytes(rows(1) + line + b"\r\n" + rows(1))
    pairs = read(path, max_document_bytes=9000)
    if reason == "not_json" and len(line) > 9000:
        reason = "too_large"
    assert reasons(pairs) == ["document", reason, "document"]
    for id, outcome in pairs:
        json.dumps([id, str(outcome)], ensure_ascii=False).encode()
        if isinstance(outcome, Document):
            assert outcome.id == id and id
            json.dumps(outcome.metadata, allow_nan=False, ensure_ascii=False).encode()
            outcome.text.encode()


def test_a_truncated_file_gives_what_is_before_the_cut(tmp_path: Path):
    path = tmp_path / "a.jsonl.gz"
    content = rows(20_000)
    packed = gzip.compress(content)
    path.write_bytes(packed[: len(packed) // 2])
    pairs = read(path)
    assert reasons(pairs)[:-1] == ["document"] * (len(pairs) - 1) and len(pairs) > 5000
    assert reasons(pairs)[-1] == "truncated"
    path.write_bytes(b"\x1f\x8b\x08" + packed[500:])
    assert reasons(read(path)) == ["damaged"]


def test_a_long_line_is_passed_over(tmp_path: Path):
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(rows(1) + b"x" * 5_000_000 + b"\n" + rows(1)))
    assert reasons(read(path, max_document_bytes=100_000)) == ["document", "too_large", "document"]
    # 64 times the limit is no line any more
    assert reasons(read(path, max_document_bytes=10_000)) == ["document", "too_large"]


def test_a_damaged_row_group_is_one_drop(tmp_path: Path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = tmp_path / "a.parquet"
    texts = [f"{n} " + "abc " * 50 + str(n * 7919) for n in range(300)]
    pq.write_table(pa.table({"text": texts}), path, row_group_size=100, use_dictionary=False)
    content = bytearray(path.read_bytes())
    place = pq.ParquetFile(path).metadata.row_group(1).column(0).data_page_offset
    content[place : place + 60] = b"\xff" * 60
    path.write_bytes(content)
    pairs = read(path)
    assert reasons(pairs) == [*["document"] * 100, "damaged", *["document"] * 100]
    assert pairs[-1][0] == "a/a.parquet:299"
    path.write_bytes(content[: len(content) // 2])
    assert reasons(read(path)) == ["damaged"]
