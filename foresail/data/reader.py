"""Sources as a tokenizer encodes them, each read once: the run takes over what was read in the look before it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from foresail.data.chats import encode_conversations
from foresail.data.problems import load_problems
from foresail.data.prompts import PromptedProblem, add_ids
from foresail.recipe.parts import Problems
from foresail.recipe.sources import Conversations
from foresail.records import TrainSequence
from foresail.tokenizer.tokenizer import Tokenizer


@dataclass(frozen=True)
class Reader:
    """For one run: a file that changes later is not read again."""

    tokenizer: Tokenizer
    read_problems: dict[Problems, list[PromptedProblem]] = field(default_factory=dict)
    read_conversations: dict[Conversations, list[TrainSequence]] = field(default_factory=dict)

    def problems(self, source: Problems) -> list[PromptedProblem]:
        """Each with its source's name, however long it is."""
        if source not in self.read_problems:
            named = [replace(problem, dataset=source.label) for problem in load_problems(source)]
            self.read_problems[source] = add_ids(named, self.tokenizer)
        return self.read_problems[source]

    def conversations(self, source: Conversations) -> list[TrainSequence]:
        if source not in self.read_conversations:
            self.read_conversations[source] = encode_conversations(source, self.tokenizer)
        return self.read_conversations[source]
