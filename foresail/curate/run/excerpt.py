"""The begin and the end of a document, for people who look at examples.

excerpt(Document(id="a", text="Once upon a time …")) -> "Once upon a time …"; of a page, from its body on
"""

from __future__ import annotations

import hashlib
import re

from foresail.curate.document import Document

BEGIN, END = 900, 200  # characters that are shown
FIRST = 64  # documents of each piece that are shown as they were read …
ONE_IN = 16  # … and one of so many of the others
BODY = re.compile(rb"<body[^>]{0,2000}>", re.IGNORECASE)


def shorten(text: str, begin: int = BEGIN, end: int = END) -> str:
    """shorten("abcdefgh", 3, 1) -> "abc\\n… 4 characters …\\nh"."""
    left_out = len(text) - begin - end
    if left_out <= 0:
        return text
    return f"{text[:begin]}\n… {left_out:,} characters …\n{text[len(text) - end :]}"


def excerpt(document: Document) -> str:
    """Text as it is; of a page its source, of other files their size."""
    if document.text or not document.content:
        return shorten(document.text)
    if not document.media_type.startswith("text/"):
        return f"({document.media_type}, {len(document.content):,} bytes)"
    body = BODY.search(document.content[: 2**18])
    start = 0 if body is None else body.end()
    part = document.content[start : start + 4 * BEGIN].decode("utf-8", "replace").lstrip()
    return shorten(part, BEGIN + END, 0)


def place_of(seed: int, name: str) -> str:
    """Where a document stands in a random order that depends on nothing but its id and the seed."""
    return hashlib.blake2b(f"{seed} {name}".encode("utf-8", "replace"), digest_size=8).hexdigest()


def is_shown(seed: int, name: str, number: int) -> bool:
    """Whether the ledger keeps how document `number` of its piece was read."""
    return number < FIRST or int(place_of(seed, name), 16) % ONE_IN == 0
