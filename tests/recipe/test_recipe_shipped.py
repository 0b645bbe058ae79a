"""The recipes in recipes/ load, and say only what differs from the defaults."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from foresail.recipe.keys import leaves
from foresail.recipe.load import load_recipe
from foresail.recipe.rl import Rl
from foresail.recipe.stage import Stage

FOLDER = Path(__file__).parents[2] / "recipes"
FILES = sorted([*FOLDER.glob("*.toml"), *FOLDER.glob("flagship/*.toml")])


def test_the_recipes_are_there() -> None:
    names = {file.stem for file in FILES}
    assert names >= {
        "rl-arithmetic", "sft-example", "grpo-gsm8k-smollm2", "dapo", "dr-grpo", "gspo",
        "cispo", "rloo", "reinforce++", "ppo", "compass-thinker", "mimo",
    }  # fmt: skip


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_recipe_loads_and_says_only_what_differs(file: Path) -> None:
    recipe = load_recipe(file)
    text = file.read_text(encoding="utf-8")
    assert text.startswith("# ") and len(text.splitlines()) < 50
    given = tomllib.loads(text)
    defaults = default_leaves(type(recipe))
    idle = [
        key for key, value in leaves(given) if key != "stage" and key in defaults and defaults[key] == value
    ]
    assert idle == [], "these repeat their default"


def default_leaves(stage: type[Stage]) -> dict[str, Any]:
    """Of keys that have a default: those in tables which may be left out, and plain ones."""
    fields = stage.model_fields
    plain = {name: field.default for name, field in fields.items() if not field.is_required()}
    return dict(
        leaves({name: v.model_dump() if hasattr(v, "model_dump") else v for name, v in plain.items()})
    )


def test_the_named_algorithms_are_what_their_files_say() -> None:
    def load(name: str) -> Rl:
        recipe = load_recipe(FOLDER / f"{name}.toml")
        assert isinstance(recipe, Rl)
        return recipe

    assert (load("gspo").loss.kind, load("cispo").loss.kind) == ("gspo", "cispo")
    assert (load("rloo").advantage.kind, load("reinforce++").advantage.kind) == ("rloo", "reinforce++")
    assert load("ppo").advantage.kind == "gae" and load("ppo").critic is not None
    dr_grpo, dapo = load("dr-grpo"), load("dapo")
    assert (dr_grpo.advantage.kind, dr_grpo.loss.aggregation) == ("dr_grpo", "constant")
    assert dapo.loss.clip_high > dapo.loss.clip_low and dapo.dynamic_sampling.enabled
    assert dapo.loss.aggregation == "token-mean" and dapo.reward.overlong_buffer > 0


def test_the_papers_numbers_are_what_their_files_say() -> None:
    """Batch, mini-batch, updates, rate, length, temperature, rewards: §4.1 of the one, §3.3.3 of the other."""
    for name, batch, length, wrong, easy in (
        ("compass-thinker", 128, 4096, -1.0, None),
        ("mimo", 512, 32768, 0.0, 0.1),
    ):
        recipe = load_recipe(FOLDER / f"{name}.toml")
        assert isinstance(recipe, Rl)
        assert recipe.prompts_per_step == batch and recipe.prompts_per_step // recipe.parts_per_pass == 32
        assert recipe.updates_per_step == 16 and recipe.optimizer.lr == 1e-6
        assert recipe.max_length == length
        assert (recipe.sampling.temperature, recipe.sampling.top_p) == (1.0, 1.0)
        assert (recipe.reward.correct, recipe.reward.wrong) == (1.0, wrong)
        assert recipe.dynamic_sampling.enabled and recipe.dynamic_sampling.easy_pool == easy
        assert (recipe.advantage.kind, recipe.loss.aggregation) == ("grpo", "token-mean")
        assert recipe.loss.kl_weight == 0 and recipe.loss.clip_high > recipe.loss.clip_low
