"""What a file is, by its suffix and its first bytes; what its media type is.

kind_by_suffix(Path("a.warc.gz")) -> "warc"
kind_by_content(b"%PDF-1.7 …") -> "pdf"
"""

from __future__ import annotations

from pathlib import PurePath

from foresail.data.files import COMPRESSED

PACKED = (*COMPRESSED, ".lz4")
SUFFIXES = {
    "jsonl": (".jsonl", ".ndjson", ".json"),
    "parquet": (".parquet",),
    "warc": (".warc", ".wet", ".wat"),
    "arc": (".arc",),
    "html": (".html", ".htm", ".xhtml"),
    "pdf": (".pdf",),
    "epub": (".epub",),
    "docx": (".docx",),
    "doc": (".doc",),
    "rtf": (".rtf",),
    "markdown": (".md", ".markdown"),
    "text": (".txt", ".text"),
}
BY_SUFFIX = {suffix: kind for kind, suffixes in SUFFIXES.items() for suffix in suffixes}
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
MEDIA_TYPES = {
    "html": "text/html",
    "pdf": "application/pdf",
    "epub": "application/epub+zip",
    "docx": DOCX,
    "doc": "application/msword",
    "rtf": "application/rtf",
    "markdown": "text/markdown",
    "text": "text/plain",
}
KIND_OF_MEDIA = {media: kind for kind, media in MEDIA_TYPES.items()} | {
    "application/xhtml+xml": "html",
    "text/x-markdown": "markdown",
    "application/x-pdf": "pdf",
    "text/rtf": "rtf",
}
OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"  # how .doc begins, and .xls and .ppt
SNIFFED = 1024  # bytes from a file's begin


def kind_by_suffix(path: PurePath) -> str | None:
    """None: unknown. A parquet file, a book or a PDF that is compressed once more is unknown, too."""
    suffixes = [suffix.lower() for suffix in path.suffixes[-2:]]
    packed = bool(suffixes) and suffixes[-1] in PACKED
    if packed:
        suffixes.pop()
    kind = BY_SUFFIX.get(suffixes[-1]) if suffixes else None
    return None if packed and kind in ("parquet", "pdf", "epub", "docx", "doc", "rtf") else kind


def kind_by_content(begin: bytes) -> str | None:
    """None: neither known nor text."""
    for magic, kind in (
        (b"%PDF-", "pdf"),
        (b"PAR1", "parquet"),
        (b"WARC/", "warc"),
        (b"filedesc://", "arc"),
        (OLE, "doc"),
        (b"{\\rtf", "rtf"),
    ):
        if begin.startswith(magic):
            return kind
    if begin.startswith(b"PK\x03\x04"):
        if b"application/epub+zip" in begin[:100]:
            return "epub"
        return "docx" if b"word/" in begin or b"[Content_Types].xml" in begin else None
    bare = begin.removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    if bare.startswith((b"<!doctype html", b"<html", b"<head", b"<body")):
        return "html"
    if bare.startswith(b"<?xml") and b"<html" in bare:
        return "html"
    if bare.startswith((b'{"', b"{ ")):
        return "jsonl"
    utf16 = begin.startswith((b"\xff\xfe", b"\xfe\xff"))
    return "text" if begin and (utf16 or b"\0" not in begin) else None
