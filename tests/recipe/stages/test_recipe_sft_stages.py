"""Stages of fine-tuning in a recipe: how long each lasts, what each changes, and which mistakes are named."""

from __future__ import annotations

from pathlib import Path

import pytest

from foresail.recipe.reading.dump import to_toml
from foresail.recipe.reading.load import RecipeError, load_recipe
from foresail.recipe.stages.sft import Sft

HEAD = 'stage = "sft"\nsteps = 30\nmax_length = 64\nmodel = {path = "m"}\n'
TWO = HEAD + (
    '[optimizer]\nlr = 1e-4\nwarmup = 3\n[[stages]]\nsteps = 10\ndata = {source = "a.jsonl"}\nmax_length = 32\n'
    '[[stages]]\ndata = {source = "b.jsonl"}\nbatch_size = 8\nlr = 2e-5\nschedule = "cosine"\n'
    "resample = {keep = 0.5}\n"
)


def load(folder: Path, text: str, *overrides: str) -> Sft:
    (folder / "recipe.toml").write_text(text)
    recipe = load_recipe(folder / "recipe.toml", overrides)
    assert isinstance(recipe, Sft)
    return recipe


def test_what_a_stage_leaves_unset_is_as_in_the_recipe(tmp_path: Path) -> None:
    recipe = load(tmp_path, TWO)
    first, second = recipe.phases
    assert (first.steps, first.batch_size, first.max_length, first.optimizer.lr) == (10, 64, 32, 1e-4)
    assert (second.steps, second.batch_size, second.max_length, second.optimizer.lr) == (20, 8, 64, 2e-5)
    assert (first.optimizer.warmup, second.optimizer.warmup, second.optimizer.schedule) == (3, 3, "cosine")
    assert recipe.sources() == {"stages#1.data": "a.jsonl", "stages#2.data": "b.jsonl"}
    resample, earlier = recipe.resampled(1)
    assert (earlier, resample.keep, resample.least_first) == (0, 0.5, True)
    assert recipe.count_batches().run.samples == 10 * 64 + 20 * 8
    assert [*recipe.batch_notes()][1].endswith("with the best 50% of stage 1")


def test_a_staged_recipe_survives_its_own_writing(tmp_path: Path) -> None:
    recipe = load(tmp_path, TWO, "stages#1.data.roles=['user', 'tool_call']", "stages#1.data.held_out=0.1")
    assert load(tmp_path, to_toml(recipe)) == recipe


def test_overrides_reach_into_the_data_of_a_stage(tmp_path: Path) -> None:
    short = TWO.replace('{source = "a.jsonl"}', '"a.jsonl"').replace(
        'data = {source = "b.jsonl"}', 'data = [{source = "b.jsonl"}, {source = "c.jsonl"}]'
    )
    recipe = load(tmp_path, short, "stages#1.data.limit=3", "stages#2.data#2.limit=5")
    limits = [(source.source, source.limit) for phase in recipe.phases for source in phase.data]
    assert limits == [("a.jsonl", 3), ("b.jsonl", None), ("c.jsonl", 5)]


def test_more_steps_lengthen_the_last_stage(tmp_path: Path) -> None:
    assert [phase.steps for phase in load(tmp_path, TWO, "steps=50").phases] == [10, 40]


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        (
            ["steps=10"],
            "the stages before the last take 10 of 10 steps, which leaves it none; set steps = 11",
        ),
        (["stages#1.steps=none"], "stages#1 has no steps, and only the last may leave them out"),
        (["stages#2.steps=5"], "the stages have 15 steps in all and the run has 30; set steps = 15"),
        (["stages#2.max_length=99"], "stages#2.max_length 99 exceeds max_length 64"),
        (["stages#2.resample.stage=2"], "stages#2.resample takes from an earlier stage, and 2 is not"),
        (["stages#2.resample.weight=1"], "some have a weight and some have none"),
        (["stages#1.resample.keep=0.5"], "stages#1.resample takes from an earlier stage, and none is not"),
        (["stages#1.data=none"], "stages#1 has no data, nor has the recipe"),
        (["stages#2.data.name=a"], "a is another source than in a stage before; give it another name"),
        (
            ["stages#2.data.source=a.jsonl", "stages#2.data.name=again", "stages#1.data.held_out=0.1"],
            "a.jsonl has another limit or held_out in one place than in another",
        ),
        (["eval_every=5"], "eval_every measures the loss on held-out conversations; set data.held_out"),
        (["stages#1.data.held_out=1.5"], "1.5 is neither a share below 1 nor a number of conversations"),
        (
            ["stages#1.data.held_out=0.1", "held_out=a.jsonl"],
            'held_out has the name "a", and so has a held-out part of data',
        ),
        (["stages#1.data.roles=[]"], "names none, or one twice"),
        (["neftune_alpha=5", "mtp.weight=0.3"], "neftune_alpha does not go with [mtp]"),
        (["stages#1.data.roles=['assitant']"], "must be one of system, user, assistant, tool, tool_call"),
        (["stages#2.resample.best_is=most"], "best_is must be one of min, max"),
        (["neftune_noise_alpha=5"], "it is neftune_alpha here"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, overrides: list[str], said: str) -> None:
    with pytest.raises(RecipeError) as refused:
        load(tmp_path, TWO, *overrides)
    assert said in str(refused.value)
