"""A resolved recipe loads again to an equal one, and explains every key."""

import tomllib
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from foresail.recipe.keys import known_keys, table_type
from foresail.recipe.reading.dump import to_toml
from foresail.recipe.reading.load import load_recipe
from foresail.recipe.shape.model_shape import ModelShape
from foresail.recipe.shape.rope import RopeScaling
from foresail.recipe.stages.rl import Rl
from foresail.recipe.stages.sft import Sft
from foresail.recipe.stages.stage import Stage
from foresail.recipe.stages.table import STAGES, recipe_type
from foresail.recipe.tables import parts
from foresail.recipe.tables.dynamic_sampling import DynamicSampling
from foresail.recipe.tables.policy_loss import Loss
from foresail.recipe.tables.reward import Reward

SHAPE = ModelShape(
    family="qwen3", vocab_size=64, hidden_size=32, intermediate_size=64, num_layers=2, num_heads=4,
    num_kv_heads=2, head_dim=8, max_context=4096, qk_norm=True, tied=False,
    rope_scaling=RopeScaling(factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_context=8192),
)  # fmt: skip

texts = st.text(max_size=20)  # quotes, newlines, control characters and emoji among them
names = texts.filter(lambda text: bool(text.strip(".")) and not {"/", "\0"} & {*text})
counts = st.integers(1, 2**63 - 1)  # as far as TOML has them
floats = st.floats(min_value=1e-12, max_value=1e30)


@st.composite
def rl_recipes(draw: st.DrawFn) -> Rl:
    problems = st.builds(
        parts.Problems, source=texts, suffix=texts, system=st.none() | texts, limit=st.none() | counts
    )
    fresh = st.builds(parts.Model, shape=st.just(SHAPE), tokenizer=texts)
    loaded = st.builds(parts.Model, path=texts, dtype=st.sampled_from(["auto", "float32", "bfloat16"]))
    loss = st.builds(Loss, clip_low=floats, kl_weight=floats, dual_clip=st.none() | st.floats(1.5, 9))
    return Rl(
        run=draw(st.builds(parts.Run, name=names, seed=counts, wandb=st.none() | texts)),
        model=draw(fresh | loaded),
        data=draw(problems),
        eval=draw(st.none() | problems),
        steps=draw(counts),
        prompts_per_step=draw(counts),
        loss=draw(loss),
        reward=draw(st.builds(Reward, wrong=st.floats(-1e9, 0), correct=floats)),
        optimizer=draw(st.builds(parts.Optimizer, lr=floats, eps=floats)),
        dynamic_sampling=draw(st.builds(DynamicSampling, enabled=st.booleans())),
    )


def reload(recipe: Stage, folder: Path) -> Stage:
    file = folder / "resolved.toml"
    file.write_text(to_toml(recipe), encoding="utf-8", newline="\n")
    return load_recipe(file)


@settings(max_examples=150, deadline=None)
@given(recipe=rl_recipes())
def test_rl_recipes_survive_the_round_trip(recipe: Rl, tmp_path_factory: Any) -> None:
    assert reload(recipe, tmp_path_factory.getbasetemp()) == recipe


def test_sft_recipe_survives_the_round_trip(tmp_path: Path) -> None:
    recipe = Sft(model=parts.Model(path="m"), data='a "quoted"\\path\x7f\n', steps=7)
    assert reload(recipe, tmp_path) == recipe


def test_a_changed_value_does_not_compare_equal(tmp_path: Path) -> None:
    recipe = Sft(model=parts.Model(path="m"), data="d", steps=7)
    file = tmp_path / "changed.toml"
    file.write_text(to_toml(recipe).replace("steps = 7", "steps = 8"))
    assert load_recipe(file) != recipe


def test_every_value_is_written_and_unset_ones_are_named() -> None:
    text = to_toml(Rl(model=parts.Model(path="m"), data=parts.Problems(source="s"), steps=1))
    written = tomllib.loads(text)
    assert written["optimizer"]["lr"] == 1e-6 and written["loss"]["clip_high"] == 0.28
    assert "wandb" not in written["run"] and "# wandb = none  # Weights & Biases project" in text
    assert "\n# eval = none  # held-out problems\n" in text


def test_every_key_has_its_meaning_beside_it() -> None:
    recipe = Rl(model=parts.Model(shape=SHAPE, tokenizer="t"), data=parts.Problems(source="s"), steps=1)
    lines = [line for line in to_toml(recipe).splitlines() if " = " in line]
    # `# key = none  # meaning` or `key = value  # meaning`
    assert len(lines) > 60
    assert [line for line in lines if not line.rpartition("  # ")[2].strip() or "  # " not in line] == []


def test_no_field_goes_without_a_description() -> None:
    tables: set[type[BaseModel]] = {recipe_type(name) for name in STAGES}
    tables |= {table for stage in tables for _, kind in known_keys(stage) if (table := table_type(kind))}
    silent = [
        f"{table.__name__}.{name}"
        for table in tables
        for name, field in table.model_fields.items()
        if table_type(field.annotation) is None and not field.description
    ]
    assert silent == [] and len(tables) > 10


def test_choices_are_listed() -> None:
    text = to_toml(Sft(model=parts.Model(path="m"), data="d", steps=7))
    assert 'device = "auto"  # auto: CUDA when there is one (auto, cpu, cuda)' in text


def test_what_a_stage_runs_on_stands_behind_its_own_tables() -> None:
    text = to_toml(Rl(model=parts.Model(path="m"), data=parts.Problems(source="s"), steps=1))
    tables = [line.partition("]")[0].strip("[") for line in text.splitlines() if line.startswith("[")]
    assert tables[-6:] == ["loss", "rollout", "engine", "optimizer", "checkpoints", "cluster"]
