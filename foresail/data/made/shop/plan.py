"""The row of each number: its task, language and form, what it is about, and its phrase.

A block of numbers has one row for each task in each language, in a random order. Within a task and language the
forms take turns, each goes through its anchors in a random order, and phrases take turns. An anchor comes again,
with another phrase, when all have come. When phrases and anchors are used up, the table gives no more rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from random import Random

from foresail.data.made.shop.catalogue import TASKS
from foresail.data.made.shop.form import Anchor, Form
from foresail.data.made.shop.language import Language, read_language
from foresail.data.made.shop.order import shuffled
from foresail.data.made.shop.table import Pool, Table

# split of products, split of phrases
SPLITS = {
    "train": ("train", "train"),
    "test": ("test", "test"),
    "test-products": ("test", "train"),
    "test-templates": ("train", "test"),
}


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a row stands: `phrase` is the number of a template of its form."""

    task: str
    language: Language
    pool: Pool
    form: Form
    anchor: Anchor
    phrase: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Stratum:
    """The anchors of a form in one language, and how many phrases each can have."""

    form: Form
    anchors: Sequence[Anchor]
    phrases: int

    @property
    def size(self) -> int:
        return len(self.anchors) * self.phrases


@dataclass(frozen=True, kw_only=True, eq=False)
class Plan:
    table: Table
    seed: int
    languages: tuple[str, ...]
    tasks: tuple[str, ...]
    split: str

    @cached_property
    def cells(self) -> tuple[tuple[str, str], ...]:
        return tuple((task, language) for task in self.tasks for language in self.languages)

    @cached_property
    def pools(self) -> dict[str, Pool]:
        products, _ = SPLITS[self.split]
        return {
            code: Pool(table=table, products=tuple(one for one in table.products if one.split == products))
            for code in self.languages
            for table in (read_language(code).localized(self.table),)
        }

    @cached_property
    def strata(self) -> dict[tuple[str, str], tuple[Stratum, ...]]:
        """Of each cell, the forms that have anchors."""
        _, phrases = SPLITS[self.split]
        strata = {}
        for task, code in self.cells:
            of_task = read_language(code).phrases[task]
            of_forms = [
                Stratum(
                    form=form,
                    anchors=form.anchors(self.pools[code])
                    if self.table.columns.issuperset(form.needs)
                    else (),
                    phrases=len(of_task[form.name][phrases]),
                )
                for form in TASKS[task]
            ]
            strata[task, code] = tuple(stratum for stratum in of_forms if stratum.anchors)
        return strata

    @cached_property
    def capacity(self) -> int:
        """How many different rows there are, with as many of each task and language."""
        return len(self.cells) * min(
            sum(stratum.size for stratum in self.strata[cell]) for cell in self.cells
        )

    def smallest(self) -> str:
        """The task that ends first."""
        task, _ = min(self.cells, key=lambda cell: sum(stratum.size for stratum in self.strata[cell]))
        return task

    def empty_tasks(self) -> list[str]:
        return list(dict.fromkeys(task for task, code in self.cells if not self.strata[task, code]))

    def place(self, number: int) -> Place:
        block, position = divmod(number, len(self.cells))
        task, code = self.cells[block_order(len(self.cells), self.seed, block)[position]]
        strata = self.strata[task, code]
        which, turn = take_turns([stratum.size for stratum in strata], block, self.languages.index(code))
        stratum = strata[which]
        form = stratum.form
        count = len(stratum.anchors)
        again, turn = divmod(turn, count)
        return Place(
            task=task,
            language=read_language(code),
            pool=self.pools[code],
            form=form,
            anchor=stratum.anchors[shuffled(turn, count, self.seed, task, form.name, code)],
            phrase=(turn + again) % stratum.phrases,
        )


@lru_cache(maxsize=16)  # rows come in order
def block_order(count: int, seed: int, block: int) -> tuple[int, ...]:
    return tuple(Random(f"shop block {seed} {block}").sample(range(count), count))


def take_turns(sizes: Sequence[int], turn: int, first: int) -> tuple[int, int]:
    """Which stratum's turn it is, and which of its own it is; a stratum that is used up is left out.

    take_turns([5, 1, 5], 3, 0) -> (0, 1); after one turn each the second is used up.
    """
    order = [*range(first % len(sizes), len(sizes)), *range(first % len(sizes))]
    done = 0  # turns of each stratum that is left
    while True:
        left = [stratum for stratum in order if sizes[stratum] > done]
        rounds = min(sizes[stratum] for stratum in left) - done
        if turn < rounds * len(left):
            return left[turn % len(left)], done + turn // len(left)
        turn -= rounds * len(left)
        done += rounds
