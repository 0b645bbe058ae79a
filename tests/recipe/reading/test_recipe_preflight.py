"""Every refusal of the preflight, its mend, and the arithmetic it prints."""

import json
from pathlib import Path
from typing import Any

import pytest
from sound_recipe import CONFIG, check, in_empty_folder, make, only_refusal, write_safetensors

from foresail.data.made.generators import GENERATORS
from foresail.data.rows import SUFFIXES
from foresail.recipe.estimates.batches import grouped
from foresail.recipe.estimates.memory import gigabytes
from foresail.recipe.reading.describe import describe
from foresail.recipe.tables import inputs
from foresail.recipe.tables.inputs import has_chat_template

__all__ = ["in_empty_folder"]  # a fixture for every test here


@pytest.mark.parametrize("stage", ["rl", "sft"])
def test_a_sound_recipe_is_ready_and_nothing_is_written(stage: str, tmp_path: Path) -> None:
    before = sorted(tmp_path.rglob("*"))
    found = check(stage=stage)
    assert found.refusals == () and found.warnings == ()
    assert describe(found).splitlines()[-1] == "ready to run"
    assert sorted(tmp_path.rglob("*")) == sorted([*before, tmp_path / "recipe.toml"])


# The model.


def test_missing_model_directory() -> None:
    message = only_refusal("model.path=nowhere")
    assert message.startswith("model.path: ") and "nowhere" in message
    assert "Memory: unknown" in describe(check("model.path=nowhere"))


def test_directory_that_is_no_checkpoint() -> None:
    Path("empty").mkdir()
    assert "config.json" in only_refusal("model.path=empty")


def test_checkpoint_without_weights() -> None:
    Path("model/model.safetensors").unlink()
    assert "model has neither model.safetensors nor model.safetensors.index.json" in only_refusal()


@pytest.mark.parametrize(
    "damage", [lambda b: b[:-1], lambda b: b[:5], lambda b: b"x" * len(b), lambda b: b"", lambda b: b + b"x"]
)
def test_damaged_weights(damage: Any) -> None:
    file = Path("model/model.safetensors")
    file.write_bytes(damage(file.read_bytes()))
    assert only_refusal() == "model/model.safetensors is damaged or cut off; download it again"


def test_shards_are_looked_for() -> None:
    Path("model/model.safetensors").rename("model/a.safetensors")
    index = {"weight_map": {"w": "a.safetensors", "v": "b.safetensors"}}
    Path("model/model.safetensors.index.json").write_text(json.dumps(index))
    assert only_refusal().startswith(
        "model/b.safetensors is missing, though model.safetensors.index.json names it"
    )
    write_safetensors(Path("model/b.safetensors"))
    assert check().refusals == ()
    Path("model/model.safetensors.index.json").write_text("{}")
    assert "index.json: weight_map is missing" in only_refusal()


