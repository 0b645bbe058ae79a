"""Short texts joined to documents: nothing is lost, and lengths lie where they were asked for."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from foresail.data.corpus.join import NEIGHBOURS, join_short_and_long, join_texts


@given(
    st.lists(st.text(alphabet="abc", min_size=1, max_size=30)),
    st.integers(1, 60),
    st.integers(0, 200),
    st.integers(0, 9),
)
def test_every_text_is_in_one_document_in_its_order(
    texts: list[str], fewest: int, more: int, seed: int
) -> None:
    documents = list(join_texts(texts, characters=(fewest, fewest + more), seed=seed))
    assert " ".join(documents).split() == texts
    for document in documents[:-1]:
        assert fewest - 1 <= len(document) <= fewest + more + 30
    assert documents == list(join_texts(texts, characters=(fewest, fewest + more), seed=seed))


def test_half_of_the_texts_is_in_short_documents_whatever_follows_what() -> None:
    texts = [f"{source}{number}" for source in "ab" for number in range(2 * NEIGHBOURS)]
    documents = list(join_short_and_long(texts, short=(20, 40), long=(200, 400), seed=0))
    assert sorted(" ".join(documents).split()) == sorted(texts)
    short = [document.split() for document in documents if len(document) < 100]
    for source in "ab":
        inside = sum(text.startswith(source) for document in short for text in document)
        assert abs(inside - NEIGHBOURS) <= 60  # the last long document may be short
