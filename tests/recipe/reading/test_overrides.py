"""What is set on the command line is what the same words in a recipe's file are, for every key of every stage."""

from __future__ import annotations

import random
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from foresail.recipe.keys import item_type, key_type, kinds, one_or_more, table_type
from foresail.recipe.reading.dump import to_toml
from foresail.recipe.reading.load import RecipeError, load_recipe
from foresail.recipe.reading.overrides import parse_value, put
from foresail.recipe.stages.table import STAGES, recipe_type
from foresail.recipe.validation_errors import choices_of

LEAST = {
    "pretrain": {"stages.data.source": '"shards"', "stages.tokens": "8192", "stages.batch_tokens": "4096"},
    "sft": {"steps": "3", "data.source": '"d.jsonl"'},
    "reward-model": {"steps": "3", "data.source": '"d.jsonl"'},
    "dpo": {"steps": "3", "data.source": '"d.jsonl"'},
    "kto": {"steps": "3", "data.source": '"d.jsonl"'},
    "rl": {"steps": "3", "data.source": '"arithmetic:count=100"'},
    "online-dpo": {"steps": "3", "data.source": '"arithmetic:count=100"'},
    "distill": {"steps": "3", "data.source": '"arithmetic:count=100"', "teacher.path": '"t"'},
}


def write(folder: Path, stage: str, **more: str) -> Path:
    """The smallest recipe of a stage, as dotted lines, with others in their place or behind them."""
    lines = {"stage": f'"{stage}"', "model.path": '"m"', **LEAST.get(stage, LEAST["dpo"])}
    kept = {
        key: text
        for key, text in lines.items()
        if not any(f"{key}.".startswith(f"{other}.") for other in more)
    }
    file = folder / "recipe.toml"
    file.write_text("".join(f"{key} = {text}\n" for key, text in (kept | more).items()), encoding="utf-8")
    return file


def fields(table: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, FieldInfo]]:
    """Every key that can be set, those of one of several tables included."""
    for name, field in table.model_fields.items():
        if prefix + name != "stage":
            yield prefix + name, field
        if (inner := table_type(key_type(field))) is not None:
            yield from fields(inner, f"{prefix}{name}.")
        elif (inner := item_type(field.annotation)) is not None:
            yield from fields(inner, f"{prefix}{name}#1.")


def nested(key: str, value: Any) -> dict[str, Any]:
    """As TOML has it: nested("curriculum#1.steps", 3) -> {"curriculum": [{"steps": 3}]}."""
    name, dot, rest = key.partition(".")
    inner = nested(rest, value) if dot else value
    return {name.removesuffix("#1"): [inner] if name.endswith("#1") else inner}


def frame(key: str) -> dict[str, Any]:
    """What must be there before: of several tables, the first."""
    name, dot, rest = key.partition(".")
    if not name.endswith("#1"):
        return {name: inner} if dot and (inner := frame(rest)) else {}
    return {name.removesuffix("#1"): [frame(rest)]}


TEXTS = [
    "demo",
    "a b",
    "",
    "7",
    "true",
    "none",
    "é 東京",
    "a=b",
    "# no comment",
    "it's",
    'say "x"',
    "C:\\dir",
    "x,y",
    "[a]",
    "{a}",
]


def toml_text(text: str, source: random.Random) -> str:
    """In one of the quotes that TOML has."""
    if "'" not in text and source.random() < 0.5:
        return f"'{text}'"
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def words(field: FieldInfo, source: random.Random) -> Iterator[str]:
    """TOML for values of any sort, and some that the key does not take."""
    taken = kinds(field)
    yield from (toml_text(text, source) for text in source.sample(TEXTS, 3))
    yield from (f'"{choice}"' for choice in choices_of(field.annotation) if isinstance(choice, str))
    yield source.choice(["[]", "[1, 2.5]", '["a", "b # c"]', '[ "python", "x.py" ]', '["none"]'])
    yield source.choice(["{}", '{ a = 1, b = "x" }', "{a.b = [true]}"])
    if "text" not in taken:
        yield source.choice(["0", "-3", "1_000", "2.5", "1e-5", "inf", "0x10", "9007199254740993"])
        yield source.choice(["true", "false", "2024-01-31"])


