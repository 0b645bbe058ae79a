"""Divergences from a teacher against PyTorch's own formulas, and their slopes against its derivatives.

Legend: M tokens, D the student's hidden size, E the teacher's, V vocabulary.
"""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from foresail.algorithms.divergences import DIVERGENCES, sampled_advantages
from foresail.model import likelihood
from foresail.model.divergence import DivergenceSettings, TeacherView, token_divergence

LOGITS = st.lists(st.lists(st.floats(-30, 30, width=32), min_size=5, max_size=5), min_size=1, max_size=4)
TOKENS, WIDTH, WIDER, WORDS = 11, 6, 9, 17


def plain(kind: str, student: Tensor, teacher: Tensor, beta: float) -> Tensor:
    """By PyTorch's kl_div, whose first argument is what is compared with the second."""
    if kind == "reverse":
        return F.kl_div(teacher, student, log_target=True, reduction="none").sum(-1)
    if kind == "forward":
        return F.kl_div(student, teacher, log_target=True, reduction="none").sum(-1)
    middle = (beta * teacher.exp() + (1 - beta) * student.exp()).log()
    of_teacher = F.kl_div(middle, teacher, log_target=True, reduction="none").sum(-1)
    of_student = F.kl_div(middle, student, log_target=True, reduction="none").sum(-1)
    return beta * of_teacher + (1 - beta) * of_student


@pytest.mark.parametrize("kind", DIVERGENCES)
@settings(max_examples=25)
@given(rows=LOGITS, beta=st.floats(0.05, 0.95), seed=st.integers(0, 9))
def test_values_and_slopes_are_those_of_the_plain_formulas(
    kind: str, rows: list[list[float]], beta: float, seed: int
) -> None:
    logits = torch.tensor(rows, dtype=torch.float64).requires_grad_()
    noise = torch.randn(logits.shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    student, teacher = logits.log_softmax(-1), (4 * noise).log_softmax(-1)
    expected = plain(kind, student, teacher, beta)
    (slope,) = torch.autograd.grad(expected.sum(), logits)
    divergence = DIVERGENCES[kind]
    found = divergence.value(student.detach(), teacher, beta)
    torch.testing.assert_close(found, expected.detach(), atol=1e-9, rtol=1e-9)
    torch.testing.assert_close(divergence.slope(student.detach(), teacher, beta), slope, atol=1e-9, rtol=1e-9)
    assert found.min() > -1e-9


def test_js_turns_into_half_the_kls_at_its_ends() -> None:
    """Divided by beta (or 1 - beta) it comes to KL(q || p) (or KL(p || q)) as that goes to 0."""
    torch.manual_seed(0)
    student, teacher = (torch.randn(3, 7, dtype=torch.float64).log_softmax(-1) for _ in range(2))
    js, small = DIVERGENCES["js"].value, 1e-6
    forward, reverse = (DIVERGENCES[kind].value(student, teacher, 0.5) for kind in ("forward", "reverse"))
    torch.testing.assert_close(js(student, teacher, small) / small, forward, rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(js(student, teacher, 1 - small) / small, reverse, rtol=1e-4, atol=1e-6)


def test_sampled_advantages_have_the_reverse_slope_on_average() -> None:
    logits = torch.tensor([0.3, -1.0, 2.0], dtype=torch.float64).requires_grad_()
    teacher = torch.tensor([1.0, 0.5, -0.2], dtype=torch.float64).log_softmax(-1)
    student = logits.log_softmax(-1)
    weights = student.detach().exp()  # how often each is drawn
    surrogate = -(weights * sampled_advantages(teacher, student) * student).sum()
    (found,) = torch.autograd.grad(surrogate, logits)
    slope = DIVERGENCES["reverse"].slope(student.detach()[None], teacher[None], 0.5)[0]
    torch.testing.assert_close(found, slope)


@pytest.mark.parametrize("kind", DIVERGENCES)
@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_chunks_of_hidden_states_change_nothing(
    kind: str, temperature: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a teacher with another width, and of heads of which one has more rows than the other."""
    generator = torch.Generator().manual_seed(1)

    def draw(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator)

    hidden, weight = draw(TOKENS, WIDTH).requires_grad_(), draw(WORDS, WIDTH).requires_grad_()
    view = TeacherView(hidden_ME=draw(TOKENS, WIDER), weight_VE=draw(WORDS - 2, WIDER))
    upstream = torch.linspace(-1, 2, TOKENS)
    student = (hidden @ weight[: WORDS - 2].t() / temperature).log_softmax(-1)
    teacher = (view.hidden_ME @ view.weight_VE.t() / temperature).log_softmax(-1)
    expected = plain(kind, student, teacher, 0.3)
    wanted = torch.autograd.grad(expected, (hidden, weight), upstream)
    for tokens in (1, 4, 1000):
        limit = 4 * tokens * (WORDS - 2)
        monkeypatch.setattr(likelihood, "MOST_LOGITS", dict.fromkeys(("cpu", "cuda"), limit))
        found = token_divergence(
            hidden, weight, view, DivergenceSettings(kind=kind, beta=0.3, temperature=temperature)
        )
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)
        for ours, theirs in zip(torch.autograd.grad(found, (hidden, weight), upstream), wanted, strict=True):
            torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-4)


def test_the_same_distribution_is_no_way_off() -> None:
    logprobs = torch.tensor([[math.log(0.2), math.log(0.8)]])
    for divergence in DIVERGENCES.values():
        assert divergence.value(logprobs, logprobs, 0.4).abs().item() < 1e-6
