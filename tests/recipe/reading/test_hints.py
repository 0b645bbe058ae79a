"""Hints: of hundreds of keys as other trainers spell them none is answered with a wrong key of ours."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

import pytest
from foreign_keys import Row, foreign_keys

from foresail.recipe.keys import find_field, kinds
from foresail.recipe.other_trainers.answers import OnlyIn, choose, keys_in, plain
from foresail.recipe.other_trainers.tables import ALL, PARTS
from foresail.recipe.other_trainers.values import VALUES
from foresail.recipe.reading.hints import Hints, hint, stage_keys
from foresail.recipe.stages.table import STAGES, recipe_type
from foresail.recipe.validation_errors import choices_of

NOTHING = "docs/recipe-keys.md lists all"
OURS = frozenset().union(*(stage_keys(stage) for stage in STAGES))
DOTTED = re.compile(r"\b[a-z_]+(?:\.[a-z_0-9]+)+\b")
ROWS = [*foreign_keys()]


def answer(stage: str, key: str) -> str:
    return hint(key, stage_keys(stage), stage)


def named(text: str) -> set[str]:
    """Keys of ours in an answer: dotted ones anywhere, others where they are no plain words."""
    words = set(re.findall(r"[a-z_0-9]+(?:\.[a-z_0-9]+)*", text))
    return words & OURS


def is_no_hint(text: str) -> bool:
    return text == NOTHING or re.match(r"\[[a-z_.]+\] takes ", text) is not None


def wrong(row: Row) -> str | None:
    """What is wrong with the answer to a key, if anything is."""
    said = answer(row.stage, row.key)
    expected = row.answer
    if expected == "-":
        right = is_no_hint(said)
    elif expected == "other stages":
        right = said.startswith(f'stage = "{row.stage}" has no such key')
    elif expected.startswith('"'):
        right = expected.strip('"') in said
    else:
        right = set(expected.split()) <= named(said)
    return None if right else f"{row.stage} {row.key}: {said!r}, not {expected}"


def test_there_are_hundreds_of_keys() -> None:
    assert len(ROWS) > 900
    assert len({row.key for row in ROWS}) > 450


@pytest.mark.parametrize("stage", STAGES)
def test_keys_of_other_trainers_are_answered(stage: str) -> None:
    assert [said for row in ROWS if row.stage == stage and (said := wrong(row))] == []


@pytest.mark.parametrize("stage", STAGES)
def test_hints_name_keys_of_the_stage_alone(stage: str) -> None:
    """Of every row of the tables, and of every key in the lists."""
    known = stage_keys(stage)
    said = {key: choose(row, stage, known) for key, row in ALL.items()}
    told = {key: plain(text) for key, text in said.items() if text is not None}
    told |= {row.key: answer(stage, row.key) for row in ROWS if row.stage == stage}
    strange = {
        key: text
        for key, text in told.items()
        for name in DOTTED.findall(text)
        if name in OURS - known or (name.split(".")[0] in {"loss", "sampling", "data"} and name not in known)
    }
    assert strange == {}


def settings(text: str) -> Iterator[tuple[str, str]]:
    """'`loss.kind` = "gspo"' -> ("loss.kind", '"gspo"')."""
    yield from re.findall(r"`([a-z_.0-9]+)` = (\"[^\"]*\"|true|false|\[)", text)


def test_values_in_hints_are_values_of_their_keys() -> None:
    found = 0
    for row in [*ALL.values(), *(row for table in VALUES.values() for row in table.values())]:
        for one in row if isinstance(row, tuple) else (row,):
            text = one.text if isinstance(one, OnlyIn) else one
            for key, value in settings(text):
                fields = [
                    field
                    for stage in STAGES
                    if choose(one, stage, stage_keys(stage))
                    and (field := find_field(key.split("."), recipe_type(stage)))
                ]
                assert fields, text
                for field in fields:
                    found += 1
                    taken = kinds(field)
                    if value == "[":
                        assert "list" in taken, text
                    elif value in ("true", "false"):
                        assert "bool" in taken, text
                    elif "choice" in taken:
                        assert value.strip('"') in choices_of(field.annotation), text
                    else:
                        assert "text" in taken, text
    assert found > 50


def test_rows_say_something_and_say_it_once() -> None:
    keys = [key for part in PARTS for key in part]
    assert len(keys) == len({*keys})
    for key, row in ALL.items():
        for one in row if isinstance(row, tuple) else (row,):
            text = one.text if isinstance(one, OnlyIn) else one
            assert {*keys_in(text)} <= OURS, key
            assert any(choose(one, stage, stage_keys(stage)) for stage in STAGES), (key, text)


def test_names_in_any_table_are_no_names_of_ours() -> None:
    """`lr` in a table of somebody's may mean anything: such rows name their tables."""
    ours = {key.rpartition(".")[2] for key in OURS}
    assert [key for key in ALL if "." not in key and key in ours] == []


@pytest.mark.parametrize("stage", STAGES)
def test_the_same_last_name_in_another_table_is_no_hint(stage: str) -> None:
    names = {key.rpartition(".")[2] for key in stage_keys(stage)}
    said = {name: answer(stage, f"somebodys.{name}") for name in sorted(names)}
    assert {name: text for name, text in said.items() if text != NOTHING} == {}


