"""Curricula in recipes: which stage holds when, what is refused, and what the preflight makes of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tiny_world import rl_recipe, write_lines

from foresail.recipe.reading.dump import to_toml
from foresail.recipe.reading.load import RecipeError, load_recipe
from foresail.recipe.reading.preflight import preflight
from foresail.recipe.stages.rl import Rl
from foresail.recipe.tables.curriculum import CurriculumStage, stage_at, steps_left
from foresail.recipe.tables.dynamic_sampling import DynamicSampling
from foresail.recipe.tables.parts import Problems
from foresail.recipe.tables.policy_loss import Loss

STAGES = [
    {"steps": 2, "mix": [1, 1, 0, 0, 0], "max_new_tokens": 4},
    {"steps": 3, "mix": [0, 0.25, 0.75, 0, 0], "temperature": 0.7, "prompts_per_step": 9},
    {"max_new_tokens": 16, "top_k": 3},
]


def recipe(tmp_path: Path, *stages: dict[str, Any], **changes: Any) -> Rl:
    given: dict[str, Any] = {
        "steps": 8,
        "curriculum": list(stages or STAGES),
        "data": Problems(source="arithmetic:count=200,steps=2", difficulty=str(tmp_path / "levels.jsonl")),
        "loss": Loss(old_logprobs="trainer"),
    }
    return rl_recipe(tmp_path, tmp_path, **given | changes)


def levels(tmp_path: Path, **counts: int) -> None:
    """levels(tmp_path, l1=3, l2=0) -> a file with three problems of level 1."""
    rows = [
        {"id": f"{name}.{n}", "level": int(name[1:])} for name, count in counts.items() for n in range(count)
    ]
    write_lines(tmp_path / "levels.jsonl", rows)


# Which stage holds when.


def test_every_step_has_its_stage():
    stages = [CurriculumStage(steps=10), CurriculumStage(steps=20), CurriculumStage()]
    assert [stage_at(stages, step) for step in (1, 10, 11, 30, 31, 500)] == [0, 0, 1, 1, 2, 2]
    assert [steps_left(stages, step) for step in (1, 10, 11, 30)] == [9, 0, 19, 0]
    assert steps_left(stages, 31) is None and steps_left((), 1) is None and stage_at((), 7) == 0


def test_a_stage_changes_what_it_says_and_nothing_else(tmp_path: Path):
    whole = recipe(tmp_path)
    first, second, third = whole.at(2), whole.at(3), whole.at(8)
    assert first == whole.model_copy(
        update={
            "curriculum": (),
            "mix": (1.0, 1.0, 0.0, 0.0, 0.0),
            "sampling": whole.sampling.model_copy(update={"max_new_tokens": 4}),
        }
    )
    assert (second.sampling.temperature, second.sampling.max_new_tokens) == (0.7, 8)
    assert second.prompts_per_step == 9 and second.mix == (0.0, 0.25, 0.75, 0.0, 0.0)
    assert (third.mix, third.sampling.top_k, third.prompts_per_step) == (None, 3, 6)


def test_without_a_curriculum_every_step_is_the_recipe(tmp_path: Path):
    plain = rl_recipe(tmp_path, tmp_path)
    assert plain.at(1) is plain and plain.at(100) is plain


def test_room_is_made_for_the_largest_stage(tmp_path: Path):
    whole = recipe(tmp_path)
    assert whole.max_length == 12 + 16
    assert whole.engine_settings.max_running == 9 * 8
    # 2 steps of 6 prompts, 3 of 9, 3 of 6, with 8 samples each of up to 12 + 4, 12 + 8 and 12 + 16 tokens
    batches = whole.count_batches()
    assert (batches.run.prompts, batches.run.updates) == (57, 8)
    assert batches.run.tokens == 8 * (12 * 16 + 27 * 20 + 18 * 28)
    assert batches.step.prompts == 9
    # held-out problems are answered by `sampling`, in every stage
    assert recipe(tmp_path, {"max_new_tokens": 2}).max_length == 12 + 8


def test_a_resolved_curriculum_loads_again(tmp_path: Path):
    whole = recipe(tmp_path, mix=(0, 0, 0, 0, 2.5), dynamic_sampling=DynamicSampling(window=(0.05, 0.95)))
    (tmp_path / "resolved.toml").write_text(to_toml(whole))
    assert load_recipe(tmp_path / "resolved.toml") == whole
    assert load_recipe(tmp_path / "resolved.toml", ["curriculum=[]"]) == whole.model_copy(
        update={"curriculum": ()}
    )


def test_the_preflight_says_what_each_stage_is(tmp_path: Path):
    lines = list(recipe(tmp_path).batch_notes())
    assert lines[2] == (
        "curriculum stage 2: 3 steps of 9 prompts, up to 8 tokens, temperature 0.7, levels 2 (25 %), 3 (75 %)"
    )
    assert lines[3].endswith("3 steps of 6 prompts, up to 16 tokens, temperature 1, problems of any level")
    assert not any("stage" in line for line in rl_recipe(tmp_path, tmp_path).batch_notes())


# What is refused.


@pytest.mark.parametrize(
    ("stages", "message"),
    [
        ([{"steps": 3}, {"steps": 4}], "stages have 7 steps in all and the run has 8; set steps = 7"),
        ([{"steps": 8}, {}], "take 8 of 8 steps, which leaves it none; set steps = 9 or more"),
        ([{}, {"steps": 4}], "curriculum#1 has no steps, and only the last may leave them out"),
        ([{"max_new_tokens": 500}], r"stage 1: .* 512 tokens do not fit a micro-batch of 256 tokens"),
        ([{"steps": 1}, {"prompts_per_step": 7}], r"stage 2: prompts_per_step 7 .* not divisible"),
        ([{"steps": 1, "mix": [1] * 4}, {}], "are not the weights of levels 1 to 5"),
        ([{"mix": [0] * 5}], "are not the weights of levels 1 to 5"),
    ],
)
def test_mistakes_in_stages_are_named(tmp_path: Path, stages: list[dict[str, Any]], message: str):
    with pytest.raises(ValueError, match=message):
        recipe(tmp_path, *stages, updates_per_step=3)


def test_what_is_wrong_in_the_recipe_itself_is_told_once(tmp_path: Path):
    with pytest.raises(ValueError, match="do not fit") as error:
        recipe(tmp_path, {"steps": 4}, {}, micro_batch_tokens=10)
    assert str(error.value).count("do not fit a micro-batch") == 1


def test_a_mix_without_levels_and_levels_from_two_places_are_refused(tmp_path: Path):
    plain = Problems(source="arithmetic:count=200,steps=2")
    with pytest.raises(ValueError, match="curriculum stage 1: a mix of levels needs problems with levels"):
        recipe(tmp_path, {"mix": [1] * 5}, data=plain)
    twice = plain.model_copy(update={"difficulty": "a.jsonl", "difficulty_key": "level"})
    with pytest.raises(ValueError, match="both say how hard problems are; remove one"):
        recipe(tmp_path, data=twice)


def test_carrying_over_is_not_for_curricula(tmp_path: Path):
    with pytest.raises(ValueError, match=r"dynamic_sampling.carry .* set it to false"):
        recipe(tmp_path, dynamic_sampling=DynamicSampling(carry=True))


@pytest.mark.parametrize("window", [(0.5,), (0.9, 0.1), (-0.1, 0.5), (0.5, 1.5)])
def test_a_window_is_two_pass_rates(window: tuple[float, ...]):
    with pytest.raises(ValueError, match=r"not two pass rates, the lower one first; try \[0.05, 0.95\]"):
        DynamicSampling(window=window)


def test_mistakes_in_the_file_are_told_in_its_words(tmp_path: Path):
    file = tmp_path / "recipe.toml"
    text = to_toml(recipe(tmp_path)).replace("steps = 2 ", "stpes = 2 ").replace("top_k = 3 ", 'top_k = "3" ')
    file.write_text(text)
    with pytest.raises(RecipeError) as error:
        load_recipe(file)
    assert "curriculum#1.stpes: unknown key; the nearest is curriculum.steps" in str(error.value)
    assert 'curriculum#3.top_k must be a whole number, not "3"' in str(error.value)


# What the preflight refuses.


def refusals(whole: Rl) -> str:
    return "\n".join(preflight(whole).refusals)


def test_levels_without_problems_are_refused_before_anything_is_loaded(tmp_path: Path):
    levels(tmp_path, l1=10, l2=20, l3=0)
    found = refusals(recipe(tmp_path))
    assert "curriculum stage 2: mix gives weight to level 3, which no problem has" in found
    assert "(problems by level: 1: 10, 2: 20)" in found and "curriculum stage 1" not in found
    levels(tmp_path, l1=10, l2=20, l3=30)
    assert "mix" not in refusals(recipe(tmp_path))


def test_too_few_problems_of_the_stage_s_levels_are_refused(tmp_path: Path):
    levels(tmp_path, l1=3, l2=2, l3=30)
    found = refusals(recipe(tmp_path))
    assert "curriculum stage 1: mix draws from 5 problems and prompts_per_step is 6" in found
    assert "curriculum stage 2" not in found


def test_files_without_levels_are_refused(tmp_path: Path):
    assert f"data.difficulty: {tmp_path}/levels.jsonl is not a file of difficulty levels" in refusals(
        recipe(tmp_path)
    )
    (tmp_path / "levels.jsonl").write_text(json.dumps({"id": "a", "level": 9}) + "\n")
    assert "levels.jsonl:1: 9 is not a difficulty level" in refusals(recipe(tmp_path))


def test_a_column_of_levels_is_counted_too(tmp_path: Path):
    rows = [{"prompt": "?", "answer": "4", "meta": {"level": 1 + n % 2}} for n in range(12)]
    data = write_lines(tmp_path / "data.jsonl", rows)
    problems = Problems(source=str(data), difficulty_key="meta.level")
    assert "stage 2: mix gives weight to level 3" in refusals(recipe(tmp_path, data=problems))
    few = recipe(tmp_path, data=problems.model_copy(update={"limit": 5}))
    assert "curriculum stage 1: mix draws from 5 problems" in refusals(few)
