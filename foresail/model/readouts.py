"""Readouts: functions of the last hidden states, passed to the model's forward pass.

    logits_TV = model(ids_T, positions_T, attend, logits).value
    logprobs_M, entropy_M = model(ids_T, positions_T, attend, likelihood_at(sources_M, ids_M)).value

A readout is called inside the pass, with the head's matrix: where weights are sharded, they are whole only there.

Legend: T tokens, M those that are read, D hidden size, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from torch import Tensor

from foresail.model.divergence import DivergenceSettings, TeacherView, token_divergence
from foresail.model.likelihood import token_likelihood
from foresail.model.linear import wide_linear

R = TypeVar("R")
Q = TypeVar("Q")
Readout = Callable[[Tensor, Tensor], R]  # of hidden_TD and head_VD


def hidden_states(hidden_TD: Tensor, head_VD: Tensor) -> Tensor:
    return hidden_TD


def logits(hidden_TD: Tensor, head_VD: Tensor) -> Tensor:
    return wide_linear(hidden_TD, head_VD)


def logits_at(places_M: Tensor) -> Readout[Tensor]:
    return lambda hidden_TD, head_VD: wide_linear(hidden_TD[places_M], head_VD)


def scores_at(places_M: Tensor) -> Readout[Tensor]:
    """A reward model's score of what ends at each place, in float32."""
    return lambda hidden_TD, head_1D: (hidden_TD[places_M].float() @ head_1D.float().T).squeeze(-1)


def likelihood_at(
    places_M: Tensor, ids_M: Tensor, temperature: float = 1.0
) -> Readout[tuple[Tensor, Tensor]]:
    """Log-probability of each id after the token at its place, and the entropy there."""
    return lambda hidden_TD, head_VD: token_likelihood(hidden_TD[places_M], head_VD, ids_M, temperature)


def divergence_at(places_M: Tensor, teacher: TeacherView, comparison: DivergenceSettings) -> Readout[Tensor]:
    """The divergence from the teacher's distribution at each place."""
    return lambda hidden_TD, head_VD: token_divergence(hidden_TD[places_M], head_VD, teacher, comparison)


def view_at(places_M: Tensor, *, whole: bool) -> Readout[TeacherView]:
    """A teacher's hidden state at each place, and its head; `whole`: its head is a copy, for the weights are
    sharded again.
    """
    return lambda hidden_TD, head_VE: TeacherView(
        hidden_ME=hidden_TD[places_M], weight_VE=head_VE.clone() if whole else head_VE
    )


def both(first: Readout[R], second: Readout[Q]) -> Readout[tuple[R, Q]]:
    return lambda hidden_TD, head_VD: (first(hidden_TD, head_VD), second(hidden_TD, head_VD))
