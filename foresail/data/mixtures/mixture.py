"""The mixtures of a recipe's sources as ids, one source after the other.

Entries that are too long are an error, or dropped and counted, as each source says; conversations may also be
split, and some of them held out. Everything that is left out is counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from foresail.data.length_limit import LengthLimit
from foresail.data.mix import Mixture, count, mix
from foresail.data.mixtures.held_out_rows import choose_held_out
from foresail.data.mixtures.reader import Reader
from foresail.data.problems.prompts import PromptedProblem, check_ids
from foresail.recipe.tables.parts import Problems
from foresail.recipe.tables.sources import Chatlog, Conversations
from foresail.records import TrainSequence


@dataclass(frozen=True, kw_only=True)
class ChatMixture(Mixture[TrainSequence]):
    """`rows` has the number of each entry's conversation in its source, from 0; `held_out` is kept from training.

    Counted by source: conversations that were split, exchanges of them that were too long even alone, and
    conversations without any loss.
    """

    rows: list[int] = field(default_factory=list)
    held_out: dict[str, list[TrainSequence]] = field(default_factory=dict)
    split: dict[str, int] = field(default_factory=dict)
    lost_turns: dict[str, int] = field(default_factory=dict)
    without_loss: dict[str, int] = field(default_factory=dict)


def mix_problems(sources: Sequence[Problems], reader: Reader, max_tokens: int) -> Mixture[PromptedProblem]:
    mixture = mix(sources, tell_apart([*map(reader.problems, sources)]), prompt_limit(max_tokens))
    check_ids(mixture.entries)
    return mixture


def mix_conversations(sources: Sequence[Chatlog], reader: Reader, max_length: int) -> ChatMixture:
    mixture = ChatMixture()
    for source in sources:
        sequences, rows = reader.conversations(source), reader.rows(source)
        amount = source.held_out if isinstance(source, Conversations) else 0
        held_out = choose_held_out(sequences, amount, source.source) if amount else frozenset[int]()
        fitting = fit_rows(source, sequences, reader, max_length, mixture)
        if apart := [entry for row, entry in fitting if row in held_out]:
            mixture.held_out.setdefault(source.label, []).extend(apart)
        mixture.add(source.label, [entry for row, entry in fitting if row not in held_out])
        mixture.rows.extend(rows[row] for row, _ in fitting if row not in held_out)
    return mixture


def fit_rows(
    source: Chatlog,
    sequences: Sequence[TrainSequence],
    reader: Reader,
    max_length: int,
    mixture: ChatMixture,
) -> list[tuple[int, TrainSequence]]:
    """Those with a loss that fit, or the parts that do; what is left out is counted in `mixture`."""
    limit, label = conversation_limit(max_length), source.label
    too_long = [row for row, entry in enumerate(sequences) if not limit.fits(entry)]
    if too_long and source.too_long == "split":
        parts = reader.split(source, too_long, max_length)
        rows = [
            (row, part)
            for row, entry in enumerate(sequences)
            for part in (parts[row].parts if row in parts else (entry,))
        ]
        whole_lost = sum(not split.parts for split in parts.values())
        count(mixture.split, label, len(parts) - whole_lost)
        count(mixture.dropped, label, whole_lost)
        count(mixture.lost_turns, label, sum(split.lost for split in parts.values() if split.parts))
        if not rows:
            limit.keep(sequences, "error", source.source)
    else:
        fitting = limit.keep(sequences, "drop" if source.too_long == "drop" else "error", source.source)
        rows = [(row, entry) for row, entry in enumerate(sequences) if limit.fits(entry)]
        count(mixture.dropped, label, len(sequences) - len(fitting))
    learnt = [(row, entry) for row, entry in rows if any(entry.loss_mask)]
    count(mixture.without_loss, label, len(rows) - len(learnt))
    return learnt


def prompt_limit(tokens: int) -> LengthLimit:
    return LengthLimit(unit="prompts", key="max_prompt_tokens", tokens=tokens)


def conversation_limit(tokens: int) -> LengthLimit:
    return LengthLimit(unit="conversations", key="max_length", tokens=tokens)


def tell_apart(sources: Sequence[Sequence[PromptedProblem]]) -> list[list[PromptedProblem]]:
    """Ids that occur in two sources get their source's name before them: "7" -> "gsm8k:7". All others stay."""
    sources_of = Counter(id for entries in sources for id in {entry.problem.id for entry in entries})
    return [
        [name_source(entry) if sources_of[entry.problem.id] > 1 else entry for entry in entries]
        for entries in sources
    ]


def name_source(entry: PromptedProblem) -> PromptedProblem:
    problem = entry.problem
    return replace(entry, problem=replace(problem, id=f"{problem.dataset}:{problem.id}"))


def describe_chats(chats: ChatMixture, max_length: int) -> list[str]:
    """What was left out or split, a line each."""
    limit = f"max_length {max_length}"
    return [
        line
        for counts, line in (
            (chats.dropped, describe_dropped(chats.dropped, limit)),
            (chats.split, f"split between turns, as longer than {limit}: {by_source(chats.split)}"),
            (
                chats.lost_turns,
                f"exchanges of these dropped, as longer than {limit} even alone: {by_source(chats.lost_turns)}",
            ),
            (chats.without_loss, f"left out as without a loss: {by_source(chats.without_loss)}"),
        )
        if counts
    ]


def by_source(counts: dict[str, int]) -> str:
    return ", ".join(f"{number:,} of {name}" for name, number in counts.items())


def describe_dropped(dropped: dict[str, int], limit: str) -> str:
    """describe_dropped({"gsm8k": 3}, "max_prompt_tokens 64") -> "dropped as longer than …: 3 of gsm8k"."""
    return f"dropped as longer than {limit}: {by_source(dropped)}"