def test_safetensors_written_by_others_are_whole(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    save_file = pytest.importorskip("safetensors.torch").save_file
    save_file(
        {"a": torch.zeros(3, 5), "b": torch.ones(2, dtype=torch.bfloat16)},
        tmp_path / "x.safetensors",
        {"format": "pt"},
    )
    assert inputs.is_whole_safetensors(tmp_path / "x.safetensors")


# The tokenizer.


def test_tokenizer_missing() -> None:
    Path("model/tokenizer.json").unlink()
    assert only_refusal() == "model has no tokenizer.json; set model.tokenizer to a directory that has one"


def test_tokenizer_of_another_model() -> None:
    Path("model/config.json").write_text(json.dumps(CONFIG | {"vocab_size": 99}))
    message = only_refusal()
    assert "model/tokenizer.json has ids up to 99, but the model's vocabulary is 99" in message
    Path("model/config.json").write_text(json.dumps(CONFIG | {"vocab_size": 128}))
    assert check().refusals == (), "an embedding with spare rows is usual"


@pytest.mark.parametrize("content", ["{", "[]", "{}", '{"model": {}}'])
def test_tokenizer_that_is_none(content: str) -> None:
    Path("model/tokenizer.json").write_text(content)
    assert "tokenizer.json is not a tokenizer in JSON" in only_refusal()


def test_unigram_vocabularies_are_lists_and_huge_ones_are_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    file = Path("model/tokenizer.json")
    file.write_text(json.dumps({"model": {"vocab": [["a", 0.0]] * 101}, "added_tokens": None}))
    assert inputs.tokenizer_size(file) == 101
    assert "ids up to 100" in only_refusal()
    monkeypatch.setattr(inputs, "LARGEST_TOKENIZER", 10)
    assert check().refusals == ()


def test_a_real_tokenizer_is_sized_as_its_own_library_does(tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    made = tokenizers.Tokenizer(tokenizers.models.BPE())
    made.train_from_iterator(
        ["some words here", "more words there"], tokenizers.trainers.BpeTrainer(vocab_size=40)
    )
    made.add_special_tokens(["<end>"])
    made.save(str(tmp_path / "real.json"))
    assert inputs.tokenizer_size(tmp_path / "real.json") == made.get_vocab_size()


# Lengths.


def test_samples_longer_than_the_context() -> None:
    message = only_refusal("sampling.max_new_tokens=50")
    assert (
        "max_prompt_tokens 20 + sampling.max_new_tokens 50 = 70 exceed the model's context of 64" in message
    )
    assert message.endswith("set sampling.max_new_tokens = 44")
    assert check("sampling.max_new_tokens=44").refusals == ()


def test_prompts_longer_than_the_context() -> None:
    assert only_refusal("max_prompt_tokens=64").endswith("set max_prompt_tokens below 64")


def test_conversations_longer_than_the_context() -> None:
    message = only_refusal("max_length=65", stage="sft")
    assert message == "max_length 65 exceeds the model's context of 64 tokens; set max_length = 64 or less"


def test_kv_cache_too_small_for_one_sample() -> None:
    # 60 tokens are 4 pages of 16, and one to copy a shared page to: what the engine asks for.
    message = only_refusal("engine.kv_tokens=79")
    assert "engine.kv_tokens 79 cannot hold one sample of 60 tokens (5 pages of 16)" in message
    assert message.endswith("set engine.kv_tokens = 80 or more")
    assert check("engine.kv_tokens=80").refusals == ()


# The data.


def test_what_preflight_knows_of_sources_is_what_the_data_room_takes() -> None:
    assert set(inputs.BUILT_IN_SOURCES) == set(GENERATORS)
    assert inputs.SUFFIXES == SUFFIXES


def test_missing_data_file() -> None:
    message = only_refusal("data.source=nowhere.jsonl")
    assert message.startswith("data.source nowhere.jsonl does not exist (looked in ") and message.endswith(
        "check the path"
    )
    assert only_refusal("data=nowhere.jsonl", stage="sft").startswith("data nowhere.jsonl does not exist")
    assert only_refusal("eval.source=nowhere.jsonl").startswith("eval.source nowhere.jsonl does not exist")


def test_mistyped_generator() -> None:
    assert only_refusal("data.source=arithmetc:count=9").endswith("did you mean arithmetic:count=9?")


def test_generators_are_checked_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    assert check("data.source=arithmetic:count=9").refusals == ()
    assert "needs a count; write arithmetic:count=2000" in only_refusal("data.source=arithmetic")
    monkeypatch.setattr(inputs, "find_spec", lambda name: None)
    assert "pip install 'foresail[gym]'" in only_refusal("data.source=reasoning-gym:chain_sum")
    monkeypatch.setattr(inputs, "find_spec", lambda name: object())
    assert check("data.source=reasoning-gym:chain_sum,size=50").refusals == ()
    assert "names no task" in only_refusal("data.source=reasoning-gym")


def test_folder_and_foreign_suffix() -> None:
    assert "model is a folder without data files" in only_refusal("data.source=model")
    assert "model/config.yaml is none of .jsonl" in write_and_refuse("model/config.yaml", b"a: 1")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("e.jsonl", b"", "e.jsonl is empty"),
        ("e.jsonl.gz", b"", "e.jsonl.gz is empty"),
        ("b.jsonl", b"\n \n", "holds only blank lines"),
        ("t.jsonl", b"prompt,answer\n" * 9, "its first line is not a JSON object"),
        ("n.jsonl", b"3\n" * 9, "its first line is not a JSON object"),
        ("p.parquet", b"PAR1 cut off", "is not a whole parquet file"),
        ("q.parquet", b"x", "is not a whole parquet file"),
    ],
)
def test_unreadable_data(name: str, content: bytes, message: str) -> None:
    assert message in write_and_refuse(name, content)


def write_and_refuse(name: str, content: bytes) -> str:
    Path(name).write_bytes(content)
    return only_refusal(f"data.source={name}")


def test_parquet_needs_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("p.parquet").write_bytes(b"PAR1....PAR1")
    monkeypatch.setattr(inputs, "find_spec", lambda name: object())
    assert check("data.source=p.parquet").refusals == ()
    monkeypatch.setattr(inputs, "find_spec", lambda name: None)
    assert "pip install 'foresail[parquet]'" in only_refusal("data.source=p.parquet")


def test_lists_and_marks_are_read_as_the_data_room_reads_them() -> None:
    Path("list.jsonl").write_text('[{"prompt": "1",\n "answer": "1"}]')
    found = check("data.source=list.jsonl")
    assert found.refusals == () and found.num_records is None
    Path("mark.jsonl").write_bytes(b'\xef\xbb\xbf{"prompt": "1", "answer": "1"}\n')
    assert check("data.source=mark.jsonl", "prompts_per_step=1").refusals == ()


