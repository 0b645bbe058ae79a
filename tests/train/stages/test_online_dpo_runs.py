"""Whole runs of online DPO: pairs of own samples, references that stay or follow, and a stop in between."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from small_runs import weights
from tiny_world import MAX_NEW, MAX_PROMPT, PROBLEMS

from foresail.recipe.reading.preflight import preflight
from foresail.recipe.stages.online_dpo import OnlineDpo
from foresail.recipe.tables.dynamic_sampling import DynamicSampling
from foresail.recipe.tables.pairing import OnlineReference, Pairing
from foresail.recipe.tables.parts import Checkpoints, Lora, Model, Optimizer, Problems, Run, Sampling
from foresail.recipe.tables.preferences import PreferenceLoss
from foresail.recipe.tables.reward import Reward, Term
from foresail.records import Group, Problem, Sample, Verdict
from foresail.runlog.directory import RunDirectory
from foresail.train.checkpoints.resume import extend
from foresail.train.stages.online_dpo import run_online_dpo
from foresail.train.stages.sampled_pairs import pair_metrics, pairs_of


def recipe(checkpoint: Path, root: Path, **changes: Any) -> OnlineDpo:
    given: dict[str, Any] = {
        "run": Run(name="online", root=str(root), device="cpu"),
        "model": Model(path=str(checkpoint), dtype="float32"),
        "data": Problems(source=PROBLEMS),
        "steps": 2,
        "prompts_per_step": 6,
        "samples_per_prompt": 8,
        "max_prompt_tokens": MAX_PROMPT,
        "micro_batch_tokens": 256,
        "sampling": Sampling(max_new_tokens=MAX_NEW),
        "optimizer": Optimizer(lr=1e-3),
        "checkpoints": Checkpoints(every=1, keep=9, resumable=9),
    }
    return OnlineDpo(**given | changes)


def read(run: Path) -> list[dict[str, Any]]:
    return [record for record in RunDirectory(run).read_metrics() if record["step"]]


def brevity(completions: list[str], **_: Any) -> list[float]:
    return [-float(len(text)) for text in completions]


def test_a_run_that_was_stopped_goes_on_with_the_reference_it_had(
    tiny_checkpoint: Path, tmp_path: Path
) -> None:
    """The reference is the policy as it was at the start, then that of step 2: there nothing is preferred yet."""
    settings: dict[str, Any] = {"reference": OnlineReference(renew_every=2), "steps": 4}
    whole = run_online_dpo(recipe(tiny_checkpoint, tmp_path / "whole", **settings))
    found = read(whole.run)
    assert [record["pairs/count"] for record in found] == [6] * 4
    assert [abs(record["rewards/margins"]) < 1e-6 for record in found] == [True, False, True, False]
    assert found[0]["pairs/reward_margin"] == 1 and found[0]["actor/dpo_loss"] == pytest.approx(math.log(2))
    first = run_online_dpo(recipe(tiny_checkpoint, tmp_path / "parts", **settings | {"steps": 3}))
    parts = run_online_dpo(extend(RunDirectory(first.run), ["steps=4"]), resume=True)
    assert (weights(parts.checkpoint) == weights(whole.checkpoint)).all()
    assert read(parts.run)[-1]["rewards/margins"] == found[-1]["rewards/margins"]


def test_open_prompts_are_paired_by_the_rank_of_their_rewards(tiny_checkpoint: Path, tmp_path: Path) -> None:
    """Two pairs of each, low-rank pairs above a fixed reference; groups with equal rewards are only counted."""
    outcome = run_online_dpo(
        recipe(
            tiny_checkpoint,
            tmp_path,
            reward=Reward(grader="none", terms=(Term(grader=brevity),), workers=0),
            pairing=Pairing(most=2, missing_eos_penalty=1.0),
            dynamic_sampling=DynamicSampling(enabled=False),
            lora=Lora(rank=4),
            sampling=Sampling(max_new_tokens=MAX_NEW, temperature=1.5),
            steps=1,
        )
    )
    (record,) = read(outcome.run)
    paired = 6 - record["pairs/groups_alike"]
    assert paired <= record["pairs/count"] <= 2 * paired and record["pairs/reward_margin"] >= 1
    assert record["response_length/chosen/mean"] < record["response_length/rejected/mean"]
    assert record["pairs/groups_all_wrong"] == record["pairs/groups_failed"] == 0


def sampled(token: int) -> Sample:
    return Sample(
        ids=[1, token], loss_mask=[0, 1], logprobs=[0.0, -1.0], versions=[0, 0], turns=[0, 0], finish="stop"
    )


def test_equal_answers_whose_scores_differ_by_rounding_are_no_pair() -> None:
    def group(*tokens: int) -> Group:
        rewards = tuple(0.5 + 1e-7 * place for place in range(len(tokens)))
        return Group(
            problem=Problem(id="one", prompt=(), answer=""),
            samples=tuple(map(sampled, tokens)),
            verdicts=tuple(Verdict(status="scored", score=reward) for reward in rewards),
            rewards=rewards,
        )

    assert len(pairs_of(group(7, 8), Pairing())) == 1
    assert pairs_of(group(7, 7, 7), Pairing()) == []
    assert pair_metrics([group(7, 7, 7)], Pairing())["pairs/groups_alike"] == 1


def test_groups_are_counted_by_why_they_give_no_pair() -> None:
    def group(*statuses: Any) -> Group:
        return Group(
            problem=Problem(id="one", prompt=(), answer=""),
            samples=tuple(sampled(place) for place in range(len(statuses))),
            verdicts=tuple(Verdict(status=status, score=float(status == "correct")) for status in statuses),
            rewards=tuple(None if status == "crashed" else float(status == "correct") for status in statuses),
        )

    groups = [
        group("correct", "correct"),
        group("wrong", "unparsable"),
        group("wrong", "wrong"),
        group("correct", "crashed"),
        group("scored", "scored"),
        group("wrong", "correct", "unparsable"),
    ]
    assert [len(pairs_of(each, Pairing())) for each in groups] == [0, 0, 0, 0, 0, 1]
    assert pairs_of(groups[-1], Pairing())[0].name == "one samples 1 and 0"
    found = pair_metrics(groups, Pairing())
    reasons = {
        name.removeprefix("pairs/groups_"): count for name, count in found.items() if "groups_" in name
    }
    assert reasons == {"all_right": 1, "all_wrong": 2, "alike": 1, "failed": 1}


def test_a_renewed_reference_counts_in_memory_and_on_disk(tiny_checkpoint: Path, tmp_path: Path) -> None:
    fixed = preflight(recipe(tiny_checkpoint, tmp_path))
    renewed = preflight(recipe(tiny_checkpoint, tmp_path, reference=OnlineReference(renew_every=2)))
    free = preflight(recipe(tiny_checkpoint, tmp_path, loss=PreferenceLoss(kind="simpo", beta=2.0)))
    assert fixed.shape and fixed.memory and free.memory and fixed.checkpoint and renewed.checkpoint
    weight_bytes = 4 * fixed.shape.num_parameters
    assert (fixed.memory.reference, free.memory.reference) == (weight_bytes, 0)
    assert renewed.checkpoint.whole - fixed.checkpoint.whole == weight_bytes


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"pairing": Pairing(most=5)}, "samples_per_prompt = 10 or more"),
        ({"micro_batch_tokens": 30}, "micro_batch_tokens = 40 or more"),
        ({"reference": OnlineReference(renew_every=1), "lora": Lora()}, "remove one of them"),
        ({"reference": OnlineReference(path="x"), "loss": PreferenceLoss(kind="simpo")}, "no reference"),
        ({"reward": Reward(grader="none")}, '"none" leaves no reward'),
    ],
)
def test_what_cannot_be_is_refused(
    tiny_checkpoint: Path, tmp_path: Path, changes: dict[str, Any], told: str
) -> None:
    with pytest.raises(ValueError, match=told):
        recipe(tiny_checkpoint, tmp_path, **changes)
