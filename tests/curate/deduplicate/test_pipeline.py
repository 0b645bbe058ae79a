"""Two steps in one recipe, over pieces in several processes."""

from __future__ import annotations

import json
import random
import re
from collections import Counter

import pytest
from deduplicate.repeats import edited, jaccard, texts_with_copies, words
from small_recipe import output_files, small_recipe

from foresail.curate.curation import curate
from foresail.curate.deduplicate.address import page_of
from foresail.curate.run.ledger import DONE, entries
from foresail.curate.run.why import explain

pytestmark = pytest.mark.usefixtures("forked_workers_of_pieces")

NAMES = ("duplicate_urls", "minhash")


def write_pages(folder):
    texts = texts_with_copies(seed=11, originals=40)
    pages = {f"p{n}": text for n, text in enumerate([*texts, *texts[:7], ""])}
    urls = {name: f"HTTP://a.org/{number % (len(pages) - 5)}#top" for number, name in enumerate(pages)}
    (folder / "in").mkdir(parents=True)
    for piece in range(3):
        rows = [{"id": name, "text": pages[name], "url": urls[name]} for name in [*pages][piece::3]]
        (folder / "in" / f"{piece}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return pages, urls


def test_every_drop_names_a_document_that_it_repeats(tmp_path):
    pages, urls = write_pages(tmp_path)
    steps = [{"name": name} for name in NAMES]
    summary = curate(small_recipe(tmp_path, *steps, out=str(tmp_path / "two")))
    dropped, kept = {}, {}
    for ledger in sorted((tmp_path / "two" / "work").rglob(f"*{DONE}")):
        for entry in entries(ledger):
            dropped |= {drop.document.id: drop for drop in entry.result.dropped}
            kept |= {document.id: document for document in entry.result.kept}
    first = {name: drop.detail.removeprefix("repeats ") for name, drop in dropped.items()}
    reasons = {name: drop.reason for name, drop in dropped.items()}
    assert {*reasons.values()} == {"duplicate_url", "near_duplicate"}
    for name, reason in reasons.items():
        if reason == "duplicate_url":
            assert page_of(urls[name]) == page_of(urls[first[name]])
        else:
            assert jaccard(pages[name], pages[first[name]]) > 0.65
            assert first[name] not in dropped
    left = [document for name, document in kept.items() if name not in dropped]
    assert sum(document.metadata["occurrences"] for document in left) == len(pages) == summary.inputs

    curate(small_recipe(tmp_path, *steps, out=str(tmp_path / "one"), cluster={"workers": 1}))
    assert output_files(tmp_path / "one") == output_files(tmp_path / "two")


def test_occurrences_are_those_before_deduplication_and_resample_repeats_by_them(tmp_path):
    """A text that stood 9 times, of which 4 were edited, comes three times out of occurrences ** 0.5."""
    dice = random.Random(3)
    often, twice, once = (" ".join(words(dice, 150)) for _ in range(3))
    texts = [*[often] * 5, *(edited(dice, often, 1) for _ in range(4)), twice, twice, once]
    dice.shuffle(texts)
    (tmp_path / "in").mkdir()
    for piece in range(3):
        rows = [{"id": f"{piece}-{n}", "text": text, "q": 1.0} for n, text in enumerate(texts[piece::3])]
        (tmp_path / "in" / f"{piece}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    resample = {"name": "resample", "quality": "q", "tiers": [], "copies": [1.0], "repeat": [0.5], "seed": 1}
    steps = ({"name": "exact_duplicates"}, {"name": "minhash"}, resample)
    recipe = small_recipe(tmp_path, *steps, cluster={"workers": 1})
    curate(recipe)
    last = max((tmp_path / "out" / "work").glob("[0-9]"))
    kept = [own for file in last.glob(f"*{DONE}") for entry in entries(file) for own in entry.result.kept]
    assert len({own.id for own in kept}) == len(kept)
    occurrences = {own.id.partition("~")[0]: own.metadata["occurrences"] for own in kept}
    assert sorted(occurrences.values()) == [1, 2, 9]
    copies = Counter(own.metadata["occurrences"] for own in kept)
    assert (copies[1], copies[9]) == (1, 3) and copies[2] in (1, 2)

    everything = {f"{piece}-{n}": text for piece in range(3) for n, text in enumerate(texts[piece::3])}
    reasons = Counter()
    for name in everything.keys() - occurrences.keys():
        said = explain(recipe, name)[-1]
        reason, first = re.fullmatch(r".*: dropped, (\w+) \(repeats (.*)\)", said).groups()
        assert jaccard(everything[name], everything[first]) > (0.99 if reason == "exact_duplicate" else 0.8)
        reasons[reason] += 1
    assert reasons == {"exact_duplicate": 5, "near_duplicate": 4}
