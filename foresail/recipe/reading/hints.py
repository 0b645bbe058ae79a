"""Hints for an unknown key. The first of these that is certain is given:

    max_completion_length   it is sampling.max_new_tokens here             another trainer's key: `other_trainers/`
    temperature             the nearest is sampling.temperature            ours, without its table
    sampling.top_p          stage = "sft" has no such key (…)      what only other stages have
    optimiser.lr            the nearest is optimizer.lr                    a slip, of our key or of theirs
    x.fsdp_config.y         `cluster.ranks` counts …                       anything in a table of another trainer

The same last name in another table is no hint: `critic.optimizer.lr` is nothing to somebody who wrote `a.b.lr`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any

from foresail.recipe.keys import all_keys
from foresail.recipe.other_trainers.answers import choose, keys_in, plain
from foresail.recipe.other_trainers.tables import ALL, ALONE, NAMES, KeyPlace, rows, table_rows
from foresail.recipe.other_trainers.values import value_note
from foresail.recipe.reading.slips import far_edits, name_edits, nearest, path_edits
from foresail.recipe.stages.table import STAGES, recipe_type

# A key without its table belongs to the first of these that has it.
USUAL_TABLES = ("sampling", "optimizer", "model", "reward", "data", "checkpoints", "environment", "stages")
# Names that belong to no table more than to another.
OF_MANY = ("columns", "min_tokens", "name", "rope_theta", "samples", "weight", "workers")
IN_TABLES = ("path", "kind", *OF_MANY)  # that tables within a table have for things of their own
SHAPE = "model.shape."  # whose names are those of any config.json
# Tables of other trainers about another model than the one that is trained, and ours about the same.
OTHER_MODELS = {
    "critic": ("critic.optimizer", "critic"),
    "ref": (),
    "reference": ("reference",),
    "reward": ("reward.model",),
    "reward_model": ("reward.model",),
    "rm": ("reward.model",),
    "teacher": ("teacher",),
    "val_kwargs": (),
}
# Tables of ours that have some keys of another one.
ALIKE = {
    "critic": "model",
    "critic.optimizer": "optimizer",
    "curriculum": "sampling",
    "eval": "data",
    "held_out": "data",
    "reference": "model",
    "reward.model": "model",
    "stages": "optimizer",
    "stages.data": "data",
    "teacher": "model",
}
MAX_LISTED = 12  # keys of a table


def hint(path: str, known: Collection[str], stage: str = "", value: Any = None) -> str:
    """What a user reads behind "unknown key"; `stage` is empty for files that are no recipes."""
    return Hints(known, stage, value).of(path)


class Hints:
    """Of a stage with these keys; `value` is what was written for the unknown one."""

    def __init__(self, known: Collection[str], stage: str, value: Any = None) -> None:
        self.known, self.stage, self.value = frozenset(known), stage, value

    def of(self, path: str) -> str:
        path = spelled(path)
        if path in self.known:
            return self.named("the nearest is {}", path)
        return (
            self.translated(path)
            or self.of_other_stages(stage for stage in STAGES if path in stage_keys(stage))
            or self.without_table(path)
            or self.of_other_stages(stages_with(path))
            or self.slip(path)
            or self.in_foreign_table(path)
            or self.in_own_table(path)
            or "docs/recipe-keys.md lists all"
        )

    def translated(self, path: str) -> str | None:
        if not self.stage:
            return None
        for place in rows(path):
            text = choose(place.row, self.stage, self.known)
            if text is None:
                continue
            if " " not in text:
                if (key := self.of_its_model(text, path, place)) is not None:
                    return self.named("it is {} here", key)
            elif all(is_about(key, place) for key in keys_in(text)):
                return plain(text)
        return None

    def of_its_model(self, key: str, path: str, place: KeyPlace) -> str | None:
        """The key of the model that a path names: critic.optim.lr is critic.optimizer.lr, not optimizer.lr.

        Within a table of ours, it is the key of that table.
        """
        table, _, name = key.rpartition(".")
        for other in (path.rpartition(".")[0], *tables_about(place)):
            if ALIKE.get(other) == table and f"{other}.{name}" in self.known:
                return f"{other}.{name}"
        return key if is_about(key, place) else None

    def without_table(self, path: str) -> str | None:
        """`temperature` -> sampling.temperature; `critic.lr` -> critic.optimizer.lr."""
        key = home(path, self.known)
        return None if key is None else self.named("the nearest is {}", key)

    def of_other_stages(self, stages: Iterable[str]) -> str | None:
        having = [*stages] if self.stage else []
        if not having or self.stage in having:
            return None
        *first, last = having
        listed = f"{', '.join(first)} and {last} do" if first else f"{last} does"
        return f'stage = "{self.stage}" has no such key ({listed})'

    def slip(self, path: str) -> str | None:
        """The key, ours or another trainer's, that is the fewest edits away."""
        table, _, name = path.rpartition(".")
        said = [(count, self.named("the nearest is {}", key)) for count, key in self.own_slips(path)]
        names = [] if name in all_names() else NAMES if table else ALONE  # a word is no slip of another one
        for one in names:
            if (count := name_edits(name, one)) is not None:
                meant = self.translated(f"{table}.{one}" if table else one)
                said += [(count, f"if {one} is meant: {meant}")] if meant else []
        return nearest(said) or self.longer(path) or self.far_slip(path)

    def far_slip(self, path: str) -> str | None:
        """run.evice -> run.device: one edit anywhere in a long path, or two in a longer one, and no other key near.

        A name that somebody has is no slip, whatever table it is in.
        """
        if path.rpartition(".")[2] in all_names():
            return None
        tables = {key.rpartition(".")[0] for key in self.known}
        counted = [
            (count, self.named("the nearest is {}", key))
            for key in self.known
            if (count := far_edits(path, key)) and not (key in tables or is_plural(path, key))
        ]
        return nearest(counted)

    def own_slips(self, path: str) -> Iterator[tuple[int, str]]:
        """Keys that a path may be misspelt for. A word and its plural may be two things: of a table, `checkpoint`
        and [checkpoints], and where the table is missing, `target` and lora.targets.
        """
        tables = {key.rpartition(".")[0] for key in self.known}
        for key in self.known:
            if (count := path_edits(path, key)) and not (key in tables and is_plural(path, key)):
                yield count, key
        for name in last_names(self.known) if "." not in path else ():
            near = home(name, self.known)
            if near and (count := name_edits(path, name)) and not is_plural(path, name):
                yield count, near

    def longer(self, path: str) -> str | None:
        """sampling.max_tokens -> sampling.max_new_tokens, which has one word more."""
        table, _, name = path.rpartition(".")
        keys = [key for key in self.known if key.rpartition(".")[0] == table and is_part(name, key)]
        return self.named("the nearest is {}", keys[0]) if table and len(keys) == 1 else None

    def in_foreign_table(self, path: str) -> str | None:
        if not self.stage:
            return None
        texts = (choose(place.row, self.stage, self.known) for place in table_rows(path))
        return next((plain(text) for text in texts if text is not None), None)

    def in_own_table(self, path: str) -> str | None:
        """The keys of its table, where that is one of ours and has few."""
        table, _, _ = path.rpartition(".")
        keys = [key.rpartition(".")[2] for key in sorted(self.known) if key.rpartition(".")[0] == table]
        if not table or not 0 < len(keys) <= MAX_LISTED:
            return None
        return f"[{table}] takes {', '.join(keys)}"

    def named(self, words: str, key: str) -> str:
        note = value_note(key, self.value, self.stage, self.known)
        return words.format(key) + (f"; {note}" if note else "")


