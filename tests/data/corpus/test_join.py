"""Short texts joined to documents: nothing is lost, and lengths lie where they were asked for."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from foresail.data.corpus.join import join_texts


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
