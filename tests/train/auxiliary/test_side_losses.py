"""Losses and statistics that a layer hands back beside its result, all the way to the update and its metrics."""

from __future__ import annotations

import pytest
import torch
from small_training import SHAPE, Keeper, small_model, small_sequences, update
from torch import Tensor, nn

from foresail.algorithms.batch_losses import sft_loss
from foresail.data.packing import pack
from foresail.model.attention import PackedAttention
from foresail.model.decoder import Decoder
from foresail.model.output import NOTHING, Output
from foresail.model.readouts import hidden_states
from foresail.model.recomputed import Recompute


class Router(nn.Module):
    """In the place of an MLP: adds a vector to every token and says how long the vectors became."""

    def __init__(self) -> None:
        super().__init__()
        self.shift = nn.Parameter(torch.full((SHAPE.hidden_size,), 0.25))

    def forward(self, x_TD: Tensor, normed_TD: Tensor, recomputed: Recompute) -> Output[Tensor]:
        length = (self.shift**2).sum()
        return Output(x_TD + self.shift, {"router_length": 0.5 * length}, {"router_size": length.detach()})


def routed_model() -> Decoder:
    model = small_model()
    for block in model.blocks:
        block.mlp = Router()
    return model


def run(model: Decoder) -> Output[Tensor]:
    ids_T = torch.arange(5)
    return model(ids_T, ids_T, PackedAttention(torch.tensor([0, 5])), hidden_states)


@pytest.mark.parametrize("max_tokens", [14, 1000])
def test_an_update_learns_from_them_and_logs_their_means(max_tokens: int) -> None:
    """However the update is cut into micro-batches: each counts by its share of the tokens."""
    model = routed_model()
    batches = pack(small_sequences(), [0.0] * 6, max_tokens=max_tokens)
    assert (len(batches) == 1) == (max_tokens == 1000)
    found, length = update(model, Keeper(model), batches, sft_loss), SHAPE.hidden_size * 0.25**2
    assert (found["loss"], found["router_length"]) == pytest.approx((length, length))
    assert found["router_size"] == pytest.approx(2 * length)
    # of all weights only the shifts have a gradient: 0.25 in each of their numbers
    assert found["grad_norm"] == pytest.approx((SHAPE.num_layers * length) ** 0.5)


def test_a_dense_model_adds_nothing() -> None:
    output = run(small_model())
    assert output.losses is NOTHING and output.statistics is NOTHING


@pytest.mark.parametrize("recompute", [False, True])
def test_losses_of_all_layers_add_up_and_have_gradients(recompute: bool) -> None:
    model = routed_model()
    if recompute:
        model.recompute_blocks()
    output = run(model)
    length = SHAPE.hidden_size * 0.25**2
    assert {name: loss.item() for name, loss in output.losses.items()} == {"router_length": length}
    assert {name: found.item() for name, found in output.statistics.items()} == {"router_size": 2 * length}
    output.losses["router_length"].backward()
    assert model.blocks[0].mlp.shift.grad.tolist() == [0.25] * SHAPE.hidden_size
