"""What is measured of every block: itself, the elements around it, its neighbours, the page.

`measure` gives a matrix [block, feature]. Two linear models over hashed words, of the text and of class
names and the like, give scores that are features, too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from foresail.curate.extract.content import scan
from foresail.curate.extract.content.around import (
    along_paths,
    best_range,
    block_ranges,
    climb,
    count_above,
)
from foresail.curate.extract.content.blocks import Blocks
from foresail.curate.extract.content.scan import Array
from foresail.curate.extract.content.tags import NUMBERS

LEVELS = 5
TEXT_BITS, PATH_BITS, PAGE_BITS = 15, 14, 13
FLAGGED = (
    "nav header footer aside form main article section table li ul dl figure blockquote a button".split()
)
HEADINGS = [NUMBERS[f"h{level}"] for level in range(1, 7)]


@dataclass(frozen=True, slots=True)
class Hashed:
    """Words as numbers of buckets. Of block b: text[text_place[b]:text_place[b + 1]]; path: of nodes."""

    text: Array
    text_place: Array
    path: Array
    path_place: Array


@dataclass(frozen=True, slots=True)
class Hints:
    """Hashes of words that the page's head has: its title, its description, its data for search engines. Sorted."""

    title: Array
    description: Array
    data: Array


@dataclass(frozen=True, slots=True)
class Tree:
    """first, stop: range of blocks of every node. levels: [block, level] elements around a block."""

    first: Array
    stop: Array
    levels: Array
    heights: Array


def fold(hashes: Array, bits: int) -> Array:
    mixed = (hashes ^ (hashes >> np.uint32(15))) * np.uint32(2246822519)
    return (mixed >> np.uint32(32 - bits)).astype(np.int32)


def pair_hashes(words: Array) -> Array:
    return words[:-1] * np.uint32(2654435761) ^ words[1:]


def hash_blocks(blocks: Blocks) -> Hashed:
    """Single words and pairs, interleaved; a pair across two blocks counts for the first."""
    words = blocks.words
    both = np.zeros(2 * len(words), np.uint32)
    both[::2] = words
    if len(words):
        both[1:-1:2] = pair_hashes(words)
    return Hashed(
        fold(both, TEXT_BITS), blocks.word_place * 2, fold(blocks.tokens, PATH_BITS), blocks.token_place
    )


def sums(values: Array, places: Array) -> Array:
    """values[places[i]:places[i + 1]].sum() for every i."""
    total = np.zeros(len(values) + 1)
    np.cumsum(values, out=total[1:])
    return (total[places[1:]] - total[places[:-1]]).astype(np.float32)


def text_scores(hashed: Hashed, weights: Array) -> Array:
    counts = np.diff(hashed.text_place)
    return sums(weights[hashed.text], hashed.text_place) / np.sqrt(np.maximum(counts, 1))


def path_scores(hashed: Hashed, weights: Array) -> Array:
    """Of every node."""
    return sums(weights[hashed.path], hashed.path_place)


def read_tree(blocks: Blocks) -> Tree:
    first, stop = block_ranges(blocks.block_of, blocks.ends, len(blocks))
    levels, heights = climb(blocks.holders, blocks.parents, first, stop, LEVELS)
    return Tree(first, stop, levels, heights)


def cumulated(values: Array) -> Array:
    return np.concatenate([np.zeros(1), np.cumsum(values, dtype=np.float64)])


def overlap(words: Array, places: Array, hints: Array) -> Array:
    """The share of a block's words that the hints have."""
    if not len(hints):
        return np.zeros(len(places) - 1, np.float32)
    nearest = hints[np.minimum(np.searchsorted(hints, words), len(hints) - 1)]
    return sums(nearest == words, places) / np.maximum(np.diff(places), 1)


def measure(
    blocks: Blocks, tree: Tree, hints: Hints, text: Array, path: Array, page_types: Array
) -> tuple[list[str], Array]:
    """text: scores of blocks, path: scores of nodes, page_types: probabilities."""
    table: dict[str, Array] = {}
    size = len(blocks)
    add_block(table, blocks, text)
    words = blocks.counts[:, scan.WORDS]
    total, least, most, seen, depth = along_paths(blocks.parents, path, blocks.bits)
    holders = blocks.holders
    table |= {
        "path_sum": total[holders],
        "path_least": least[holders],
        "path_most": most[holders],
        "path_own": path[holders],
        "path_outer": total[holders] - path[holders],
        "depth": depth[holders],
        "height": tree.heights,
        "hidden": seen[holders] & scan.HIDDEN,
        "role_navigation": seen[holders] & scan.ROLE_NAVIGATION,
        "role_main": seen[holders] & scan.ROLE_MAIN,
        "role_other": seen[holders] & scan.ROLE_OTHER,
        "microdata": seen[holders] & scan.MICRODATA,
        "microdata_own": blocks.bits[holders] & scan.MICRODATA,
    }
    marks = np.full(len(NUMBERS) + 2, -1, np.int16)
    for number, name in enumerate(FLAGGED):
        marks[NUMBERS[name]] = number
    above = count_above(blocks.parents, marks[blocks.tags], len(FLAGGED))[blocks.nodes]
    table |= {f"in_{name}": above[:, number] for number, name in enumerate(FLAGGED)}
    add_place(table, blocks, words)
    add_hints(table, blocks, hints)
    add_neighbours(table, text)
    add_levels(table, blocks, tree, text, path)
    add_alike(table, blocks, text)
    page = page_figures(blocks, table)
    for name, value in page.items():
        table[name] = np.full(size, value, np.float32)
    for number, probability in enumerate(page_types):
        table[f"type_{number}"] = np.full(size, probability, np.float32)
    columns = np.concatenate(list(table.values()), dtype=np.float32, casting="unsafe")
    return list(table), columns.reshape(len(table), size).T


