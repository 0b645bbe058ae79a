"""Experts against each token's own sum by hand, routers against their definition, and what keeps them balanced."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from small_models import packed_logits, random_ids
from torch import Tensor
from transformers.models.mixtral.modeling_mixtral import load_balancing_loss_func

from foresail.model.attention import PackedAttention
from foresail.model.experts import sort_by_expert
from foresail.model.hf import build_model
from foresail.model.linear import batch_invariant
from foresail.model.mixture import MixtureOfExperts
from foresail.model.readouts import hidden_states
from foresail.model.recomputed import not_recomputed
from foresail.model.router import RouterLosses, balance_loss, routers_of, set_router_losses, z_loss
from foresail.recipe.shape.model_shape import Experts, ModelShape

HIDDEN, EXPERTS = 12, Experts(routed=7, active=3, inner_size=10, shared=2, correction=True)
SHAPE = ModelShape(
    family="ernie4_5_moe", vocab_size=67, hidden_size=HIDDEN, intermediate_size=20, num_layers=3, num_heads=2,
    num_kv_heads=1, head_dim=6, max_context=128, experts=EXPERTS.model_copy(update={"dense_layers": 1}),
)  # fmt: skip


def mixture(experts: Experts = EXPERTS, seed: int = 0) -> MixtureOfExperts:
    found = MixtureOfExperts(HIDDEN, experts)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in found.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * parameter.shape[-1] ** -0.5)
    return found


def rows(count: int, seed: int = 1) -> Tensor:
    return torch.randn(count, HIDDEN, generator=torch.Generator().manual_seed(seed))


def gated(x_D: Tensor, gate_up_2ID: Tensor, down_DI: Tensor) -> Tensor:
    gate_I, up_I = (gate_up_2ID @ x_D).chunk(2)
    return down_DI @ (F.silu(gate_I) * up_I)


def by_hand(layer: MixtureOfExperts, experts: Experts, x_D: Tensor, normed_D: Tensor) -> Tensor:
    """One token at a time, straight from the definition."""
    scores_E = (layer.router.weight @ normed_D).softmax(0)
    bias_E = 0 if layer.router.correction is None else layer.router.correction[0]
    chosen = (scores_E + bias_E).topk(experts.active).indices.tolist()
    total = scores_E[chosen].sum() if experts.normalized else 1.0
    out_D = x_D
    gate_up = layer.experts.gate_up.view(experts.routed, -1, HIDDEN)
    down = layer.experts.down.view(experts.routed, HIDDEN, -1)
    for number in chosen:
        out_D = out_D + scores_E[number] / total * gated(normed_D, gate_up[number], down[number])
    if layer.shared is not None:
        out_D = out_D + gated(normed_D, layer.shared.gate_up.weight, layer.shared.down.weight)
    return out_D


@pytest.mark.parametrize("invariant", [False, True])
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"shared": 0, "correction": False},
        {"normalized": False},
        {"active": 7},
        {"active": 1},
        {"routed": 40},
    ],
)
def test_values_and_gradients_are_those_of_each_token_by_hand(
    changes: dict[str, int], invariant: bool
) -> None:
    experts = EXPERTS.model_copy(update=changes)
    layer, x_TD, normed_TD = mixture(experts), rows(9), rows(9, seed=2)
    trained = [one for one in layer.parameters() if one.requires_grad]
    pull_TD = rows(9, seed=3)
    with batch_invariant(invariant):
        ours = layer(x_TD, normed_TD, not_recomputed).value
    theirs = torch.stack([by_hand(layer, experts, *both) for both in zip(x_TD, normed_TD, strict=True)])
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=0)
    gradients = [torch.autograd.grad((value * pull_TD).sum(), trained) for value in (ours, theirs)]
    for mine, by_definition in zip(*gradients, strict=True):
        torch.testing.assert_close(mine, by_definition, atol=1e-5, rtol=0)


def test_a_token_does_not_know_the_tokens_beside_it_in_the_invariant_mode() -> None:
    layer, normed_TD = mixture(), rows(11)
    with torch.no_grad(), batch_invariant():
        together = layer(torch.zeros(11, HIDDEN), normed_TD, not_recomputed).value
        alone = [layer(torch.zeros(1, HIDDEN), row, not_recomputed).value for row in normed_TD.split(1)]
    assert torch.equal(together, torch.cat(alone))


def test_pairs_are_sorted_by_expert_and_none_is_lost() -> None:
    for seed in range(20):
        generator = torch.Generator().manual_seed(seed)
        experts_TA = torch.stack([torch.randperm(8, generator=generator)[:3] for _ in range(1 + seed % 6)])
        found = sort_by_expert(experts_TA, 8)
        flat = experts_TA.flatten()
        assert torch.equal(flat[found.order_P], flat.sort().values)
        assert torch.equal(found.order_P[found.place_P], torch.arange(len(flat)))
        assert torch.equal(found.counts_E, flat.bincount(minlength=8))


def test_a_correction_changes_who_is_chosen_and_not_the_weight_and_does_not_learn() -> None:
    layer, normed_TD = mixture(), rows(30)
    assert layer.router.correction is not None
    with torch.no_grad():
        layer.router.correction.zero_()
        before = layer.router(normed_TD)
        rare = before.experts_TA.flatten().bincount(minlength=7).argmin()
        layer.router.correction[0, rare] = 1.0
        after = layer.router(normed_TD)
    assert (after.experts_TA == rare).any(1).all()
    scores_TE = (normed_TD @ layer.router.weight.T).softmax(-1)
    raw_TA = scores_TE.gather(1, after.experts_TA)
    torch.testing.assert_close(after.weights_TA, raw_TA / raw_TA.sum(1, keepdim=True))
    assert not layer.router.correction.requires_grad


def test_a_correction_stays_float32_in_a_model_of_16_bits() -> None:
    model = build_model(SHAPE, seed=0, dtype=torch.bfloat16)
    for router in routers_of(model):
        assert router.correction is not None and router.correction.dtype == torch.float32
        assert router.weight.dtype == torch.bfloat16
    assert len(routers_of(model)) == 2, "the first layer is dense"


# What keeps routers from favourites.


def test_the_balance_is_1_where_all_experts_have_as_much_and_their_number_where_one_has_all() -> None:
    even = torch.full((8, 4), 0.25)
    torch.testing.assert_close(balance_loss(even, torch.tensor([4, 4, 4, 4])), torch.tensor(1.0))
    one = F.one_hot(torch.zeros(8, dtype=torch.long), 4).float()
    torch.testing.assert_close(balance_loss(one, torch.tensor([16, 0, 0, 0])), torch.tensor(4.0))


def test_the_balance_is_that_of_transformers_over_the_number_of_active_experts() -> None:
    """Theirs counts places once for each of a token's experts, so it is as many times ours."""
    for seed in range(5):
        logits_TE = torch.randn(50, 6, generator=torch.Generator().manual_seed(seed))
        scores_TE = logits_TE.softmax(-1)
        counts_E = scores_TE.topk(2).indices.flatten().bincount(minlength=6)
        theirs = load_balancing_loss_func((logits_TE,), num_experts=6, top_k=2)
        torch.testing.assert_close(2 * balance_loss(scores_TE, counts_E), theirs)


