"""Text of unknown encoding: a byte order mark, UTF-8, what the caller says, or what the bytes look like.

decode_text("สวัสดี".encode("cp874")) -> ("สวัสดี", "cp874")
"""

from __future__ import annotations

import codecs
import re
import unicodedata
from collections import Counter

MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# what the detector answers, and what writers use: the same letters and some more
WIDER = {
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "iso8859-11": "cp874",
    "tis-620": "cp874",
    "gb2312": "gb18030",
    "gbk": "gb18030",
}
UNLIKELY = ("utf-8", "ascii", "iso8859-3", "iso8859-4", "iso8859-10", "iso8859-13", "iso8859-14")
WESTERN = frozenset(
    "àáâãäåæçèéêëìíîïñòóôõöøùúûüýÿÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÑÒÓÔÕÖØÙÚÛÜß´’‘“”–—…«»¿¡ªº°§©€".encode("cp1252")
)
THAI = frozenset(range(0xA1, 0xFC))
HEAD = 4096  # bytes of a page in which its <meta> stands
DECLARED = re.compile(rb"""<meta[^>]{0,200}charset\s*=\s*["']?\s*([A-Za-z0-9._:-]{1,40})""", re.IGNORECASE)
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
    if b"\0" in data[:SAMPLE] and (wide := without_mark(data[:SAMPLE])) is not None:
        return data.decode(wide, errors="replace"), wide
    try:
        return data.decode(), "utf-8"
    except UnicodeDecodeError:
        pass
    if is_damaged_utf8(data[:SAMPLE]):
        return data.decode(errors="replace"), "utf-8"
    for name in (hint, guess_encoding(data[:SAMPLE])):
        try:
            return tidy(data.decode(name), name), name
        except (LookupError, ValueError):
            continue
    name = guess_encoding(data[:SAMPLE])
    return tidy(data.decode(name, errors="replace"), name), name


def declared_charset(page: bytes) -> str:
    """b'<meta charset="tis-620">' -> "tis-620"; of use where no server says another one."""
    match = DECLARED.search(page, 0, HEAD)
    return match[1].decode() if match else ""


def tidy(text: str, name: str) -> str:
    """The Vietnamese code page writes tones as marks behind their letter."""
    return unicodedata.normalize("NFC", text) if name in ("cp1258", "windows-1258") else text


def is_damaged_utf8(sample: bytes) -> bool:
    """Much of it is UTF-8, and little is broken: a cut in the middle of a character, a stray byte."""
    text = sample.decode(errors="replace")
    beyond_ascii = sum(letter > "\x7f" for letter in text)
    broken = text.count("\ufffd")
    return beyond_ascii > broken and broken <= max(1, BROKEN_SHARE * beyond_ascii)


def guess_encoding(sample: bytes) -> str:
    from resiliparse.parse.encoding import detect_encoding

    try:
        name = codecs.lookup(detect_encoding(sample) or "utf-8").name
    except LookupError:
        name = "utf-8"
    name = WIDER.get(name, name)
    if name in UNLIKELY:  # the detector has no idea: the sample is short, or mostly ASCII
        high = Counter(byte for byte in sample if byte > 0x7F)
        if WESTERN.issuperset(high):
            return "cp1252"
        thai = sum(number for byte, number in high.items() if byte in THAI)
        if thai >= 0.98 * high.total() and longest_run(sample) >= 6:
            return "cp874"
    return "cp1252" if name in ("utf-8", "ascii") else name


def without_mark(sample: bytes) -> str | None:
    """UTF-16 without a mark has a NUL in every ASCII letter, on one side."""
    low, high = sample[::2].count(0), sample[1::2].count(0)
    if max(low, high) < 3 or max(low, high) < 0.1 * len(sample) or min(low, high) > 0.1 * max(low, high):
        return None
    return "utf-16-le" if high > low else "utf-16-be"


def longest_run(sample: bytes) -> int:
    """Of bytes beyond ASCII: words of a script of its own."""
    return max(map(len, bytes(byte if byte > 0x7F else 0x20 for byte in sample).split()), default=0)


def is_binary(data: bytes) -> bool:
    """No text holds NUL, but that of UTF-16 and UTF-32."""
    if b"\0" not in data[:SAMPLE] or data.startswith(tuple(mark for mark, _ in MARKS)):
        return False
    return without_mark(data[:SAMPLE]) is None
