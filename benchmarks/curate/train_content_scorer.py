"""Trains the scorer of main content and writes its weights. Needs `pip install lightgbm`.

python benchmarks/curate/train_content_scorer.py --wcxb FOLDER --magic FOLDER \\
    --out foresail/curate/extract/content/weights.npz

FOLDER: checkouts of Murrough-Foley/web-content-extraction-benchmark (of which only `dev/` is opened) and of
opendatalab/magic-html's benchmark/data. The pages that `extraction.py` measures, and all others of their sites, are
left out (`--apart`).

Blocks are labelled by the gold text (`content_labels.py`). Sites are split into four folds, and the linear models'
scores, features of the trees, are made for every page by models that have not seen its fold. With `--folds` the
same is done with the trees, and the word F1 on pages of unseen sites is printed; the weights are not changed by it.
"""

from __future__ import annotations

import argparse
import json
import zlib
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from content_gold import GoldPage, read_gold
from content_labels import WORD, label_blocks
from content_linear import fit_blocks, fit_types, softmax

from foresail.curate.extract.content import scan
from foresail.curate.extract.content.blocks import Blocks, cut_page
from foresail.curate.extract.content.decide import choose, even_out_tables
from foresail.curate.extract.content.features import (
    PATH_BITS,
    TEXT_BITS,
    Hashed,
    Hints,
    Tree,
    hash_blocks,
    measure,
    path_scores,
    read_tree,
    text_scores,
)
from foresail.curate.extract.content.hints import read_hints
from foresail.curate.extract.content.noscript import open_noscript
from foresail.curate.extract.content.scan import Array
from foresail.curate.extract.page import read_page

APART = Path(__file__).parents[3] / "shared/data/html/wcxb_dev/pages.jsonl.xz"
FOLDS = 4
TYPE_WEIGHTS = {"article": 0.6, "service": 1.0}  # of a page; others: 1.3, as there are fewer
LEAST_REACH = 0.5  # F1 of the labels themselves: below, the gold is not text of the page
TREES = {
    "objective": "cross_entropy", "num_leaves": 31, "learning_rate": 0.1, "min_data_in_leaf": 60,
    "feature_fraction": 0.25, "bagging_fraction": 0.7, "bagging_freq": 1, "lambda_l2": 5.0,
    "max_bin": 63, "num_threads": 1, "seed": 1, "verbose": -1,
}  # fmt: skip
ROUNDS = 150


@dataclass(kw_only=True, slots=True)
class Sample:
    page: GoldPage
    blocks: Blocks
    hints: Hints
    page_words: Array
    hashed: Hashed
    tree: Tree
    words: list[list[str]]
    shares: Array
    weights: Array
    paths: Array  # buckets of all elements around a block; of block b: paths[path_place[b]:path_place[b + 1]]
    path_place: Array
    matrix: Array = field(default_factory=lambda: np.zeros((0, 0), np.float32))

    @property
    def fold(self) -> int:
        return zlib.crc32(self.page.site.encode()) % FOLDS


def read_sample(page: GoldPage) -> Sample | None:
    parsed = read_page(page.html)
    open_noscript(parsed)
    blocks = cut_page(parsed)
    if not len(blocks):
        return None
    texts: list[list[str]] = [[] for _ in range(len(blocks))]
    for node in np.flatnonzero(blocks.block_of >= 0):
        texts[blocks.block_of[node]].append(parsed.data[node])
    words = [WORD.findall("".join(text).lower()) for text in texts]
    shares = label_blocks(words, page.gold)
    if shares is None:
        return None
    counts = np.array([len(block) for block in words], float)
    right = max(counts[shares > 0.5].sum(), 1.0)
    weights = np.sqrt(np.minimum(counts, right) / right) * TYPE_WEIGHTS.get(page.type, 1.3)
    if word_f1(words, shares > 0.5, page.gold) < LEAST_REACH:
        weights[:] = 0.0
    hints, page_words = read_hints(parsed, page.url)
    hashed = hash_blocks(blocks)
    paths, path_place = path_buckets(blocks, hashed)
    return Sample(
        page=page,
        blocks=blocks,
        hints=hints,
        page_words=page_words,
        hashed=hashed,
        tree=read_tree(blocks),
        words=words,
        shares=shares,
        weights=weights,
        paths=paths,
        path_place=path_place,
    )


def path_buckets(blocks: Blocks, hashed: Hashed) -> tuple[Array, Array]:
    rows = []
    for holder in blocks.holders:
        node, row = int(holder), []
        while node >= 0:
            row.append(hashed.path[hashed.path_place[node] : hashed.path_place[node + 1]])
            node = int(blocks.parents[node])
        rows.append(np.concatenate(row))
    return np.concatenate(rows), np.concatenate([[0], np.cumsum([len(row) for row in rows])])


def word_f1(words: list[list[str]], chosen: Array, gold: str) -> float:
    got = Counter(word for block in np.flatnonzero(chosen) for word in words[block])
    wanted = Counter(WORD.findall(gold.lower()))
    return 2 * (got & wanted).total() / max(got.total() + wanted.total(), 1)


def joined(buckets: list[Array], places: list[Array]) -> tuple[Array, Array]:
    """One array of buckets for many pages, with the place of each block's first."""
    offsets = np.concatenate([[0], np.cumsum([len(some) for some in buckets])])
    moved = [place[1:] + offset for place, offset in zip(places, offsets[:-1], strict=True)]
    return np.concatenate(buckets), np.concatenate([[0], *moved]).astype(np.int64)