@pytest.mark.parametrize("stage", STAGES)
def test_a_line_of_toml_and_the_same_words_as_an_override_are_one(stage: str) -> None:
    source, kind, tried = random.Random(stage), recipe_type(stage), 0
    for key, field in fields(kind):
        taken = kinds(field)
        for text in words(field, source):
            if text.startswith(("[", "{")) and "text" in taken and not taken & {"list", "table"}:
                continue  # text that looks like a list is text, without its quotes too
            if text.startswith("{") and "table" not in taken and "text" in taken:
                continue
            given = frame(key)
            put(given, key, parse_value(text, field), kind)
            wanted = nested(key, tomllib.loads(f"value = {text}")["value"])
            assert repr(given) == repr(wanted), (key, text)
            tried += 1
    assert tried > 300


@pytest.mark.parametrize("stage", STAGES)
def test_text_needs_no_quotes_where_a_key_takes_it(stage: str) -> None:
    """But for text in TOML's own quotes, which a user would have to quote once more."""
    kind = recipe_type(stage)
    for key, field in fields(kind):
        taken = kinds(field)
        if "text" not in taken:
            continue
        for text in TEXTS:
            if text != "none" and not (text.startswith("[") and "list" in taken):
                assert parse_value(text, field) == text, (key, text)


@pytest.mark.parametrize("stage", STAGES)
def test_none_unsets_every_key_that_may_be_left_out(stage: str, tmp_path: Path) -> None:
    """All at once: the recipe is then the smallest one, and None where a key takes that instead of its default."""
    kind = recipe_type(stage)
    file = write(tmp_path, stage)
    plain = load_recipe(file)
    keys = {key: field for key, field in fields(kind) if "#" not in key}
    given = tuple(tomllib.loads(file.read_text()))
    unset = {
        key: field
        for key, field in keys.items()
        if not field.is_required() and key.split(".")[0] not in given and "none" not in kinds(field)
    }
    # None is then a setting of its own, as critic.clip = none is, or a stage's own default is taken back
    set_to_none = {key for key, field in unset.items() if "nothing" in kinds(field) and value_at(plain, key)}
    assert len(unset) - len(set_to_none) > 40
    overrides = [f"{key}=none" for key in unset if key not in set_to_none and key != "critic.clip"]
    assert load_recipe(file, overrides) == plain
    for key in set_to_none:
        assert value_at(load_recipe(file, [f"{key}=none"]), key) is None, key
    for key, field in keys.items():
        value: dict[str, Any] = nested(key, "something")
        put(value, key, None, kind)
        *tables, last = key.split(".")
        for table in tables:
            value = value[table]
        assert value == ({last: None} if "nothing" in kinds(field) else {}), key


def value_at(recipe: Any, key: str) -> Any:
    """Of a key; None, where a table on the way is not there, or may be several."""
    for name in key.split("."):
        recipe = getattr(recipe, name, None)
    return recipe


def test_none_where_it_is_another_value_than_the_default(tmp_path: Path) -> None:
    critic = {"advantage.kind": '"gae"', "critic.gamma": "0.9"}
    recipe = load_recipe(write(tmp_path, "rl", **critic), ["critic.clip=none", "critic.gamma=none"])
    assert (recipe.critic.clip, recipe.critic.gamma) == (None, 1.0)  # type: ignore[attr-defined]


def test_none_where_a_key_has_a_value_of_that_name(tmp_path: Path) -> None:
    file = write(
        tmp_path,
        "rl",
        **{
            "reward.code.isolation": '"landlock"',
            "rollout.backend": '"vllm"',
            "rollout.speculation": '"ngram"',
        },
    )
    recipe = load_recipe(
        file, ["rollout.speculation=none", "reward.grader=none", "reward.code.isolation=none",
               "dynamic_sampling.enabled=false", 'reward.terms=[{grader="exact"}]'],
    )  # fmt: skip
    assert recipe.rollout.speculation == "none"  # type: ignore[attr-defined]
    assert recipe.reward.grader == "none"  # type: ignore[attr-defined]
    assert recipe.reward.code.isolation is None, "unset: the strongest that holds"  # type: ignore[attr-defined]
    exact = load_recipe(file, ['reward.code.isolation="none"'])
    assert exact.reward.code.isolation == "none"  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("override", "key", "value"),
    [
        ('environment.program=["python", "x.py"]', ("environment", "program"), ("python", "x.py")),
        ("environment.program=agent.py:solve", ("environment", "program"), "agent.py:solve"),
        ('sampling.stop=["a", "b"]', ("sampling", "stop"), ("a", "b")),
        ("sampling.stop=</end>", ("sampling", "stop"), ("</end>",)),
        ("model.template_options=['thinking=false']", ("model", "template_options"), ("thinking=false",)),
        ("dynamic_sampling.window=[0.1, 0.9]", ("dynamic_sampling", "window"), (0.1, 0.9)),
        ("checkpoints={every = 5}", ("checkpoints", "every"), 5),
        ("lora={}", ("lora", "rank"), 16),
        ("data.suffix=none", ("data", "suffix"), ""),
        ("run.wandb=2024", ("run", "wandb"), "2024"),
    ],
)  # fmt: skip
def test_overrides_of_lists_tables_and_text(
    tmp_path: Path, override: str, key: tuple[str, ...], value: object
) -> None:
    found: Any = load_recipe(write(tmp_path, "rl", **{"data.suffix": '"Think."'}), [override])
    for name in key:
        found = getattr(found, name)
        found = found[0] if name == "data" else found
    assert found == value


