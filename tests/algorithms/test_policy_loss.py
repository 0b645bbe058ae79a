"""The losses of whole updates: against plain Python, and cut into micro-batches in every way.

The model is a bigram table: the log-probability of a token depends on the token before it, so a packing
that looked across the border of two sequences would be caught.
"""

import math
import random
from dataclasses import replace
from itertools import pairwise
from typing import get_args

import pytest
import torch

from foresail.algorithms.aggregation import Aggregation, token_weights
from foresail.algorithms.batch_losses import KINDS, policy_loss, sft_loss
from foresail.recipe.tables.policy_loss import Loss
from foresail.records import PackedBatch, TrainSequence

VOCAB, MAX_TOKENS = 7, 12
MASK = {"importance_range": (0.75, 1.3), "old_logprobs": "trainer"}
SETTINGS = {
    "bare": {},
    "dual clip": {"dual_clip": 1.5},
    "importance": {"importance_cap": 1.1, "old_logprobs": "trainer"},
    "importance of samples": {
        "importance_cap": 1.1, "importance_level": "sequence", "old_logprobs": "trainer"
    },
    "token mask": {"importance_mask": "token", **MASK},
    "sample mask": {**MASK, "importance_mask": "sequence", "importance_range": (0.4, 1.6)},
    "mean mask": {"importance_mask": "sequence_mean", **MASK},
    "off-policy mask": {"off_policy_mask_threshold": 0.05},
    "top entropy": {"top_entropy_quantile": 0.4, "old_logprobs": "trainer"},
    "k1": {"kl": "k1", "kl_weight": 0.3},
    "k3, unbiased": {"kl": "k3_unbiased", "kl_weight": 0.3},
    "all with k3": {
        "dual_clip": 1.5, "importance_cap": 1.1, "kl": "k3", "kl_weight": 0.3, "importance_mask": "sequence",
        "importance_range": (0.1, 1.5), "off_policy_mask_threshold": 0.05, "top_entropy_quantile": 0.7,
    },
}  # fmt: skip


MASKS = ("rollout_corr/rollout_rs_masked_fraction", "actor/opsm_clipfrac", "actor/top_entropy_share")