def test_a_tokenizer_without_a_chat_template(tmp_path: Path) -> None:
    for name in ("chat_template.jinja", "tokenizer_config.json"):
        assert not (tmp_path / name).exists()
    assert has_chat_template(tmp_path)  # nothing is known
    settings = tmp_path / "tokenizer_config.json"
    settings.write_text("{}")
    assert not has_chat_template(tmp_path)
    settings.write_text('{"chat_template": "{{ messages }}"}')
    assert has_chat_template(tmp_path)
    settings.write_text("{}")
    (tmp_path / "chat_template.jinja").write_text("{{ messages }}")
    assert has_chat_template(tmp_path)


def test_more_prompts_than_problems() -> None:
    message = only_refusal("prompts_per_step=48")
    assert message.startswith("prompts_per_step 48 (prompts) exceeds the 40 problems of problems.jsonl")
    assert message.endswith("set prompts_per_step = 40 or less")
    assert "exceeds the 5 problems" in only_refusal("data.limit=5")
    assert "exceeds the 7 problems" in only_refusal("data.source=arithmetic:count=7")


def test_warmup_that_never_ends() -> None:
    assert "lasts for all 10 updates" in check("optimizer.warmup=10").warnings[0]
    assert check("optimizer.warmup=9").warnings == ()
    critic = ("advantage.kind=gae", "critic.warmup_steps=5", "dynamic_sampling.enabled=false")
    (warning,) = check(*critic, "optimizer.warmup=8").warnings
    assert "lasts for all 5 updates" in warning, "the critic learns alone in the others"


def test_a_kl_term_that_pulls_nowhere() -> None:
    (warning,) = check("loss.kl=k1", "loss.kl_weight=0.1").warnings
    assert warning.startswith("loss.kl_weight 0.1") and warning.endswith('set loss.kl = "k3"')
    assert check("loss.kl=k1").warnings == check("loss.kl_weight=0.1").warnings == ()


def test_bounds_too_wide_for_whole_samples() -> None:
    gspo = ("loss.kind=gspo", "loss.aggregation=seq-mean-token-mean")
    (warning,) = check(*gspo).warnings
    assert "a bound of 0.28 hardly ever clips" in warning and "loss.clip_low = 3e-4" in warning
    assert check(*gspo, "loss.clip_low=3e-4", "loss.clip_high=4e-4").warnings == ()


# The arithmetic.


def test_batches_in_prompts_and_samples_and_tokens() -> None:
    recipe = make("updates_per_step=2")
    batches = recipe.count_batches()
    assert (batches.step.prompts, batches.step.samples, batches.step.tokens, batches.step.updates) == (
        8,
        32,
        1920,
        2,
    )
    assert (batches.update.prompts, batches.update.samples, batches.update.tokens) == (4, 16, 960)
    assert (batches.run.prompts, batches.run.samples, batches.run.tokens, batches.run.updates) == (
        80,
        320,
        19200,
        20,
    )
    # 128 tokens hold two samples of 60, so 16 samples need at most 8 micro-batches.
    assert (batches.micro_batch.samples, batches.micro_batch.tokens, batches.micro_batches_per_update) == (
        2,
        128,
        8,
    )


def test_a_micro_batch_is_no_larger_than_an_update() -> None:
    """Neither is the memory that is reckoned for it."""
    roomy, full = check("micro_batch_tokens=100000"), check("micro_batch_tokens=1920")
    assert roomy.batches.micro_batch.tokens == roomy.batches.update.tokens == 1920
    assert roomy.memory == full.memory and "one micro-batch of 1,920 tokens" in describe(roomy)


def test_sft_batches_count_conversations() -> None:
    batches = make(stage="sft").count_batches()
    assert (batches.run.prompts, batches.run.samples, batches.run.updates) == (None, 100, 10)
    assert batches.micro_batches_per_update == 5


def test_report_shows_batches_memory_and_files() -> None:
    text = describe(check("checkpoints.every=5", "loss.kl_weight=0.1"))
    assert "run of 10 steps             80            320            19,200        10" in text
    assert "at least 2" in text and "an update takes up to 16 micro-batches" in text
    assert "dynamic sampling may try up to 32 prompts a step" in text
    assert "2.00 passes over 40 records" in text
    for part in ("weights", "gradients", "optimizer", "activations", "logits", "kv cache", "reference"):
        assert f"\n  {part} " in text
    assert "40 pages of 16 tokens" in text
    assert "every 5 steps or 10 minutes, the newest 2 kept" in text and "rollouts/" in text
    sft = describe(check(stage="sft"))
    assert "rollouts/" not in sft and "timeline.jsonl" in sft and "conversations" in sft
    assert "dynamic sampling" not in describe(check("dynamic_sampling.enabled=false"))


def test_numbers_read_well() -> None:
    assert (gigabytes(269_030_016), gigabytes(5_000_000)) == ("0.27 GB", "5.00 MB")
    assert (grouped(1048576), grouped(None)) == ("1,048,576", "-")
