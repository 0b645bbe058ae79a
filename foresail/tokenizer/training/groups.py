"""One vocabulary of several groups: sub-tokenizers merged by relative rank, or one trained on all texts.

    interleave([Pieces(merged=("th", "the")), Pieces(merged=("zu",))], shares=[2, 1]) -> ["th", "zu", "the"]

Merged, each group brings as many of its pieces as its share says, whatever its amount of text. Trained jointly, a
language with little text gets few pieces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from foresail.tokenizer.files import TokenizerFiles
from foresail.tokenizer.tokenizer import Tokenizer
from foresail.tokenizer.training.chat_tokens import CHAT_FORMS, split_out
from foresail.tokenizer.training.definition import write_definition
from foresail.tokenizer.training.pattern import WORDS
from foresail.tokenizer.training.pieces import Pieces, train_pieces
from foresail.tokenizer.training.recipe import Group, TokenizerRecipe
from foresail.tokenizer.training.vocabulary import Vocabulary, fill

RESERVE = (
    1.5  # pieces that are trained for each that is needed: pieces that groups share, or that are left out
)
Note = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Trained:
    """`pieces`: how many each group brought; a piece of several groups counts for each."""

    tokenizer: Tokenizer
    vocabulary: Vocabulary
    pieces: Mapping[str, int]


def train_groups(
    recipe: TokenizerRecipe, open_texts: Callable[[Group], Iterable[str]], note: Note = lambda text: None
) -> Trained:
    """`open_texts` gives a group's texts; the same texts in the same order make the same tokenizer."""
    form = CHAT_FORMS[recipe.chat]
    specials = [*dict.fromkeys([*form.specials, *recipe.special_tokens])]
    wholes = [text for text in dict.fromkeys(recipe.whole_tokens) if text not in specials]
    size = recipe.size - len(specials) - len(wholes)

    def open_clean(group: Group) -> Iterator[str]:
        return split_out(map(without_surrogates, open_texts(group)), [*specials, *wholes])

    if recipe.training == "joint":
        texts = (text for group in recipe.group for text in repeat(open_clean(group), group.weight))
        groups = {"joint": train(recipe, texts, size)}
        shares = [1.0]
    else:
        total = sum(group.vocab_size for group in recipe.group)
        groups = {}
        for group in recipe.group:
            share = round(size * group.vocab_size / total)
            groups[group.name] = train(recipe, open_clean(group), share)
            note(f"{group.name}: {len(groups[group.name].merged)} pieces")
        shares = [float(group.vocab_size) for group in recipe.group]
    vocabulary = fill(
        interleave([*groups.values()], shares),
        characters=[character for pieces in groups.values() for character in pieces.characters],
        size=size,
        pattern=WORDS,
        note=note,
    )
    tokenizer = Tokenizer(
        TokenizerFiles(
            definition=write_definition(vocabulary.tokens, WORDS, specials=specials, wholes=wholes),
            config={
                "tokenizer_class": "PreTrainedTokenizerFast",
                "eos_token": form.end,
                "pad_token": form.end,
                "clean_up_tokenization_spaces": False,
            },
            chat_template=form.template,
        )
    )
    known = {*vocabulary.tokens}
    return Trained(
        tokenizer=tokenizer,
        vocabulary=vocabulary,
        pieces={
            name: sum(piece.encode() in known for piece in pieces.merged) for name, pieces in groups.items()
        },
    )


def train(recipe: TokenizerRecipe, texts: Iterable[str], share: int) -> Pieces:
    size = int(share * RESERVE) + 256
    return train_pieces(
        texts, size=size, max_characters=recipe.max_piece_characters, coverage=recipe.character_coverage
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


def without_surrogates(text: str) -> str:
    """A text of JSON may hold halves of characters, which no tokenizer can encode."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
