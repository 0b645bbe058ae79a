"""Preference pairs as ids and loss masks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from foresail.data.preferences.loading import LoadedEntries
from foresail.data.preferences.mixture import EncodedPreferences, Entry
from foresail.data.preferences.pairs import load_pairs
from foresail.recipe.tables.sources import HeldOutPreferences
from foresail.records import Message, PreferencePair, TrainPair, TrainSequence
from foresail.tokenizer.tokenizer import Tokenizer

T = TypeVar("T")


def encode_pairs(source: HeldOutPreferences, tokenizer: Tokenizer) -> EncodedPreferences[TrainPair]:
    return encode_entries(
        load_pairs(source.source, source.limit), lambda pair, place: encode_pair(pair, tokenizer, name=place)
    )


def encode_entries(loaded: LoadedEntries[T], encode: Callable[[T, str], Entry]) -> EncodedPreferences[Entry]:
    """`encode` gets an entry and its place."""
    entries = []
    for place, entry in zip(loaded.places, loaded.entries, strict=True):
        try:
            entries.append(encode(entry, place))
        except ValueError as error:
            raise ValueError(f"{place}: {error}") from error
    return EncodedPreferences(entries=entries, unusable=loaded.unusable)


def encode_pair(pair: PreferencePair, tokenizer: Tokenizer, name: str = "") -> TrainPair:
    def encode(answer: Sequence[Message], side: str) -> TrainSequence:
        return encode_answer(pair.prompt, answer, tokenizer, f"{name} {side}".strip(), tools=pair.tools)

    return TrainPair(
        name=name,
        chosen=encode(pair.chosen, "chosen"),
        rejected=encode(pair.rejected, "rejected"),
        margin=pair.margin,
    )


def encode_answer(
    prompt: Sequence[Message],
    answer: Sequence[Message],
    tokenizer: Tokenizer,
    name: str,
    *,
    tools: Sequence[Mapping[str, Any]] = (),
) -> TrainSequence:
    """The prompt and an answer to it. The assistant's turns in the prompt have no loss: they are skipped by
    counting end-of-turn tokens, of which every turn with a loss has exactly one.
    """
    ids, mask = tokenizer.encode_conversation([*prompt, *answer], tools=tools)
    earlier = sum(message.role == "assistant" for message in prompt)
    ends = [place for place, learned in enumerate(mask) if learned and ids[place] in tokenizer.eos_ids]
    begin = ends[earlier - 1] + 1 if earlier else 0
    return TrainSequence(name=name, ids=ids, loss_mask=[0] * begin + mask[begin:])
