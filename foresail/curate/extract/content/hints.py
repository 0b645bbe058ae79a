"""What a page says of itself outside its text: title, description, data for search engines, its address."""

from __future__ import annotations

import numpy as np

from foresail.curate.extract.content import scan
from foresail.curate.extract.content.blocks import codes
from foresail.curate.extract.content.features import PAGE_BITS, Hints, fold, pair_hashes
from foresail.curate.extract.content.scan import Array
from foresail.curate.extract.page import Page

MOST_WORDS = 20_000  # read of a page's data
MOST_CHARS = 400_000


def hashes(text: str, limit: int = 2000) -> Array:
    return scan.hash_words(codes(text[:MOST_CHARS]), limit)


def read_hints(page: Page, url: str) -> tuple[Hints, Array]:
    """The hints, and words that tell a page's type, as numbers of buckets."""
    title, description, kind, data, classes = "", "", "", [], []
    names = page.names
    for node, name in enumerate(names):
        if name == "title":
            title = title or page.text(node)
        elif name == "meta":
            attributes = page.data[node].lower()
            if "description" in attributes:
                description = description or page.attribute(node, "content")
            elif "og:type" in attributes:
                kind = page.attribute(node, "content")
            elif '"generator"' in attributes:
                kind += " " + page.attribute(node, "content")
        elif name == "script":
            if "ld+json" in page.data[node]:
                data.append(page.text(node))
        elif name == "body" or name == "html":
            classes.append(page.attribute(node, "class") + " " + page.attribute(node, "id"))
            classes.append(page.attribute(node, "itemtype"))
    text = "\n".join(data)
    words = {
        "u": hashes(url.split("://", 1)[-1].replace("_", " "), 40),
        "k": hashes(kind, 10),
        "c": hashes(" ".join(classes).replace("_", " "), 100),
        "t": hashes(title, 40),
        "d": ld_types(text),
    }
    salted = [
        found * np.uint32(2 * ord(letter) + 1) ^ np.uint32(ord(letter)) for letter, found in words.items()
    ]
    return (
        Hints(
            np.unique(words["t"]),
            np.unique(pair_hashes(hashes(description))),
            np.unique(pair_hashes(hashes(text, MOST_WORDS))),
        ),
        np.unique(fold(np.concatenate(salted), PAGE_BITS)),
    )


def ld_types(text: str) -> Array:
    """Of "@type": "Product" the hash of "product"."""
    found: list[str] = []
    at = 0
    while len(found) < 60 and (at := text.find('"@type"', at)) >= 0:
        at += 7
        start = text.find('"', at)
        end = text.find('"', start + 1)
        if start < 0 or end < 0:
            break
        found.append(text[start + 1 : end][:40])
    return hashes(" ".join(sorted(set(found))), 60)