def add_block(table: dict[str, Array], blocks: Blocks, text: Array) -> None:
    counts = blocks.counts
    words, chars = np.maximum(counts[:, scan.WORDS], 1), np.maximum(counts[:, scan.CHARS], 1)
    last, first = blocks.last_char, blocks.first_char
    table |= {
        "log_words": np.log1p(counts[:, scan.WORDS]),
        "word_length": chars / words,
        "link_share": counts[:, scan.LINK_CHARS] / chars,
        "links": counts[:, scan.LINKS],
        "stops": counts[:, scan.STOPS] / words,
        "commas": counts[:, scan.COMMAS] / words,
        "digits": counts[:, scan.DIGITS] / chars,
        "upper": counts[:, scan.UPPER] / chars,
        "capitalized": counts[:, scan.CAPITALIZED] / words,
        "symbols": counts[:, scan.SYMBOLS] / chars,
        "money": counts[:, scan.MONEY],
        "wide": counts[:, scan.WIDE] / chars,
        "strong": counts[:, scan.STRONG_WORDS] / words,
        "numbers": counts[:, scan.NUMBERS] / words,
        "long_words": counts[:, scan.LONG_WORDS] / words,
        "texts": counts[:, scan.TEXTS],
        "last_char": np.select(
            [(last == 46) | (last == 0x3002), (last == 33) | (last == 63), last == 58, last < 48],
            [4, 3, 2, 1],
            0,
        ),
        "first_char": np.select(
            [
                first == 0xA9,
                (first >= 48) & (first <= 57),
                (first >= 65) & (first <= 90),
                (first >= 97) & (first <= 122),
            ],
            [4, 3, 2, 1],
            0,
        ),
        "text": text,
        "tag": blocks.tags[blocks.holders],
        "parent_tag": blocks.tags[np.maximum(blocks.parents[blocks.holders], 0)],
        "inner_tag": blocks.tags[np.maximum(blocks.parents[blocks.nodes], 0)],
    }
    _, inverse, repeats = np.unique(blocks.digest, return_inverse=True, return_counts=True)
    table["same_text"] = repeats[inverse]


def add_place(table: dict[str, Array], blocks: Blocks, words: Array) -> None:
    size = len(blocks)
    at = np.arange(size)
    before = cumulated(words)
    tags = blocks.tags[blocks.holders]
    heading = np.isin(tags, HEADINGS)
    latest = np.maximum.accumulate(np.where(heading, at, -1))
    title = np.flatnonzero(tags == HEADINGS[0])
    first_title = int(title[0]) if len(title) else -1
    table |= {
        "place": at / max(size, 1),
        "words_before": before[:-1] / max(before[-1], 1),
        "blocks_before": np.log1p(at),
        "blocks_after": np.log1p(size - at),
        "since_heading": np.where(latest >= 0, np.log1p(at - latest), -1),
        "words_since_heading": np.where(
            latest >= 0, np.log1p(before[:-1] - before[np.maximum(latest, 0)]), -1
        ),
        "last_heading": np.where(latest >= 0, tags[np.maximum(latest, 0)], -1),
        "from_title": (at - first_title) / max(size, 1) if first_title >= 0 else np.full(size, -2.0),
        "words_from_title": (before[:-1] - before[max(first_title, 0)]) / max(before[-1], 1),
    }


def add_hints(table: dict[str, Array], blocks: Blocks, hints: Hints) -> None:
    words, places = blocks.words, blocks.word_place
    pairs = np.append(pair_hashes(words), np.uint32(0)) if len(words) else words
    table |= {
        "in_title": overlap(words, places, hints.title),
        "in_description": overlap(pairs, places, hints.description),
        "in_data": overlap(pairs, places, hints.data),
    }


def add_neighbours(table: dict[str, Array], text: Array) -> None:
    """What stands three blocks before and after."""
    names = ("log_words", "link_share", "stops", "tag", "text", "path_sum", "same_text")
    size = len(text)
    padded = np.full((len(names), size + 6), -1, np.float32)
    for row, name in enumerate(names):
        padded[row, 3:-3] = table[name]
    for offset in (-3, -2, -1, 1, 2, 3):
        for row, name in enumerate(names):
            table[f"{name}{offset:+}"] = padded[row, 3 + offset : 3 + offset + size]