def test_an_unset_key_of_a_table_that_is_not_there_makes_none(tmp_path: Path) -> None:
    recipe = load_recipe(write(tmp_path, "rl"), ["critic.gamma=none", "critic.path=none", "lora.rank=none"])
    assert recipe.critic is None and recipe.lora is None  # type: ignore[attr-defined]
    with pytest.raises(RecipeError, match=r"samplng\.temperature: unknown key; the nearest is sampling"):
        load_recipe(write(tmp_path, "rl"), ["samplng.temperature=none"])


@pytest.mark.parametrize("stage", STAGES)
def test_a_wrong_value_is_told_alike_from_file_and_command_line(stage: str, tmp_path: Path) -> None:
    """The first words are the key, as the user knows it, and the rest is no word of a library."""
    kind = recipe_type(stage)
    source = random.Random(stage)
    keys = [(key, field) for key, field in fields(kind) if "#" not in key]
    for key, field in source.sample(keys, 40):
        text = next(
            (
                wrong
                for kind_, wrong in WRONG.items()
                if kind_ not in kinds(field) and not two_faced(kind_, field)
            ),
            None,
        )
        if text is None:
            continue
        told = []
        for more, overrides in (({key: text}, []), ({}, [f"{key}={text}"])):
            with pytest.raises(RecipeError) as refused:
                load_recipe(write(tmp_path, stage, **more), overrides)
            told.append(str(refused.value))
        assert told[0] == told[1], key
        assert f"recipe.toml: {key}" in told[0] or f"\n  {key}" in told[0], told[0]
        assert "Input should" not in told[0] and "pydantic" not in told[0], told[0]


WRONG = {"list": "[1]", "bool": "true", "number": "3", "table": "{}"}


def two_faced(kind: str, field: FieldInfo) -> bool:
    """Where a value of that sort is taken for text, or for one of several tables."""
    return "text" in kinds(field) or (kind in ("list", "table") and one_or_more(field) is not None)


def test_none_in_a_file_is_the_text_none(tmp_path: Path) -> None:
    """Where it can be no other text; and a recipe that has such a none is written and read again as it is."""
    critic = {"advantage.kind": '"gae"', "critic.clip": '"none"', "checkpoints.best": '"none"'}
    recipe: Any = load_recipe(
        write(tmp_path, "rl", **critic, **{"engine.kv_tokens": '"none"', "lora": '"none"'})
    )
    assert (recipe.critic.clip, recipe.checkpoints.best, recipe.engine.kv_tokens) == (None, None, None)
    assert recipe.lora is None
    resolved = tmp_path / "resolved.toml"
    resolved.write_text(to_toml(recipe), encoding="utf-8")
    assert 'clip = "none"' in resolved.read_text() and load_recipe(resolved) == recipe
    ungraded: Any = load_recipe(write(tmp_path, "distill", **{"data.grader": '"none"'}))
    assert ungraded.data[0].grader == "none", "a grader of that name"


@pytest.mark.parametrize("stage", STAGES)
def test_every_key_that_may_be_none_is_written_and_read_again(stage: str, tmp_path: Path) -> None:
    recipe = load_recipe(write(tmp_path, stage))
    resolved = tmp_path / "resolved.toml"
    found = 0
    for key, field in fields(recipe_type(stage)):
        if "nothing" not in kinds(field) or value_at(recipe, key) is None or key == "model.path":
            continue
        changed = load_recipe(write(tmp_path, stage), [f"{key}=none"])
        resolved.write_text(to_toml(changed), encoding="utf-8")
        assert load_recipe(resolved) == changed != recipe, key
        found += 1
    assert found > 0
