"""PDFs that loop, lie or unpack to gigabytes.

PDFS["pages.pdf"](2**30) -> b"%PDF-1.7 …", a tree of pages that holds itself
"""

from __future__ import annotations

import zlib
from collections.abc import Callable

Objects = dict[int, bytes]
CATALOG = b"<</Type/Catalog/Pages 2 0 R>>"
FONT = b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"
AT_ONCE = 2**20


def pdf(objects: Objects, trailer: bytes = b"", *, root: int = 1) -> bytes:
    """With a table of where its objects lie."""
    out, places = bytearray(b"%PDF-1.7\n"), {}
    for number, body in objects.items():
        places[number] = len(out)
        out += b"%d 0 obj\n%b\nendobj\n" % (number, body)
    start, last = len(out), max(objects)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (last + 1)
    out += b"".join(b"%010d 00000 n \n" % places.get(number, 0) for number in range(1, last + 1))
    out += b"trailer\n<</Size %d/Root %d 0 R%b>>\nstartxref\n%d\n%%%%EOF\n" % (last + 1, root, trailer, start)
    return bytes(out)


def stream(content: bytes, keys: bytes = b"") -> bytes:
    return b"<</Length %d%b>>\nstream\n%b\nendstream" % (len(content), keys, content)


def one_page(content: bytes, resources: bytes = b"", more: Objects | None = None) -> bytes:
    page = (
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents 4 0 R/Resources<</Font<</F 5 0 R>>%b>>>>"
    )
    return pdf(
        {
            1: CATALOG,
            2: b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
            3: page % resources,
            4: content,
            5: FONT,
            **(more or {}),
        }
    )


def text(content: bytes) -> bytes:
    return stream(b"BT /F 12 Tf 50 700 Td (" + content + b") Tj ET")


def tree(kids: bytes, count: bytes, more: Objects | None = None) -> bytes:
    return pdf({1: CATALOG, 2: b"<</Type/Pages/Kids[%b]/Count %b>>" % (kids, count), **(more or {})})


