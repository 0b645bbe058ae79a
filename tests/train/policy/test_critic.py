"""The critic against a plain, unpacked computation of values, advantages and gradients."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from statistics import fmean, variance
from typing import Any

import pytest
import torch
from small_training import TOLERANCE, Keeper, small_model, small_sequences
from tiny_world import rl_recipe, tiny_shape
from torch import Tensor, nn

from foresail.data.packing import pack
from foresail.model.attention import PackedAttention
from foresail.model.decoder import Decoder
from foresail.model.hf import load_model
from foresail.model.readouts import hidden_states
from foresail.recipe.tables import parts
from foresail.records import PackedBatch, TrainSequence
from foresail.tokenizer.tokenizer import Tokenizer
from foresail.train.policy.critic import Critic, join, load_trunk
from foresail.train.update.step import NonFiniteLoss

GAMMA, LAM, CLIP = 0.95, 0.8, 0.2


def small_critic(kind: Any = "model", *, seed: int = 0, **settings: Any) -> Critic:
    """Its layer is random, so that values differ and gradients reach the trunk."""
    critic = Critic(small_model(seed=seed), parts.Critic(kind=kind, **settings))
    with torch.no_grad():
        for parameter in critic.model.head.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=torch.Generator().manual_seed(seed)))
    return critic


def rewarded(seed: int = 0) -> list[TrainSequence]:
    """Sequences with a reward at the last token that has a loss."""
    sequences = []
    for number, sequence in enumerate(small_sequences(seed)):
        last = max(place for place, in_loss in enumerate(sequence.loss_mask) if in_loss)
        rewards = [float(number % 2) if place == last else 0.0 for place in range(len(sequence.ids))]
        sequences.append(replace(sequence, advantages=None, rewards=rewards))
    return sequences


def packed(sequences: list[TrainSequence], max_tokens: int = 1000) -> list[PackedBatch]:
    return pack(sequences, [1.0] * len(sequences), max_tokens=max_tokens)


def plain_values(trunk: Decoder, head: nn.Module, sequence: TrainSequence) -> list[Tensor]:
    """Of each token with a loss, from a pass over the tokens before it and nothing else."""
    values = []
    for place, in_loss in enumerate(sequence.loss_mask):
        if in_loss:
            before = torch.tensor(sequence.ids[:place])
            hidden_TD = trunk(
                before, torch.arange(place), PackedAttention(torch.tensor([0, place])), hidden_states
            ).value
            values.append(head(hidden_TD[-1])[0])
    return values


def plain_advantages(rewards: list[float], values: list[float]) -> list[float]:
    """The definition: discounted sums of what was not expected."""
    following = [*values[1:], 0.0]
    errors = [r + GAMMA * n - v for r, n, v in zip(rewards, following, values, strict=True)]
    return [
        sum((GAMMA * LAM) ** (later - t) * errors[later] for later in range(t, len(errors)))
        for t in range(len(errors))
    ]


def by_sequence(batches: list[PackedBatch], field: str) -> dict[str, list[float]]:
    return {
        name: getattr(batch, field)[batch.sequence_M == number].tolist()
        for batch in batches
        for number, name in enumerate(batch.names)
    }


@pytest.mark.parametrize("max_tokens", [14, 1000])
def test_appraisal_is_a_plain_unpacked_computation(max_tokens: int) -> None:
    critic, sequences = small_critic(gamma=GAMMA, lam=LAM), rewarded()
    halves = [packed(sequences[:3], max_tokens), packed(sequences[3:], max_tokens)]
    updates, metrics = critic.appraise(halves)
    assert [len(batches) for batches in updates] == [len(batches) for batches in halves]

    values, returns, advantages = {}, {}, {}
    for sequence in sequences:
        with torch.no_grad():
            found = [
                value.item() for value in plain_values(critic.model.reads[0], critic.model.head, sequence)
            ]
        rewards = [
            r for r, in_loss in zip(sequence.rewards or [], sequence.loss_mask, strict=True) if in_loss
        ]
        estimates = plain_advantages(rewards, found)
        values[sequence.name], advantages[sequence.name] = found, estimates
        returns[sequence.name] = [a + v for a, v in zip(estimates, found, strict=True)]
    flat = [a for name in advantages for a in advantages[name]]
    mean, unit = fmean(flat), (variance(flat) + 1e-8) ** 0.5
    whitened = {name: [(a - mean) / unit for a in advantages[name]] for name in advantages}

    batches = [batch for batches in updates for batch in batches]
    for field, expected in (("values_M", values), ("returns_M", returns), ("advantages_M", whitened)):
        assert by_sequence(batches, field) == {
            name: pytest.approx(expected[name], abs=1e-4) for name in expected
        }, field
    all_values, all_returns = ([x for n in d for x in d[n]] for d in (values, returns))
    residue = variance([r - v for r, v in zip(all_returns, all_values, strict=True)])
    assert metrics == {
        "critic/values/mean": pytest.approx(fmean(all_values), abs=1e-5),
        "critic/returns/mean": pytest.approx(fmean(all_returns), abs=1e-5),
        "critic/vf_explained_var": pytest.approx(1 - residue / variance(all_returns), abs=1e-4),
    }


def gradients(critic: Critic, batches: list[PackedBatch]) -> tuple[list[Tensor], dict[str, float]]:
    keeper = Keeper(critic.model)
    critic.learner = replace(critic.learner, optimizer=keeper)
    metrics = critic.learn([batches], before=0, total=1)
    return keeper.kept, metrics


@pytest.mark.parametrize("kind", ["model", "head"])
@pytest.mark.parametrize("max_tokens", [14, 20, 1000])
def test_an_update_has_the_gradient_of_a_plain_loop(kind: str, max_tokens: int) -> None:
    """Half the mean squared error over all tokens of the update, however they are packed."""
    sequences = rewarded()
    (batches,), _ = small_critic(kind, seed=1).appraise([packed(sequences, max_tokens)])
    critic = small_critic(kind, clip=CLIP)
    found, metrics = gradients(critic, batches)

    critic.model.reads[0].zero_grad()
    critic.model.head.zero_grad()
    old, returns = by_sequence(batches, "values_M"), by_sequence(batches, "returns_M")
    total, clipped, num_tokens = torch.zeros(()), 0, 0
    for sequence in sequences:
        values = plain_values(critic.model.reads[0], critic.model.head, sequence)
        for value, before, target in zip(values, old[sequence.name], returns[sequence.name], strict=True):
            plain = (value - target) ** 2
            bounded = (value.clamp(before - CLIP, before + CLIP) - target) ** 2
            total = total + torch.maximum(plain, bounded) / 2
            clipped += bool(bounded > plain)
            num_tokens += 1
    (total / num_tokens).backward()
    expected = [p.grad for p in critic.model.parameters() if p.grad is not None]
    assert (
        len(found)
        == len(expected)
        == (2 if kind == "head" else 2 + len(list(critic.model.reads[0].parameters())))
    )
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=10 * TOLERANCE, atol=10 * TOLERANCE)
    assert metrics["critic/vf_loss"] == pytest.approx(total.item() / num_tokens, rel=1e-4)
    assert metrics["critic/vf_clipfrac"] == pytest.approx(clipped / num_tokens)
    assert 0 < clipped < num_tokens


def test_a_head_neither_trains_the_policy_nor_leaves_gradients_on_it() -> None:
    critic = small_critic("head", optimizer=parts.Optimizer(lr=0.1))
    before = [parameter.detach().clone() for parameter in critic.model.reads[0].parameters()]
    updates, _ = critic.appraise([packed(rewarded())])
    layer = critic.model.head.weight.detach().clone()
    critic.learn(updates, before=0, total=1)
    assert not torch.equal(critic.model.head.weight, layer)
    assert all(torch.equal(p, b) for p, b in zip(critic.model.reads[0].parameters(), before, strict=True))
    assert all(parameter.grad is None for parameter in critic.model.reads[0].parameters())


@pytest.mark.parametrize(("kind", "lr", "bar"), [("model", 3e-3, 0.9), ("head", 3e-2, 0.5)])
def test_a_critic_learns_what_a_prompt_is_worth(kind: str, lr: float, bar: float) -> None:
    critic = Critic(small_model(), parts.Critic(kind=kind, optimizer=parts.Optimizer(lr=lr)))  # type: ignore[arg-type]
    batches = packed(rewarded())
    explained = []
    for _ in range(60):
        updates, metrics = critic.appraise([batches])
        critic.learn(updates, before=0, total=1)
        explained.append(metrics["critic/vf_explained_var"])
    assert explained[0] == pytest.approx(0, abs=1e-6) and explained[-1] > bar


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("kind", ["model", "head"])
def test_a_saved_critic_goes_on_as_if_nothing_had_happened(
    kind: Any, dtype: torch.dtype, tmp_path: Path
) -> None:
    settings = parts.Critic(kind=kind, optimizer=parts.Optimizer(lr=1e-2))
    updates = [packed(rewarded())]

    def step(critic: Critic) -> Tensor:
        appraised, _ = critic.appraise(updates)
        critic.learn(appraised, before=0, total=1)
        return join(appraised, "values_M")

    first = Critic(small_model(dtype=dtype), settings)
    step(first)
    first.learner.save(tmp_path)
    trunk = small_model(dtype=dtype)
    if kind == "model":
        trunk = load_model(tmp_path / "trainer" / "critic", dtype=dtype, device="cpu")
    second = Critic(trunk, settings)
    second.load(tmp_path)
    for _ in range(2):
        values = step(first)
        assert values.abs().max() > 0 and torch.equal(step(second), values)


def test_a_model_of_its_own_has_no_head_to_speak_with(tiny_tokenizer: Path, tmp_path: Path) -> None:
    """Where the policy has one beside its embedding: nothing would train it, and its optimiser could not go on."""
    shape = tiny_shape(Tokenizer.load(tiny_tokenizer).vocab_size).model_copy(update={"tied": False})
    settings = parts.Critic()
    recipe = rl_recipe(
        tmp_path,
        tmp_path,
        model=parts.Model(shape=shape, tokenizer=str(tiny_tokenizer), dtype="float32"),
        advantage=parts.Advantage(kind="gae"),
        critic=settings,
    )
    critic = Critic(load_trunk(None, settings, recipe, torch.device("cpu")), settings)
    assert critic.model.reads[0].head is None
    updates, _ = critic.appraise([packed(rewarded())])
    critic.learn(updates, before=0, total=1)
    critic.learner.save(tmp_path)
    again = Critic(load_trunk(tmp_path, settings, recipe, torch.device("cpu")), settings)
    again.load(tmp_path)
    for batch in updates[0]:
        assert torch.equal(again.model(batch).value, critic.model(batch).value)


def test_a_broken_number_names_the_critic_and_touches_nothing() -> None:
    critic, sequences = small_critic(), rewarded()
    sequences[2].rewards[-1] = float("nan")  # type: ignore[index]
    updates, _ = critic.appraise([packed(sequences, 14)])
    before = critic.model.head.weight.detach().clone()
    with pytest.raises(NonFiniteLoss, match=r"the critic's loss is nan .*sequence 2.*critic\.optimizer\.lr"):
        critic.learn(updates, before=0, total=1)
    assert torch.equal(critic.model.head.weight, before)