@pytest.mark.parametrize("stage", STAGES)
def test_own_names_without_their_table_lead_home_or_nowhere(stage: str) -> None:
    known = stage_keys(stage)
    usual = {"lr": "optimizer.lr", "seed": "run.seed", "path": "model.path", "keep": "checkpoints.keep"}
    if "sampling" in known:
        usual |= {name: f"sampling.{name}" for name in ("temperature", "top_p", "max_new_tokens", "stop")}
        usual |= {"grader": "reward.grader", "system": "data.system", "kv_tokens": "engine.kv_tokens"}
    for name, key in usual.items():
        assert answer(stage, name) == f"the nearest is {key}"
    for name in {key.rpartition(".")[2] for key in known} - known:
        text = answer(stage, name)
        meant = re.fullmatch(r"the nearest is (\S+)", text)
        assert meant is None or (meant[1].endswith(f".{name}") and meant[1] in known), text


def misspell(key: str, source: random.Random) -> str:
    """One letter is left out, doubled or swapped with the next, in one word of a key."""
    places = [
        number for number, letter in enumerate(key[:-1]) if letter.isalpha() and key[number + 1].isalpha()
    ]
    at = source.choice(places)
    return source.choice(
        [
            key[:at] + key[at + 1 :],
            key[:at] + key[at] + key[at:],
            key[:at] + key[at + 1] + key[at] + key[at + 2 :],
        ]
    )


@pytest.mark.parametrize("stage", STAGES)
def test_a_slip_leads_to_the_key_or_to_none(stage: str) -> None:
    source, known = random.Random(stage), stage_keys(stage)
    led = 0
    keys = [key for key in sorted(known) if len(key.rpartition(".")[2]) > 3]
    for key in source.sample(keys, 60):
        slip = misspell(key, source)
        if slip in known:
            continue
        text = answer(stage, slip)
        led += key in text
        other = named(text) - {key} if text.startswith("the nearest is") else set()
        assert not other, (slip, text)
    assert led > 45


def edited(key: str, source: random.Random) -> str:
    """A letter anywhere is left out, added, replaced, or swapped with the next."""
    at, letter = source.randrange(len(key)), source.choice("abcdefghijklmnopqrstuvwxyz")
    swapped = key[at + 1 : at + 2] + key[at]
    return source.choice(
        [
            key[:at] + key[at + 1 :],
            key[:at] + letter + key[at:],
            key[:at] + letter + key[at + 1 :],
            key[:at] + swapped + key[at + 2 :],
        ]
    )


@pytest.mark.parametrize("stage", STAGES)
def test_one_edit_anywhere_leads_to_the_key_and_never_to_another(stage: str) -> None:
    source, known = random.Random(f"anywhere {stage}"), stage_keys(stage)
    led, wrong = 0, []
    for key in source.sample([key for key in sorted(known) if len(key) > 10], 60):
        slip = edited(key, source)
        text = answer(stage, slip)
        led += slip in known or key in text
        if slip not in known and text.startswith("the nearest is") and key not in text:
            wrong.append((slip, text))
    assert wrong == [] and led > 48


@pytest.mark.parametrize("stage", STAGES)
def test_a_key_that_looks_like_others_is_no_slip_of_them(stage: str) -> None:
    """A key is taken out: `sampling.top_k`, say, is then no misspelt `sampling.top_p`."""
    known = stage_keys(stage)
    alike = {}
    for key in sorted(known):
        table, _, name = key.rpartition(".")
        rest = known - {other for other in known if other == key or other.startswith(f"{key}.")}
        text = Hints(rest, stage).slip(key) if table else None
        if text is not None and not any(
            one.startswith(f"{table}.") and {*name.split("_")} <= {*one.rpartition(".")[2].split("_")}
            for one in named(text)
        ):
            alike[key] = text
    assert alike == {}


def test_words_of_no_trainer_get_no_hint() -> None:
    for key in ("zebras", "foo.bar", "cosine", "model.zebra", "x", "data.x", "llm", "my_flag", "a.b.c.d"):
        for stage in STAGES:
            assert is_no_hint(answer(stage, key)), key


def test_slips_of_foreign_keys_say_which_was_meant() -> None:
    said = {
        "num_generation": "if num_generations is meant: it is samples_per_prompt here",
        "gradient_acumulation_steps": "if gradient_accumulation_steps is meant: micro-batches",
        "trainer.total_epoch": "if total_epochs is meant: a run is counted in steps",
        "temprature": "the nearest is sampling.temperature",
        "--Learning-Rate": "it is optimizer.lr here",
        "optimizer.learningrate": "if learning_rate is meant: it is optimizer.lr here",
    }
    for key, words in said.items():
        assert words in answer("rl", key)
    # real keys of others, which are no slips of their neighbours
    for key in ("fraction", "actor.optim.lr_decay_steps", "ray_init.num_cpus"):
        assert answer("rl", key) == NOTHING
