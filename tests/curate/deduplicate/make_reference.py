"""Writes datasketch.json: signatures and pairs of datasketch 2, which the tests compare with ours.

In an environment with datasketch: PYTHONPATH=.:tests/curate python tests/curate/deduplicate/make_reference.py
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from deduplicate.repeats import texts_with_copies
from deduplicate.strange_texts import hostile_texts

from foresail.curate.deduplicate.shingles import shingles

REFERENCE = Path(__file__).with_name("datasketch.json")
SIGNED = [
    (128, 1, 5, 8),
    (60, 7, 1, 1),
    (256, 2**32 - 1, 13, 3),
]  # permutations, seed, ngram, ngram_characters
CUTS = [(0.8, 0, 0), (0.6, 0, 0), (0.0, 16, 8), (0.0, 4, 30)]  # threshold, or bands and rows


def signed_texts() -> list[str]:
    return hostile_texts(seed=3, count=60)


def paired_texts() -> list[str]:
    return texts_with_copies(seed=7, originals=120)


def main() -> None:
    import datasketch

    def signature(text: str, count: int = 128, seed: int = 1, *ngrams: int) -> datasketch.MinHash:
        made = datasketch.MinHash(num_perm=count, seed=seed)
        made.update_batch([shingle.encode() for shingle in shingles(text, *ngrams)])
        return made

    signatures = {
        json.dumps(settings): [
            hashlib.sha256(signature(text, *settings).hashvalues.astype("<u4").tobytes()).hexdigest()[:16]
            for text in signed_texts()
        ]
        for settings in SIGNED
    }
    pairs = {}
    made = [signature(text) for text in paired_texts()]
    for threshold, bands, rows in CUTS:
        lsh = datasketch.MinHashLSH(threshold or 0.5, 128, params=(bands, rows) if bands else None)
        for number, own in enumerate(made):
            lsh.insert(number, own)
        found = sorted(
            [other, number] for number, own in enumerate(made) for other in lsh.query(own) if other < number
        )
        pairs[json.dumps([threshold, bands, rows])] = {"cut": [lsh.b, lsh.r], "pairs": found}
    REFERENCE.write_text(
        json.dumps({"datasketch": datasketch.__version__, "signatures": signatures, "pairs": pairs}) + "\n"
    )


if __name__ == "__main__":
    main()
