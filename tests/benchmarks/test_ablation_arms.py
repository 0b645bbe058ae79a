"""The ablation's arms: each is the full recipe but for one part."""

from __future__ import annotations

import json
from pathlib import Path

import ablations
import pytest
from ablations import ARMS, rl_recipe, to_row, write_data

from foresail.data.made.arithmetic import to_problem
from foresail.quickstart.stages import Interrupted
from foresail.recipe.keys import leaves
from foresail.recipe.stages.rl import Rl
from foresail.recipe.stages.sft import Sft
from foresail.tokenizer.tokenizer import Tokenizer
from foresail.train.session import Outcome

OFF = {
    "no-dynamic-sampling": {"dynamic_sampling.enabled"},
    "no-clip-higher": {"loss.clip_high"},
    "no-easy-pool": {"dynamic_sampling.easy_pool"},
    "no-curriculum": {"curriculum"},
}


@pytest.mark.parametrize("arm", ARMS[1:])
def test_an_arm_differs_in_one_part_only(arm: str) -> None:
    full, other = (
        dict(leaves(rl_recipe(Path("runs"), 0, name, 60, Path("sft")).model_dump())) for name in ("full", arm)
    )
    changed = {key for key in full.keys() | other.keys() if full.get(key) != other.get(key)}
    assert changed - {"run.name"} == OFF[arm]


def test_the_bounds_are_equal_without_clip_higher() -> None:
    loss = rl_recipe(Path("runs"), 0, "no-clip-higher", 60, Path("sft")).loss
    assert loss.clip_low == loss.clip_high


def test_levels_follow_from_the_length() -> None:
    levels = [to_row(to_problem("7" + " +5" * steps))["level"] for steps in range(4, 14)]
    assert levels == [1, 1, 2, 2, 3, 3, 4, 4, 5, 5]


def test_the_tokenizer_of_the_short_chains_writes_the_long_ones(tmp_path: Path) -> None:
    write_data(tmp_path, 0)
    tokenizer = Tokenizer.load(tmp_path / "tokenizer")
    rows = [json.loads(line) for line in (tmp_path / "train.jsonl").read_text().splitlines()]
    assert {row["level"] for row in rows} == {1, 2, 3, 4, 5}
    longest = max(rows, key=lambda row: len(row["prompt"]))["prompt"]
    assert tokenizer.decode(tokenizer.encode(longest)) == longest
    assert len(tokenizer.encode(longest)) < 32


def test_arms_beside_each_other_only_read_the_cold_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its folder is one process's at a time: opening it from two arms at once ended both."""
    opened: list[Rl | Sft] = []

    def train_stage(recipe: Rl | Sft) -> Outcome:
        opened.append(recipe)
        raise Interrupted(recipe.run.name)

    monkeypatch.setattr(ablations, "train_stage", train_stage)
    for arm in ("full", "no-easy-pool"):
        with pytest.raises(Interrupted, match="goes on"):
            ablations.run_arm(tmp_path, 0, arm, 3)
    assert [recipe.run.name for recipe in opened] == ["full", "no-easy-pool"]
    assert {recipe.model.path for recipe in opened} == {str(tmp_path / "seed-0/sft/checkpoints/step_500")}
