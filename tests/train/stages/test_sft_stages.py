"""Fine-tuning in stages: the best of an earlier one again, held-out losses, noise, going on exactly."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from small_runs import weights
from tiny_world import sft_recipe, write_lines

from foresail.data.made.arithmetic import direct, make_problems
from foresail.data.mixtures.mixture import mix_conversations
from foresail.data.mixtures.reader import Reader
from foresail.data.mixtures.resampling import best_of
from foresail.data.packing import pack
from foresail.model.hf import load_model
from foresail.model.packed import token_logprobs
from foresail.recipe.reading.load import load_recipe
from foresail.recipe.stages.sft import Sft
from foresail.recipe.stages.sft_stage import SftStage
from foresail.recipe.tables.parts import Checkpoints, Optimizer
from foresail.records import TrainSequence
from foresail.runlog.directory import RunDirectory
from foresail.tokenizer.tokenizer import Tokenizer
from foresail.train.checkpoints.checkpoint import read_progress
from foresail.train.session import Outcome
from foresail.train.stages.sft import run_sft
from foresail.train.update.neftune import embedding_noise

EVERY = Checkpoints(every=1, keep=99, resumable=99)
TIMES = ("timing_s/", "perf/")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Three sources with a column `quality`."""
    folder = tmp_path_factory.mktemp("sources")
    found = {}
    for name, seed, count in (("first", 1, 40), ("second", 2, 20), ("late", 3, 30)):
        rows = [
            {"prompt": p.prompt[-1].content, "completion": direct(p), "quality": (7 * number) % count}
            for number, p in enumerate(make_problems(count, seed=seed, steps=(2, 2)))
        ]
        found[name] = write_lines(folder / f"{name}.jsonl", rows)
    return found


def staged(tokenizer: Path, files: dict[str, Path], root: Path, best: str = "loss", **changes: Any) -> Sft:
    stages = [
        {
            "steps": 3,
            "data": [
                {"source": str(files["first"]), "weight": 3.0, "held_out": 5},
                {"source": str(files["second"]), "weight": 1.0},
            ],
        },
        {
            "name": "late",
            "data": [{"source": str(files["late"]), "weight": 1.0, "held_out": 0.2}],
            "resample": {"keep": 0.2, "best": best, "weight": 1.0},
            "batch_size": 12,
            "max_length": 16,
            "lr": 2e-3,
            "warmup": 0,
            "schedule": "linear",
        },
    ]
    given = {"stages": stages, "steps": 6, "batch_size": 8, "checkpoints": EVERY, "neftune_alpha": 5.0}
    return sft_recipe(tokenizer, [], root, **given | changes)


