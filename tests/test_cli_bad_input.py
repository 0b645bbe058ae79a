"""Mistakes of the user, made on the command line: one line `error: …` that says what to do, and exit code 1."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from command_line import CommandLine, Finished
from tiny_world import MAX_NEW, make_tokenizer, rl_recipe, sft_recipe, write_lines

from foresail.recipe.reading.dump import to_toml
from foresail.runlog.directory import RunDirectory
from foresail.tokenizer.train import train_bpe


class Desk:
    """A folder with two recipes that would run, and the command line in it."""

    def __init__(self, foresail: CommandLine, checkpoint: Path, tokenizer: Path, conversations: Path) -> None:
        self.foresail, self.folder, self.checkpoint = foresail, foresail.folder, checkpoint
        root = Path("runs")
        (self.folder / "rl.toml").write_text(to_toml(rl_recipe(checkpoint, root)))
        (self.folder / "sft.toml").write_text(to_toml(sft_recipe(tokenizer, conversations, root, steps=4)))

    def run(self, *words: object) -> Finished:
        return self.foresail.run(*words)

    def refused(self, *words: object) -> str:
        """The message of a command that must fail with one."""
        finished = self.run(*words)
        assert finished.code == 1, finished
        lines = [line for line in finished.err.splitlines() if not line.startswith("warning: ")]
        assert lines and lines[0].startswith("error: ") and "Traceback" not in finished.err, finished.err
        return "\n".join(lines).removeprefix("error: ")

    def write(self, name: str, rows: list[dict[str, Any]]) -> Path:
        return write_lines(self.folder / name, rows)

    def copy_checkpoint(self) -> Path:
        copy = self.folder / "checkpoint"
        shutil.copytree(self.checkpoint, copy)
        return copy


@pytest.fixture
def desk(
    foresail: CommandLine, tiny_checkpoint: Path, tiny_tokenizer: Path, tiny_conversations: Path
) -> Desk:
    return Desk(foresail, tiny_checkpoint, tiny_tokenizer, tiny_conversations)


def assert_all_in(text: str, *words: str) -> None:
    for word in words:
        assert word in text, text


# Recipes.


def test_a_recipe_that_is_not_there(desk: Desk) -> None:
    assert_all_in(desk.refused("rl", "rll.toml"), "rll.toml does not exist", "did you mean rl.toml?")


def test_a_recipe_that_is_no_toml(desk: Desk) -> None:
    (desk.folder / "broken.toml").write_text("steps = = 3")
    assert_all_in(desk.refused("rl", "broken.toml"), "broken.toml is not valid TOML", "line 1")


def test_an_unknown_stage_in_a_recipe(desk: Desk) -> None:
    text = (desk.folder / "rl.toml").read_text().replace('stage = "rl"', 'stage = "rlhf"')
    (desk.folder / "other.toml").write_text(text)
    for command in ("check", "rl", "sft"):
        message = desk.refused(command, "other.toml")
        assert_all_in(message, 'there is no stage "rlhf"', '"pretrain", "sft"', 'is stage = "rl"')


def test_an_unknown_stage_as_a_command(desk: Desk) -> None:
    finished = desk.run("trian", "rl.toml")
    assert finished.code == 2
    assert_all_in(finished.err, "No such command 'trian'", "foresail --help")
    assert_all_in(desk.refused("cpt", "rl.toml"), "there is no command cpt", 'stage = "pretrain"')
    assert_all_in(desk.refused("cpo", "rl.toml"), "there is no command cpo", 'stage = "dpo"')
    assert_all_in(desk.refused("gkd", "rl.toml"), "there is no command gkd", 'stage = "distill"')
    assert desk.refused("dpo", "rl.toml") == "rl.toml is a recipe for rl; run `foresail rl rl.toml`"


def test_a_recipe_of_another_stage(desk: Desk) -> None:
    assert desk.refused("rl", "sft.toml") == "sft.toml is a recipe for sft; run `foresail sft sft.toml`"
    assert desk.refused("sft", "rl.toml") == "rl.toml is a recipe for rl; run `foresail rl rl.toml`"


def test_an_unknown_key_names_the_nearest(desk: Desk) -> None:
    assert_all_in(
        desk.refused("rl", "rl.toml", "optimizer.lrr=1"), "optimizer.lrr: unknown key", "optimizer.lr"
    )
    assert_all_in(desk.refused("check", "rl.toml", "num_generations=4"), "samples_per_prompt")


def test_keys_of_other_trainers_are_answered_in_our_words(desk: Desk) -> None:
    said = {
        "temperature=0.7": "the nearest is sampling.temperature",
        "actor_rollout_ref.model.path=x": "it is model.path here",
        "actor_rollout_ref.actor.optim.lr=1e-6": "it is optimizer.lr here",
        "actor_rollout_ref.rollout.top_k=-1": "it is sampling.top_k here; 0 keeps all tokens",
        "train_dataset=x": "training data is data",
        "peft_config={}": "LoRA adapters are trained if the recipe has a table [lora]",
        "dataset_text_field=text": "data.prompt_key names the column of the prompt",
        "attn_implementation=sdpa": "leave it out",
        "data.filter_overlong_prompts=true": 'filter_overlong_prompts = true is data.too_long = "drop"',
        "trainer.logger=['console','wandb']": "run.wandb",
        "trainer.prometheus.port=9090": "docs/recipe-keys.md lists all",
    }
    lines = desk.refused("check", "rl.toml", *said).splitlines()
    assert lines[0] == f"rl.toml: {len(said)} mistakes"
    for override, words in said.items():
        key = override.partition("=")[0]
        assert any(line.startswith(f"  {key}: unknown key; ") and words in line for line in lines), key


def test_lists_and_none_on_the_command_line(desk: Desk) -> None:
    program = 'environment.program=["python", "agent.py"]'
    checked = desk.run("check", "--quick", "rl.toml", program, "data.suffix=none", "sampling.stop=none")
    assert checked.code == 0 and "ready to run" in checked.out, checked


def test_all_mistakes_are_told_at_once(desk: Desk) -> None:
    message = desk.refused("rl", "rl.toml", "stepz=3", "steps=0", "optimizer.schedule=cosin", "nonsense")
    assert_all_in(message, "4 mistakes", "the nearest is steps", "steps must be greater than 0")
    assert_all_in(message, "did you mean cosine?", "'nonsense' is not of the form key=value")


def test_settings_that_do_not_go_together(desk: Desk) -> None:
    message = desk.refused("rl", "rl.toml", "updates_per_step=4", "sampling.top_p=0.9")
    assert_all_in(message, "try prompts_per_step = 4 or 8", 'set loss.old_logprobs = "trainer"')


# Data.


@pytest.mark.parametrize("stage", ["rl", "sft"])
@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, ("does not exist", "check the path")),
        (b"", ("is empty", "needs at least one record")),
        (b"\n \n", ("holds only blank lines", "one JSON object per line")),
        (b"{not json\n", ("first line is not a JSON object", "one per line")),
    ],
)
def test_data_that_cannot_be_read(
    desk: Desk, stage: str, content: bytes | None, words: tuple[str, ...]
) -> None:
    if content is not None:
        (desk.folder / "data.jsonl").write_bytes(content)
    key = "data.source" if stage == "rl" else "data"
    message = desk.refused(stage, f"{stage}.toml", f"{key}=data.jsonl")
    assert_all_in(message, f"{key} data.jsonl", *words)
    assert not (desk.folder / "runs").exists()


def test_data_that_is_corrupt_further_down(desk: Desk) -> None:
    path = desk.write("data.jsonl", [{"prompt": "7 +5 *3", "answer": "6", "completion": "6"}] * 8)
    with open(path, "a") as file:
        file.write('{"prompt": "7 +\n')
    for stage, key in (("rl", "data.source"), ("sft", "data")):
        message = desk.refused(stage, f"{stage}.toml", f"{key}=data.jsonl")
        assert_all_in(message, "data.jsonl:9: not JSON", "correct or delete this line")


def test_compressed_and_columnar_data_that_is_cut_off(desk: Desk) -> None:
    (desk.folder / "data.jsonl.gz").write_bytes(b"\x1f\x8b\x08\x00half")
    message = desk.refused("rl", "rl.toml", "data.source=data.jsonl.gz")
    assert_all_in(message, "data.jsonl.gz is damaged or cut short", "fetch it again")
    (desk.folder / "data.parquet").write_bytes(b"PAR1 and then nothing")
    message = desk.refused("rl", "rl.toml", "data.source=data.parquet")
    assert_all_in(message, "is not a whole parquet file", "download it again")


def test_problems_without_an_answer(desk: Desk) -> None:
    rows = [{"prompt": f"{n} +5 *3", "answer": None if n in (3, 5) else "1"} for n in range(1, 9)]
    desk.write("data.jsonl", rows)
    message = desk.refused("rl", "rl.toml", "data.source=data.jsonl")
    assert_all_in(message, "2 of 8 problems have no answer", "data.jsonl:3", "data.jsonl:5", "fill them in")


def test_data_without_the_needed_columns(desk: Desk) -> None:
    desk.write("data.jsonl", [{"prompt": f"{n} +5 *3", "anwser": "1"} for n in range(1, 9)])
    message = desk.refused("rl", "rl.toml", "data.source=data.jsonl")
    assert_all_in(message, "no answer column", "did you mean anwser?", "set answer_key")
    message = desk.refused("sft", "sft.toml", "data=data.jsonl")
    assert_all_in(message, "no conversation", "prompt and completion")


def test_fewer_problems_than_a_step_needs(desk: Desk) -> None:
    desk.write("data.jsonl", [{"prompt": f"{n} +5 *3", "answer": "1"} for n in range(1, 4)])
    message = desk.refused("rl", "rl.toml", "data.source=data.jsonl")
    assert_all_in(message, "prompts_per_step 6", "the 3 problems", "set prompts_per_step = 3 or less")


def test_a_prompt_longer_than_the_recipe_allows(desk: Desk) -> None:
    rows = [{"prompt": f"{n} +5 *3", "answer": "1"} for n in range(1, 8)]
    desk.write("data.jsonl", [*rows, {"prompt": "7 +5 *3 -4 +1 +2", "answer": "1"}])
    message = desk.refused("rl", "rl.toml", "data.source=data.jsonl")
    assert_all_in(
        message,
        "1 of 8 prompts are longer than max_prompt_tokens 12",
        "(data:7)",
        "set max_prompt_tokens = 13",
        'data.too_long = "drop"',
    )


def test_lengths_beyond_the_models_context(desk: Desk) -> None:
    message = desk.refused("rl", "rl.toml", "sampling.max_new_tokens=30")
    assert_all_in(message, "= 42 exceed the model's context of 32", "set sampling.max_new_tokens = 20")
    message = desk.refused("sft", "sft.toml", "max_length=33")
    assert_all_in(message, "max_length 33 exceeds the model's context of 32", "set max_length = 32 or less")


def test_a_conversation_that_is_too_long(desk: Desk) -> None:
    desk.write("data.jsonl", [{"prompt": "7" + " +5" * 20, "completion": "7"}])
    message = desk.refused("sft", "sft.toml", "data=data.jsonl")
    assert_all_in(
        message,
        "(conversation 1) has 45 tokens",
        "longer than max_length 24",
        "use a model with a longer context",
    )


def test_a_character_the_tokenizer_does_not_know(desk: Desk) -> None:
    desk.write("data.jsonl", [{"prompt": f"{n} plus 1", "answer": "1"} for n in range(1, 9)])
    assert_all_in(
        desk.refused("rl", "rl.toml", "data.source=data.jsonl"), "has no token for 'p'", "train it on"
    )


# Checkpoints.


def test_a_checkpoint_that_is_not_there(desk: Desk) -> None:
    for words in (
        ("rl", "rl.toml", "model.path=nowhere"),
        ("eval", "nowhere", "--data", "arithmetic:count=3"),
    ):
        assert_all_in(desk.refused(*words), "no checkpoint directory nowhere", "check the path")


def test_a_checkpoint_without_config(desk: Desk) -> None:
    copy = desk.copy_checkpoint()
    (copy / "config.json").unlink()
    for words in (("rl", "rl.toml", f"model.path={copy}"), ("generate", copy, "7 +5")):
        assert_all_in(desk.refused(*words), "config.json", str(copy))


def test_a_checkpoint_with_cut_weights(desk: Desk) -> None:
    copy = desk.copy_checkpoint()
    weights = copy / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1000])
    assert_all_in(
        desk.refused("rl", "rl.toml", f"model.path={copy}"), "damaged or cut off", "download it again"
    )
    message = desk.refused("eval", copy, "--data", "arithmetic:count=3", "--max-new-tokens", MAX_NEW)
    assert_all_in(message, "damaged or cut short", "download it again")


def test_a_checkpoint_without_weights(desk: Desk) -> None:
    copy = desk.copy_checkpoint()
    (copy / "model.safetensors").unlink()
    assert_all_in(desk.refused("rl", "rl.toml", f"model.path={copy}"), "has neither model.safetensors nor")


def test_a_checkpoint_whose_config_is_of_another_model(desk: Desk) -> None:
    copy = desk.copy_checkpoint()
    config = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps(config | {"num_hidden_layers": 3}))
    message = desk.refused("rl", "rl.toml", f"model.path={copy}")
    assert_all_in(message, "does not match its config", "Use the config.json that came with these weights")


def test_a_tokenizer_with_more_ids_than_the_model_has_rows(desk: Desk) -> None:
    big = train_bpe(["abc 123"], vocab_size=300)
    big.save(desk.folder / "big")
    message = desk.refused("rl", "rl.toml", "model.tokenizer=big")
    assert_all_in(message, "big/tokenizer.json has ids up to", "tokenizer the model was trained with")

    copy = desk.copy_checkpoint()
    for file in (desk.folder / "big").iterdir():
        shutil.copy(file, copy)
    message = desk.refused("eval", copy, "--data", "arithmetic:count=3", "--max-new-tokens", MAX_NEW)
    assert_all_in(message, "embedding rows", "use the tokenizer that belongs to the model")


def test_a_checkpoint_without_a_tokenizer(desk: Desk) -> None:
    copy = desk.copy_checkpoint()
    (copy / "tokenizer.json").unlink()
    message = desk.refused("rl", "rl.toml", f"model.path={copy}")
    assert_all_in(message, "has no tokenizer.json", "set model.tokenizer")


def test_resuming_from_a_damaged_checkpoint(desk: Desk) -> None:
    assert desk.run("rl", "rl.toml").code == 0
    newest = desk.folder / "runs" / "rl" / "checkpoints" / "step_2"
    (newest / "trainer" / "progress.json").write_text("{")
    message = desk.refused("resume", "runs/rl")
    assert_all_in(message, "progress.json is damaged", "step 1 is whole", "resume runs/rl --from-step 1")
    shutil.rmtree(newest)
    assert desk.run("resume", "runs/rl").code == 0


# While it runs.


def test_equal_rewards_for_the_whole_cap(desk: Desk) -> None:
    desk.write(
        "data.jsonl", [{"prompt": f"{n} +{m} *3", "answer": "777"} for n in range(1, 9) for m in (1, 2)]
    )
    message = desk.refused("rl", "rl.toml", "data.source=data.jsonl", "dynamic_sampling.max_rounds=2")
    assert_all_in(message, "nothing to learn from 12 groups of 8 samples", "0/8 right: 12 prompts", "wrong")
    assert_all_in(message, "easier problems", "look at RUN/rollouts", "raise dynamic_sampling.max_rounds")
    rows = RunDirectory(desk.folder / "runs" / "rl").read_rollouts(1)
    assert len(rows) == 12 * 8 and not any(row["used"] for row in rows)


def test_a_loss_that_is_not_a_number(desk: Desk) -> None:
    message = desk.refused(
        "sft", "sft.toml", "optimizer.lr=1e38", "optimizer.warmup=0", "checkpoints.every=1"
    )
    assert_all_in(message, "is nan in the micro-batch of conversation", "the weights were not touched")
    assert_all_in(message, "Lower optimizer.lr")
    shown = desk.run("show", "runs/sft")
    assert shown.code == 0 and "step_" in shown.out


def test_weights_that_are_not_numbers(desk: Desk) -> None:
    message = desk.refused("rl", "rl.toml", "optimizer.lr=1e38", "steps=3")
    assert_all_in(message, "NaN for the next token", "its weights are damaged")


# Runs.


def test_a_folder_that_already_holds_a_run(desk: Desk) -> None:
    assert desk.run("rl", "rl.toml").code == 0
    message = desk.refused("rl", "rl.toml")
    assert message.startswith("runs/rl already holds this run; go on with it: foresail resume runs/rl, or ")
    checked = desk.run("check", "rl.toml")
    assert checked.code == 1 and checked.out.splitlines()[-1] == f"refused: {message}"
    message = desk.refused("rl", "rl.toml", "optimizer.lr=2e-3")
    assert_all_in(message, "holds a run of another recipe (other optimizer.lr)", "foresail resume runs/rl")
    assert desk.run("rl", "rl.toml", "optimizer.lr=2e-3", "run.name=second").code == 0


def test_a_run_that_failed_before_its_first_step_is_started_anew(desk: Desk) -> None:
    desk.write("data.jsonl", [{"prompt": f"{n} +5 *3", "answer": "99"} for n in range(1, 9)])  # ever wrong
    desk.refused("rl", "rl.toml", "data.source=data.jsonl")
    assert (desk.folder / "runs" / "rl" / "recipe.toml").exists()
    mended = desk.run("rl", "rl.toml")
    assert mended.code == 0, mended.err
    assert "data.jsonl" not in (desk.folder / "runs" / "rl" / "recipe.toml").read_text()


@pytest.mark.parametrize("command", ["show", "resume"])
def test_a_folder_that_is_no_run(desk: Desk, command: str) -> None:
    (desk.folder / "empty").mkdir()
    assert_all_in(desk.refused(command, "empty"), "empty is no run", "give the folder that holds them")
    assert_all_in(desk.refused(command, "nowhere"), "there is no folder nowhere", "give the folder of a run")


# Evaluating and generating.


def evaluate(desk: Desk, *words: object, data: str = "arithmetic:count=3,steps=2") -> str:
    return desk.refused("eval", desk.checkpoint, "--data", data, *words)


def test_an_unknown_grader(desk: Desk) -> None:
    message = evaluate(desk, "--grader", "maths")
    assert_all_in(message, 'unknown grader "maths"; did you mean math?', "rewards.py:score")
    assert_all_in(evaluate(desk, "--grader", "nowhere.py:f"), "nowhere.py does not exist", "check the path")


def test_a_reward_function_that_cannot_be_used(desk: Desk) -> None:
    (desk.folder / "mine.py").write_text(
        "def score(response, weight): return 1.0\ndef fine(completions): return [1.0 for _ in completions]"
    )
    for grader, words in {
        "nowhere.py:score": ("reward.grader nowhere.py:score", "does not exist", "check the path"),
        "mine.py:scor": ("there is no function scor", "did you mean score?"),
        "mine.py:score": ("none of the known shapes", "solution_str", "queries"),
    }.items():
        checked = desk.run("check", "rl.toml", f"reward.grader={grader}")
        assert checked.code == 1
        assert_all_in(checked.out, "refused: ", *words)
        assert_all_in(desk.refused("rl", "rl.toml", f"reward.grader={grader}"), *words)
    assert_all_in(desk.refused("rl", "rl.toml", "reward.grader=maths"), "did you mean math?")
    assert not (desk.folder / "runs").exists()
    assert desk.run("check", "rl.toml", "reward.grader=mine.py:fine").code == 0


def test_a_reward_function_whose_needs_are_not_there(desk: Desk) -> None:
    """Found when it is loaded, before the model is; nothing is left of the run."""
    (desk.folder / "wants.py").write_text("def score(completions, solution): return [1.0]")
    message = desk.refused("rl", "rl.toml", "reward.grader=wants.py:score")
    assert_all_in(message, "score (wants.py:1) wants the column solution", "data.source", "has answer")
    (desk.folder / "lacks.py").write_text("\nimport no_such_kit\ndef score(completions): return [1.0]")
    message = desk.refused("rl", "rl.toml", "reward.grader=lacks.py:score")
    assert_all_in(message, "No module named 'no_such_kit' (lacks.py:2)", "pip install the package")
    assert not (desk.folder / "runs").exists()


def test_evaluation_data_that_cannot_be_read(desk: Desk) -> None:
    short = ("--max-new-tokens", MAX_NEW)
    assert_all_in(evaluate(desk, *short, data="nowhere.jsonl"), "data file nowhere.jsonl does not exist")
    assert_all_in(evaluate(desk, *short, data="nowhere"), "unknown problem source 'nowhere'", "arithmetic:…")
    assert_all_in(evaluate(desk, *short, data="arithmetic:cuont=3"), "count")
    (desk.folder / "empty.jsonl").touch()
    assert_all_in(evaluate(desk, *short, data="empty.jsonl"), "empty.jsonl is empty", "at least one row")
    assert not (desk.folder / "runs").exists()


def test_an_evaluation_that_does_not_fit_the_context(desk: Desk) -> None:
    message = evaluate(desk)
    assert_all_in(message, "--max-new-tokens 1024", "context of 32", "set --max-new-tokens to 25 or less")
    desk.write("long.jsonl", [{"prompt": "7" + " +5" * 20, "answer": "7"}])
    assert_all_in(evaluate(desk, "--max-new-tokens", 4, data="long.jsonl"), "leave them out")


def test_a_file_where_the_records_should_go(desk: Desk) -> None:
    (desk.folder / "taken").touch()
    message = evaluate(desk, "--max-new-tokens", MAX_NEW, "--output", "taken")
    assert_all_in(message, "taken cannot be made", "choose another output folder")


def test_a_device_that_is_not_there(desk: Desk) -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("this machine has CUDA")
    message = evaluate(desk, "--max-new-tokens", MAX_NEW, "--device", "cuda")
    assert_all_in(message, "PyTorch sees none", "set it to auto or cpu")


def test_an_option_out_of_its_range_names_the_option(desk: Desk) -> None:
    finished = desk.run("eval", desk.checkpoint, "--data", "arithmetic:count=3", "--top-p", 0)
    assert finished.code == 2 and "--top-p" in finished.err
    assert "name some with --data FILE" in desk.refused("eval", desk.checkpoint)


def test_a_prompt_that_does_not_fit_the_context(desk: Desk) -> None:
    message = desk.refused("generate", desk.checkpoint, "7 +5", "--max-new-tokens", 40)
    assert_all_in(message, "exceed the model's context of 32", "set --max-new-tokens to")
    message = desk.refused("generate", desk.checkpoint, "7" + " +5" * 20)
    assert_all_in(message, "exceed the model's context of 32", "use shorter prompts")


def test_an_import_over_something_that_is_there(desk: Desk) -> None:
    assert_all_in(desk.refused("import", "model.gguf", "."), "already there", "choose another folder")
    assert_all_in(desk.refused("import", "model.gguf", "new"), "model.gguf")
    assert not (desk.folder / "new").exists()


def test_debugging_shows_the_traceback(desk: Desk) -> None:
    finished = desk.foresail.run("show", "nowhere", FORESAIL_DEBUG="1")
    assert finished.code == 1 and "Traceback" in finished.err and "there is no folder nowhere" in finished.err


def test_the_tokenizer_of_this_world_is_small() -> None:
    """The mismatch above rests on that."""
    assert make_tokenizer().vocab_size < 50