def add_levels(table: dict[str, Array], blocks: Blocks, tree: Tree, text: Array, path: Array) -> None:
    counts = blocks.counts
    words = counts[:, scan.WORDS]
    prose = words * ((words >= 8) & (counts[:, scan.STOPS] > 0) & (counts[:, scan.LINK_WORDS] * 2 < words))
    tags = blocks.tags[blocks.holders]
    columns = (
        words,
        counts[:, scan.LINK_WORDS],
        prose,
        text,
        np.isin(tags, HEADINGS),
        tags == HEADINGS[0],
        table["in_data"] * words,
    )
    totals = np.zeros((len(columns), len(blocks) + 1))
    for row, values in enumerate(columns):
        np.cumsum(values, dtype=np.float64, out=totals[row, 1:])
    nodes = tree.levels.T
    first, stop = tree.first[nodes], tree.stop[nodes]
    all_words, links, all_prose, texts, headings, titles, data = totals[:, stop] - totals[:, first]
    count, many = np.maximum(stop - first, 1), np.maximum(all_words, 1)
    figures = {
        "words": np.log1p(all_words),
        "share": all_words / max(totals[0, -1], 1),
        "prose_share": all_prose / max(totals[2, -1], 1),
        "prose": all_prose / many,
        "links": links / many,
        "blocks": np.log1p(count),
        "words_per_block": np.log1p(all_words / count),
        "text": texts / count,
        "headings": headings / count,
        "title": titles > 0,
        "data": data / many,
        "path": path[nodes],
        "tag": blocks.tags[nodes],
        "twins": count_twins(blocks)[nodes],
        "place": first / max(len(blocks), 1),
        "rank": np.arange(len(blocks)) - first,
    }
    for level in range(LEVELS):
        table |= {f"L{level}_{name}": values[level] for name, values in figures.items()}
    best = best_range(prose - 0.5 * (words - prose), blocks.parents, tree.first, tree.stop)
    at = np.arange(len(blocks))
    table["in_best"] = (at >= tree.first[best]) & (at < tree.stop[best])
    table["best_share"] = np.full(
        len(blocks), (tree.stop[best] - tree.first[best]) / max(len(blocks), 1), np.float32
    )
    table["from_best"] = np.where(
        at < tree.first[best], at - tree.first[best], np.maximum(at - tree.stop[best] + 1, 0)
    )


def count_twins(blocks: Blocks) -> Array:
    """Of every element: how many of its parent's children have its tag and class."""
    keys = blocks.parents.astype(np.int64) << 32 | blocks.signature
    _, inverse, repeats = np.unique(keys, return_inverse=True, return_counts=True)
    return repeats[inverse]


def add_alike(table: dict[str, Array], blocks: Blocks, text: Array) -> None:
    """Figures of all blocks whose element, with its parent, has the same tag and class."""
    holders = blocks.holders
    keys = (
        blocks.signature[holders].astype(np.int64) << 32
        | blocks.signature[np.maximum(blocks.parents[holders], 0)]
    )
    _, inverse, repeats = np.unique(keys, return_inverse=True, return_counts=True)
    words = blocks.counts[:, scan.WORDS]

    def mean(values: Array) -> Array:
        return (np.bincount(inverse, values) / repeats)[inverse]

    table |= {
        "alike": repeats[inverse],
        "alike_words": np.log1p(mean(words)),
        "alike_links": mean(table["link_share"]),
        "alike_text": mean(text),
        "alike_share": (np.bincount(inverse, words) / max(words.sum(), 1))[inverse],
        "alike_place": table["place"] - mean(table["place"]),
    }


def page_figures(blocks: Blocks, table: dict[str, Array]) -> dict[str, float]:
    words = blocks.counts[:, scan.WORDS]
    tags = blocks.tags
    total = max(float(words.sum()), 1.0)
    count = np.bincount(tags[tags >= 0], minlength=len(NUMBERS) + 1)
    return {
        "page_words": float(np.log1p(total)),
        "page_blocks": float(np.log1p(len(blocks))),
        "page_links": float(blocks.counts[:, scan.LINK_WORDS].sum() / total),
        "page_prose": float(words[table["stops"] > 0].sum() / total),
        "page_longest": float(np.log1p(words.max(initial=0))),
        "page_money": float(np.log1p(blocks.counts[:, scan.MONEY].sum())),
        "page_main": float(count[NUMBERS["main"]]),
        "page_article": float(count[NUMBERS["article"]]),
        "page_titles": float(count[NUMBERS["h1"]]),
        "page_tables": float(count[NUMBERS["table"]]),
        "page_pre": float(count[NUMBERS["pre"]]),
        "page_paragraphs": float(np.log1p(count[NUMBERS["p"]])),
        "page_items": float(np.log1p(count[NUMBERS["li"]])),
        "page_images": float(np.log1p(count[NUMBERS["img"]])),
    }
