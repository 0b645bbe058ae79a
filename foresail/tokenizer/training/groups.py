"""Pieces of several groups as one list of candidates: sub-tokenizers by relative rank, or one of all texts.

    interleave([Pieces(merged=("th", "the")), Pieces(merged=("zu",))], shares=[2, 1]) -> ["th", "zu", "the"]

Merged, each group brings as many of its pieces as its share says, whatever its amount of text. Trained jointly, a
language with little text gets few pieces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from foresail.tokenizer.training.pieces import Pieces, train_pieces
from foresail.tokenizer.training.recipe import Group, TokenizerRecipe

RESERVE = 1.5  # pieces that are trained for each that is needed: groups share some, and some are left out


def train_merged(
    recipe: TokenizerRecipe, open_texts: Callable[[Group], Iterable[str]], size: int
) -> dict[str, Pieces]:
    """The pieces of every group, by its name."""
    total = sum(group.vocab_size for group in recipe.group)
    return {
        group.name: train(recipe, open_texts(group), round(size * group.vocab_size / total))
        for group in recipe.group
    }


def train_jointly(
    recipe: TokenizerRecipe, open_texts: Callable[[Group], Iterable[str]], size: int
) -> dict[str, Pieces]:
    texts = (text for group in recipe.group for text in repeat(open_texts(group), group.weight))
    return {"joint": train(recipe, texts, size)}


def train(recipe: TokenizerRecipe, texts: Iterable[str], share: int) -> Pieces:
    return train_pieces(
        texts,
        size=int(share * RESERVE) + 256,
        max_characters=recipe.max_piece_characters,
        coverage=recipe.character_coverage,
    )


def interleave(groups: Sequence[Pieces], shares: Sequence[float]) -> list[str]:
    """All merged pieces by their place in their group over the group's share; each once, at its best place."""
    places = [
        ((place + 1) / share, number, piece)
        for number, (pieces, share) in enumerate(zip(groups, shares, strict=True))
        for place, piece in enumerate(pieces.merged)
    ]
    return [*dict.fromkeys(piece for _, _, piece in sorted(places))]


def repeat(texts: Iterable[str], weight: float) -> Iterator[str]:
    """Each text `weight` times in the mean: repeat(["a", "b"], 1.5) -> "a", "b", "b"."""
    for number, text in enumerate(texts):
        for _ in range(int((number + 1) * weight) - int(number * weight)):
            yield text
