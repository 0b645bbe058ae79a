"""Inspects a recipe's preferences, pairs or answers judged alone: rows, labels, lengths as the model sees them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from typing import Any

from foresail.check.chats import set_length
from foresail.check.finding import Finding, may_open, note, refusal, warning
from foresail.check.lengths import look_at_lengths
from foresail.data.length_limit import LengthLimit
from foresail.data.mixtures.reader import Reader
from foresail.data.preferences.judged_answers import load_judged
from foresail.data.preferences.mixture import (
    EncodedPreferences,
    answer_limit,
    describe_one_label,
    describe_unusable,
    pair_limit,
)
from foresail.data.preferences.pairs import load_pairs
from foresail.recipe.stages.dpo import Dpo
from foresail.recipe.stages.kto import Kto
from foresail.recipe.stages.reward_model import RewardModel
from foresail.recipe.tables.sources import HeldOutPreferences, named
from foresail.records import TrainAnswer, TrainPair


def look_at_pairs(
    recipe: Dpo | RewardModel, reader: Reader | None, *, max_context: int | None, largest: int | None
) -> Iterator[Finding]:
    read = None if reader is None else reader.pairs
    limit = pair_limit(recipe.max_length)
    for finding, _ in look_at_sources(
        recipe, read, load_pairs, describe_pairs, limit, max_context=max_context, largest=largest
    ):
        yield finding


def look_at_answers(
    recipe: Kto, reader: Reader | None, *, max_context: int | None, largest: int | None
) -> Iterator[Finding]:
    """Inspect judged answers, and count the good and the bad ones."""
    read = None if reader is None else reader.answers
    limit, labels = answer_limit(recipe.max_length), dict[str, list[bool]]()
    for finding, (key, encoded) in look_at_sources(
        recipe, read, load_judged, describe_answers, limit, max_context=max_context, largest=largest
    ):
        yield finding
        if encoded is not None:
            labels[key] = [answer.desirable for answer in encoded.entries]
    learned = [key for key, _ in named("data", recipe.data)]
    if not all(key in labels for key in learned):
        return
    every = [label for key in learned for label in labels[key]]
    good = sum(every)
    if good in (0, len(every)):
        yield refusal(f"data: {describe_one_label(good=good > 0)}")
    elif (advice := recipe.loss.imbalance(good, len(every) - good)) is not None:
        yield warning(f"data: {advice}")


def look_at_sources(
    recipe: Dpo | RewardModel | Kto,
    read: Callable[[HeldOutPreferences], EncodedPreferences[Any]] | None,
    load: Callable[[str, int | None], object],
    describe: Callable[[str, HeldOutPreferences, EncodedPreferences[Any]], str],
    limit: LengthLimit,
    *,
    max_context: int | None,
    largest: int | None,
) -> Iterator[tuple[Finding, tuple[str, EncodedPreferences[Any] | None]]]:
    """Each finding, with the key of the source and its entries; without a tokenizer rows are only read."""
    room_for = partial(set_length, max_context=max_context)
    for key, source in chain(named("data", recipe.data), named("eval", recipe.eval)):
        if not may_open(source.source, largest):
            continue
        try:
            if read is None:
                load(source.source, source.limit)
                continue
            encoded = read(source)
        except (OSError, ValueError, ImportError) as error:
            yield refusal(f"{key}: {error}"), (key, None)
            continue
        yield note(describe(key, source, encoded)), (key, encoded)
        if encoded.unusable:
            yield warning(f"{key}: {describe_unusable({source.label: encoded.unusable})}"), (key, encoded)
        for finding in look_at_lengths(key, source, encoded.entries, limit, room_for):
            yield finding, (key, encoded)


def describe_pairs(key: str, source: HeldOutPreferences, encoded: EncodedPreferences[TrainPair]) -> str:
    chosen, rejected = (
        [sum(sequence.loss_mask) for sequence in side]
        for side in zip(*(pair.answers for pair in encoded.entries), strict=True)
    )
    count = len(encoded.entries)
    return (
        f"{key}: {count:,} pairs of {source.label}, up to {max(len(pair.ids) for pair in encoded.entries)} tokens; "
        f"answers have {sum(chosen) / count:.1f} (chosen) and {sum(rejected) / count:.1f} tokens on average"
    )


def describe_answers(key: str, source: HeldOutPreferences, encoded: EncodedPreferences[TrainAnswer]) -> str:
    answers, count = encoded.entries, len(encoded.entries)
    good = sum(answer.desirable for answer in answers)
    tokens = sum(sum(answer.answer.loss_mask) for answer in answers)
    return (
        f"{key}: {count:,} answers of {source.label}, {good:,} good and {count - good:,} bad, up to "
        f"{max(len(answer.ids) for answer in answers)} tokens with their prompts; {tokens / count:.1f} tokens each "
        "on average"
    )
