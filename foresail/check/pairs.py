"""A look at the preference pairs of a recipe: rows, answers, and their lengths as the model will see them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import chain

from foresail.check.chats import set_length
from foresail.check.finding import Finding, may_open, note, refusal, warning
from foresail.check.lengths import look_at_lengths
from foresail.data.pairs import EncodedPairs, describe_unusable, pair_limit
from foresail.data.preferences import load_pairs
from foresail.data.reader import Reader
from foresail.recipe.dpo import Dpo
from foresail.recipe.reward_model import RewardModel
from foresail.recipe.sources import HeldOutPreferences, named


def look_at_pairs(
    recipe: Dpo | RewardModel, reader: Reader | None, *, max_context: int | None, largest: int | None
) -> Iterator[Finding]:
    limit, room_for = pair_limit(recipe.max_length), partial(set_length, max_context=max_context)
    for key, source in chain(named("data", recipe.data), named("eval", recipe.eval)):
        if not may_open(source.source, largest):
            continue
        try:
            if reader is None:
                load_pairs(source.source, source.limit)
                continue
            encoded = reader.pairs(source)
        except (OSError, ValueError, ImportError) as error:
            yield refusal(f"{key}: {error}")
            continue
        yield note(describe(key, source, encoded))
        if encoded.unusable:
            yield warning(f"{key}: {describe_unusable({source.label: encoded.unusable})}")
        yield from look_at_lengths(key, source, encoded.entries, limit, room_for)


def describe(key: str, source: HeldOutPreferences, encoded: EncodedPairs) -> str:
    chosen, rejected = (
        [sum(sequence.loss_mask) for sequence in side]
        for side in zip(*((pair.chosen, pair.rejected) for pair in encoded.entries), strict=True)
    )
    count = len(encoded.entries)
    return (
        f"{key}: {count:,} pairs of {source.label}, up to {max(len(pair.ids) for pair in encoded.entries)} tokens; "
        f"answers have {sum(chosen) / count:.1f} (chosen) and {sum(rejected) / count:.1f} tokens on average"
    )