def fit_linear(samples: list[Sample]) -> dict[str, Array]:
    targets = np.concatenate([sample.shares for sample in samples]).astype(np.float64)
    weights = np.concatenate([sample.weights for sample in samples])
    text, text_place = joined([s.hashed.text for s in samples], [s.hashed.text_place for s in samples])
    path, path_place = joined([s.paths for s in samples], [s.path_place for s in samples])
    page, page_bias = fit_types([(sample.page_words, sample.page.type) for sample in samples])
    return {
        "text": fit_blocks(text, text_place, targets, weights, size=1 << TEXT_BITS, by_root=True),
        "path": fit_blocks(path, path_place, targets, weights, size=1 << PATH_BITS, by_root=False),
        "page": page,
        "page_bias": page_bias,
    }


def measure_sample(sample: Sample, linear: dict[str, Array]) -> Array:
    types = softmax(linear["page"][:, sample.page_words].sum(1) + linear["page_bias"])
    text = text_scores(sample.hashed, linear["text"])
    path = path_scores(sample.hashed, linear["path"])
    return measure(sample.blocks, sample.tree, sample.hints, text, path, types)[1]


def fit_trees(samples: list[Sample]) -> Any:
    lightgbm = import_module("lightgbm")
    weights = np.concatenate([sample.weights for sample in samples])
    data = lightgbm.Dataset(
        np.concatenate([sample.matrix for sample in samples]),
        label=np.concatenate([sample.shares for sample in samples]),
        weight=weights / weights.mean(),
    )
    return lightgbm.train(TREES, data, ROUNDS)


def flat_trees(booster: Any) -> dict[str, Array]:
    """As `content/trees.py` reads them."""
    roots: list[int] = []
    rows: list[tuple[int, float, int, int]] = []
    values: list[float] = []

    def add(node: dict[str, Any]) -> int:
        if "leaf_value" in node:
            values.append(node["leaf_value"])
            return ~(len(values) - 1)
        number = len(rows)
        threshold = np.float32(node["threshold"])
        if threshold > node["threshold"]:  # the greatest float32 that is not above
            threshold = np.nextafter(threshold, np.float32(-np.inf))
        rows.append((node["split_feature"], float(threshold), 0, 0))
        left, right = add(node["left_child"]), add(node["right_child"])
        rows[number] = (*rows[number][:2], left, right)
        return number

    for tree in booster.dump_model()["tree_info"]:
        roots.append(add(tree["tree_structure"]))
    features, thresholds, left, right = zip(*rows, strict=True)
    return {
        "roots": np.array(roots, np.int32),
        "features": np.array(features, np.int16),
        "thresholds": np.array(thresholds, np.float32),
        "left": np.array(left, np.int32),
        "right": np.array(right, np.int32),
        "values": np.array(values, np.float32),
    }


def small(linear: dict[str, Array]) -> dict[str, Any]:
    """A byte a weight."""
    packed: dict[str, Any] = {"page_bias": linear["page_bias"]}
    for name in ("text", "path", "page"):
        scale = np.float32(np.abs(linear[name]).max() / 127)
        packed |= {name: np.round(linear[name] / scale).astype(np.int8), f"{name}_scale": scale}
    return packed


def unseen_f1(samples: list[Sample]) -> dict[str, float]:
    """By page type: the mean F1 of pages by trees that have not seen their sites; None of magic-html's pages."""
    scores = defaultdict(list)
    for fold in range(FOLDS):
        booster = fit_trees([sample for sample in samples if sample.fold != fold])
        for sample in samples:
            if sample.fold == fold and len(sample.page.id) < 10:
                tree = sample.tree
                probability = even_out_tables(
                    sample.blocks, tree.first, tree.stop, booster.predict(sample.matrix)
                )
                chosen = choose(probability, sample.blocks.counts[:, scan.WORDS])
                scores[sample.page.type].append(word_f1(sample.words, chosen, sample.page.gold))
    return {name: round(float(np.mean(some)), 4) for name, some in sorted(scores.items())}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--wcxb", type=Path, required=True)
    parser.add_argument("--magic", type=Path)
    parser.add_argument("--apart", type=Path, default=APART)
    parser.add_argument("--folds", action="store_true", help="also measure on unseen sites")
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    pages = read_gold(arguments.wcxb, arguments.magic, arguments.apart)
    samples = [sample for page in pages if (sample := read_sample(page)) is not None]
    print(f"{len(samples)} of {len(pages)} pages, {sum(len(s.blocks) for s in samples)} blocks", flush=True)
    for fold in range(FOLDS):
        linear = fit_linear([sample for sample in samples if sample.fold != fold])
        for sample in samples:
            if sample.fold == fold:
                sample.matrix = measure_sample(sample, linear)
    packed = small(fit_linear(samples)) | flat_trees(fit_trees(samples))
    np.savez_compressed(arguments.out, **packed)
    print(f"wrote {arguments.out}: {arguments.out.stat().st_size} bytes", flush=True)
    if arguments.folds:
        print(json.dumps({"unseen sites, word F1 of blocks": unseen_f1(samples)}))


if __name__ == "__main__":
    main()
