"""Recipes from TOML and overrides: what is accepted, and what every mistake is answered with."""

from pathlib import Path

import pytest

from foresail.recipe.reading.load import RecipeError, load_recipe
from foresail.recipe.stages.rl import Rl
from foresail.recipe.stages.sft import Sft
from foresail.recipe.stages.stage import Stage
from foresail.recipe.stages.table import STAGES
from foresail.recipe.tables.parts import Mtp

RL = """
stage = "rl"
steps = 3
[model]
path = "m"
[data]
source = "arithmetic:count=100"
"""
SFT = """
stage = "sft"
steps = 3
data = "d.jsonl"
[model]
path = "m"
"""


def load(tmp_path: Path, text: str, *overrides: str) -> Stage:
    file = tmp_path / "recipe.toml"
    file.write_text(text, encoding="utf-8")
    return load_recipe(file, overrides)


def refuse(tmp_path: Path, text: str, *overrides: str) -> str:
    with pytest.raises(RecipeError) as caught:
        load(tmp_path, text, *overrides)
    return str(caught.value)


def test_file_sets_what_it_says_and_leaves_the_rest(tmp_path: Path) -> None:
    recipe = load(tmp_path, RL)
    assert isinstance(recipe, Rl)
    assert (recipe.steps, recipe.data[0].source, recipe.optimizer.lr) == (3, "arithmetic:count=100", 1e-6)


def test_overrides_win_and_are_typed(tmp_path: Path) -> None:
    recipe = load(
        tmp_path, RL, "run.name=demo", "optimizer.lr=1e-5", "sampling.top_k=0", "model.path=/x/y",
        "dynamic_sampling.enabled=false", 'run.root="my runs"', "checkpoints = {every = 5}",
        "steps=4", "steps=5",
    )  # fmt: skip
    assert isinstance(recipe, Rl)
    assert (recipe.run.name, recipe.run.root, recipe.model.path) == ("demo", "my runs", "/x/y")
    assert (recipe.optimizer.lr, recipe.dynamic_sampling.enabled, recipe.checkpoints.every) == (
        1e-5,
        False,
        5,
    )
    assert recipe.steps == 5, "the last override wins"


@pytest.mark.parametrize("text", ["2024", "1e-5", "true", "2024-01-31", "a=b", ""])
def test_text_keys_take_overrides_as_they_are_typed(tmp_path: Path, text: str) -> None:
    assert load(tmp_path, RL, f"run.wandb={text}").run.wandb == text


def test_none_unsets(tmp_path: Path) -> None:
    text = RL + '[eval]\nsource = "x.jsonl"\n[engine]\nkv_tokens = 5\n'
    recipe = load(tmp_path, text, "eval=none", "engine.kv_tokens=none")
    assert isinstance(recipe, Rl)
    assert recipe.eval == () and recipe.engine.kv_tokens is None


def test_none_where_a_value_is_needed(tmp_path: Path) -> None:
    assert "data.source is missing; set it: file.jsonl" in refuse(tmp_path, RL, "data.source=none")


def test_partial_table_keeps_the_stage_defaults(tmp_path: Path) -> None:
    recipe = load(tmp_path, SFT + "[optimizer]\nwarmup = 10\n", "run.seed=3")
    assert isinstance(recipe, Sft)
    assert (recipe.optimizer.lr, recipe.optimizer.warmup) == (1e-5, 10)
    assert (recipe.run.name, recipe.run.seed) == ("sft", 3)


def test_relative_paths_stay_as_written(tmp_path: Path) -> None:
    assert load(tmp_path, RL, "model.path=../some/model").model.path == "../some/model"


def test_byte_order_mark_is_no_mistake(tmp_path: Path) -> None:
    assert load(tmp_path, "\ufeff" + RL).steps == 3


