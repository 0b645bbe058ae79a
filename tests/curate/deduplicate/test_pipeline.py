"""Two steps in one recipe, over pieces in several processes."""

from __future__ import annotations

import json

from deduplicate.repeats import jaccard, texts_with_copies
from small_recipe import output_files, small_recipe

from foresail.curate.curation import curate
from foresail.curate.deduplicate.address import page_of
from foresail.curate.run.ledger import DONE, entries

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
