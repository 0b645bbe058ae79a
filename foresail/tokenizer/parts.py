"""Cuts long texts into parts that are encoded one by one. Nothing is imported: readers of documents use it, too."""

from __future__ import annotations

from collections.abc import Iterator

LONGEST_PART = 2**18  # characters that are encoded at once: memory stays bounded, however long a document is


def cut_parts(text: str) -> Iterator[str]:
    """A long text in parts of at most LONGEST_PART characters, cut before white space where there is some."""
    start = 0
    while len(text) - start > LONGEST_PART:
        end = start + LONGEST_PART
        cut = max(text.rfind("\n", start + 1, end), 0) or max(text.rfind(" ", start + 1, end), 0) or end
        yield text[start:cut]
        start = cut
    yield text[start:]
