"""Long-context tasks written out with their answers: documents to learn from.

    DocumentMaker(plan=DocumentPlan(lengths=(512, 4096)), encode=tokenizer.encode).make(7)

A document is an item of one of the tasks and its solution, or a drill: many needles, and questions about them one
after the other, which give more loss tokens. Lengths are drawn evenly on a logarithmic scale; they count all
tokens, the end token included.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, partial
from random import Random

from foresail.data.long_context.filler import Filler, made_filler
from foresail.data.long_context.fit import Encode, TooShort, WordCounts, fit
from foresail.data.long_context.haystack import NIAH_INTRO, WORD_TOKENS, Hay, Needle, bury, draw_unseen
from foresail.data.long_context.tasks import TASKS, check_task, make_item
from foresail.data.long_context.words import draw_codes, draw_keys

DRILL = "drill"
KINDS = (*TASKS, DRILL)
TRAINING_SEED = 1_000_003  # added to the seed, so that evaluations never ask for what stood in a document
MAX_DRILLED = 16
NEEDLES_SHARE = 0.5  # of a drill at most
ATTEMPTS = 4  # lengths drawn until one is long enough for its task


@dataclass(frozen=True, kw_only=True)
class DocumentPlan:
    """Documents of `kinds` (tasks or "drill") in turn, with lengths from the first of `lengths` to the second."""

    lengths: tuple[int, int]
    kinds: tuple[str, ...] = KINDS
    seed: int = 0

    def check(self) -> None:
        for kind in self.kinds:
            if kind != DRILL:
                check_task(kind)
        if not 0 < self.lengths[0] <= self.lengths[1]:
            raise ValueError(
                f"lengths {self.lengths[0]}-{self.lengths[1]} are no range of tokens; try 512-4096"
            )


@dataclass(frozen=True, kw_only=True)
class DocumentMaker:
    """Documents by their number, each a pure function of plan, number, tokenizer and filler."""

    plan: DocumentPlan
    encode: Encode
    filler: Filler = made_filler

    @cached_property
    def count(self) -> WordCounts:
        return WordCounts(self.encode)

    def make(self, index: int) -> str:
        kind = self.plan.kinds[index % len(self.plan.kinds)]
        rng = Random(f"document {self.plan.seed} {index}")
        for _ in range(ATTEMPTS):
            try:
                return self.write(kind, index, draw_length(rng, *self.plan.lengths))
            except TooShort:
                pass
        return self.write(kind, index, self.plan.lengths[1])

    def write(self, kind: str, index: int, limit: int) -> str:
        """A document of at most `limit` tokens, the end token included.

        Words are counted one by one; where the tokenizer gives more for all of it, it is written again, shorter.
        """
        length = limit - 1
        while True:
            text = self.write_about(kind, index, length)
            if (excess := len(self.encode(text)) - (limit - 1)) <= 0:
                return text
            length -= excess

    def write_about(self, kind: str, index: int, length: int) -> str:
        rng = Random(f"{kind} {self.plan.seed} {index}")
        if kind == DRILL:
            return make_drill(rng, length, self.count, self.filler)
        make = partial(
            make_item,
            kind,
            seed=self.plan.seed + TRAINING_SEED,
            index=index,
            depth=rng.random(),
            encode=self.count,
            filler=self.filler,
        )
        room = len(self.count(make(length=length).solution))
        item = make(length=length - room)
        return item.prompt + item.solution


def make_drill(rng: Random, length: int, encode: Encode, filler: Filler) -> str:
    """Needles all over the text, more in longer texts, and questions about them in random order."""
    hay = Hay(filler(rng))
    drawn = draw_unseen(
        rng, hay, lambda rng: [*draw_keys(rng, MAX_DRILLED), *draw_codes(rng, MAX_DRILLED)], words=length
    )
    pairs = zip(drawn[:MAX_DRILLED], drawn[MAX_DRILLED:], strict=True)
    facts = [f"The access code of {key} is {code}." for key, code in pairs]
    solved_questions = [f"What is the access code of {fact.split()[4]}?\n{fact}" for fact in facts]
    each = len(encode("\n\n".join((*facts, *solved_questions)))) / len(facts)
    count = max(1, min(MAX_DRILLED, int(NEEDLES_SHARE * length / each)))
    needles: list[Needle] = [(rng.random(), fact) for fact in facts[:count]]
    questions = rng.sample(solved_questions[:count], count)

    def write(words: int, padding: str) -> str:
        return "\n\n".join([NIAH_INTRO.rstrip(), bury(hay, needles, words, padding), *questions])

    return fit(write, encode, length, what=DRILL, each=WORD_TOKENS).text


def draw_length(rng: Random, shortest: int, longest: int) -> int:
    return min(longest, round(math.exp(rng.uniform(math.log(shortest), math.log(longest)))))
