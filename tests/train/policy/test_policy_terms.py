"""Terms beside the policy's loss, against sequences computed one at a time; and runs that have them.

The reference has no packing, no chunks and no kernels: it goes through the tokens one by one.
"""

from __future__ import annotations

import math
import random
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
import torch
from agent_world import WORLD
from plain_attention import plain_attention
from rank_cases import CPU, make_groups, with_environment
from small_runs import train
from small_runs import weights as flat_weights
from small_training import TOLERANCE, Keeper, small_model
from tiny_world import MAX_NEW, rl_recipe
from torch import Tensor

from foresail.model.decoder import Decoder
from foresail.model.readouts import logits
from foresail.recipe.tables.credit import Credit
from foresail.recipe.tables.environment import Environment
from foresail.recipe.tables.parts import Advantage, Sampling
from foresail.recipe.tables.policy_loss import Loss
from foresail.recipe.tables.reward import Reward, Term
from foresail.records import Group, PackedBatch, Sample, Verdict
from foresail.rollout.collect import teaches
from foresail.runlog.directory import RunDirectory
from foresail.train.checkpoints.checkpoint import read_progress
from foresail.train.learner import Learner
from foresail.train.policy.loss import PolicyTerms, batch_loss
from foresail.train.policy.policy_update import add_logprobs, choose_top_entropy
from foresail.train.policy.turn_credit import uniform_advantages
from foresail.train.stages.rl import run_rl
from foresail.train.update.batches import (
    any_reward_teaches,
    compute_advantages,
    pack_groups,
    said_by_environment,
)
from foresail.train.update.step import train_step
from foresail.world import ONE_PROCESS

TEMPERATURE = 0.9


def groups_with_turns() -> list[Group]:
    return [*map(with_environment, make_groups(4, count=4, samples=3))]


def packed(groups: list[Group], settings: Loss, tokens: int) -> list[PackedBatch]:
    return pack_groups(
        groups,
        uniform_advantages(groups, compute_advantages(groups, "grpo")),
        version=None,
        aggregation=settings.aggregation,
        max_new_tokens=9,
        micro_batch_tokens=tokens,
        device=CPU,
        with_observed=settings.echo_weight > 0,
    )


def rows_of(model: Decoder, sample: Sample) -> Tensor:
    """Logits of every place of a sequence that is alone."""
    ids_T = torch.tensor(sample.ids)
    return model(ids_T, torch.arange(len(ids_T)), plain_attention, logits).value


def plain_loss(
    model: Decoder, groups: list[Group], settings: Loss, entropy_weight: float, allowed: float = -math.inf
) -> tuple[Tensor, float]:
    """The token-mean loss of all samples, and the mean cross-entropy of what was said to them."""
    clip, echoed, entropies = [], [], []
    for group, row in zip(groups, compute_advantages(groups, "grpo").tolist(), strict=True):
        for sample, advantage in zip(group.samples, row, strict=True):
            logits_TV, said = rows_of(model, sample), said_by_environment(sample)
            for place in range(1, len(sample.ids)):
                if said[place]:
                    echoed.append(-logits_TV[place - 1].log_softmax(0)[sample.ids[place]])
                if not sample.loss_mask[place]:
                    continue
                logprobs_V = (logits_TV[place - 1] / TEMPERATURE).log_softmax(0)
                entropy = -(logprobs_V.exp() * logprobs_V).sum()
                ratio = (logprobs_V[sample.ids[place]] - sample.logprobs[place]).exp()
                surrogate = torch.minimum(ratio * advantage, ratio.clamp(0.8, 1.28) * advantage)
                clip.append(-surrogate * (entropy.item() >= allowed) - entropy_weight * entropy)
                entropies.append(entropy)
    loss = sum(clip) / len(clip) + settings.echo_weight * sum(echoed) / max(1, len(echoed))
    return loss, fmean(value.item() for value in echoed) if echoed else 0.0


def update(
    model: Decoder, batches: list[PackedBatch], terms: PolicyTerms
) -> tuple[dict[str, float], list[Tensor]]:
    optimizer = Keeper(model)
    learner = Learner(name="policy", model=model, optimizer=optimizer)
    loss = partial(batch_loss, terms=terms, temperature=TEMPERATURE)
    return train_step(learner, batches, loss, learning_rate=1.0), optimizer.kept


