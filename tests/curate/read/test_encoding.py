"""Text in the encodings that files of these languages have."""

from __future__ import annotations

import unicodedata

import pytest

from foresail.curate.read.encoding import declared_charset, decode_text, is_binary

TEXTS = {
    "th": "มนุษย์ทั้งหลายเกิดมามีอิสระและเสมอภาคกันในเกียรติศักดิ์และสิทธิ ต่างมีเหตุผลและมโนธรรม",
    "zh": "人人生而自由，在尊严和权利上一律平等。他们赋有理性和良心，并应以兄弟关系的精神相对待。",
    "tw": "人人生而自由，在尊嚴和權利上一律平等。他們賦有理性和良心，並應以兄弟關係的精神相對待。",
    "pt": "Todos os seres humanos nascem livres e iguais em dignidade e em direitos. Dotados de razão e de amor",
    "it": "Tutti gli esseri umani nascono liberi ed eguali in dignità e diritti. Essi sono dotati di ragione",
    "de": "Alle Menschen sind frei und gleich an Würde und Rechten geboren. Sie sind mit Vernunft begabt",
    "cs": "Všichni lidé rodí se svobodní a sobě rovní co do důstojnosti a práv. Jsou nadáni rozumem a svědomím",
}
VIETNAMESE = "Tất cả mọi người sinh ra đều được tự do và bình đẳng về nhân phẩm và quyền lợi"


@pytest.mark.parametrize(
    ("language", "encoding"),
    [
        *[(language, "utf-8") for language in TEXTS],
        *[(language, f"utf-{bits}") for bits in (16, 32) for language in ("th", "pt")],  # with a mark
        ("pt", "utf-16-le"),
        ("de", "utf-16-be"),
        ("th", "cp874"),
        ("zh", "gb18030"),
        ("tw", "big5"),
        ("pt", "cp1252"),
        ("it", "cp1252"),
        ("de", "cp1252"),
        ("cs", "cp1250"),
    ],
)
def test_the_encoding_is_seen(language: str, encoding: str):
    text = TEXTS[language]
    data = text.encode(encoding)
    assert decode_text(data)[0] == text
    assert not is_binary(data)


def test_vietnamese_tones_are_put_on_their_letters():
    tones = "\u0300\u0301\u0303\u0309\u0323"
    parts = []
    for letter in VIETNAMESE:
        apart = unicodedata.normalize("NFD", letter)
        base = "".join(mark for mark in apart if mark not in tones)
        parts.append(unicodedata.normalize("NFC", base) + "".join(mark for mark in apart if mark in tones))
    assert decode_text("".join(parts).encode("cp1258"))[0] == VIETNAMESE


def test_a_stray_byte_is_no_other_encoding():
    data = TEXTS["th"].encode()
    assert decode_text(data[:-1]) == (TEXTS["th"][:-1] + "\ufffd", "utf-8")
    assert decode_text(data[:30] + b"\xff" + data[30:])[1] == "utf-8"


def test_orders_and_hints():
    data = TEXTS["cs"].encode("cp1250")
    assert decode_text(data, "iso8859-2")[1] == "iso8859-2"
    assert decode_text(data, hint="none-such")[0] == TEXTS["cs"]
    assert decode_text("Würde".encode("cp1252"), hint="utf-8")[0] == "Würde"


def test_a_page_says_its_encoding():
    page = b'<html><head><META http-equiv="Content-Type" content="text/html; charset=iso-8859-2"></head>'
    assert declared_charset(page) == "iso-8859-2"
    assert declared_charset(b"<meta charset=tis-620>") == "tis-620"
    assert declared_charset(b"<p>charset=utf-8 is usual" + b"<meta " * 10_000) == ""


def test_nul_bytes_are_no_text():
    assert is_binary(b"\x7fELF\0\0\0\1 and so on, a program") and is_binary(bytes(100))
    assert not is_binary(b"") and not is_binary(b"text")
