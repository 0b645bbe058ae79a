"""Vectors of the new tokenizer's tokens in another space, in which the pursuit finds like tokens.

From a donor, a checkpoint that has the new tokenizer already, or from a sample of texts: what stands around a token
there. A token that the sample does not hold, or hardly, has none.

Legend: N new tokens, A width.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from foresail.model.hf import locate_tensors, open_weights
from foresail.model.transplant.contexts import context_vectors
from foresail.tokenizer.comparison import vocabulary_difference
from foresail.tokenizer.documents import DocumentEncoder
from foresail.tokenizer.parts import cut_parts
from foresail.tokenizer.tokenizer import Tokenizer

EMBEDDING, HEAD = "model.embed_tokens.weight", "lm_head.weight"
SEEN_OFTEN = 5  # a token's neighbours say something from so many on
TEXTS_AT_ONCE = 256


def donor_vectors(donor: Path, new: Tokenizer) -> dict[str, Tensor]:
    """The donor's input and output embeddings, in float32; where they are tied, one for both."""
    difference = vocabulary_difference(new, Tokenizer.load(donor))
    if difference is not None:
        raise ValueError(
            f"--donor {donor} has another tokenizer than the new one: {difference}; name a checkpoint that has the "
            "new tokenizer, or give a sample of texts: --text"
        )
    files = locate_tensors(donor)
    tables = {}
    for name in (EMBEDDING, HEAD):
        if name in files:
            with open_weights(files[name]) as weights:
                tables[name] = weights.get_tensor(name).float()
    return {"embed.weight": tables[EMBEDDING], "head.weight": tables.get(HEAD, tables[EMBEDDING])}


def text_vectors(texts: Iterable[str], new: Tokenizer, *, width: int) -> tuple[Tensor, frozenset[int]]:
    """Vectors of length 1 from what stands around each token, and the ids that were seen often enough."""
    vectors_NA, seen_N = context_vectors(encode_texts(texts, new), vocab_size=new.vocab_size, width=width)
    if not seen_N.any():
        raise ValueError("--text holds no text; name files with documents in them")
    lengths_N = np.maximum(np.linalg.norm(vectors_NA, axis=1, keepdims=True), 1e-30)
    known = np.flatnonzero(seen_N >= SEEN_OFTEN).tolist()
    return torch.from_numpy(vectors_NA / lengths_N), frozenset(known)


def encode_texts(texts: Iterable[str], tokenizer: Tokenizer) -> Iterator[Sequence[int]]:
    encoder, parts = DocumentEncoder(tokenizer), (part for text in texts for part in cut_parts(text))
    while some := [*islice(parts, TEXTS_AT_ONCE)]:
        yield from encoder.encode([part.encode(errors="replace").decode() for part in some])
