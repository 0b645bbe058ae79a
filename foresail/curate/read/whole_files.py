"""Files that are one document each: HTML, PDF, EPUB, DOCX, Markdown, text; the id is the name: "web/a/b.html"."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from foresail.curate.document import Document, Drop
from foresail.curate.read.budget import Damaged
from foresail.curate.read.encoding import decode_text, is_binary
from foresail.curate.read.files import read_whole
from foresail.curate.read.kinds import MEDIA_TYPES, SNIFFED, kind_by_content
from foresail.curate.read.piece import ReadPiece, Record, Source

BINARY = ("pdf", "epub", "docx", "doc", "rtf")
CONVERT = "convert it with LibreOffice: soffice --headless --convert-to docx FILE"
LOCKED = "EncryptedPackage".encode("utf-16-le")  # a .docx with a password is wrapped as an old .doc
RTF_UNSUPPORTED = Drop("rtf_unsupported", f"Rich Text Format; {CONVERT}")


def file_records(piece: ReadPiece) -> Iterator[Record]:
    for name, file in zip(piece.names, piece.files, strict=True):
        yield partial(read_file, Path(piece.folder, file), name, piece.kind, piece.source)


def read_file(path: Path, id: str, kind: str, source: Source) -> tuple[str, Document | Drop]:
    try:
        content = read_whole(path, source.max_document_bytes)
    except Damaged as damage:
        return id, damage.drop
    if source.kind == "auto":
        kind = true_kind(kind, content)
    return id, make_document(content, kind, source, id=id)


def true_kind(kind: str, content: bytes) -> str:
    """A PDF that is called .html is a PDF; a page that is called .doc is a page."""
    seen = kind_by_content(content[:SNIFFED])
    if seen in BINARY or (kind in BINARY and seen == "html"):
        return seen
    return kind


def make_document(
    content: bytes, kind: str, source: Source, *, id: str, url: str = "", charset: str = ""
) -> Document | Drop:
    """`charset` is what a server says of the page."""
    if not content.strip():
        return Drop("empty")
    if kind == "doc" and LOCKED in content:
        return Drop("encrypted", "an Office document with a password")
    if kind == "rtf":
        return RTF_UNSUPPORTED
    metadata = {}
    if kind in ("text", "markdown"):
        if is_binary(content):
            return Drop("binary", "it holds NUL bytes")
        text, name = decode_text(content, source.encoding, charset)
        if name != "utf-8":
            metadata["charset"] = name
        return Document(id=id, text=text, url=url, media_type=MEDIA_TYPES[kind], metadata=metadata)
    if kind == "html":
        charset = charset if source.encoding == "auto" else source.encoding
        metadata = {"charset": charset} if charset else {}
    return Document(id=id, url=url, content=content, media_type=MEDIA_TYPES[kind], metadata=metadata)
