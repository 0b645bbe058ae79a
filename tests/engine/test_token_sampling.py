"""Tokens come with the frequencies of the settings' distribution, and their log-probabilities are its own."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from foresail.engine.noise import noise_key, uniforms
from foresail.engine.sampling import SamplingRows, sample

SMALLEST, LARGEST = 0.5 * 2.0**-48, (2.0**48 - 0.5) * 2.0**-48
SETTINGS = [
    {},
    {"temperature": 0.5},
    {"temperature": 3.0},
    {"top_k": 1},
    {"top_k": 5},
    {"top_k": 1000},
    {"top_p": 0.5},
    {"top_p": 0.95},
    {"top_p": 1e-6},
    {"min_p": 0.05},
    {"min_p": 0.99},
    {"temperature": 0.7, "top_k": 9, "top_p": 0.8, "min_p": 0.1},
    {"temperature": 1.5, "top_p": 0.9, "min_p": 0.02},
]


def rows(settings: list[dict]) -> SamplingRows:
    def column(name, default):
        return torch.tensor([row.get(name, default) for row in settings])

    return SamplingRows(
        temperature_B=column("temperature", 1.0),
        top_p_B=column("top_p", 1.0),
        top_k_B=column("top_k", 0),
        min_p_B=column("min_p", 0.0),
    )


def reference(
    logits: np.ndarray, temperature: float = 1.0, top_k: int = 0, top_p: float = 1.0, min_p: float = 0.0
) -> np.ndarray:
    """The distribution to draw from, token by token, as the names of the settings say."""
    scaled = logits.astype(np.float64) / temperature
    probs = np.exp(scaled - scaled.max())
    probs /= probs.sum()
    order = sorted(range(len(probs)), key=lambda token: (-probs[token], token))
    order = order[:top_k] if top_k else order
    among_top_k = probs[order].sum()
    kept, mass = [], 0.0
    for token in order:
        if mass >= top_p:
            break
        kept.append(token)
        mass += probs[token] / among_top_k
    kept = [token for token in kept if probs[token] >= min_p * probs[order[0]]]
    result = np.zeros_like(probs)
    result[kept] = probs[kept] / probs[kept].sum()
    return result


def distribution(
    logits: torch.Tensor, settings: dict, *, draws: int = 20_000
) -> tuple[np.ndarray, np.ndarray]:
    """Counts of the tokens drawn with real noise, and the log-probability reported for each (NaN: never drawn)."""
    keys = torch.tensor([noise_key(3, 0, str(settings), n) for n in range(draws)])
    tokens, logprobs = sample(
        logits.expand(draws, -1), rows([settings] * draws), uniforms(keys, keys % 7), truncate=True
    )
    counts = np.bincount(tokens.numpy(), minlength=len(logits))
    reported = np.full(len(logits), np.nan)
    reported[tokens.numpy()] = logprobs.numpy()
    return counts, reported


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_draws_follow_the_distribution(settings):
    logits = torch.randn(40, generator=torch.Generator().manual_seed(5)) * 2
    expected = reference(logits.numpy(), **settings)
    counts, reported = distribution(logits, settings)
    assert not counts[expected == 0].any()
    likely = expected * counts.sum() > 5
    shares = expected[likely] * counts.sum()
    chi_square = ((counts[likely] - shares) ** 2 / shares).sum()
    freedom = max(likely.sum() - 1, 1)
    assert chi_square < freedom + 4 * np.sqrt(2 * freedom)
    drawn = counts > 0
    np.testing.assert_allclose(reported[drawn], np.log(expected[drawn]), atol=1e-5)


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_evenly_spaced_noise_gives_every_token_its_share(settings):
    """With u = (i + 1/2) / n each token comes n times its probability, give or take one."""
    logits = torch.randn(40, generator=torch.Generator().manual_seed(6)) * 2
    evenly = (torch.arange(10_000, dtype=torch.float64) + 0.5) / 10_000
    tokens, _ = sample(logits.expand(10_000, -1), rows([settings] * 10_000), evenly, truncate=True)
    counts = np.bincount(tokens.numpy(), minlength=40)
    assert np.abs(counts - 10_000 * reference(logits.numpy(), **settings)).max() < 1.02
    assert (np.diff(tokens.numpy()) >= 0).all()  # tokens are laid out in vocabulary order


def test_mixed_settings_in_one_batch_keep_apart():
    settings = [*SETTINGS, {"temperature": 0.0}] * 20
    generator = torch.Generator().manual_seed(1)
    logits = torch.randn(len(settings), 50, generator=generator) * 3
    noise = torch.rand(len(settings), generator=generator, dtype=torch.float64)
    tokens, logprobs = sample(logits, rows(settings), noise, truncate=True)
    for row, (token, logprob) in enumerate(zip(tokens.tolist(), logprobs.tolist(), strict=True)):
        if settings[row].get("temperature") == 0:
            expected = reference(logits[row].numpy())
            assert token == logits[row].argmax()
        else:
            expected = reference(logits[row].numpy(), **settings[row])
            assert token == np.searchsorted(
                expected.cumsum(), noise[row].item() * expected.sum(), side="right"
            )
        assert logprob == pytest.approx(np.log(expected[token]), abs=1e-5)


def test_greedy_reports_the_models_own_logprob_whatever_would_be_cut():
    logits = torch.tensor([[1.0, 3.0, 2.0, 0.0]])
    settings = rows([{"temperature": 0.0, "top_k": 1, "top_p": 0.1, "min_p": 0.9}])
    for truncate in (True, False):
        token, logprob = sample(logits, settings, torch.tensor([0.99]).double(), truncate=truncate)
        assert token.item() == 1
        assert logprob.item() == pytest.approx(torch.log_softmax(logits[0], 0)[1].item(), abs=1e-6)


def test_a_row_that_cuts_nothing_does_not_notice_neighbours_that_do():
    """150,000 nearly equal tokens: a sum in float32 rounds up to 1 long before the last of them."""
    logits = torch.randn(2, 150_000, generator=torch.Generator().manual_seed(0)) * 0.01
    settings, noise = rows([{}, {"top_p": 0.9}]), torch.tensor([LARGEST, LARGEST]).double()
    tokens, logprobs = sample(logits, settings, noise, truncate=True)
    alone, alone_logprobs = sample(logits[:1], settings[torch.tensor([0])], noise[:1], truncate=False)
    assert tokens[0] == alone[0] == 149_999
    torch.testing.assert_close(logprobs[:1], alone_logprobs, rtol=0, atol=1e-5)
    # The share that top-p keeps is renormalised: dividing by 0.9 adds 0.105 to the logarithm.
    assert (logprobs[1] - torch.log_softmax(logits[1], 0)[tokens[1]]).item() == pytest.approx(
        0.10536, abs=1e-3
    )


def test_equal_tokens_are_cut_in_vocabulary_order():
    noise = (torch.arange(300, dtype=torch.float64) + 0.5) / 300
    tokens, logprobs = sample(torch.zeros(300, 10), rows([{"top_k": 3}] * 300), noise, truncate=True)
    assert torch.bincount(tokens).tolist() == [100, 100, 100]
    torch.testing.assert_close(logprobs, torch.full((300,), -np.log(3.0), dtype=torch.float32))


@pytest.mark.parametrize("truncate", [False, True])
@pytest.mark.parametrize("noise", [SMALLEST, 0.5, LARGEST])
@pytest.mark.parametrize(
    ("logits", "possible"),
    [
        ([-torch.inf, 0.0, -torch.inf], {1}),
        ([-torch.inf, -torch.inf, 1.0, -torch.inf, 1.0, -torch.inf], {2, 4}),
        ([1e30, 0.0, -1e30], {0}),
        ([-1e38, 3e38, -1e38, 3e38], {1, 3}),
        ([0.0, 200.0, 0.0], {1}),
        ([-3e38, -3e38], {0, 1}),
        ([5.0], {0}),
    ],
)
def test_a_token_without_probability_is_never_drawn(logits, possible, noise, truncate):
    settings = [{}, {"temperature": 0.9}, {"temperature": 0.0}] + truncate * [{"top_p": 0.9}, {"top_k": 2}]
    batch = torch.tensor(logits).expand(len(settings), -1)
    noise_B = torch.full((len(settings),), noise, dtype=torch.float64)
    tokens, logprobs = sample(batch, rows(settings), noise_B, truncate=truncate)
    assert set(tokens.tolist()) <= possible
    assert torch.isfinite(logprobs[:3]).all()
    assert (logprobs <= 0).all()


def test_bfloat16_logits_are_sampled_in_float32():
    logits = torch.randn(1, 1000, generator=torch.Generator().manual_seed(2)).bfloat16()
    _, logprob = sample(logits, rows([{}]), torch.tensor([0.3]).double(), truncate=False)
    assert logprob.dtype == torch.float32
    token, _ = sample(logits, rows([{}]), torch.tensor([0.3]).double(), truncate=False)
    assert logprob.item() == pytest.approx(torch.log_softmax(logits.double(), -1)[0, token].item(), abs=1e-5)
