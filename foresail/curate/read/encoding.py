"""Text of unknown encoding: a byte order mark, UTF-8, what the caller says, or what the bytes look like.

decode_text("สวัสดี".encode("cp874")) -> ("สวัสดี", "cp874")
"""

from __future__ import annotations

import codecs

MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
SAMPLE = 2**16  # bytes a guess is made from
BROKEN_SHARE = 0.01  # of the characters beyond ASCII: more of them broken, and the text is not UTF-8


def decode_text(data: bytes, encoding: str = "auto", hint: str = "") -> tuple[str, str]:
    """The text and its encoding. `hint` is what a server says, which is often wrong; `encoding` is an order.

    Bytes that do not fit become "\\ufffd".
    """
    for mark, name in MARKS:
        if data.startswith(mark):
            return data[len(mark) :].decode(name, errors="replace"), name
    if encoding != "auto":
        return data.decode(encoding, errors="replace"), encoding
    try:
        return data.decode(), "utf-8"
    except UnicodeDecodeError:
        pass
    if is_damaged_utf8(data[:SAMPLE]):
        return data.decode(errors="replace"), "utf-8"
    for name in (hint, guess_encoding(data[:SAMPLE])):
        try:
            return data.decode(name), name
        except (LookupError, ValueError):
            continue
    name = guess_encoding(data[:SAMPLE])
    return data.decode(name, errors="replace"), name


def is_damaged_utf8(sample: bytes) -> bool:
    """Much of it is UTF-8, and little is broken: a cut in the middle of a character, a stray byte."""
    text = sample.decode(errors="replace")
    beyond_ascii = sum(letter > "\x7f" for letter in text)
    broken = text.count("\ufffd")
    return beyond_ascii > broken and broken <= max(1, BROKEN_SHARE * beyond_ascii)


def guess_encoding(sample: bytes) -> str:
    from resiliparse.parse.encoding import detect_encoding

    name = detect_encoding(sample) or "utf-8"
    try:
        return codecs.lookup(name).name
    except LookupError:
        return "latin-1"


def is_binary(data: bytes) -> bool:
    """No text holds NUL, but that of UTF-16 and UTF-32."""
    return b"\0" in data[:SAMPLE] and not data.startswith(tuple(mark for mark, _ in MARKS))
