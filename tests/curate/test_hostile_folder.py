"""A folder of bombs, links and damaged files goes through a curation: counted drops, and the good rows stay."""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path

import pytest

from foresail.curate.curation import curate
from foresail.curate.recipe import build_curation
from foresail.curate.run.ledger import entries

BENCHMARKS = Path(__file__).parents[2] / "benchmarks/curate"
SIZE = 2**21  # of what a bomb unpacks to
EXPECTED = {  # by file: what the reader or the extraction says
    "zeros.jsonl.gz": "too_large",
    "zeros.jsonl.xz": "too_large",
    "zeros.jsonl.zst": "too_large",
    "dictionary.txt.xz": "damaged",
    "broken.jsonl.gz": "damaged",
    "line.jsonl": "too_large",
    "hole.pdf": "too_large",
    "gzip.warc": "too_large",
    "brotli.warc": "too_large",
    "entities.docx": "entities",
    "external.docx": "entities",
    "zeros.docx": "damaged",
    "overlapping.docx": "damaged",
    "deep.docx": "damaged",
    "deep.html": "too_deep",
    "deep-lists.html": "too_deep",
    "deep.jsonl": "too_large",
    "footer.parquet": "damaged",
    "pages.pdf": "damaged",
    "zeros.pdf": "no_text_layer",
    "flate-three-times.pdf": "damaged",
    "old.doc": "damaged",
    "self.html": "unreadable",
    "zero.txt": "unreadable",
    "pipe.html": "unreadable",
}


LINKS = ("self.html", "zero.txt", "pipe.html")


@pytest.fixture
def bombs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    from bombs import write_bombs, write_links

    folder = tmp_path / "in"
    folder.mkdir()
    written = write_bombs(folder, SIZE, {*EXPECTED, "good.pdf", "lengths.warc"})
    assert {*EXPECTED, *written} - {*written} == {*LINKS}
    write_links(folder)
    for name in [name for name in sys.modules if name.startswith("bomb") or name == "small_files"]:
        monkeypatch.delitem(sys.modules, name)
    return folder


def test_every_bomb_is_counted_and_good_records_are_kept(bombs: Path, tmp_path: Path) -> None:
    table = {
        "out": str(tmp_path / "out"),
        "source": [{"path": str(bombs), "name": "in", "max_document_bytes": SIZE // 4}],
        "step": [{"name": "extract", "scope": "whole"}],
        "cluster": {"workers": 1},
    }
    curate(build_curation(table))
    reasons: dict[str, set[str]] = defaultdict(set)
    for ledger in (tmp_path / "out/work/0").glob("*.zst"):
        for entry in entries(ledger):
            file = entry.id.removeprefix("in/").partition(":")[0]
            reasons[file] |= {drop.reason for drop in entry.result.dropped} or {"kept"}
    for file, reason in EXPECTED.items():
        assert reason in reasons[file], (file, reasons[file])
    for file in ("good.pdf", "lengths.warc", "deep.jsonl", "gzip.warc", "line\ufffdbreak.txt"):
        assert "kept" in reasons[file], (file, reasons[file])
    assert not set().union(*reasons.values()) & {"crashed", "stalled", "failed", "out_of_memory"}