@pytest.fixture(scope="module")
def whole(tiny_tokenizer: Path, files: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    return run_sft(staged(tiny_tokenizer, files, tmp_path_factory.mktemp("whole")))


def records_of(run: Path) -> list[dict[str, Any]]:
    """Without what the clock says."""
    return [
        {name: value for name, value in record.items() if not name.startswith(TIMES)}
        for record in RunDirectory(run).read_metrics()
    ]


def test_each_stage_has_its_data_batch_and_rate(whole: Outcome) -> None:
    records = records_of(whole.run)
    assert whole.finished and [record["train/stage"] for record in records] == [1, 1, 1, 2, 2, 2]
    assert [record["train/lr"] for record in records] == pytest.approx(
        [1e-3, 2e-3, 3e-3, 2e-3 * 2 / 3, 2e-3 / 3, 0.0]
    )
    assert all(record.keys() >= {"train/tokens/first", "train/tokens/second"} for record in records[:3])
    later = {"train/tokens/late", "train/tokens/first-best", "train/tokens/second-best"}
    assert all(
        {name for name in record if name.startswith("train/tokens/")} == later for record in records[3:]
    )
    assert sum(record["train/tokens/first-best"] for record in records[3:]) > 0
    progress = read_progress(whole.checkpoint)
    assert (progress.stage, progress.began, progress.position) == (1, 3, 36)


@pytest.mark.parametrize("step", [2, 3, 4])
def test_a_run_goes_on_exactly_in_and_between_stages(
    whole: Outcome, tiny_tokenizer: Path, files: dict[str, Path], tmp_path: Path, step: int
) -> None:
    folder = tmp_path / "sft"
    shutil.copytree(whole.run, folder)
    for later in range(step + 1, 7):
        shutil.rmtree(RunDirectory(folder).checkpoint_path(later))
    again = run_sft(staged(tiny_tokenizer, files, tmp_path), resume=True)
    assert torch.equal(weights(whole.checkpoint), weights(again.checkpoint))
    assert read_progress(whole.checkpoint) == read_progress(again.checkpoint)
    assert records_of(again.run) == records_of(whole.run)


def test_the_best_are_those_of_least_loss_in_each_source_as_the_stage_begins(
    whole: Outcome, tiny_tokenizer: Path, files: dict[str, Path], tmp_path: Path
) -> None:
    run = RunDirectory(whole.run)
    model = load_model(run.checkpoint_path(3), dtype=torch.float32, device="cpu")
    recipe = staged(tiny_tokenizer, files, tmp_path)
    chats = mix_conversations(recipe.phases[0].data, Reader(Tokenizer.load(tiny_tokenizer)), 24)
    assert len(chats.entries) == 35 + 20
    losses = [mean_loss(model, entry) for entry in chats.entries]
    first, second = best_of(losses[:35], 0.2, least_first=True), best_of(losses[35:], 0.2, least_first=True)
    chosen = json.loads((whole.checkpoint / "trainer/resampled.json").read_text())
    assert chosen == {"1": [*first, *(35 + number for number in second)]}
    assert len(first) == 7 and len(second) == 4


@torch.no_grad()
def mean_loss(model: Any, entry: TrainSequence) -> float:
    return -token_logprobs(model, pack([entry], [1.0], max_tokens=64)[0])[0].double().mean().item()


def test_held_out_loss_is_that_of_conversations_nobody_learnt(
    whole: Outcome, tiny_tokenizer: Path, files: dict[str, Path], tmp_path: Path
) -> None:
    recipe = staged(tiny_tokenizer, files, tmp_path)
    reader = Reader(Tokenizer.load(tiny_tokenizer))
    records = records_of(whole.run)
    measured = [step for step, record in enumerate(records, start=1) if "val/loss/first" in record]
    assert measured == [3, 6]  # the ends of stages
    model = load_model(whole.checkpoint, dtype=torch.float32, device="cpu")
    for phase, name in zip(recipe.phases, ("first", "late"), strict=True):
        chats = mix_conversations(phase.data, reader, phase.max_length)
        kept = chats.held_out[name]
        assert not {tuple(entry.ids) for entry in kept} & {tuple(entry.ids) for entry in chats.entries}
        with torch.no_grad():
            logprobs = [token_logprobs(model, pack([entry], [1.0], max_tokens=64)[0])[0] for entry in kept]
        assert records[-1][f"val/loss/{name}"] == pytest.approx(-torch.cat(logprobs).mean().item(), rel=1e-5)
    assert "val/loss/second" not in records[-1]


def test_the_best_by_a_column_need_no_model_and_noise_is_off_by_default(
    whole: Outcome, tiny_tokenizer: Path, files: dict[str, Path], tmp_path: Path
) -> None:
    outcome = run_sft(staged(tiny_tokenizer, files, tmp_path, best="quality", neftune_alpha=None))
    assert outcome.finished and not (outcome.checkpoint / "trainer/resampled.json").exists()
    records = records_of(outcome.run)
    assert records[-1].keys() >= {"train/tokens/second-best"}
    assert records[0]["train/loss"] != records_of(whole.run)[0]["train/loss"]


def test_one_stage_alone_is_the_run_without_stages(
    tiny_tokenizer: Path, tiny_conversations: Path, tmp_path: Path
) -> None:
    plain = run_sft(sft_recipe(tiny_tokenizer, tiny_conversations, tmp_path / "plain", steps=3))
    table = {"data": str(tiny_conversations), "batch_size": 32, "max_length": 24, "lr": 5e-3, "warmup": 5}
    recipe = sft_recipe(
        tiny_tokenizer, [], tmp_path / "staged", steps=3, stages=[table], optimizer=Optimizer(lr=1.0)
    )
    one = run_sft(recipe)
    assert torch.equal(weights(plain.checkpoint), weights(one.checkpoint))


def test_a_stage_ends_with_the_epochs_of_its_sources(
    tiny_tokenizer: Path, files: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stages = [
        {"steps": 9, "data": {"source": str(files["second"]), "epochs": 1, "held_out": 4}},
        {"data": str(files["late"])},
    ]
    outcome = run_sft(sft_recipe(tiny_tokenizer, [], tmp_path, stages=stages, steps=11, batch_size=8))
    records = records_of(outcome.run)
    assert outcome.finished and [record["train/stage"] for record in records] == [1, 1, 2, 2]
    assert ["val/loss/second" in record for record in records] == [False, True, False, True]
    assert "leaves less than step 3 needs: stage 1 ends here" in capsys.readouterr().out


def test_what_is_too_long_is_split_or_dropped_and_counted(tiny_tokenizer: Path, tmp_path: Path) -> None:
    turns = [{"role": "user", "content": "7 +5"}, {"role": "assistant", "content": "2"}]
    long = [{"role": "user", "content": "7" + " +5" * 20}, {"role": "assistant", "content": "7"}]
    silent = [turns[0], {**turns[1], "weight": 0}]
    rows = [{"messages": messages} for messages in (turns, turns * 5, [*turns, *long], long, silent)]
    data = {"source": str(write_lines(tmp_path / "mixed.jsonl", rows)), "too_long": "split"}
    recipe = sft_recipe(tiny_tokenizer, data, tmp_path, steps=1, batch_size=2)
    outcome = run_sft(recipe)
    (record,) = records_of(outcome.run)
    found = {name: record[f"data/{name}"] for name in ("dropped", "split", "dropped_turns", "without_loss")}
    assert found == {"dropped": 1, "split": 2, "dropped_turns": 1, "without_loss": 1}
    chats = mix_conversations(recipe.data, Reader(Tokenizer.load(tiny_tokenizer)), 24)
    assert [entry.name for entry in chats.entries][1:3] == [
        "conversation 2, part 1",
        "conversation 2, part 2",
    ]


# Noise.


def test_noise_is_bounded_and_the_same_however_sequences_are_packed() -> None:
    sequences = [TrainSequence(ids=[*range(n, 2 * n)], loss_mask=[0] + [1] * (n - 1)) for n in (9, 5, 7)]
    (together,) = pack(sequences, [1.0] * 3, max_tokens=64)
    noise_TD = embedding_noise(together, 16, alpha=5.0, seed=0, step=3)
    pieces = dict(zip((9, 7, 5), noise_TD.split([9, 7, 5]), strict=True))
    for sequence in sequences:
        (alone,) = pack([sequence], [1.0], max_tokens=64)
        own_TD = embedding_noise(alone, 16, alpha=5.0, seed=0, step=3)
        length = len(sequence.ids)
        assert torch.equal(own_TD, pieces[length])
        largest = 5.0 / (length * 16) ** 0.5
        assert 0.9 * largest < own_TD.abs().max() <= largest and own_TD.mean().abs() < 0.2 * largest
        assert own_TD.unique().numel() == own_TD.numel()
        assert not torch.equal(own_TD, embedding_noise(alone, 16, alpha=5.0, seed=0, step=4))


# The shipped recipe.


def test_compass_v2s_stages_train_in_small(
    tiny_tokenizer: Path, files: dict[str, Path], tmp_path: Path
) -> None:
    """The file itself, with small files in the place of its own."""
    shipped = load_recipe(Path(__file__).parents[3] / "recipes/sft-compass-v2.toml")
    assert isinstance(shipped, Sft)

    def small(stage: SftStage, steps: int | None) -> SftStage:
        sources = [
            source.model_copy(update={"source": str(file), "name": source.label, "held_out": 2})
            for source, file in zip(stage.data, files.values(), strict=True)
        ]
        return stage.model_copy(update={"data": tuple(sources), "steps": steps})

    stages = tuple(small(stage, steps) for stage, steps in zip(shipped.stages, (2, None), strict=True))
    recipe = sft_recipe(
        tiny_tokenizer, [], tmp_path, stages=stages, steps=4, batch_size=8, optimizer=shipped.optimizer
    )
    outcome = run_sft(recipe)
    last = records_of(outcome.run)[-1]
    assert outcome.finished and last["train/stage"] == 2
    assert {name for name in last if name.startswith("val/loss/")} == {
        f"val/loss/{source.label}" for stage in shipped.stages for source in stage.data
    }
    assert "train/tokens/general-best" in last