def test_stage_can_be_overridden(tmp_path: Path) -> None:
    assert isinstance(load(tmp_path, SFT.replace("sft", "rl"), "stage=sft"), Sft)


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("optimiser.lr", "the nearest is optimizer.lr"),
        ("lr", "the nearest is optimizer.lr"),
        ("temperature", "the nearest is sampling.temperature"),
        ("sampling.max_tokens", "the nearest is sampling.max_new_tokens"),
        ("prompt_per_step", "the nearest is prompts_per_step"),
        ("model.shape.num_layer", "the nearest is model.shape.num_layers"),
        ("rnu.name", "the nearest is run.name"),
        ("num_generations", "it is samples_per_prompt here"),
        ("actor_rollout_ref.model.path", "it is model.path here"),
        ("actor_rollout_ref.actor.optim.lr", "it is optimizer.lr here"),
        ("critic.optim.lr", "it is critic.optimizer.lr here"),
        ("data.train_files", "it is data.source here"),
        ("beta", "it is loss.kl_weight here"),
    ],
)
def test_unknown_key_names_the_one_that_was_meant(tmp_path: Path, key: str, said: str) -> None:
    message = refuse(tmp_path, RL, f"{key}=1")
    assert f"{key}: unknown key; {said}" in message.splitlines()[0]


def test_unknown_key_in_the_file_is_the_same_mistake(tmp_path: Path) -> None:
    message = refuse(tmp_path, RL + "[engine]\nmax_runing = 4\n")
    assert "engine.max_runing: unknown key; the nearest is engine.max_running" in message


def test_empty_unknown_table_is_a_mistake(tmp_path: Path) -> None:
    assert "optimiser: unknown key; the nearest is optimizer" in refuse(tmp_path, RL + "[optimiser]\n")


@pytest.mark.parametrize(
    ("override", "told"),
    [
        ("gradient_accumulation_steps=4", "counted in tokens, not in samples"),
        ("num_train_epochs=3", "a run is counted in steps"),
        ("bf16=true", 'model.dtype = "bfloat16"'),
        ("actor_rollout_ref.actor.ppo_mini_batch_size=64", "updates_per_step counts updates, not samples"),
        ("importance_sampling_level=sequence", 'level "sequence" is loss.kind = "gspo"'),
        ("loss_type=dr_grpo", '"dr_grpo" is "constant"'),
        ("epsilon=0.2", "loss.clip_low and loss.clip_high"),
        ("device=gpu", 'the nearest is run.device; write "cuda"'),
        ("actor_rollout_ref.rollout.top_k=-1", "it is sampling.top_k here; 0 keeps all tokens"),
        ("sampling.top_k=-1", "sampling.top_k must be at least 0, not -1; 0 keeps all tokens"),
        ("rollout.backend=sglang", 'rollout.backend = "vllm" takes vLLM instead'),
        ("engine=vllm", "the engine is Foresail's own"),
        ("loss.kind=ipo", 'that is a loss of preference pairs: stage = "dpo"'),
        ("run.device=gpu", 'write "cuda"'),
        ("loss.kind=grpo", 'advantage.kind = "grpo" with loss.kind = "clip"'),
        ("loss.kind=PPO", 'advantage.kind = "gae" with a [critic]'),
        ("advantage.kind=gspo", 'loss.kind = "gspo"'),
        ("model.dtype=bf16", 'write "bfloat16"'),
        ("stage=ipo", 'that is stage = "dpo" with loss.kind = "ipo"'),
        ("stage=grpo", 'that is stage = "rl"'),
        ("shuffle=true", "the order follows from run.seed"),
        ("cosine=1", "docs/recipe-keys.md lists all"),  # not reward.code, which is spelled alike
        ("lora.foo=1", "[lora] takes alpha, rank, targets"),
        ("stop=1", "the nearest is sampling.stop"),
    ],
)
def test_what_is_otherwise_here_gets_a_sentence(tmp_path: Path, override: str, told: str) -> None:
    message = refuse(tmp_path, RL, override)
    assert told in message and len(message.splitlines()) == 1


def test_a_reward_model_says_that_it_takes_no_mtp(tmp_path: Path) -> None:
    pairs = 'stage = "reward-model"\nsteps = 3\nmodel.path = "m"\ndata.source = "pairs.jsonl"\n'
    for key in ("mtp", *(f"mtp.{name}" for name in Mtp.model_fields)):
        told = refuse(tmp_path, pairs, f"{key}={{}}")
        assert f'{key}: unknown key; stage = "reward-model" has no such key (pretrain, sft' in told


