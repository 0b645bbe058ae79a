"""From a recipe and its texts to a tokenizer: groups, one vocabulary, superwords, special tokens, chat template."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from foresail.tokenizer.files import TokenizerFiles
from foresail.tokenizer.tokenizer import Tokenizer
from foresail.tokenizer.training.chat_tokens import CHAT_FORMS, ChatForm, split_out
from foresail.tokenizer.training.definition import write_definition
from foresail.tokenizer.training.groups import interleave, train_jointly, train_merged
from foresail.tokenizer.training.pattern import SUPERWORDS, WORDS
from foresail.tokenizer.training.pieces import Pieces
from foresail.tokenizer.training.recipe import Group, TokenizerRecipe
from foresail.tokenizer.training.second_stage import find_superwords
from foresail.tokenizer.training.vocabulary import Note, Vocabulary, fill, spell

OpenTexts = Callable[[Group], Iterable[str]]


@dataclass(frozen=True, kw_only=True)
class Trained:
    """`pieces`: how many each group brought; a piece of several groups counts for each."""

    tokenizer: Tokenizer
    vocabulary: Vocabulary
    pieces: Mapping[str, int]


def build(recipe: TokenizerRecipe, open_texts: OpenTexts, note: Note = lambda text: None) -> Trained:
    """`open_texts` gives a group's texts; the same texts in the same order make the same tokenizer."""
    form = CHAT_FORMS[recipe.chat]
    specials = [*dict.fromkeys([*form.specials, *recipe.special_tokens])]
    wholes = [text for text in dict.fromkeys(recipe.whole_tokens) if text not in specials]
    size = recipe.size - len(specials) - len(wholes)

    def open_clean(group: Group) -> Iterator[str]:
        return split_out(map(without_surrogates, open_texts(group)), [*specials, *wholes])

    groups, vocabulary = first_stage(recipe, open_clean, size, note)
    if recipe.superwords is not None:
        vocabulary = add_superwords(recipe, vocabulary, open_clean, size, note)
    definition = write_definition(vocabulary.tokens, pattern_of(recipe), specials=specials, wholes=wholes)
    known = {*vocabulary.tokens}
    counts = {
        name: sum(piece.encode() in known for piece in pieces.merged) for name, pieces in groups.items()
    }
    return Trained(tokenizer=with_chat(definition, form), vocabulary=vocabulary, pieces=counts)


def first_stage(
    recipe: TokenizerRecipe, open_texts: OpenTexts, size: int, note: Note
) -> tuple[dict[str, Pieces], Vocabulary]:
    size -= recipe.superwords.tokens if recipe.superwords is not None else 0
    if recipe.training == "joint":
        groups, shares = train_jointly(recipe, open_texts, size), [1.0]
    else:
        groups = train_merged(recipe, open_texts, size)
        shares = [float(group.vocab_size) for group in recipe.group]
    for name, pieces in groups.items():
        note(f"{name}: {len(pieces.characters):,} characters, {len(pieces.merged):,} candidates")
    vocabulary = fill(
        interleave([*groups.values()], shares),
        base=spell(with_parts(character for pieces in groups.values() for character in pieces.characters)),
        size=size,
        pattern=WORDS,
        note=note,
    )
    return groups, vocabulary


def with_parts(characters: Iterable[str]) -> Iterator[str]:
    """Characters, and the letters and marks that they are made of, so that no text of these is written as bytes.

    with_parts(["é"]) -> "é", "e", "\u0301"
    """
    for character in characters:
        yield character
        yield from unicodedata.normalize("NFD", character)


def add_superwords(
    recipe: TokenizerRecipe, first: Vocabulary, open_texts: OpenTexts, size: int, note: Note
) -> Vocabulary:
    assert recipe.superwords is not None
    candidates = find_superwords(
        first.tokens,
        {group.name: open_texts(group) for group in recipe.group},
        {group.name: float(group.vocab_size) for group in recipe.group},
        recipe.superwords,
    )
    note(f"superwords: {len(candidates):,} candidates")
    return fill(candidates, base=first.tokens, size=size, pattern=SUPERWORDS, note=note)


def pattern_of(recipe: TokenizerRecipe) -> str:
    return WORDS if recipe.superwords is None else SUPERWORDS


def with_chat(definition: str, form: ChatForm) -> Tokenizer:
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": form.end,
        "pad_token": form.end,
        "clean_up_tokenization_spaces": False,
    }
    return Tokenizer(TokenizerFiles(definition=definition, config=config, chat_template=form.template))


def without_surrogates(text: str) -> str:
    """A text of JSON may hold halves of characters, which no tokenizer can encode."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
