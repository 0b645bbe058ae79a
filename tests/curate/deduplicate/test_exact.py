from __future__ import annotations

import pytest
from deduplicate.repeats import cut, decide, documents, named

from foresail.curate.deduplicate.exact import ExactDuplicates
from foresail.curate.deduplicate.minhash import Minhash
from foresail.curate.deduplicate.urls import DuplicateUrls
from foresail.curate.document import Document, Drop

TEXTS = ["a b", "c", "a  b\n", "", "d", "A b", "c", " ", "\ud800 lone", "c"]


def verdicts(outcomes):
    return [
        named(outcome) if isinstance(outcome, Drop) else outcome.metadata["occurrences"]
        for piece in outcomes
        for outcome in piece
    ]


@pytest.mark.parametrize("sizes", [(), (4,), (0, 1, 0, 5, 2), (1,) * 10])
def test_the_first_of_equal_texts_stays_and_counts_them(tmp_path, sizes):
    outcomes, figures = decide(ExactDuplicates(), tmp_path, cut(documents(TEXTS), *sizes))
    assert verdicts(outcomes) == [2, 3, "d:0", 2, 1, 1, "d:1", "d:3", 1, "d:1"]
    assert figures == {"documents": 10, "removed": 4, "groups": 3, "largest": 3}


def test_keep_all_marks_copies_and_counts_once(tmp_path):
    outcomes, _ = decide(ExactDuplicates(keep="all"), tmp_path / "1", [documents(TEXTS)])
    assert [outcome.metadata.get("duplicate_of") for outcome in outcomes[0]] == [
        None, None, "d:0", None, None, None, "d:1", "d:3", None, "d:1",
    ]  # fmt: skip
    again, _ = decide(ExactDuplicates(), tmp_path / "2", outcomes)
    assert verdicts(again) == [2, 3, "d:0", 2, 1, 1, "d:1", "d:3", 1, "d:1"]


def test_occurrences_add_up_over_steps(tmp_path):
    outcomes, _ = decide(ExactDuplicates(), tmp_path / "1", [documents(TEXTS)])
    kept = [outcome for outcome in outcomes[0] if isinstance(outcome, Document)]
    same_page = [Document(id=d.id, text=d.text, url="https://a.org/", metadata=d.metadata) for d in kept]
    outcomes, _ = decide(DuplicateUrls(), tmp_path / "2", [same_page])
    assert verdicts(outcomes) == [len(TEXTS), *["d:0"] * (len(kept) - 1)]


def test_pages_without_address_stay(tmp_path):
    urls = ["https://a.org/x", "", "http://www.a.org/x/?utm_source=1#top", "", "https://a.org/y"]
    pages = [Document(id=str(n), url=url) for n, url in enumerate(urls)]
    outcomes, _ = decide(DuplicateUrls(), tmp_path, [pages])
    assert verdicts(outcomes) == [2, 1, "0", 1, 1]


@pytest.mark.parametrize("step", [ExactDuplicates(), DuplicateUrls(), Minhash()])
@pytest.mark.parametrize("pieces", [[], [[]], [[], []]])
def test_nothing_to_compare(tmp_path, step, pieces):
    outcomes, figures = decide(step, tmp_path, pieces)
    assert outcomes == pieces and figures["documents"] == figures["removed"] == 0


def test_decisions_are_for_their_documents_only(tmp_path):
    piece = documents(TEXTS)
    decide(ExactDuplicates(), tmp_path, [piece])
    apply = ExactDuplicates().open(tmp_path / "0.decisions")
    with pytest.raises(ValueError, match="decides on another document"):
        apply(1, piece[2])
    with pytest.raises(ValueError, match="decides on 10 documents"):
        apply(10, piece[0])


@pytest.mark.parametrize("part", [0, 0.3, 0.9])
def test_a_cut_file_is_an_error(tmp_path, part):
    ExactDuplicates().collect(documents(TEXTS), tmp_path / "features")
    content = (tmp_path / "features").read_bytes()
    (tmp_path / "features").write_bytes(content[: int(part * len(content))])
    with pytest.raises(ValueError, match="again"):
        ExactDuplicates().decide([tmp_path / "features"], [tmp_path / "decisions"], tmp_path)
