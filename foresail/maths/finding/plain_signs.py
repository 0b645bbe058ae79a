r"""Signs as a reader sees them: look-alikes are one sign, and what nobody sees is none.

    plain_signs("－7") -> "-7";   plain_signs("7²") -> "7^";   plain_signs("7\u200b!") -> "7!"

Use it on the text around a value, not on the value itself. Digits and letters in other typefaces become plain ones;
a sign that must not stand beside a value becomes "^".
"""

from __future__ import annotations

import re
import unicodedata

FOREIGN = "^"  # stands for a sign that belongs to a formula: a power, a root, a stroke across the box

_SAME = {
    "-": "−﹣－⁻₋➖˗‐‑‒–⁃",
    "--": "—―⸺",
    "+": "＋﹢➕⁺₊\u2064",
    r"\times ": "×✕✖⨯⨉·∙⋅・∗＊⁎\u2062",
    "/": "∕⁄／➗÷",
    "=": "＝",
    "<": "＜﹤‹≪",
    ">": "＞﹥›≫",
    "%": "％﹪",
    ":": "：∶",
    "(": "（﹙",
    ")": "）﹚",
    "[": "［",
    "]": "］",
    "'": "′ʹ",
    "": "\u200b\u200c\u200d\u200e\u200f\u2060\u2061\ufeff\u00ad\u202a\u202b\u202c\u2066\u2067\u2068\u2069",
    "\n": "\u2028\u2029\u0085",
    FOREIGN: "\u202d\u202e‰‱ªº",
}
# What lists of signs name themselves: relations, marks of right and wrong, money.
_OWN = frozenset("≈⇒→∴≡∈≤≥⟹≃∵°∎■□✓✔✅✗✘❌…")
_STRIKING = re.compile("[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]")
_MODIFIERS = re.compile("[\u02b0-\u02ff\u1d2c-\u1d6a\u2070-\u209f]")  # small letters, raised or lowered
_GREEK = "\u0370-\u03ff\u1f00-\u1fff"
_GREEK_LETTER = re.compile(rf"(?<![{_GREEK}])[{_GREEK}](?![{_GREEK}])")  # π, and not a word


class _Signs(dict[int, str]):
    """A table for `str.translate` that is filled as signs are met."""

    def __missing__(self, code: int) -> str:
        self[code] = sign = look_of(chr(code))
        return sign


_SIGNS = _Signs({ord(sign): plain for plain, signs in _SAME.items() for sign in signs})


def plain_signs(text: str) -> str:
    if text.isascii():
        return text
    return unicodedata.normalize("NFC", _GREEK_LETTER.sub(r"\\pi ", text)).translate(_SIGNS)


def look_of(sign: str) -> str:
    """look_of("７") -> "7"; look_of("²") -> "^"; look_of("👉") -> " "."""
    if sign.isascii() or sign in _OWN:
        return sign
    kind = unicodedata.category(sign)
    if _STRIKING.match(sign) or _MODIFIERS.match(sign) or kind in ("No", "Nl", "Me", "Sm", "Sk"):
        return FOREIGN
    if kind == "Nd":
        return str(unicodedata.decimal(sign))
    if kind == "So":  # a picture, or a sign that looks like one
        return " " if ord(sign) >= 0x1F000 or 0x2600 <= ord(sign) < 0x27C0 else FOREIGN
    if kind in ("Zs", "Cf") or 0xFE00 <= ord(sign) < 0xFE10:  # blanks; which picture is meant
        return " " if kind == "Zs" else ""
    if kind[0] == "L" and ord(sign) >= 0x2100:
        folded = unicodedata.normalize("NFKC", sign)
        return folded if folded.isascii() else _GREEK_LETTER.sub(r"\\pi ", folded) if folded != sign else sign
    return sign
