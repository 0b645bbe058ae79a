"""Reads and encodes sources, each once: the run reuses what the inspection before it has read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from foresail.data.chats.encode import encode_chats, in_turns, load_source, split_conversations
from foresail.data.chats.splitting import Split
from foresail.data.preferences.encode import encode_pairs
from foresail.data.preferences.judged_answers import encode_judged
from foresail.data.preferences.mixture import EncodedPreferences
from foresail.data.problems.problems import load_problems
from foresail.data.problems.prompts import PromptedProblem, add_ids, with_instructions
from foresail.recipe.tables.parts import Problems
from foresail.recipe.tables.sources import Chatlog, HeldOutPreferences
from foresail.records import Problem, TrainAnswer, TrainPair, TrainSequence
from foresail.tokenizer.tokenizer import Tokenizer


@dataclass(frozen=True)
class Reader:
    """The sources of one run; a file that changes later is not read again.

    `instructions` are the end of every problem's system prompt; `openings` adds what an environment says first.
    """

    tokenizer: Tokenizer
    instructions: str = ""
    openings: Callable[[list[Problem]], list[Problem]] | None = None
    read_problems: dict[Problems, list[PromptedProblem]] = field(default_factory=dict)
    read_pairs: dict[HeldOutPreferences, EncodedPreferences[TrainPair]] = field(default_factory=dict)
    read_answers: dict[HeldOutPreferences, EncodedPreferences[TrainAnswer]] = field(default_factory=dict)
    read_conversations: dict[tuple[object, ...], list[TrainSequence]] = field(default_factory=dict)
    read_rows: dict[tuple[object, ...], list[int]] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)  # by source: what its window left out

    def problems(self, source: Problems) -> list[PromptedProblem]:
        """Each with its source's name, however long it is."""
        if source not in self.read_problems:
            labelled = [replace(problem, dataset=source.label) for problem in self.load(source)]
            self.read_problems[source] = add_ids(labelled, self.tokenizer)
        return self.read_problems[source]

    def load(self, source: Problems) -> list[Problem]:
        """With prompts as the model will see them, not yet encoded."""
        problems = load_problems(source)
        if self.openings is not None:
            problems = self.openings(problems)
        if self.instructions:
            problems = [with_instructions(problem, self.instructions) for problem in problems]
        return problems

    def encodes_alike(self, other: Reader) -> bool:
        """Whether prompts are encoded alike: with the same template arguments and instructions."""
        mine, theirs = self.tokenizer.chat, other.tokenizer.chat
        same = mine is theirs or (mine is not None and theirs is not None and mine.options == theirs.options)
        opened = (self.openings is None) == (other.openings is None)
        return same and opened and self.instructions == other.instructions

    def answers(self, source: HeldOutPreferences) -> EncodedPreferences[TrainAnswer]:
        if source not in self.read_answers:
            self.read_answers[source] = encode_judged(source, self.tokenizer)
        return self.read_answers[source]

    def pairs(self, source: HeldOutPreferences) -> EncodedPreferences[TrainPair]:
        if source not in self.read_pairs:
            self.read_pairs[source] = encode_pairs(source, self.tokenizer)
        return self.read_pairs[source]

    def conversations(self, source: Chatlog) -> list[TrainSequence]:
        """However long they are; stages may share a source."""
        key = reading_of(source)
        if key not in self.read_conversations:
            windowed = load_source(source)
            chats = in_turns(windowed.kept, source, self.tokenizer)
            self.read_conversations[key] = encode_chats(chats, source, self.tokenizer)
            self.read_rows[key] = [chat.row for chat in chats]
            if source.pass_window is not None:
                self.notes[source.label] = f"{source.label}: {windowed.describe(source.pass_window)}"
        return self.read_conversations[key]

    def rows(self, source: Chatlog) -> list[int]:
        """The row in its source of each of `conversations`: rows may be left out, or split into turns."""
        self.conversations(source)
        return self.read_rows[reading_of(source)]

    def split(self, source: Chatlog, rows: Sequence[int], max_tokens: int) -> dict[int, Split]:
        """These conversations in parts, by their numbers."""
        return split_conversations(source, self.tokenizer, rows, max_tokens)


def reading_of(source: Chatlog) -> tuple[object, ...]:
    """A cache key: all settings that its conversations depend on."""
    window = (source.pass_rates, source.pass_window)
    return (source.source, source.limit, source.roles, source.turns, source.thinking, *window)
