"""Sources as a tokenizer encodes them, each read once: the run takes over what was read in the look before it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from foresail.data.chats import encode_conversations, split_conversations
from foresail.data.problems import load_problems
from foresail.data.prompts import PromptedProblem, add_ids, with_instructions
from foresail.data.splitting import Split
from foresail.recipe.parts import Problems
from foresail.recipe.sources import Chatlog
from foresail.records import Problem, TrainSequence
from foresail.tokenizer.tokenizer import Tokenizer


@dataclass(frozen=True)
class Reader:
    """For one run: a file that changes later is not read again.

    `instructions` are the end of every problem's system prompt; `openings` adds what an environment says first.
    """

    tokenizer: Tokenizer
    instructions: str = ""
    openings: Callable[[list[Problem]], list[Problem]] | None = None
    read_problems: dict[Problems, list[PromptedProblem]] = field(default_factory=dict)
    read_conversations: dict[tuple[object, ...], list[TrainSequence]] = field(default_factory=dict)

    def problems(self, source: Problems) -> list[PromptedProblem]:
        """Each with its source's name, however long it is."""
        if source not in self.read_problems:
            named = [replace(problem, dataset=source.label) for problem in self.load(source)]
            self.read_problems[source] = add_ids(named, self.tokenizer)
        return self.read_problems[source]

    def load(self, source: Problems) -> list[Problem]:
        """With prompts as the model will see them, not yet encoded."""
        problems = load_problems(source)
        if self.openings is not None:
            problems = self.openings(problems)
        if self.instructions:
            problems = [with_instructions(problem, self.instructions) for problem in problems]
        return problems

    def says_the_same(self, other: Reader) -> bool:
        """Whether prompts are alike: the chat template is told the same, and so is the model."""
        mine, theirs = self.tokenizer.chat, other.tokenizer.chat
        same = mine is theirs or (mine is not None and theirs is not None and mine.options == theirs.options)
        opened = (self.openings is None) == (other.openings is None)
        return same and opened and self.instructions == other.instructions

    def conversations(self, source: Chatlog) -> list[TrainSequence]:
        """However long they are; stages may share a source."""
        key = (source.source, source.limit, source.roles, source.turns)
        if key not in self.read_conversations:
            self.read_conversations[key] = encode_conversations(source, self.tokenizer)
        return self.read_conversations[key]

    def split(self, source: Chatlog, rows: Sequence[int], max_tokens: int) -> dict[int, Split]:
        """These conversations in parts, by their numbers."""
        return split_conversations(source, self.tokenizer, rows, max_tokens)