def test_the_z_loss_is_the_mean_square_of_the_log_of_all_scores() -> None:
    logits_TE = torch.tensor([[0.0, 0.0], [1.0, 1.0]])
    expected = (torch.tensor(2.0).log() ** 2 + (1 + torch.tensor(2.0).log()) ** 2) / 2
    torch.testing.assert_close(z_loss(logits_TE), expected)


def test_a_model_hands_back_what_its_routers_add_and_nothing_where_nothing_is_asked_for() -> None:
    model = build_model(SHAPE, seed=0)
    assert not losses_of(model)
    set_router_losses(model, RouterLosses(balance=0.5))
    half = losses_of(model)
    assert set(half) == {"router/balance_loss"}
    set_router_losses(model, RouterLosses(balance=1.0, z=0.1))
    both = losses_of(model)
    assert set(both) == {"router/balance_loss", "router/z_loss"}
    torch.testing.assert_close(both["router/balance_loss"], 2 * half["router/balance_loss"])


def losses_of(model: torch.nn.Module) -> dict[str, Tensor]:
    ids_T = random_ids(20)
    return dict(model(ids_T, torch.arange(20), PackedAttention(torch.tensor([0, 20])), hidden_states).losses)


def test_balance_evens_out_the_load_of_a_lopsided_router() -> None:
    layer, normed_TD = mixture(Experts(routed=8, active=2, inner_size=4)), rows(400)
    with torch.no_grad():
        normed_TD[:, 0] = 1.0
        layer.router.weight[0, 0] = 2.0  # everybody's favourite
    layer.router.losses = RouterLosses(balance=1.0)
    optimizer = torch.optim.SGD([layer.router.weight], lr=0.5)

    def load() -> Tensor:
        counts_E = layer.router(normed_TD).experts_TA.flatten().bincount(minlength=8)
        return counts_E.max() / counts_E.float().mean()

    before = load()
    for _ in range(60):
        output = layer(torch.zeros(400, HIDDEN), normed_TD, not_recomputed)
        output.losses["router/balance_loss"].backward()
        optimizer.step()
        optimizer.zero_grad()
    assert load() < 1.3 and before > 2


def test_recomputed_blocks_give_the_same_gradients() -> None:
    gradients = []
    for recompute in (False, True):
        model = build_model(SHAPE, seed=0)
        set_router_losses(model, RouterLosses(balance=0.1, z=0.1))
        if recompute:
            model.recompute_blocks()
        total = packed_logits(model, [random_ids(20)]).square().mean() + sum(losses_of(model).values())
        total.backward()
        gradients.append([one.grad for one in model.parameters() if one.requires_grad])
    for plain, again in zip(*gradients, strict=True):
        torch.testing.assert_close(plain, again)
