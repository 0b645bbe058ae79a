"""The packed micro-batches of an update, from judged groups.

Legend: G groups, N samples of each.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import islice

import torch
from torch import Tensor

from foresail.algorithms.advantages import ADVANTAGES, gdpo, has_spread, uniform_credit
from foresail.algorithms.aggregation import Aggregation, token_weights
from foresail.recipe.tables.reward import Reward
from foresail.records import Group, PackedBatch, Sample, TrainSequence
from foresail.rewards.group_rewards import RewardPart, reward_parts
from foresail.train.update.split import pack_share
from foresail.world import ONE_PROCESS, World

TURN = "turn"  # side data: the turn of each token
# Share of the tokens saved from which attention in two parts is worth it; a GPU's host has more to launch for it.
WORTH_SHARING = {"cpu": 0.1, "cuda": 0.25}


def compute_advantages(
    groups: Sequence[Group], kind: str, settings: Mapping[str, Reward] | None = None
) -> Tensor:
    """One for each sample. `settings`: each source's rewards, for a kind that compares rewards one by one."""
    if kind == "gdpo":
        assert settings is not None, "of several rewards the weights are wanted"
        return gdpo(
            *stack_rewards([reward_parts(group, settings[group.problem.dataset]) for group in groups])
        )
    rewards_GN = torch.tensor([group.rewards for group in groups], dtype=torch.float32)
    lengths_GN = torch.tensor([[sample.num_response_tokens for sample in group.samples] for group in groups])
    return ADVANTAGES[kind](rewards_GN, lengths_GN)


def stack_rewards(groups: Sequence[Mapping[str, RewardPart]]) -> tuple[Tensor, Tensor]:
    """Rewards (K, G, N) and their weights (K), by their names; NaN where a group has none of a name."""
    weights = {name: part.weight for parts in groups for name, part in parts.items()}
    nothing = (math.nan,) * len(next(iter(groups[0].values())).scores)
    rewards = [[parts[name].scores if name in parts else nothing for parts in groups] for name in weights]
    return torch.tensor(rewards), torch.tensor([*weights.values()])


def any_reward_teaches(settings: Mapping[str, Reward], group: Group) -> bool:
    """Whether some reward that counts differs between the group's samples, even where all sums are equal."""
    if group.failed:
        return False
    parts = reward_parts(group, settings[group.problem.dataset]).values()
    return any(
        has_spread([score for score in part.scores if not math.isnan(score)]) for part in parts if part.weight
    )


def pack_groups(
    groups: Sequence[Group],
    advantages: Sequence[Sequence[list[float]]] | None,
    *,
    old_logprobs: Sequence[Sequence[list[float]]] | None = None,
    version: int | None,
    aggregation: Aggregation,
    max_new_tokens: int,
    micro_batch_tokens: int,
    device: torch.device,
    by_turn: bool = False,
    with_observed: bool = False,
    world: World = ONE_PROCESS,
) -> list[PackedBatch]:
    """One update's samples as packed micro-batches, weighed over the whole update, with an advantage for each
    token.

    Every rank has all samples, and packs its share of them. Without advantages (a critic computes them later), a
    sample's reward is at its last token; with `by_turn` a turn's own reward is at that turn's last token, and each
    token has its turn's number. `version`, the current one, marks tokens that older weights drew. `old_logprobs`
    are the engine's unless the trainer's are passed. Each branch of an episode gives a sequence. `with_observed`:
    the environment's tokens between turns are predicted too.
    """
    sequences = [
        TrainSequence(
            name=f"{group.problem.id} sample {number}" + (f" branch {branch}" if branch else ""),
            ids=record.ids,
            loss_mask=record.loss_mask,
            advantages=None
            if advantages is None
            else (branch_credit(record, advantages[row][number]) if branch else advantages[row][number]),
            rewards=token_rewards(record, group.rewards[number], by_turn=by_turn)
            if advantages is None
            else None,
            old_logprobs=record.logprobs if old_logprobs is None else old_logprobs[row][number],
            rollout_logprobs=record.logprobs,
            fresh=None if version is None else [int(drawn == version) for drawn in record.versions],
            observed=said_by_environment(record) if with_observed else None,
            side={**record.side, TURN: record.turns} if by_turn else record.side,
        )
        for row, group in enumerate(groups)
        for number, sample in enumerate(group.samples)
        for branch, record in enumerate(sample.records)
    ]
    return pack_sequences(
        sequences,
        aggregation=aggregation,
        max_new_tokens=max_new_tokens,
        micro_batch_tokens=micro_batch_tokens,
        device=device,
        world=world,
    )


def pack_sequences(
    sequences: Sequence[TrainSequence],
    *,
    aggregation: Aggregation,
    max_new_tokens: int,
    micro_batch_tokens: int,
    device: torch.device,
    world: World = ONE_PROCESS,
) -> list[PackedBatch]:
    """This rank's micro-batches of an update, weighed over all of it; answers to one prompt share it."""
    num_tokens = [sum(sequence.loss_mask) for sequence in sequences]
    weights = token_weights(num_tokens, aggregation, max_new_tokens)
    share_from = WORTH_SHARING[device.type]
    return [
        *pack_share(
            sequences, weights, world, max_tokens=micro_batch_tokens, device=device, share_from=share_from
        )
    ]


def plain_sequences(groups: Sequence[Group]) -> list[TrainSequence]:
    """The samples without rewards or advantages."""
    return [
        TrainSequence(
            name=f"{group.problem.id} sample {number}",
            ids=record.ids,
            loss_mask=record.loss_mask,
            old_logprobs=record.logprobs,
            rollout_logprobs=record.logprobs,
            side=record.side,
        )
        for group in groups
        for number, sample in enumerate(group.samples)
        for record in sample.records
    ]


def said_by_environment(sample: Sample) -> list[int]:
    """1 for tokens between the model's turns, the template's included; not for the prompt, nor for text that was
    inserted into an answer. Turns 0 0 0 1 1, mask 0 1 1 0 1 -> [0, 0, 0, 1, 0].
    """
    observed = [int(turn > 0 and not mask) for turn, mask in zip(sample.turns, sample.loss_mask, strict=True)]
    for place in sample.forced:
        observed[place] = 0
    return observed


def branch_credit(branch: Sample, advantages: Sequence[float]) -> list[float]:
    """A branch's tokens get the advantage of its episode."""
    assert min(advantages) == max(advantages), "turns are weighed in episodes of one record only"
    return uniform_credit(branch, advantages[0])


def token_rewards(sample: Sample, reward: float | None, *, by_turn: bool) -> list[float]:
    """A prompt of two tokens, a response of two, reward 1: [0, 0, 0, 1]."""
    assert reward is not None, "only gradable groups are learned from"
    last_of = {
        turn: place
        for place, (turn, mask) in enumerate(zip(sample.turns, sample.loss_mask, strict=True))
        if mask
    }
    rewards = [0.0] * len(sample.ids)
    rewards[max(last_of.values())] = reward
    for turn, earned in enumerate(sample.turn_rewards if by_turn else ()):
        rewards[last_of[turn]] += earned or 0.0
    return rewards


def split(count: int, parts: int) -> list[list[int]]:
    """split(5, 2) -> [[0, 1, 2], [3, 4]]; parts that would be empty are left out."""
    numbers = iter(range(count))
    sizes = [count // parts + (part < count % parts) for part in range(parts)]
    return [list(islice(numbers, size)) for size in sizes if size]