def spelled(path: str) -> str:
    """As keys are: spelled("--Learning-Rate") -> "learning_rate", spelled("data#2.limit") -> "data.limit"."""
    return re.sub(r"#\d+", "", path).lstrip("-").replace("-", "_").lower()


def tables_about(place: KeyPlace) -> list[str]:
    """Our tables about a path's model, where that is not the trained one."""
    return [table for model in place.before if model in OTHER_MODELS for table in OTHER_MODELS[model]]


def is_about(key: str, place: KeyPlace) -> bool:
    """Whether a key is about the model that the path is about."""
    tops = {table.partition(".")[0] for table in tables_about(place)}
    return not OTHER_MODELS.keys() & {*place.before} or key.partition(".")[0] in tops


def home(path: str, known: frozenset[str]) -> str | None:
    """The key that a name without its table belongs to: the only one, or the usual one."""
    table, _, name = path.rpartition(".")
    if (table and table not in known) or (not table and name in OF_MANY):
        return None
    keys = [key for key in by_name(known).get(name, ()) if not is_far(key, table)]
    if len(keys) == 1:
        return None if table and name in IN_TABLES else keys[0]
    usual = [] if table else [key for usual in USUAL_TABLES if (key := f"{usual}.{name}") in keys]
    return usual[0] if usual else None


def is_far(key: str, table: str) -> bool:
    """Whether a key is not meant by its name in a table, or without one: `seed` is not reward.judge.answerer.seed,
    `model.type` not model.shape.rope_scaling.type, and `critic.lr` is critic.optimizer.lr.
    """
    if not table:
        return key.count(".") > 1 and not key.startswith(SHAPE)
    return not key.startswith(f"{table}.") or key.count(".") - table.count(".") > 2


@lru_cache(maxsize=16)
def by_name(known: frozenset[str]) -> Mapping[str, Sequence[str]]:
    """Keys by what they are called in their tables."""
    keys = defaultdict(list)
    for key in sorted(known):
        keys[key.rpartition(".")[2]].append(key)
    return keys


def last_names(keys: Collection[str]) -> set[str]:
    return {key.rpartition(".")[2] for key in keys}


@cache
def all_names() -> frozenset[str]:
    """The last names of all keys, ours and other trainers'."""
    return frozenset(last_names(ALL).union(*(last_names(stage_keys(stage)) for stage in STAGES)))


def is_plural(name: str, other: str) -> bool:
    return name.rstrip("s") == other.rstrip("s")


def is_part(name: str, key: str) -> bool:
    """Whether all words of a name are in a key's: "max_tokens" in sampling.max_new_tokens."""
    words = {*name.split("_")}
    return len(words) > 1 and words <= {*key.rpartition(".")[2].split("_")}


def stages_with(path: str) -> Iterator[str]:
    """Stages that have a key, or something of the kind."""
    for stage in STAGES:
        known = stage_keys(stage)
        answers = (choose(place.row, stage, known) for place in rows(path))
        if path in known or home(path, known) is not None or any(answers):
            yield stage


@cache
def stage_keys(stage: str) -> frozenset[str]:
    return frozenset(all_keys(recipe_type(stage)))
