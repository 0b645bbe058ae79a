"""Candidates for superwords: what BPE makes of a sample of each group, from the tokens of the first stage on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import tokenizers

from foresail.tokenizer.training.definition import write_definition
from foresail.tokenizer.training.pattern import SUPERWORDS, cut_by
from foresail.tokenizer.training.reachable import is_text
from foresail.tokenizer.training.recipe import Superwords
from foresail.tokenizer.training.superwords import continue_bpe

RESERVE = 1.25  # candidates for each that is needed
WHOLE = 10**9  # the weight of all groups together


def find_superwords(
    tokens: Sequence[bytes],
    groups: Mapping[str, Iterable[str]],
    shares: Mapping[str, float],
    settings: Superwords,
) -> list[str]:
    """The best first. Each group weighs as much as its share, whatever the size of its texts."""
    core = tokenizers.Tokenizer.from_str(write_definition(tokens, SUPERWORDS))
    parts: list[list[int]] = []
    weights: list[int] = []
    for name, texts in groups.items():
        counts = count_parts(sample(texts, settings.megabytes * 1e6))
        encodings = core.encode_batch_fast([*counts], add_special_tokens=False)
        length = sum(
            len(encoding.ids) * count for encoding, count in zip(encodings, counts.values(), strict=True)
        )
        scale = WHOLE * shares[name] / sum(shares.values()) / max(length, 1)
        for encoding, count in zip(encodings, counts.values(), strict=True):
            if len(encoding.ids) > 1:
                parts.append(encoding.ids)
                weights.append(max(1, round(scale * count)))
    merges = continue_bpe(
        parts,
        weights=weights,
        # a token inside a character joins nothing
        lengths=[len(token.decode()) if is_text(token) else settings.max_characters for token in tokens],
        count=int(settings.tokens * RESERVE) + 64,
        max_length=settings.max_characters,
    )
    spelled = [*tokens]
    for left, right in merges:
        spelled.append(spelled[left] + spelled[right])
    return [token.decode() for token in spelled[len(tokens) :]]


def sample(texts: Iterable[str], limit: float) -> Iterator[str]:
    """Every n-th text, so that about `limit` bytes come from the whole length."""
    texts = list(texts)
    step = max(1, round(sum(len(text.encode()) for text in texts) / limit))
    yield from texts[::step]


def count_parts(texts: Iterable[str]) -> Counter[str]:
    cut = cut_by(SUPERWORDS)
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(part for part, _ in cut.pre_tokenize_str(text))
    return counts
