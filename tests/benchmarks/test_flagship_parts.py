"""The flagship benchmarks from end to end, with a model of a few thousand weights in SmolLM2's place."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import flagship
import flagship_programs
import flagship_runs
import pytest
from command_line import servers
from flagship_curves import draw
from flagship_programs import SAMPLED, SCHEMES, STARTS, find_start, programs
from flagship_runs import Place, spread

from foresail.data.made.word_problems import make_problems
from foresail.model.hf import build_model, save_model
from foresail.quickstart import stages
from foresail.recipe.shape.model_shape import ModelShape
from foresail.recipe.stages.rl import Rl
from foresail.tokenizer.train import train_bpe

TINY = ("steps=1", "run.device=cpu", "model.dtype=float32")
RL = (
    *TINY,
    "prompts_per_step=2",
    "samples_per_prompt=2",
    "updates_per_step=1",
    "max_prompt_tokens=900",
    "sampling.max_new_tokens=4",
    "micro_batch_tokens=2048",
    "eval_every=1",
    "eval.limit=3",
    "dynamic_sampling.enabled=false",  # nothing it writes is right, so no group would be kept
    "optimizer.warmup=0",
)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    texts = [problem.prompt[0].content for problem in make_problems(100, seed=0)]
    tokenizer = train_bpe(texts, vocab_size=500)
    shape = ModelShape(
        vocab_size=tokenizer.vocab_size,
        hidden_size=16,
        intermediate_size=16,
        num_layers=1,
        num_heads=2,
        num_kv_heads=1,
        head_dim=8,
        max_context=1024,
    )
    save_model(build_model(shape, seed=0), folder)
    tokenizer.save(folder)
    return folder


@pytest.fixture
def gsm8k(tmp_path: Path) -> Path:
    rows = [
        {"question": f"{n} + 1?", "answer": f"It is <<{n}+1={n + 1}>>{n + 1}.\n#### {n + 1}"}
        for n in range(4)
    ]
    for name in ("train", "test"):
        with gzip.open(tmp_path / f"{name}.jsonl.gz", "wt") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
    return tmp_path


def last_line(capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    return dict(json.loads(capsys.readouterr().out.splitlines()[-1]))


def test_word_problems_before_and_after_by_seed_and_never_twice(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Place(
        folder=tmp_path / "words",
        model=model,
        jobs=2,
        rl=(*RL, "data.source=word-problems:count=20", "data.limit=20"),
    )
    monkeypatch.setattr(flagship, "SEEDS_BEFORE", 2)
    monkeypatch.setattr(flagship_runs, "get_context", lambda _method: servers())  # forks, with torch imported
    flagship.word_problems(place, [0, 1])
    found: Any = last_line(capsys)
    assert found["before"]["greedy"]["problems"] == 3
    assert found["before_over_seeds"]["mean@4"]["by_seed"] == [0.0, 0.0]
    assert json.loads((place.folder / "before-1" / "summary.json").read_text())["seed"] == 1
    assert list(found["after"]) == ["seed-0", "seed-1"]
    saved = json.loads((place.folder / "results.json").read_text())
    assert [step for step, _ in saved["curves"]["seed-0"]["val-core/word-problems/acc/mean@1"]] == [0, 1]
    draw(place.folder / "results.json", tmp_path / "curves.png")
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")

    monkeypatch.setattr(stages, "stage_function", None)
    monkeypatch.setattr(flagship_runs, "evaluate_checkpoint", None)
    flagship.word_problems(replace(place, jobs=1), [0, 1])
    assert last_line(capsys) == found


def test_gsm8k_goes_from_the_tuned_checkpoint(
    model: Path, gsm8k: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sft = (*TINY, "batch_size=2", "optimizer.warmup=0")
    place = Place(folder=tmp_path / "gsm8k", model=model, rl=RL, sft=sft)
    flagship.gsm8k(place, gsm8k, 0)
    assert [name for name in last_line(capsys) if "_" in name] == ["before_sft", "after_sft", "after_rl"]
    recipe = (place.folder / "rl" / "recipe.toml").read_text()
    assert f'path = "{place.folder}/sft/checkpoints/step_1"' in recipe
    first = json.loads((place.folder / "conversations.jsonl").read_text().partition("\n")[0])
    assert first == {"prompt": "0 + 1?", "completion": "It is 1.\n#### 1"}


def programs_place(model: Path, folder: Path) -> Place:
    sft = (*TINY, "data=programs:count=4", "batch_size=2", "optimizer.warmup=0", "max_length=900")
    changes = ("data.source=programs:count=4", "eval.source=programs:count=3,split=test")
    return Place(folder=folder, model=model, rl=(*RL, *changes), sft=sft)


def test_programs_under_three_rewards_by_seed(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = programs_place(model, tmp_path / "programs")
    programs(place, [5])
    found: Any = last_line(capsys)
    assert list(found["after_rl"]) == [f"seed-5-{scheme}" for scheme in SCHEMES]
    assert found["after_sft"]["seed-5"]["sft_steps"] == 8
    assert found["over_seeds"]["soft"]["minus_all"]["greedy"] == spread([0.0])
    for scheme in SCHEMES:
        recipe = (place.folder / f"seed-5-{scheme}" / "recipe.toml").read_text()
        assert f'scheme = "{scheme}"' in recipe and "seed-5-sft-8/checkpoints" in recipe


def test_a_hard_start_is_the_longest_tuning_that_is_not_too_good(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shares = {4: 0.09, 3: 0.04, 2: 0.01}

    def judge(_recipe: Rl, checkpoint: Path, _output: Path) -> dict[str, Any]:
        return {SAMPLED: {"value": shares[int(checkpoint.name)]}}

    monkeypatch.setattr(
        flagship_programs,
        "train_stage",
        lambda recipe: SimpleNamespace(checkpoint=tmp_path / str(recipe.steps)),
    )
    monkeypatch.setattr(flagship_programs, "judge", judge)
    place = Place(folder=tmp_path, model=model)
    assert find_start(place, STARTS["hard"], 0)["sft_steps"] == 3
    shares |= {3: 0.08, 2: 0.05}
    with pytest.raises(ValueError, match=r"too good .* 3 steps 8.0%, 2 steps 5.0%"):
        find_start(place, STARTS["hard"], 0)


def test_rewards_are_compared_seed_by_seed() -> None:
    assert spread([0.5, 0.7]) == {"mean": 0.6, "stdev": 0.1414, "by_seed": [0.5, 0.7]}
    assert spread([0.5])["stdev"] == 0.0