@pytest.mark.parametrize(
    ("settings", "entropy_weight"),
    [(Loss(echo_weight=0.3), 0.0), (Loss(), 0.2), (Loss(echo_weight=0.3), 0.2)],
)
@pytest.mark.parametrize("tokens", [1000, 30])
def test_terms_are_those_of_sequences_computed_one_at_a_time(
    settings: Loss, entropy_weight: float, tokens: int
) -> None:
    model, groups = small_model(), groups_with_turns()
    terms = PolicyTerms(settings=settings, on_policy=False, entropy_weight=entropy_weight)
    metrics, gradients = update(model, packed(groups, settings, tokens), terms)
    model.zero_grad()
    expected, echoed = plain_loss(model, groups, settings, entropy_weight)
    expected.backward()
    assert metrics["loss"] == pytest.approx(expected.item(), abs=1e-5)
    if settings.echo_weight:
        assert metrics["actor/echo_loss"] == pytest.approx(echoed, rel=1e-5)
    for found, weight in zip(gradients, model.parameters(), strict=True):
        torch.testing.assert_close(found, weight.grad, rtol=TOLERANCE, atol=TOLERANCE)


@pytest.mark.parametrize("tokens", [1000, 30])
def test_the_tokens_of_highest_entropy_are_those_of_the_whole_update(tokens: int) -> None:
    """Micro-batches have thresholds of their own, and this is none of them."""
    settings, groups = Loss(top_entropy_quantile=0.2, old_logprobs="trainer"), make_groups(4)
    model = small_model()
    batches = packed(groups, settings, tokens)
    random.Random(0).shuffle(batches)
    asked = [add_logprobs(batch, TEMPERATURE, old=model, reference=None) for batch in batches]
    chosen = choose_top_entropy(asked, 0.2, ONE_PROCESS)
    every = sorted(value for batch in asked for value in batch.entropy_M.tolist())  # type: ignore[union-attr]
    count = sum(int(batch.top_entropy_M.sum()) for batch in chosen)  # type: ignore[union-attr]
    least = min(
        value
        for batch in chosen
        for value in batch.entropy_M[batch.top_entropy_M].tolist()  # type: ignore[union-attr, index]
    )
    assert count == math.ceil(0.2 * (len(every) - 1)) and least == every[-count]
    # the loss against the engine's log-probabilities, of which the reference has ratios
    chosen = [replace(batch, old_logprobs_M=batch.rollout_logprobs_M) for batch in chosen]
    metrics, gradients = update(model, chosen, PolicyTerms(settings=settings, on_policy=False))
    model.zero_grad()
    expected, _ = plain_loss(model, groups, settings, 0.0, allowed=least - 1e-5)
    expected.backward()
    assert metrics["loss"] == pytest.approx(expected.item(), abs=1e-5)
    for found, weight in zip(gradients, model.parameters(), strict=True):
        torch.testing.assert_close(found, weight.grad, rtol=TOLERANCE, atol=TOLERANCE)


def test_what_the_environment_said_is_neither_the_prompt_nor_what_was_put_into_an_answer() -> None:
    sample = Sample(
        ids=[1, 2, 3, 4, 5, 6, 7],
        loss_mask=[0, 0, 1, 0, 0, 1, 1],
        logprobs=[0.0] * 7,
        versions=[0] * 7,
        turns=[0, 0, 0, 0, 1, 1, 1],
        finish="stop",
        forced=[3],
    )
    assert said_by_environment(sample) == [0, 0, 0, 0, 1, 0, 0]


# Runs.


def test_a_run_learns_what_its_environment_says(tiny_checkpoint: Path, tmp_path: Path) -> None:
    (tmp_path / "my_world.py").write_text(WORLD)
    _, records = train(
        tiny_checkpoint,
        tmp_path,
        steps=4,
        environment=Environment(name=f"{tmp_path}/my_world.py:Again"),
        sampling=Sampling(max_new_tokens=2 * MAX_NEW),
        prompts_per_step=4,
        loss=Loss(echo_weight=1.0),
    )
    said = [record["actor/echo_loss"] for record in records]
    assert said[-1] < 0.8 * said[0], "it always says the same"


def test_few_tokens_learn_where_entropy_decides(tiny_checkpoint: Path, tmp_path: Path) -> None:
    _, (record,) = train(
        tiny_checkpoint, tmp_path, steps=1, loss=Loss(top_entropy_quantile=0.2, old_logprobs="trainer")
    )
    assert record["actor/top_entropy_share"] == pytest.approx(0.2, abs=0.02)


def test_a_bonus_that_follows_a_target_goes_on_exactly(tiny_checkpoint: Path, tmp_path: Path) -> None:
    loss = Loss(entropy_target=9.0, entropy_step=0.25, entropy_weight_max=0.4)
    outcome, records = train(tiny_checkpoint, tmp_path / "whole", steps=3, updates_per_step=2, loss=loss)
    # before each update one more step was taken, up to the limit; a step's figure is the mean of its two updates
    assert [record["actor/entropy_coef"] for record in records] == pytest.approx([0.325, 0.4, 0.4])
    _, plain = train(tiny_checkpoint, tmp_path / "plain", steps=3, updates_per_step=2)
    assert records[-1]["actor/entropy"] > plain[-1]["actor/entropy"]
    recipe = rl_recipe(tiny_checkpoint, tmp_path / "parts", steps=1, updates_per_step=2, loss=loss)
    first = run_rl(recipe)
    assert read_progress(first.checkpoint).entropy is not None
    second = run_rl(recipe.model_copy(update={"steps": 3}), resume=True)
    assert torch.equal(flat_weights(second.checkpoint), flat_weights(outcome.checkpoint))