@pytest.mark.parametrize(
    ("text", "suffix"),
    [
        (r"\nThink.", "\nThink."),
        (r"Put it in \boxed{}.\n", "Put it in \\boxed{}.\n"),
        (r"is x \neq 3?", r"is x \neq 3?"),
        (r"a\\nb", r"a\nb"),
        (r'"\nThink.\t"', "\nThink.\t"),
    ],
)
def test_newlines_in_overrides(tmp_path: Path, text: str, suffix: str) -> None:
    recipe = load(tmp_path, RL, f"data.suffix={text}")
    assert isinstance(recipe, Rl) and recipe.data[0].suffix == suffix


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("steps=0", "steps must be greater than 0, not 0"),
        ("steps=2.5", "steps must be a whole number, not 2.5"),
        ('steps="10"', 'steps must be a whole number, not "10"'),
        ("steps=true", "steps must be a whole number, not true"),
        ("steps=none", "steps is missing; set it: rollout-and-update rounds"),
        ("optimizer.lr=fast", 'optimizer.lr must be a number, not "fast"'),
        ("optimizer.lr=inf", "optimizer.lr must be a finite number, not inf"),
        ("optimizer.lr=nan", "optimizer.lr must be a finite number, not nan"),
        ("optimizer.beta1=1", "optimizer.beta1 must be less than 1, not 1"),
        ("sampling.top_p=1.5", "sampling.top_p must be at most 1, not 1.5"),
        ("sampling.top_k=-1", "sampling.top_k must be at least 0, not -1"),
        ("dynamic_sampling.enabled=1", "dynamic_sampling.enabled must be true or false, not 1"),
        ("loss.kind=clp", 'loss.kind must be one of clip, gspo, cispo, sapo, not "clp"; did you mean clip?'),
        ("run.device=7", "run.device must be one of auto, cpu, cuda, not 7"),
        ("reward=3", "reward must be a table ([reward]) with keys like grader, wrong, correct, not 3"),
        ("data.source.x=1", "data.source.x: data.source takes a single value in this stage, not a table"),
        ("steps=[1]", "steps must be a whole number, not [1]"),
    ],
)  # fmt: skip
def test_wrong_values_are_answered_in_plain_words(tmp_path: Path, override: str, message: str) -> None:
    assert message in refuse(tmp_path, RL, override)


def test_missing_values_say_what_they_are(tmp_path: Path) -> None:
    message = refuse(tmp_path, 'stage = "rl"\n[data]\nlimit = 3\n')
    assert "model is missing; add a table [model]: The model to start from" in message
    assert "data.source is missing; set it: file.jsonl, file.parquet" in message
    assert "steps is missing; set it: rollout-and-update rounds" in message


def test_no_message_speaks_pydantic(tmp_path: Path) -> None:
    message = refuse(tmp_path, RL, "steps=x", "run=3", "loss.kind=1", "run.seed=-1", "model.shape={}")
    assert "pydantic" not in message and "http" not in message and "Input should" not in message


def test_all_mistakes_are_reported_at_once(tmp_path: Path) -> None:
    message = refuse(tmp_path, RL + "[optimiser]\nlr = 1\n", "steps=0", "lodd.kind=clip", "oops")
    lines = message.splitlines()
    assert lines[0].endswith("recipe.toml: 4 mistakes")
    assert [line.split()[0] for line in lines[1:]] == ["override", "optimiser.lr:", "lodd.kind:", "steps"]


def test_checks_across_keys_are_reported_with_the_rest(tmp_path: Path) -> None:
    message = refuse(
        tmp_path, RL, "zzz=1", "updates_per_step=5", "eval_every=2", "sampling.temperature=0",
        "micro_batch_tokens=1000", "reward.overlong_buffer=1024", "model.path=none",
    )  # fmt: skip
    assert "recipe.toml: 7 mistakes" in message
    assert "prompts_per_step 64 (prompts) is not divisible by updates_per_step 5; try" in message
    assert "try prompts_per_step = 60 or 65" in message
    assert "set micro_batch_tokens = 2048 or more" in message
    assert "set one of model.path" in message


def test_sampling_that_cuts_needs_the_trainers_logprobs(tmp_path: Path) -> None:
    assert 'set loss.old_logprobs = "trainer"' in refuse(tmp_path, RL, "sampling.top_p=0.9")
    assert load(tmp_path, RL, "sampling.top_p=0.9", "loss.old_logprobs=trainer").steps == 3


