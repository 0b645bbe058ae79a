"""Reinforcement end to end, in this process: a few steps of a tiny model on arithmetic."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any, Literal, get_args

import pytest
import torch
from small_runs import train, weights
from tiny_world import HELD_OUT, MAX_NEW, rl_recipe, write_lines

from foresail.algorithms.advantages import ADVANTAGES
from foresail.algorithms.batch_losses import KINDS
from foresail.data.made.arithmetic import make_problems
from foresail.recipe.tables.dynamic_sampling import DynamicSampling
from foresail.recipe.tables.parts import Advantage, Engine, Model, Optimizer, Problems, Sampling
from foresail.recipe.tables.policy_loss import Loss
from foresail.records import Status
from foresail.runlog.directory import RunDirectory
from foresail.tokenizer.tokenizer import Tokenizer
from foresail.train.checkpoints.checkpoint import read_progress
from foresail.train.stages.rl import run_rl
from foresail.train.update.batches import split

NAMES = {
    "critic/score/mean",
    "critic/rewards/mean",
    "critic/advantages/mean",
    "response_length/mean",
    "response_length/max",
    "response_length/min",
    "response_length/clip_ratio",
    "actor/entropy",
    "actor/pg_loss",
    "actor/pg_clipfrac",
    "actor/ppo_kl",
    "actor/grad_norm",
    "actor/lr",
    "timing_s/rollout",
    "timing_s/update",
    "timing_s/step",
    "perf/throughput",
    "rollout/logprob_abs_diff",
    "rollout/accuracy",
    *(f"verdict/{status}" for status in get_args(Status) if status != "scored"),
}


# What a run leaves behind.


@pytest.fixture(scope="module")
def grpo(tiny_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    """Three steps of GRPO with everything at its default."""
    outcome, _ = train(tiny_checkpoint, tmp_path_factory.mktemp("grpo"), steps=3)
    assert outcome.finished and outcome.checkpoint.name == "step_3"
    return RunDirectory(outcome.run)


def step_records(run: RunDirectory) -> list[dict[str, Any]]:
    return [record for record in run.read_metrics() if record["step"]]


def test_every_step_logs_the_promised_names(grpo: RunDirectory) -> None:
    records = step_records(grpo)
    assert [record["step"] for record in records] == [1, 2, 3]
    for record in records:
        assert record.keys() >= NAMES
        assert all(isinstance(value, int | float) for value in record.values())


def test_metrics_follow_from_the_rollouts_on_disk(grpo: RunDirectory) -> None:
    for record in step_records(grpo):
        rows = grpo.read_rollouts(record["step"])
        lengths = [sum(row["loss_mask"]) for row in rows]
        used = [row for row in rows if row["used"]]
        assert len(rows) == 8 * record["rollout/groups_launched"]
        assert len(used) == 8 * record["rollout/groups_used"] > 0
        assert record["critic/score/mean"] == pytest.approx(fmean(row["score"] for row in rows))
        assert record["critic/rewards/mean"] == pytest.approx(fmean(row["reward"] for row in used))
        assert record["response_length/mean"] == pytest.approx(fmean(lengths))
        assert (record["response_length/max"], record["response_length/min"]) == (max(lengths), min(lengths))
        clipped = fmean(row["finish"] == "length" for row in rows)
        assert record["response_length/clip_ratio"] == pytest.approx(clipped)
        assert record["verdict/correct"] == pytest.approx(fmean(row["status"] == "correct" for row in rows))


def test_rollouts_hold_every_sample_with_all_that_training_needs(grpo: RunDirectory) -> None:
    seen = set()
    for step in (1, 2, 3):
        for row in grpo.read_rollouts(step):
            assert len(row["ids"]) == len(row["loss_mask"]) == len(row["logprobs"]) == len(row["versions"])
            drawn = [place for place, in_loss in enumerate(row["loss_mask"]) if in_loss]
            assert drawn == list(range(drawn[0], len(row["ids"]))) and len(drawn) <= MAX_NEW
            assert {row["versions"][place] for place in drawn} == {step - 1}
            assert all(row["logprobs"][place] < 0 for place in drawn)
            assert row["reward"] == (1.0 if row["status"] == "correct" else 0.0)
            seen.add((step, row["problem"], row["sample"]))
    assert len(seen) == sum(len(grpo.read_rollouts(step)) for step in (1, 2, 3))


def test_the_first_update_of_a_step_is_on_policy(grpo: RunDirectory) -> None:
    for record in step_records(grpo):
        assert record["rollout/logprob_abs_diff"] < 1e-5
        assert abs(record["actor/ppo_kl"]) < 1e-5 and record["actor/pg_clipfrac"] == 0
        assert record["critic/advantages/mean"] == pytest.approx(0, abs=1e-5)
        assert record["actor/grad_norm"] > 0


def test_the_timeline_tells_what_ran_when(grpo: RunDirectory) -> None:
    events = grpo.read_timeline()
    assert {(event["step"], event["what"]) for event in events} >= {
        (step, what) for step in (1, 2, 3) for what in ("rollout", "update", "save")
    }
    assert all(event["start"] <= event["end"] for event in events)


def test_the_timeline_holds_every_verdict_and_the_closing_of_every_step(grpo: RunDirectory) -> None:
    for record in step_records(grpo):
        events = [event for event in grpo.read_timeline() if event["step"] == record["step"]]
        (closing,) = (event for event in events if event["what"] == "closing")
        assert len(closing["prefix"]) == record["rollout/groups_launched"]
        assert len(closing["chosen"]) == record["rollout/groups_used"]
        assert len(closing["surplus"]) == record["rollout/groups_surplus"]
        assert len(closing["cancelled"]) == record["rollout/groups_cancelled"]
        graded = [event for event in events if event["what"] == "grade"]
        prefix = [
            event["status"] for event in graded if int(event["request"].split(".")[0]) in closing["prefix"]
        ]
        assert Counter(prefix) == Counter(row["status"] for row in grpo.read_rollouts(record["step"]))


def test_rewards_rise(tiny_checkpoint: Path, tmp_path: Path) -> None:
    """Where the answer is always 3, the model finds that out."""
    prompts = [problem.prompt[-1].content for problem in make_problems(60, seed=0, steps=(2, 2))]
    data = write_lines(tmp_path / "threes.jsonl", [{"prompt": text, "answer": "3"} for text in prompts])
    _, records = train(
        tiny_checkpoint,
        tmp_path,
        data=Problems(source=str(data)),
        steps=15,
        prompts_per_step=8,
        samples_per_prompt=16,
        updates_per_step=4,
        dynamic_sampling=DynamicSampling(enabled=False),
    )
    scores = [record["critic/score/mean"] for record in records]
    assert scores[0] < 0.2 and scores[-1] > 0.4


# Every kind of advantage and loss.


@pytest.mark.parametrize("loss", KINDS)
@pytest.mark.parametrize("advantage", ADVANTAGES)
def test_every_advantage_runs_with_every_loss(
    tiny_checkpoint: Path, tmp_path: Path, advantage: str, loss: str
) -> None:
    outcome, (record,) = train(
        tiny_checkpoint,
        tmp_path,
        steps=1,
        advantage=Advantage(kind=advantage),  # type: ignore[arg-type]
        loss=Loss(kind=loss, aggregation="seq-mean-token-mean"),  # type: ignore[arg-type]
    )
    assert outcome.finished and record["actor/grad_norm"] > 0
    assert not torch.equal(weights(outcome.checkpoint), weights(tiny_checkpoint))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_engine_and_trainer_are_apart_by_rounding_at_the_most(
    tiny_checkpoint: Path, tmp_path: Path, dtype: Literal["bfloat16", "float16"]
) -> None:
    """How much of it depends on the CPU: some round a row alike whatever stands beside it."""
    model = Model(path=str(tiny_checkpoint), dtype=dtype)
    _, records = train(tiny_checkpoint, tmp_path, steps=2, model=model)
    rounding = torch.finfo(getattr(torch, dtype)).eps
    assert max(record["rollout/logprob_abs_diff"] for record in records) < 4 * rounding


def test_the_trainers_log_probabilities_with_an_importance_cap(tiny_checkpoint: Path, tmp_path: Path) -> None:
    loss = Loss(old_logprobs="trainer", importance_cap=2.0)
    _, records = train(tiny_checkpoint, tmp_path, updates_per_step=2, loss=loss)
    for record in records:
        assert record["rollout/importance_weight"] == pytest.approx(1, abs=1e-4)  # one model code for both
        assert 0 < abs(record["actor/ppo_kl"]) < 1  # of the second update only: half a step off-policy


def test_the_pull_towards_the_starting_model_is_measured_from_it(
    tiny_checkpoint: Path, tmp_path: Path
) -> None:
    _, records = train(tiny_checkpoint, tmp_path, steps=3, loss=Loss(kl_weight=0.1))
    distances = [record["actor/kl"] for record in records]
    assert distances[0] == pytest.approx(0, abs=1e-9)
    assert min(distances[1:]) > 1e-9  # k3 is never negative


def test_top_p_reports_the_cut_distribution_and_trains_on_the_whole(
    tiny_checkpoint: Path, tmp_path: Path
) -> None:
    outcome, records = train(
        tiny_checkpoint,
        tmp_path,
        sampling=Sampling(max_new_tokens=MAX_NEW, top_p=0.7),
        loss=Loss(old_logprobs="trainer"),
    )
    assert outcome.finished
    for record in records:
        assert record["rollout/logprob_abs_diff"] > 1e-3  # what was cut off makes the rest likelier
        assert abs(record["actor/ppo_kl"]) < 1e-5


@pytest.mark.parametrize("kv_tokens", [None, 160])
def test_a_small_cache_changes_no_token(tiny_checkpoint: Path, tmp_path: Path, kv_tokens: int | None) -> None:
    """160 tokens hold a few samples at a time: the others wait or are put back."""
    rows = []
    for number, engine in enumerate((Engine(), Engine(page_size=4, max_running=7, kv_tokens=kv_tokens))):
        outcome, _ = train(tiny_checkpoint, tmp_path / str(number), steps=1, engine=engine)
        rows.append([row["ids"] for row in RunDirectory(outcome.run).read_rollouts(1)])
    assert rows[0] == rows[1]


@pytest.mark.usefixtures("forked_workers")
@pytest.mark.parametrize(
    "rollout", [{"workers": 2}, {"drafts": "on", "chunk_tokens": 3}, {"policy": "group"}]
)
def test_who_draws_changes_no_token(tiny_checkpoint: Path, tmp_path: Path, rollout: dict[str, Any]) -> None:
    drawn = []
    for settings in ({}, rollout):
        outcome, records = train(tiny_checkpoint, tmp_path / f"{bool(settings)}", steps=2, rollout=settings)
        drafting = settings.get("drafts") == "on"
        assert all(("rollout/drafted_steps" in record) == drafting for record in records)
        rows = [row for step in (1, 2) for row in RunDirectory(outcome.run).read_rollouts(step)]
        drawn.append([row["ids"] for row in rows])
    assert drawn[0] == drawn[1]


@pytest.mark.usefixtures("forked_workers")
@pytest.mark.parametrize("rollout", [{}, {"workers": 1}, {"drafts": "on", "chunk_tokens": 3}])
def test_a_stop_string_ends_responses_and_changes_nothing_before_it(
    tiny_checkpoint: Path, tmp_path: Path, rollout: dict[str, Any]
) -> None:
    """In the first step, before weights differ."""
    rows = []
    for stop in ((), ("}",)):
        outcome, _ = train(
            tiny_checkpoint,
            tmp_path / f"{len(stop)}",
            steps=1,
            sampling=Sampling(max_new_tokens=MAX_NEW, stop=stop),
            rollout=rollout,
        )
        rows.append(RunDirectory(outcome.run).read_rollouts(1))
    tokenizer = Tokenizer.load(tiny_checkpoint)
    assert len(rows[0]) == len(rows[1])
    for whole, cut in zip(*rows, strict=True):
        assert cut["ids"] == whole["ids"][: len(cut["ids"])]
        says, goes_on = (tokenizer.decode(row["ids"]) for row in (cut, whole))
        assert says.count("}") == ("}" in goes_on) and ("}" not in says or says.endswith("}"))
        assert cut["score"] == whole["score"]
        assert cut["finish"] == ("stop" if "}" in says else whole["finish"])


def test_work_that_was_not_needed_is_carried_only_if_the_recipe_says_so(
    tiny_checkpoint: Path, tmp_path: Path
) -> None:
    old = []
    for carry in (False, True):
        settings = DynamicSampling(carry=carry)
        outcome, _ = train(tiny_checkpoint, tmp_path / f"{carry}", steps=4, dynamic_sampling=settings)
        run = RunDirectory(outcome.run)
        rows = [(step, row) for step in range(1, 5) for row in run.read_rollouts(step)]
        drawn = [(step, row["versions"][row["loss_mask"].index(1)]) for step, row in rows]
        old.append(sum(version < step - 1 for step, version in drawn))
        assert all(version <= step - 1 for step, version in drawn)
    assert old[0] == 0 < old[1]


# Updates.


def test_several_updates_per_step_use_disjoint_parts(tiny_checkpoint: Path, tmp_path: Path) -> None:
    optimizer = Optimizer(lr=1e-3, warmup=2, schedule="linear")
    outcome, records = train(tiny_checkpoint, tmp_path, updates_per_step=3, optimizer=optimizer)
    assert [record["actor/updates"] for record in records] == [3, 3]
    progress = read_progress(outcome.checkpoint)
    assert (progress.step, progress.updates, progress.finished) == (2, 6, True)
    # rates of the updates are 1/2, 1, 3/4 | 1/2, 1/4, 0 of lr; a step logs their mean
    assert [record["actor/lr"] for record in records] == pytest.approx([0.75e-3, 0.25e-3])


def test_groups_are_shared_out_evenly() -> None:
    assert split(5, 2) == [[0, 1, 2], [3, 4]]
    assert split(2, 3) == [[0], [1]]
    assert split(6, 1) == [[0, 1, 2, 3, 4, 5]]


def test_micro_batches_change_the_weights_by_rounding_only(tiny_checkpoint: Path, tmp_path: Path) -> None:
    found = []
    for tokens in (20, 100, 2000):
        outcome, _ = train(
            tiny_checkpoint,
            tmp_path / str(tokens),
            steps=1,
            micro_batch_tokens=tokens,
            optimizer=Optimizer(lr=1e-3, eps=1e-4),
        )
        found.append(weights(outcome.checkpoint))
    assert not torch.allclose(found[0], weights(tiny_checkpoint), rtol=0, atol=1e-5)
    torch.testing.assert_close(found[0], found[2], rtol=0, atol=1e-5)
    torch.testing.assert_close(found[1], found[2], rtol=0, atol=1e-5)


# The rest of the recipe.


def test_held_out_accuracy_is_logged_when_asked_for(tiny_checkpoint: Path, tmp_path: Path) -> None:
    _, records = train(tiny_checkpoint, tmp_path, steps=4, eval=Problems(source=HELD_OUT), eval_every=2)
    name = "val-core/arithmetic/acc/mean@1"
    assert [name in record for record in records] == [False, True, False, True]
    assert all(0 <= record[name] <= 1 for record in records if name in record)
    assert all("timing_s/eval" in record for record in records if name in record)


def test_evaluating_in_between_changes_no_weight(tiny_checkpoint: Path, tmp_path: Path) -> None:
    plain, _ = train(tiny_checkpoint, tmp_path / "plain", steps=3)
    watched, _ = train(
        tiny_checkpoint, tmp_path / "watched", steps=3, eval=Problems(source=HELD_OUT), eval_every=1
    )
    assert torch.equal(weights(plain.checkpoint), weights(watched.checkpoint))


def test_equal_seeds_give_equal_runs_and_others_others(tiny_checkpoint: Path, tmp_path: Path) -> None:
    found = []
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        recipe = rl_recipe(tiny_checkpoint, tmp_path / name)
        recipe = recipe.model_copy(update={"run": recipe.run.model_copy(update={"seed": seed})})
        found.append(weights(run_rl(recipe).checkpoint))
    assert torch.equal(found[0], found[1])
    assert not torch.equal(found[0], found[2])


def test_fewer_problems_than_a_step_needs_is_an_error(tiny_checkpoint: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"has 4 problems and a step needs prompts_per_step = 6; lower that"):
        run_rl(rl_recipe(tiny_checkpoint, tmp_path, data=Problems(source="arithmetic:count=4,steps=2")))


def test_a_run_in_the_folder_is_never_overwritten(tiny_checkpoint: Path, tmp_path: Path) -> None:
    outcome, _ = train(tiny_checkpoint, tmp_path, steps=1)
    with pytest.raises(FileExistsError, match="already holds a run; go on with it: foresail resume"):
        run_rl(rl_recipe(tiny_checkpoint, tmp_path, steps=1))
    assert replace(outcome, finished=True) == run_rl(
        rl_recipe(tiny_checkpoint, tmp_path, steps=1), resume=True
    )
