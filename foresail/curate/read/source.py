"""Sources of a curation recipe: files, folders or globs in; documents out, and a counted drop for what is damaged.

    source = Source(path="crawl", name="crawl")        # *.warc.gz, pages/*.html, books/*.pdf, rows.jsonl.zst
    for piece in list_pieces(source):                  # small and picklable; pieces are read in parallel
        for id, outcome in read_documents(piece):      # "crawl/rows.jsonl.zst:4711", Document(…) or Drop(…)
            …

Records of a piece are numbered; `read_documents(piece, 1000)` passes over the first thousand without parsing
them. Damage never raises. It is a `Drop` for the record it hit, and reading goes on behind it where that is
possible. A source that is not there, or that holds nothing to read, is a ValueError.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice

from foresail.curate.document import Document, Drop
from foresail.curate.read.piece import ReadPiece, Record, Source
from foresail.curate.read.pieces import cut_source


def list_pieces(source: Source) -> list[ReadPiece]:
    """In an order that depends on the files' names and sizes alone."""
    return list(cut_source(source))


def first_documents(pieces: Sequence[ReadPiece], limit: int) -> list[ReadPiece]:
    """The first pieces, with `limit` records together. Records are counted, not parsed."""
    chosen = []
    for piece in pieces:
        if limit <= 0:
            break
        count = sum(1 for _ in islice(records(piece), limit))
        chosen.append(replace(piece, limit=count))
        limit -= count
    return chosen


def read_documents(piece: ReadPiece, start: int = 0) -> Iterator[tuple[str, Document | Drop]]:
    """Ids with documents or drops, from record number `start` on."""
    for record in islice(records(piece), start, piece.limit):
        yield record()


def records(piece: ReadPiece) -> Iterator[Record]:
    # readers import what they need: a folder of text needs no pyarrow
    if piece.kind == "jsonl":
        from foresail.curate.read.lines import line_records

        return line_records(piece)
    if piece.kind == "parquet":
        from foresail.curate.read.parquet import parquet_records

        return parquet_records(piece)
    if piece.kind == "made":
        from foresail.curate.read.made import made_records

        return made_records(piece)
    if piece.kind == "warc":
        from foresail.curate.read.warc import warc_records

        return warc_records(piece)
    if piece.kind == "arc":
        from foresail.curate.read.arc import arc_records

        return arc_records(piece)
    from foresail.curate.read.whole_files import file_records

    return file_records(piece)
