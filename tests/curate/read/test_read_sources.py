"""Sources: what is listed, how it is cut, and that reading from the middle equals reading all."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import os
import pickle
from pathlib import Path

import pytest
from source_files import read, reasons, rows, warc_record

from foresail.curate.read import pieces
from foresail.curate.read.source import Source, list_pieces, read_documents


@pytest.mark.parametrize(
    ("suffix", "pack"),
    [("", bytes), (".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress)],
)
def test_rows_are_read_whatever_their_compression(tmp_path: Path, suffix: str, pack):
    path = tmp_path / f"a.jsonl{suffix}"
    path.write_bytes(pack(rows(20)))
    pairs = read(path, name="web")
    assert [pair[1].metadata for pair in pairs] == [{"n": n} for n in range(20)]
    assert pairs[1][0] == f"web/a.jsonl{suffix}:{len(rows(1))}"


@pytest.mark.parametrize(("suffix", "codec"), [(".zst", "zstd"), (".lz4", "lz4")])
def test_zst_and_lz4_are_unpacked(tmp_path: Path, suffix: str, codec: str):
    pyarrow = pytest.importorskip("pyarrow")
    path = tmp_path / f"a.jsonl{suffix}"
    with pyarrow.CompressedOutputStream(str(path), codec) as file:
        file.write(rows(2000))
    packed = path.read_bytes()
    assert len(read(path)) == 2000
    path.write_bytes(packed + packed)  # as `cat` makes them
    assert len(read(path)) == 4000
    path.write_bytes(packed[: len(packed) // 2])
    assert reasons(read(path))[-1] == "truncated"


def test_cuts_lose_and_double_no_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"\n" + rows(100) + rows(1)[:-1])
    whole = read(path)
    for piece_bytes in (7, 64, 333, 5000):
        monkeypatch.setattr(pieces, "PIECE_BYTES", piece_bytes)
        assert read(path) == whole
    assert len(whole) == 101


def test_reading_from_the_middle_equals_passing_over_the_first(tmp_path: Path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    (tmp_path / "a.jsonl").write_bytes(rows(7) + b"no json\n" + rows(3))
    pq.write_table(pa.table({"text": [f"t{n}" for n in range(10)]}), tmp_path / "b.parquet", row_group_size=4)
    (tmp_path / "c.warc").write_bytes(b"".join(warc_record(n) for n in range(5)))
    (tmp_path / "d.md").write_text("# Title")
    (tmp_path / "e.html").write_text("<p>hello")
    listed = list_pieces(Source(path=str(tmp_path)))
    assert [piece.kind for piece in listed] == ["jsonl", "parquet", "warc", "markdown", "html"]
    for piece in listed:
        piece = pickle.loads(pickle.dumps(piece))
        whole = list(read_documents(piece))
        assert whole
        for start in range(len(whole) + 2):
            assert list(read_documents(piece, start)) == whole[start:]
    ids = [id for piece in listed for id, _ in read_documents(piece)]
    assert len(set(ids)) == len(ids) == 11 + 10 + 5 + 2


def test_parquet_rows_have_their_number_in_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"text": [f"t{n}" for n in range(10)]}), tmp_path / "b.parquet", row_group_size=3)
    monkeypatch.setattr(pieces, "PIECE_BYTES", 1)
    assert len(list_pieces(Source(path=str(tmp_path)))) == 4
    assert [id for id, _ in read(tmp_path / "b.parquet")] == [f"b/b.parquet:{n}" for n in range(10)]


def test_columns_choose_text_id_address_and_metadata(tmp_path: Path):
    path = tmp_path / "a.jsonl"
    path.write_text(
        json.dumps({"id": "p1", "html": "<p>ก", "url": "http://a", "n": 1, "m": 2})
        + "\n"
        + json.dumps({"id": 7, "html": "<p>b", "link": "http://b"})
    )
    [(_, first), (_, second)] = read(path, text_key="html", media_type="text/html", columns=["n"])
    assert (first.id, first.url, first.content, first.metadata) == (
        "p1",
        "http://a",
        "<p>ก".encode(),
        {"n": 1, "charset": "utf-8"},
    )
    assert second.id.startswith("a/a.jsonl:")  # a number is an id only where id_key says so
    [_, (id, second)] = read(path, text_key="html", id_key="id", url_key="link")
    assert (id, second.url) == ("7", "http://b")


def test_folders_are_sorted_and_small_files_share_a_piece(tmp_path: Path):
    for n in range(300):
        (tmp_path / f"{n:03}.html").write_text(f"<p>{n}")
    (tmp_path / "z").mkdir()
    (tmp_path / "z/a.txt").write_text("text")
    (tmp_path / ".hidden.html").write_text("no")
    (tmp_path / "picture.png").write_bytes(b"\x89PNG\0\0")
    (tmp_path / "Makefile").write_text("all:")
    (tmp_path / "noname").write_bytes(b"<!doctype html><p>page")
    listed = list_pieces(Source(path=str(tmp_path), name="w"))
    assert [len(piece.files) for piece in listed] == [256, 45, 1]
    assert str(listed[0]) == "w/000.html and 255 more up to 255.html"
    pairs = read(tmp_path, name="w")
    assert pairs[0][0] == "w/000.html" and pairs[-1][0] == "w/z/a.txt"


def test_links_and_pipes_do_not_hang(tmp_path: Path):
    (tmp_path / "a.txt").write_text("text")
    os.symlink(tmp_path, tmp_path / "loop")
    os.symlink("self.txt", tmp_path / "self.txt")
    os.symlink("nowhere.jsonl", tmp_path / "lost.jsonl")
    os.mkfifo(tmp_path / "pipe.txt")
    os.symlink("/dev/zero", tmp_path / "zeros.html")
    os.mkfifo(tmp_path / "unknown")
    for path in (tmp_path, f"{tmp_path}/**/*"):
        assert sorted(reasons(read(path))) == ["document", *["unreadable"] * 4]


def test_a_source_that_is_not_there_is_a_mistake(tmp_path: Path):
    (tmp_path / "picture.png").write_bytes(b"\x89PNG\0\0")
    (tmp_path / "a.txt").write_text("text")
    for path in ("nowhere", "*.jsonl", "picture.png", "picture.*"):
        with pytest.raises(ValueError, match=r"nowhere|\*|holds nothing"):
            list_pieces(Source(path=str(tmp_path / path)))
    with pytest.raises(ValueError, match="twice"):
        list_pieces(Source(path=[str(tmp_path / "a.txt"), str(tmp_path)]))
    for settings in ({"path": []}, {"encoding": "none-such"}, {"name": "a/b"}):
        with pytest.raises(ValueError, match=r"path|encoding|name"):
            Source(**({"path": "a"} | settings))


def test_a_file_that_vanishes_is_a_drop(tmp_path: Path):
    for name, content in (("a.jsonl", rows(1)), ("b.warc.gz", b""), ("c.html", b"<p>"), ("d.parquet", b"")):
        (tmp_path / name).write_bytes(content)
    listed = list_pieces(Source(path=str(tmp_path)))
    for name in os.listdir(tmp_path):
        (tmp_path / name).unlink()
    assert [reasons(list(read_documents(piece))) for piece in listed] == [["unreadable"]] * 4