def test_a_dual_clip_belongs_to_the_clipped_loss(tmp_path: Path) -> None:
    for kind in ("cispo", "gspo"):
        message = refuse(tmp_path, RL, "loss.dual_clip=3.0", f"loss.kind={kind}")
        assert 'loss.dual_clip has an effect with loss.kind = "clip" only; remove it' in message
    assert load(tmp_path, RL, "loss.dual_clip=3.0").steps == 3


def test_gspo_needs_its_own_aggregation(tmp_path: Path) -> None:
    message = refuse(tmp_path, RL, "loss.kind=gspo")
    assert message.endswith('set loss.aggregation = "seq-mean-token-mean"') and "token-mean" in message
    assert load(tmp_path, RL, "loss.kind=gspo", "loss.aggregation=seq-mean-token-mean").steps == 3


def test_a_shape_no_family_has(tmp_path: Path) -> None:
    shape = "{family='qwen2', vocab_size=8, hidden_size=8, intermediate_size=8, num_layers=1, num_heads=2, "
    shape += "num_kv_heads=2, head_dim=4, max_context=8}"
    message = refuse(tmp_path, RL, "model.path=none", "model.tokenizer=t", f"model.shape={shape}")
    assert "model.shape: family qwen2 has qkv_bias = true; set it so" in message


def test_shape_mistakes_keep_their_key(tmp_path: Path) -> None:
    shape = "{vocab_size=8, hidden_size=8, intermediate_size=8, num_layers=1, num_heads=3, num_kv_heads=2, "
    shape += "head_dim=4, max_context=8}"
    message = refuse(tmp_path, RL, "model.path=none", "model.tokenizer=t", f"model.shape={shape}")
    assert "model.shape: num_heads 3 is not a multiple of num_kv_heads 2" in message


def test_missing_and_unknown_stage(tmp_path: Path) -> None:
    *others, last = [f'"{stage}"' for stage in STAGES]
    stages = f"{', '.join(others)} or {last}"
    assert f"stage is missing; put stage = {stages} at the top" in refuse(tmp_path, "steps = 3\n")
    message = refuse(tmp_path, 'stage = "sftt"\n', "oops")
    assert f'there is no stage "sftt"; the stages are {stages}; did you mean "sft"?' in message
    assert "'oops' is not of the form key=value" in message
    assert {"pretrain", "sft", "dpo", "rl", "online-dpo", "distill"} <= set(STAGES)


def test_stage_of_a_wrong_type(tmp_path: Path) -> None:
    assert "there is no stage 3" in refuse(tmp_path, "stage = 3\n")


@pytest.mark.parametrize("override", ["", "steps", "=3", "a..b=1", ".a=1"])
def test_override_of_a_wrong_form(tmp_path: Path, override: str) -> None:
    assert f"override {override!r} is not of the form key=value" in refuse(tmp_path, RL, override)


def test_missing_file_names_a_near_one(tmp_path: Path) -> None:
    (tmp_path / "recipe.toml").write_text(RL)
    with pytest.raises(RecipeError, match=r"recipes\.toml does not exist; did you mean .*recipe\.toml\?"):
        load_recipe(tmp_path / "recipes.toml")
    with pytest.raises(RecipeError, match="does not exist; give the path of a TOML file"):
        load_recipe(tmp_path / "nowhere" / "x.toml")


def test_folder_and_binary_are_no_recipes(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="cannot be read: Is a directory"):
        load_recipe(tmp_path)
    (tmp_path / "b.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(RecipeError, match="is not text"):
        load_recipe(tmp_path / "b.toml")


def test_syntax_error_says_where(tmp_path: Path) -> None:
    message = refuse(tmp_path, 'stage = "rl"\nsteps = = 3\n')
    assert "is not valid TOML" in message and "line 2" in message


@pytest.mark.parametrize("name", ["../elsewhere", "a/b", "", ".."])
def test_a_runs_name_is_one_folder(tmp_path: Path, name: str) -> None:
    assert "is not a folder name" in refuse(tmp_path, SFT, f'run.name="{name}"')


def test_what_nothing_is_like_gets_no_guess(tmp_path: Path) -> None:
    assert "zebras: unknown key; docs/recipe-keys.md lists all" in refuse(tmp_path, SFT, "zebras=true")