REWARDS = """
def short(completions, **kwargs):
    return [-1.0 * len(text) for text in completions]

def seven(completions, **kwargs):
    return [None if "1" in text else float("7" in text) for text in completions]
"""


def test_several_rewards_are_compared_one_by_one(tiny_checkpoint: Path, tmp_path: Path) -> None:
    (tmp_path / "two.py").write_text(REWARDS)
    weights = {"short": 2.0, "seven": 0.5}
    terms = tuple(Term(grader=f"{tmp_path}/two.py:{name}", weight=weight) for name, weight in weights.items())
    outcome, (record,) = train(
        tiny_checkpoint,
        tmp_path,
        steps=1,
        reward=Reward(terms=terms, workers=0),
        advantage=Advantage(kind="gdpo"),
        show_samples=0,
    )
    rows = [*RunDirectory(outcome.run).read_rollouts(1)]
    used = [row for row in rows if row["used"]]
    totals = expected_gdpo(used, weights)
    assert record["critic/advantages/max"] == pytest.approx(max(totals), rel=1e-4)
    assert record["critic/advantages/min"] == pytest.approx(min(totals), rel=1e-4)
    problems = [len({row["problem"] for row in some}) for some in (used, rows)]
    assert record["groups/useful"] == pytest.approx(problems[0] / problems[1])


def test_rewards_whose_sums_are_equal_may_teach_all_the_same() -> None:
    (group,) = make_groups(0, count=1, samples=2)
    verdicts = tuple(Verdict(status="scored", score=s, terms={"short": 1 - s}) for s in (0.0, 1.0))
    group = replace(group, verdicts=verdicts, rewards=(1.0, 1.0))
    settings = {"": Reward(grader="my.py:score", terms=(Term(grader="my.py:short"),))}
    assert not teaches(group) and any_reward_teaches(settings, group)
    assert compute_advantages([group], "gdpo", settings).tolist() == [[0.0, 0.0]]
    heavier = {"": Reward(grader="my.py:score", terms=(Term(grader="my.py:short", weight=2.0),))}
    assert compute_advantages([group], "gdpo", heavier).tolist() == [
        pytest.approx([0.7071, -0.7071], abs=1e-4)
    ]
    alike = replace(
        group, verdicts=tuple(replace(verdict, score=0.5) for verdict in verdicts), rewards=(0.5, 0.5)
    )
    measured = {"": Reward(grader="my.py:score", terms=(Term(grader="my.py:short", weight=0.0),))}
    assert any_reward_teaches(settings, alike) and not any_reward_teaches(measured, alike)


def expected_gdpo(rows: list[dict[str, Any]], weights: dict[str, float]) -> list[float]:
    """Written apart: loops over groups, rewards and samples; what does not apply to a sample is left out."""

    def scaled(values: dict[int, float]) -> dict[int, float]:
        mean = fmean(values.values())
        spread = math.sqrt(sum((value - mean) ** 2 for value in values.values()) / max(1, len(values) - 1))
        return {
            key: (value - mean) / (spread + 1e-6) if spread > 1e-6 else 0.0 for key, value in values.items()
        }

    totals = dict.fromkeys(range(len(rows)), 0.0)
    for problem in dict.fromkeys(row["problem"] for row in rows):
        group = [number for number, row in enumerate(rows) if row["problem"] == problem]
        parts = [(1.0, {number: rows[number]["score"] for number in group})]
        for name, weight in weights.items():
            parts.append(
                (weight, {n: rows[n]["terms"][name] for n in group if name in rows[n].get("terms", {})})
            )
        for weight, scores in parts:
            for number, value in scaled(scores).items() if scores else ():
                totals[number] += weight * value
    return [*scaled(totals).values()]


def test_a_model_that_is_told_the_answer_teaches_itself(tiny_checkpoint: Path, tmp_path: Path) -> None:
    credit, loss = Credit(kind="opsd", hint="+{answer}", distill_weight=0.5), Loss(old_logprobs="trainer")
    outcome, records = train(tiny_checkpoint, tmp_path / "told", steps=2, credit=credit, loss=loss)
    assert all(math.isfinite(record["distill/told"]) for record in records)
    other, _ = train(tiny_checkpoint, tmp_path / "alone", steps=2, loss=loss)
    assert not torch.equal(flat_weights(outcome.checkpoint), flat_weights(other.checkpoint))
