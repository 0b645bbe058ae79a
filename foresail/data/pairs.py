"""Preference pairs as ids and loss masks, of all sources of a recipe."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from foresail.data.length_limit import LengthLimit
from foresail.data.preferences import load_pairs
from foresail.recipe.sources import HeldOutPreferences
from foresail.records import Message, PreferencePair, TrainPair, TrainSequence
from foresail.tokenizer.tokenizer import Tokenizer


@dataclass(frozen=True, kw_only=True)
class EncodedPairs:
    """What one source holds, and how many of its rows teach nothing, by the reason."""

    entries: list[TrainPair]
    unusable: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class PairMixture:
    """What there is to draw from, the source of each, and by source how many were too long or taught nothing."""

    entries: list[TrainPair]
    datasets: list[str]
    dropped: dict[str, int] = field(default_factory=dict)
    unusable: dict[str, Mapping[str, int]] = field(default_factory=dict)


def encode_pairs(source: HeldOutPreferences, tokenizer: Tokenizer) -> EncodedPairs:
    loaded = load_pairs(source.source, source.limit)
    entries = []
    for place, pair in zip(loaded.places, loaded.pairs, strict=True):
        try:
            entries.append(encode_pair(pair, tokenizer, name=place))
        except ValueError as error:
            raise ValueError(f"{place}: {error}") from error
    return EncodedPairs(entries=entries, unusable=loaded.unusable)


def encode_pair(pair: PreferencePair, tokenizer: Tokenizer, name: str = "") -> TrainPair:
    return TrainPair(
        name=name,
        chosen=encode_answer(pair, pair.chosen, tokenizer, f"{name} chosen".strip()),
        rejected=encode_answer(pair, pair.rejected, tokenizer, f"{name} rejected".strip()),
        margin=pair.margin,
    )


def encode_answer(
    pair: PreferencePair, answer: Sequence[Message], tokenizer: Tokenizer, name: str
) -> TrainSequence:
    """The prompt and one of the answers. The assistant's turns in the prompt have no loss: every turn with a loss
    ends with its only end-of-turn token, so as many of these are passed as the prompt has such turns.
    """
    ids, mask = tokenizer.encode_conversation([*pair.prompt, *answer], tools=pair.tools)
    earlier = sum(message.role == "assistant" for message in pair.prompt)
    ends = [place for place, learned in enumerate(mask) if learned and ids[place] in tokenizer.eos_ids]
    begin = ends[earlier - 1] + 1 if earlier else 0
    return TrainSequence(name=name, ids=ids, loss_mask=[0] * begin + mask[begin:])


def mix_pairs(
    sources: Sequence[HeldOutPreferences], read: Callable[[HeldOutPreferences], EncodedPairs], max_length: int
) -> PairMixture:
    """`read` is a reader's `pairs`. What is too long is an error, or dropped and counted, as each source says."""
    limit = pair_limit(max_length)
    entries: list[TrainPair] = []
    datasets: list[str] = []
    dropped: dict[str, int] = {}
    unusable: dict[str, Mapping[str, int]] = {}
    for source in sources:
        encoded = read(source)
        fitting = limit.keep(encoded.entries, source.too_long, source.source)
        entries += fitting
        datasets += [source.label] * len(fitting)
        if len(fitting) < len(encoded.entries):
            dropped[source.label] = len(encoded.entries) - len(fitting)
        if encoded.unusable:
            unusable[source.label] = encoded.unusable
    return PairMixture(entries=entries, datasets=datasets, dropped=dropped, unusable=unusable)


def pair_limit(tokens: int) -> LengthLimit:
    return LengthLimit(unit="pairs", key="max_length", tokens=tokens)


def describe_unusable(unusable: Mapping[str, Mapping[str, int]]) -> str:
    """describe_unusable({"hh": {"with equal answers": 3}}) -> "left out: 3 of hh with equal answers"."""
    counts = [f"{count:,} of {name} {why}" for name, by in unusable.items() for why, count in by.items()]
    return f"left out: {', '.join(counts)}"