def deflated(size: int, part: bytes) -> bytes:
    packer = zlib.compressobj(9)
    piece = part * (AT_ONCE // len(part))
    return b"".join([*(packer.compress(piece) for _ in range(size // AT_ONCE or 1)), packer.flush()])


def flate(part: bytes, begin: bytes = b"", times: int = 1) -> Callable[[int], bytes]:
    def make(size: int) -> bytes:
        content = deflated(size, part)
        for _ in range(times - 1):
            content = zlib.compress(content, 9)
        return one_page(stream(content, b"/Filter[" + b"/FlateDecode" * times + b"]"))

    return make


def lzw_bomb(size: int) -> bytes:
    return one_page(
        stream(b"\x80\x00" * 10**6, b"/Filter[" + b"/LZWDecode/ASCIIHexDecode/RunLengthDecode" * 100 + b"]")
    )


def laughing_forms(size: int) -> bytes:
    """A drawing that draws ten drawings that draw ten …"""
    forms = {
        number: stream(
            b"/X Do " * 10,
            b"/Type/XObject/Subtype/Form/BBox[0 0 600 800]/Resources<</XObject<</X %d 0 R>>>>" % (number + 1),
        )
        for number in range(10, 30)
    }
    last = stream(b"BT /F 9 Tf (ha) Tj ET", b"/Type/XObject/Subtype/Form/BBox[0 0 600 800]")
    return one_page(stream(b"/X Do"), b"/XObject<</X 10 0 R>>", {**forms, 30: last})


def form_of_itself(size: int) -> bytes:
    form = stream(
        b"/X Do /X Do", b"/Type/XObject/Subtype/Form/BBox[0 0 1 1]/Resources<</XObject<</X 10 0 R>>>>"
    )
    return one_page(stream(b"/X Do"), b"/XObject<</X 10 0 R>>", {10: form})


def object_stream(size: int) -> bytes:
    """The pages lie in a stream of objects that lies in itself."""
    inner = stream(b"2 0 6 9 <<>> <</Type/ObjStm>>", b"/Type/ObjStm/N 2/First 8/Extends 6 0 R")
    head = b"%PDF-1.7\n"
    body = b"1 0 obj\n" + CATALOG + b"\nendobj\n"
    body += b"6 0 obj\n" + inner + b"\nendobj\n"
    start = len(head) + len(body)
    rows = [
        (0, 0, 255),
        (1, len(head), 0),
        (2, 6, 0),
        (0, 0, 0),
        (0, 0, 0),
        (0, 0, 0),
        (2, 6, 1),
        (1, start, 0),
    ]
    table = b"".join(bytes([kind]) + at.to_bytes(3, "big") + bytes([index]) for kind, at, index in rows)
    xref = stream(table, b"/Type/XRef/Size 8/W[1 3 1]/Root 1 0 R/Prev %d" % start)
    return head + body + b"7 0 obj\n" + xref + b"\nendobj\nstartxref\n%d\n%%%%EOF\n" % start


def looping_tables(size: int) -> bytes:
    """Each table of objects names the other as the one before."""
    content = one_page(text(b"A page."))
    start = content.rfind(b"xref\n0")
    return content.replace(b"/Size 6", b"/Size 6/Prev %d" % start)


def many_pages(size: int) -> bytes:
    """A hundred thousand times the same page."""
    return tree(b"3 0 R " * 10**5, b"100000", {3: b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]>>"})


def deep_tree(size: int) -> bytes:
    nodes = {
        n: b"<</Type/Pages/Parent %d 0 R/Kids[%d 0 R]/Count 1>>" % (n - 1, n + 1) for n in range(3, 10_000)
    }
    return tree(b"3 0 R", b"1", {**nodes, 10_000: b"<</Type/Page/Parent 9999 0 R/MediaBox[0 0 600 800]>>"})


PDFS: dict[str, Callable[[int], bytes]] = {
    "good.pdf": lambda size: one_page(text(b"A page of text that can be read.")),
    "pages.pdf": lambda size: tree(b"2 0 R 2 0 R", b"100"),
    "pages-two.pdf": lambda size: tree(
        b"3 0 R", b"5", {3: b"<</Type/Pages/Parent 2 0 R/Kids[2 0 R 2 0 R]/Count 5>>"}
    ),
    "count.pdf": lambda size: tree(b"", b"2147483647"),
    "count-2000.pdf": lambda size: tree(b"3 0 R", b"2000", {3: b"<</Type/Page/Parent 2 0 R>>"}),
    "count-negative.pdf": lambda size: tree(b"3 0 R", b"-5", {3: b"<</Type/Page/Parent 2 0 R>>"}),
    "many-pages.pdf": many_pages,
    "deep-tree.pdf": deep_tree,
    "catalog.pdf": lambda size: pdf({1: b"1 0 R"}),
    "length.pdf": lambda size: one_page(b"<</Length 4 0 R>>\nstream\nBT ET\nendstream"),
    "length-huge.pdf": lambda size: one_page(b"<</Length 99999999999>>\nstream\nBT ET\nendstream"),
    "xref.pdf": looping_tables,
    "xref-self.pdf": lambda size: b"%PDF-1.7\nstartxref\n9\n%%EOF\n",
    "xref-huge.pdf": lambda size: (
        b"%PDF-1.7\nxref\n0 2147483647\n0000000000 65535 f \n"
        b"trailer\n<</Size 2147483647/Root 1 0 R>>\nstartxref\n9\n%%EOF\n"
    ),
    "object-stream.pdf": object_stream,
    "deep-array.pdf": lambda size: pdf({1: b"[" * 10**6}),
    "deep-dictionary.pdf": lambda size: one_page(stream(b"q " * 10**6 + b"[" * 10**6 + b"<<" * 10**6)),
    "forms.pdf": laughing_forms,
    "form-of-itself.pdf": form_of_itself,
    "zeros.pdf": flate(b"0"),
    "drawing.pdf": flate(b"0 0 m 9 9 l S "),
    "letters.pdf": flate(b"BT /F 1 Tf (xxxxxxxxxxxxxxxx) Tj ET "),
    "flate-three-times.pdf": flate(b"0", times=3),
    "filters.pdf": lzw_bomb,
    "noise.pdf": lambda size: b"%PDF-1.7\n" + b"1 0 obj\n" * 10**6,
}
