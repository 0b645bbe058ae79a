"""Superscripts and subscripts of running text, with Unicode's own characters.

raised("2", "sup") -> "²"    raised("st", "sup") -> None: it stays beside its number
"""

from __future__ import annotations

SUPERSCRIPTS = str.maketrans("0123456789+-−=()n", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁼⁽⁾ⁿ")
SUBSCRIPTS = str.maketrans("0123456789+-−=()", "₀₁₂₃₄₅₆₇₈₉₊₋₋₌₍₎")


def raised(text: str, kind: str) -> str | None:
    text = text.strip()
    table = SUPERSCRIPTS if kind == "sup" else SUBSCRIPTS
    if not text or any(ord(char) not in table for char in text):
        return None
    return text.translate(table)
