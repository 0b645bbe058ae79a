"""A page cut into blocks of text, each as a paragraph, a heading or a cell shows it, with what is counted of it.

Block b is the text nodes with block_of == b; `holder` is the element that holds it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from foresail.curate.extract.content import scan
from foresail.curate.extract.content.scan import Array
from foresail.curate.extract.content.tags import KIND_AT, NUMBER_AT, NUMBERS, PLACES, UNKNOWN
from foresail.curate.extract.page import Page

LONGEST_ATTRIBUTES = 1000  # characters read of one element's attributes
ATTRIBUTE_NAMES = (
    "class", "id", "role", "itemprop", "style", "hidden", "aria-hidden", "itemtype", "data-testid", "aria-label",
)  # fmt: skip
NUMBER_TABLE, KIND_TABLE = np.array(NUMBER_AT, np.int16), np.array(KIND_AT, np.uint8)
ATTRIBUTE_VALUES = ("true", "navigation", "main")


def codes(text: str) -> Array:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)


def hashes(words: tuple[str, ...]) -> Array:
    return np.array([scan.hash_range(codes(word), 0, len(word)) for word in words], np.uint32)


@dataclass(frozen=True, kw_only=True, slots=True)
class Blocks:
    """Of nodes: tags, parents, ends, block_of, signature, bits, tokens. Of blocks: the others."""

    tags: Array
    parents: Array
    ends: Array
    block_of: Array
    signature: Array
    bits: Array
    tokens: Array  # hashes of words in attributes; of node n: tokens[token_place[n]:token_place[n + 1]]
    token_place: Array
    holders: Array
    nodes: Array  # the block's first text
    counts: Array
    words: Array
    word_place: Array
    first_char: Array
    last_char: Array
    digest: Array

    def __len__(self) -> int:
        return len(self.holders)


def cut_page(page: Page) -> Blocks:
    names, data = page.names, page.data
    places = np.array([PLACES.get(name, UNKNOWN) for name in names], np.intp)
    tags, kinds = NUMBER_TABLE[places], KIND_TABLE[places]
    parents, ends = np.array(page.parents, np.int32), np.array(page.ends, np.int32)
    lengths = np.fromiter(map(len, data), np.int64, len(data))
    pieces = data
    if len(longest := np.flatnonzero((lengths > LONGEST_ATTRIBUTES) & (tags >= 0))):
        pieces = data.copy()
        for node in longest:
            pieces[node] = data[node][:LONGEST_ATTRIBUTES]
        lengths[longest] = LONGEST_ATTRIBUTES
    starts = np.zeros(len(names) + 1, np.int64)
    np.cumsum(lengths, out=starts[1:])
    chars = codes("".join(pieces))
    blank = np.zeros(len(names), np.bool_)
    texts = np.flatnonzero(tags < 0)
    blank[texts] = [data[node].isspace() for node in texts]
    block_of, holder, link = scan.cut_blocks(kinds, parents, ends, blank)
    parent_tags = np.where(parents >= 0, tags[parents], -1)
    strong = np.isin(parent_tags, [NUMBERS["strong"], NUMBERS["b"]])
    seen = np.flatnonzero(block_of >= 0)
    first_nodes = seen[np.flatnonzero(np.diff(block_of[seen], prepend=-1))]
    counts, words, word_place, first_char, last_char, digest = scan.scan_texts(
        chars, starts, block_of, link, strong, len(first_nodes)
    )
    tokens, token_place, signature, bits = scan.scan_attributes(
        chars, starts, tags, hashes(ATTRIBUTE_NAMES), hashes(ATTRIBUTE_VALUES)
    )
    return Blocks(
        tags=tags,
        parents=parents,
        ends=ends,
        block_of=block_of,
        signature=signature,
        bits=bits,
        tokens=tokens,
        token_place=token_place,
        holders=holder[first_nodes],
        nodes=first_nodes,
        counts=counts,
        words=words,
        word_place=word_place,
        first_char=first_char,
        last_char=last_char,
        digest=digest,
    )
