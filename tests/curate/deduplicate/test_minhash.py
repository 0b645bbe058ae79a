from __future__ import annotations

from deduplicate.repeats import cut, decide, documents, jaccard, named, texts_with_copies

from foresail.curate.deduplicate.minhash import Minhash
from foresail.curate.document import Drop


def test_every_removed_document_is_like_the_one_it_names(tmp_path):
    """The oracle reads the texts again: a step that mixes up documents names strangers."""
    texts = texts_with_copies(seed=1, originals=150)
    pieces = cut(documents(texts), 0, 70, 1, 90)
    outcomes, figures = decide(Minhash(), tmp_path, pieces)
    text_of = {document.id: document.text for piece in pieces for document in piece}
    verdicts = {
        document.id: outcome
        for piece, decided in zip(pieces, outcomes, strict=True)
        for document, outcome in zip(piece, decided, strict=True)
    }
    dropped = {name: named(outcome) for name, outcome in verdicts.items() if isinstance(outcome, Drop)}
    assert len(dropped) == figures["removed"] > 50
    for name, first in dropped.items():
        assert first not in dropped
        assert jaccard(text_of[name], text_of[first]) > 0.6
    counted = sum(
        outcome.metadata["occurrences"] for name, outcome in verdicts.items() if name not in dropped
    )
    assert counted == len(texts)
