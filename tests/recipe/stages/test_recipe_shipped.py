"""The recipes in recipes/ load, and say only what differs from the defaults."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from foresail.recipe.keys import leaves
from foresail.recipe.reading.load import load_recipe
from foresail.recipe.stages.pretrain import Pretrain
from foresail.recipe.stages.pretrain_stage import span
from foresail.recipe.stages.rl import Rl
from foresail.recipe.stages.stage import Stage

FOLDER = Path(__file__).parents[3] / "recipes"
FILES = sorted([*FOLDER.glob("*.toml"), *FOLDER.glob("flagship/*.toml")])


def test_the_recipes_are_there() -> None:
    names = {file.stem for file in FILES}
    assert names >= {
        "rl-arithmetic", "sft-example", "grpo-gsm8k-smollm2", "dapo", "dr-grpo", "gspo",
        "cispo", "sapo", "rloo", "reinforce++", "ppo", "compass-thinker", "mimo", "pretrain-compass-v2",
        "pretrain-mimo", "kto-example",
        "pretrain-small", "dpo-example", "sft-compass-v2",
    }  # fmt: skip


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_recipe_loads_and_says_only_what_differs(file: Path) -> None:
    recipe = load_recipe(file)
    text = file.read_text(encoding="utf-8")
    assert text.startswith("# ") and len(text.splitlines()) < (70 if recipe.stage == "pretrain" else 50)
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

    assert [load(name).loss.kind for name in ("gspo", "cispo", "sapo")] == ["gspo", "cispo", "sapo"]
    assert load("sapo").loss.aggregation == "seq-mean-token-mean"
    assert (load("rloo").advantage.kind, load("reinforce++").advantage.kind) == ("rloo", "reinforce++")
    assert load("ppo").advantage.kind == "gae" and load("ppo").critic is not None
    dr_grpo, dapo = load("dr-grpo"), load("dapo")
    assert (dr_grpo.advantage.kind, dr_grpo.loss.aggregation) == ("dr_grpo", "constant")
    assert dapo.loss.clip_high > dapo.loss.clip_low and dapo.dynamic_sampling.enabled
    assert dapo.loss.aggregation == "token-mean" and dapo.reward.overlong_buffer > 0


def test_the_papers_stages_of_pretraining_are_what_their_files_say() -> None:
    """§2.2 and §2.3 of Compass-v2, §2.3 of MiMo: sizes, tokens, rows, rates, lengths and bases."""
    compass, mimo = (load_recipe(FOLDER / f"pretrain-{name}.toml") for name in ("compass-v2", "mimo"))
    assert isinstance(compass, Pretrain) and isinstance(mimo, Pretrain)
    assert compass.router is not None and (compass.router.balance, compass.router.z) == (0.01, 0.001)
    assert mimo.mtp is not None and (mimo.mtp.weight, mimo.mtp.final_weight) == (0.3, 0.1)
    assert mimo.mtp.change_at * sum(stage.tokens for stage in mimo.stages) == pytest.approx(10.3e12, rel=1e-3)
    for recipe, total, active in ((compass, 30e9, 5e9), (mimo, 7e9, 7e9)):
        assert recipe.model.shape is not None
        shape = recipe.model.shape.without_mtp()
        assert shape.num_parameters == pytest.approx(total, rel=0.1)
        assert shape.active_parameters == pytest.approx(active, rel=0.1)
        assert (recipe.optimizer.beta1, recipe.optimizer.beta2, recipe.optimizer.weight_decay) == (
            0.9,
            0.95,
            0.1,
        )
        assert recipe.optimizer.clip_norm == 1.0
    assert [(stage.rows, stage.length) for stage in compass.stages] == [
        (5760, 4096),
        (8640, 4096),
        (2160, 32768),
    ]
    assert [stage.warmup_tokens / stage.batch_tokens for stage in compass.stages] == [3000, 2000, 0]
    assert [stage.tokens for stage in compass.stages[:2]] == [8e12, 4e12]
    assert span(compass.stages[2]).steps == 2200
    rates = [(stage.lr, stage.final_lr if stage.decay == "cosine" else stage.lr) for stage in compass.stages]
    assert rates == [(3e-4, 3e-5), (1.5e-4, 3e-5), (3e-5, 3e-5)]
    assert [stage.rope_theta for stage in compass.stages] == [None, None, 1e6]
    assert (compass.stages[2].long_share, compass.long_from(2)) == (0.6, 4096)
    assert [(stage.rows, stage.length) for stage in mimo.stages] == [(2560, 8192), (2560, 8192), (640, 32768)]
    first, second, last = mimo.stages
    assert (first.tokens, first.warmup_tokens, first.decay_tokens) == (84e9 + 10.2e12 + 7.5e12, 84e9, 7.5e12)
    assert (first.lr, first.final_lr, first.batch_warmup_tokens) == (1.07e-4, 3e-5, 168e9)
    assert (second.tokens, second.lr, second.decay) == (4e12, 3e-5, "constant")
    assert (last.tokens, last.decay_tokens, last.lr, last.final_lr) == (2e12, 500e9, 3e-5, 1e-5)
    assert last.rope_theta == 640_000


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
