"""PDFs made by hand, in Courier: every letter is 0.6 times its size wide, so places are known."""

from __future__ import annotations

import random
from collections.abc import Sequence

WIDTH, HEIGHT = 612, 792
Text = tuple[float, float, float, str]  # left, top, size, text


def make_pdf(pages: Sequence[Sequence[Text]], extra: bytes = b"", page_keys: bytes = b"") -> bytes:
    """`page_keys` goes into every page, as b"/Rotate 90"."""
    kids = b" ".join(b"%d 0 R" % (4 + 2 * number) for number in range(len(pages)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R " + extra + b" >>",
        b"<< /Type /Pages /Kids [%b] /Count %d >>" % (kids, len(pages)),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Courier /Encoding /WinAnsiEncoding >>",
    ]
    for number, texts in enumerate(pages):
        stream = b"\n".join(
            b"BT /F1 %.1f Tf 1 0 0 1 %.1f %.1f Tm (%b) Tj ET" % (size, left, HEIGHT - top, escaped(text))
            for left, top, size, text in texts
        )
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 %d %d] /Resources << /Font << /F1 3 0 R >> >> "
            b"/Contents %d 0 R %b >>" % (WIDTH, HEIGHT, 5 + 2 * number, page_keys)
        )
        objects.append(b"<< /Length %d >>\nstream\n%b\nendstream" % (len(stream), stream))
    return join_objects(objects)


def join_objects(objects: Sequence[bytes]) -> bytes:
    content = b"%PDF-1.4\n"
    places = []
    for number, body in enumerate(objects, start=1):
        places.append(len(content))
        content += b"%d 0 obj\n%b\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    return (
        content
        + b"xref\n0 %d\n0000000000 65535 f \n%btrailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF"
        % (
            len(objects) + 1,
            table,
            len(objects) + 1,
            len(content),
        )
    )


def escaped(text: str) -> bytes:
    raw = text.encode("cp1252")
    return raw.replace(b"\\", b"\\\\").replace(b"(", b"\\(").replace(b")", b"\\)")


def column(words: Sequence[str], left: float, top: float, chars: int, size: float = 10) -> list[Text]:
    """Words as lines of at most so many characters."""
    lines: list[str] = []
    for word in words:
        if lines and len(lines[-1]) + 1 + len(word) <= chars:
            lines[-1] += " " + word
        else:
            lines.append(word)
    return [(left, top + 1.2 * size * number, size, line) for number, line in enumerate(lines)]


def random_words(chance: random.Random, number: int) -> list[str]:
    return ["".join(chance.choices("abcdefghijklmnop", k=chance.randint(2, 9))) for _ in range(number)]
