"""Numbers as people read them."""

from __future__ import annotations


def gigabytes(count: int) -> str:
    """gigabytes(269_030_016) -> "0.27 GB"; small things in MB."""
    return f"{count / 1e9:.2f} GB" if count >= 1e8 else f"{count / 1e6:.2f} MB"


def grouped(number: int | None) -> str:
    """grouped(1048576) -> "1,048,576"; what does not apply is a dash."""
    return "-" if number is None else f"{number:,}"
