"""The flagship benchmarks from end to end, with a model of a few thousand weights in SmolLM2's place."""

from __future__ import annotations

import gzip
import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import flagship
import flagship_runs
from flagship_curves import draw
from flagship_runs import Place

from foresail.data.word_problems import make_problems
from foresail.model.hf import build_model, save_model
from foresail.recipe.shape import ModelShape
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
    flagship.word_problems(place, [0, 1])
    found = last_line(capsys)
    assert found["before"]["greedy"]["problems"] == 3  # type: ignore[index]
    assert list(found["after"]) == ["seed-0", "seed-1"]  # type: ignore[call-overload]
    saved = json.loads((place.folder / "results.json").read_text())
    assert [step for step, _ in saved["curves"]["seed-0"]["val-core/word-problems/acc/mean@1"]] == [0, 1]
    draw(place.folder / "results.json", tmp_path / "curves.png")
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")

    monkeypatch.setattr(flagship_runs, "run_stage", None)
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


def test_programs_under_three_rewards(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sft = (*TINY, "data=programs:count=4", "batch_size=2", "optimizer.warmup=0", "max_length=900")
    changes = ("data.source=programs:count=4", "eval.source=programs:count=3,split=test")
    place = Place(folder=tmp_path / "programs", model=model, rl=(*RL, *changes), sft=sft)
    flagship.programs(place, 0)
    assert list(last_line(capsys)["after_rl"]) == ["all", "strict", "soft"]  # type: ignore[call-overload]
    for scheme in ("strict", "soft"):
        assert f'scheme = "{scheme}"' in (place.folder / scheme / "recipe.toml").read_text()