def bigram_table(seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(VOCAB, VOCAB, dtype=torch.float64, generator=generator, requires_grad=True)


def draw_update(table, seed, count=9):
    """Sequences of different lengths with holes in the mask; the last has no loss token at all."""
    rng = random.Random(seed)
    logprobs = table.detach().log_softmax(1)

    def draw(index):
        length = rng.randint(2, MAX_TOKENS)
        ids = [rng.randrange(VOCAB) for _ in range(length)]
        mask = [0, 1] + [int(rng.random() < 0.7) for _ in range(length - 2)]
        if index == count - 1:
            mask = [0] * length
        new = [0.0] + [logprobs[a, b].item() for a, b in pairwise(ids)]
        near = [[x + rng.gauss(0, 0.4) for x in new] for _ in range(3)]
        return TrainSequence(
            ids=ids,
            loss_mask=mask,
            advantages=[rng.gauss(0, 1)] * length,
            old_logprobs=near[0],
            rollout_logprobs=near[1],
            ref_logprobs=near[2],
        )

    return mark_top_entropy(table, [draw(index) for index in range(count)])


def mark_top_entropy(table, sequences):
    """With which tokens are among the 40 and 70 % that were drawn from most entropy: by sorting all of them."""
    rows = table.detach().softmax(1).tolist()
    entropy = [-sum(p * math.log(p) for p in row) for row in rows]
    found = sorted(entropy[s.ids[t - 1]] for s in sequences for t, on in enumerate(s.loss_mask) if on)

    def marks(s, share):
        place = (1 - share) * (len(found) - 1)  # between two of them, as a quantile is
        low, part = found[int(place)], place - int(place)
        bound = low + part * (found[min(int(place) + 1, len(found) - 1)] - low)
        return [0, *(int(entropy[before] >= bound) for before in s.ids[:-1])]

    return [replace(s, side={share: marks(s, share) for share in (0.4, 0.7)}) for s in sequences]


def pack(sequences, weights, share=1.0):
    """`weights` holds each sequence's weight per loss token in the whole update; `share` of its tokens learn."""
    lengths = [len(s.ids) for s in sequences]
    starts = torch.tensor([0, *lengths]).cumsum(0)
    at = [(s, t) for s, sequence in enumerate(sequences) for t, on in enumerate(sequence.loss_mask) if on]

    def floats(values):
        return torch.tensor(values, dtype=torch.float64)

    return PackedBatch(
        ids_T=torch.tensor([i for s in sequences for i in s.ids]),
        positions_T=torch.tensor([t for n in lengths for t in range(n)]),
        starts_S1=starts,
        targets_M=torch.tensor([int(starts[s]) + t for s, t in at], dtype=torch.long),
        sources_M=torch.tensor([int(starts[s]) + t - 1 for s, t in at], dtype=torch.long),
        sequence_M=torch.tensor([s for s, _ in at], dtype=torch.long),
        weights_M=floats([weights[s] for s, _ in at]),
        advantages_M=floats([sequences[s].advantages[t] for s, t in at]),
        old_logprobs_M=floats([sequences[s].old_logprobs[t] for s, t in at]),
        rollout_logprobs_M=floats([sequences[s].rollout_logprobs[t] for s, t in at]),
        ref_logprobs_M=floats([sequences[s].ref_logprobs[t] for s, t in at]),
        top_entropy_M=None
        if share == 1
        else torch.tensor([sequences[s].side[share][t] for s, t in at], dtype=torch.bool),
    )


def score(table, batch):
    return table.log_softmax(1)[batch.ids_T[batch.sources_M], batch.ids_T[batch.targets_M]]


def train(table, batches, loss):
    """Summed loss, gradient and metrics of one update."""
    total, sums = 0.0, {}
    table.grad = None
    for batch in batches:
        value, metrics = loss(score(table, batch), batch)
        value.backward()
        total += value.item()
        for name, metric in metrics.items():
            assert metric.ndim == 0 and not metric.requires_grad
            sums[name] = sums.get(name, 0.0) + metric.item()
    return total, table.grad.clone(), sums


def scatter(sequences, weights, seed, share=1.0):
    """The same update in random order and random micro-batches."""
    rng = random.Random(seed)
    pairs = list(zip(sequences, weights, strict=True))
    rng.shuffle(pairs)
    while pairs:
        size = rng.randint(1, 4)
        part, pairs = pairs[:size], pairs[size:]
        yield pack([s for s, _ in part], [w for _, w in part], share)


def weigh(sequences, mode):
    return token_weights([sum(s.loss_mask) for s in sequences], mode, MAX_TOKENS)


def reckon(table, sequences, settings):
    """The update's loss from the formulas, in plain floats, a sequence at a time."""
    table = table.detach().log_softmax(1).tolist()
    rows = [
        [reckon_token(table, s, t, settings) for t, on in enumerate(s.loss_mask) if on] for s in sequences
    ]
    rows = [row for row in rows if row]
    match settings.aggregation:
        case "token-mean":
            return sum(map(sum, rows)) / sum(map(len, rows))
        case "seq-mean-token-mean":
            return sum(sum(row) / len(row) for row in rows) / len(rows)
        case "seq-mean-token-sum":
            return sum(map(sum, rows)) / len(rows)
        case "constant":
            return sum(sum(row) / MAX_TOKENS for row in rows) / len(rows)


def reckon_token(table, s, t, settings):
    new, old, a = table[s.ids[t - 1]][s.ids[t]], s.old_logprobs[t], s.advantages[t]
    low, high = 1 - settings.clip_low, 1 + settings.clip_high
    if settings.kind == "gspo":
        gaps = [table[s.ids[u - 1]][s.ids[u]] - s.old_logprobs[u] for u, on in enumerate(s.loss_mask) if on]
        ratio = math.exp(sum(gaps) / len(gaps))
    else:
        ratio = math.exp(new - old)
    bounded = min(max(ratio, low), high)
    if settings.kind == "sapo":
        steep = settings.sapo_temperature_pos if a > 0 else settings.sapo_temperature_neg
        loss = -a * 4 / steep / (1 + math.exp(-steep * (ratio - 1)))
    elif settings.kind == "cispo":
        loss = -bounded * a * new
    else:
        loss = -min(ratio * a, bounded * a)
    if settings.kind == "clip" and settings.dual_clip and a < 0:
        loss = min(loss, -settings.dual_clip * a)
    if settings.importance_cap:
        loss *= min(reckon_ratio(s, t, settings.importance_level), settings.importance_cap)
    if settings.importance_mask:
        low, high = settings.importance_range
        loss *= low <= reckon_ratio(s, t, settings.importance_mask) <= high
    if settings.off_policy_mask_threshold:
        learned = [u for u, on in enumerate(s.loss_mask) if on]
        apart = sum(s.rollout_logprobs[u] - table[s.ids[u - 1]][s.ids[u]] for u in learned) / len(learned)
        loss *= not (a < 0 and apart > settings.off_policy_mask_threshold)
    if settings.ranks_entropy:
        loss *= s.side[settings.top_entropy_quantile][t]
    gap = s.ref_logprobs[t] - new
    k3 = math.exp(gap) - gap - 1
    kl = {"k1": -gap, "k3": k3, "k3_unbiased": math.exp(new - old) * k3}[settings.kl]
    return loss + settings.kl_weight * kl


def reckon_ratio(s, t, level):
    """Of trainer to engine: a token's, or the product over its sequence, or that product's root."""
    tokens = [t] if level == "token" else [u for u, on in enumerate(s.loss_mask) if on]
    product = math.prod(math.exp(s.old_logprobs[u] - s.rollout_logprobs[u]) for u in tokens)
    return product ** (1 / len(tokens)) if level == "sequence_mean" else product


def every_setting(test):
    """Every kind with every setting; the first and the last of these with every aggregation, others with one."""
    modes, cases = get_args(Aggregation), []
    for number, extras in enumerate(SETTINGS):
        for shift, kind in enumerate(KINDS):
            own = modes if extras in ("bare", "all with k3") else [modes[(number + shift) % len(modes)]]
            cases += [(kind, aggregation, extras) for aggregation in own]
    return pytest.mark.parametrize(("kind", "aggregation", "extras"), cases)(test)


@every_setting
def test_update_matches_the_formulas_in_plain_python(kind, aggregation, extras):
    settings = Loss(kind=kind, aggregation=aggregation, **SETTINGS[extras])
    table = bigram_table()
    sequences = draw_update(table, seed=1)
    batch = pack(sequences, weigh(sequences, aggregation), settings.top_entropy_quantile)
    loss, metrics = policy_loss(score(table, batch), batch, settings)
    assert loss.item() == pytest.approx(reckon(table, sequences, settings), rel=1e-12)
    some = [metrics[name] for name in (*MASKS, "actor/pg_clipfrac") if name in metrics]
    some = some[:-1] if kind == "sapo" else some  # which has no bounds
    assert all(0 < found < batch.targets_M.numel() for found in some), (
        "it should happen to some of the tokens"
    )


@every_setting
def test_update_is_invariant_to_micro_batches_packing_and_order(kind, aggregation, extras):
    settings = Loss(kind=kind, aggregation=aggregation, **SETTINGS[extras])
    table = bigram_table()

    def loss(logprobs, batch):
        return policy_loss(logprobs, batch, settings)

    for seed in range(4):
        sequences = draw_update(table, seed)
        weights = weigh(sequences, aggregation)
        share = settings.top_entropy_quantile
        whole = train(table, [pack(sequences, weights, share)], loss)
        parts = train(table, scatter(sequences, weights, seed, share), loss)
        assert parts[0] == pytest.approx(whole[0], rel=1e-12, abs=1e-12)
        torch.testing.assert_close(parts[1], whole[1], rtol=1e-12, atol=1e-12)
        assert parts[2] == pytest.approx(whole[2], rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("aggregation", get_args(Aggregation))
def test_sft_update_is_invariant_and_is_the_weighted_nll(aggregation):
    table = bigram_table()
    sequences = draw_update(table, seed=2)
    weights = weigh(sequences, aggregation)
    loss, gradient, sums = train(table, [pack(sequences, weights)], sft_loss)
    parts = train(table, scatter(sequences, weights, 2), sft_loss)
    assert parts[0] == pytest.approx(loss, rel=1e-12)
    torch.testing.assert_close(parts[1], gradient, rtol=1e-12, atol=1e-12)
    num_tokens = sum(sum(s.loss_mask) for s in sequences)
    if aggregation == "token-mean":
        assert sums["sft/nll"] / num_tokens == pytest.approx(loss, rel=1e-12)


def test_sft_loss_by_hand():
    # Probabilities 1/2, 1/4, 1/8 are 1, 2, 3 times log 2 = .693147; weights 1/2, 1/4, 1/4:
    # (.5 * 1 + .25 * 2 + .25 * 3) * .693147 = 1.75 * .693147 = 1.213007; the sum is 6 * .693147 = 4.158883.
    loss, metrics = sft_loss(torch.tensor([0.5, 0.25, 0.125]).log(), tiny_batch(weights=[0.5, 0.25, 0.25]))
    assert loss.item() == pytest.approx(1.213007, abs=1e-6)
    assert metrics["sft/nll"].item() == pytest.approx(4.158883, abs=1e-6)


def tiny_batch(weights):
    """Three tokens: one of sequence 0, two of sequence 1."""
    return PackedBatch(
        ids_T=torch.zeros(5, dtype=torch.long),
        positions_T=torch.tensor([0, 1, 0, 1, 2]),
        starts_S1=torch.tensor([0, 2, 5]),
        targets_M=torch.tensor([1, 3, 4]),
        sources_M=torch.tensor([0, 2, 3]),
        sequence_M=torch.tensor([0, 1, 1]),
        weights_M=torch.tensor(weights),
        advantages_M=torch.tensor([1.0, -1.0, -1.0]),
        old_logprobs_M=torch.tensor([0.25, 0.25, 0.1]).log(),
        rollout_logprobs_M=torch.tensor([0.2, 0.5, 0.01]).log(),
        ref_logprobs_M=torch.tensor([0.25, 0.25, 0.5]).log(),
    )


def test_policy_loss_and_metrics_by_hand():
    # pi .5 .25 .5 over old .25 .25 .1: ratios 2, 1, 5. Clip: -1.28 (clipped), 1, min(5, 3) = 3 (dual).
    # Importance, old over rollout: .25/.2 = 1.25, .25/.5 = .5, .1/.01 = 10 -> 2: losses -1.6, .5, 6.
    # k3 of pi over ref 2, 1, 1: .193147, 0, 0, times .1. Weights 1/2, 1/4, 1/4:
    # .5 * (-1.6 + .0193147) + .25 * .5 + .25 * 6 = -.790343 + .125 + 1.5 = .834657.
    # Sums: clipped 1, dual 1, old - new = -log 2 - 0 - log 5 = -2.302585, importance 3.75, kl .193147.
    settings = Loss(dual_clip=3.0, importance_cap=2.0, kl_weight=0.1, old_logprobs="trainer")
    logprobs = torch.tensor([0.5, 0.25, 0.5]).log()
    loss, metrics = policy_loss(logprobs, tiny_batch(weights=[0.5, 0.25, 0.25]), settings)
    assert loss.item() == pytest.approx(0.834657, abs=1e-5)
    assert {name: value.item() for name, value in metrics.items()} == pytest.approx(
        {
            "actor/pg_clipfrac": 1.0,
            "actor/pg_clipfrac_above": 1.0,
            "actor/pg_clipfrac_below": 0.0,
            "actor/pg_clipfrac_lower": 1.0,
            "actor/ppo_kl": -2.302585,
            "rollout/importance_weight": 3.75,
            "rollout/importance_ratio": 11.75,
            "rollout/importance_capped": 1.0,
            "actor/kl": 0.193147,
        },
        abs=1e-5,
    )


def test_unused_terms_need_no_data_and_leave_no_metric():
    batch = tiny_batch(weights=[0.5, 0.25, 0.25])
    bare = PackedBatch(**{**vars(batch), "rollout_logprobs_M": None, "ref_logprobs_M": None})
    _, metrics = policy_loss(torch.tensor([0.5, 0.25, 0.5]).log(), bare, Loss())
    sides = {"actor/pg_clipfrac_above", "actor/pg_clipfrac_below"}
    assert set(metrics) == {"actor/pg_clipfrac", *sides, "actor/ppo_kl"}


@pytest.mark.parametrize("kind", KINDS)
def test_micro_batch_without_loss_tokens_adds_nothing(kind):
    table = bigram_table()
    empty = draw_update(table, seed=0)[-1:]
    settings = Loss(kind=kind, **SETTINGS["all with k3"])
    nothing = [pack(empty, [0.0], settings.top_entropy_quantile)]
    loss, gradient, sums = train(table, nothing, lambda *inputs: policy_loss(*inputs, settings))
    assert loss == 0 and (gradient == 0).all() and set(sums.values()) == {0.0}


def test_table_has_the_recipe_s_kinds():
    assert set(KINDS) == set(get_args(Loss.model_fields["kind"].annotation))
