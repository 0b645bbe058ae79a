"""How far engine and trainer are apart: by hand, and against the exact KL of two distributions."""

import math

import pytest
import torch

from foresail.algorithms.mismatch import mismatch, split_by_age


def test_sums_by_hand():
    trainer_M = torch.tensor([-1.0, -1.0 - math.log(2)], requires_grad=True)
    engine_M = torch.tensor([-1.5, -1.0])
    sums = mismatch(trainer_M, engine_M)
    assert sums["rollout/logprob_abs_diff"].item() == pytest.approx(0.5 + math.log(2))
    assert sums["rollout/logprob_abs_diff_max"].item() == pytest.approx(math.log(2))
    # k3 = r - 1 - log r with r = trainer / engine: e^.5 - 1.5 and .5 - 1 + log 2
    assert sums["rollout/logprob_kl"].item() == pytest.approx(math.exp(0.5) - 1.5 + math.log(2) - 0.5)
    assert not any(value.requires_grad for value in sums.values())


def test_equal_logprobs_are_no_mismatch():
    logprobs_M = torch.linspace(-9, 0, 10)
    assert {value.item() for value in mismatch(logprobs_M, logprobs_M).values()} == {0.0}


def test_no_tokens_are_no_mismatch():
    nothing_M = torch.zeros(0)
    assert {value.item() for value in mismatch(nothing_M, nothing_M).values()} == {0.0}


def test_the_mean_over_the_engines_tokens_is_the_kl_from_engine_to_trainer():
    engine_V = torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64)
    trainer_V = torch.tensor([0.4, 0.35, 0.25], dtype=torch.float64)
    exact = (engine_V * (engine_V / trainer_V).log()).sum().item()
    # each token alone, weighed as often as the engine draws it
    terms = [mismatch(t[None], e[None]) for t, e in zip(trainer_V.log(), engine_V.log(), strict=True)]
    mean = sum(p.item() * term["rollout/logprob_kl"].item() for p, term in zip(engine_V, terms, strict=True))
    assert mean == pytest.approx(exact, rel=1e-9)


def test_tokens_of_older_weights_are_told_apart():
    """Of four tokens the last two are fresh: their mean is that of two, and so is that of the others."""
    engine_M = torch.tensor([-1.0, -2.0, -3.0, -4.0])
    trainer_M = engine_M + torch.tensor([5.0, -7.0, 0.25, -0.75])
    sums = mismatch(trainer_M, engine_M, torch.tensor([0.0, 0.0, 1.0, 1.0]))
    found = split_by_age(
        {name: value.item() / (1 if name.endswith("max") else 4) for name, value in sums.items()}
    )
    old, alone = mismatch(trainer_M[:2], engine_M[:2]), mismatch(trainer_M[2:], engine_M[2:])
    assert found["rollout/fresh_share"] == 0.5
    assert found["rollout/logprob_abs_diff"] == 0.5
    assert found["rollout/logprob_abs_diff_max"] == 0.75
    assert found["rollout/logprob_kl"] == pytest.approx(alone["rollout/logprob_kl"].item() / 2)
    assert found["rollout/stale_abs_diff"] == 6
    assert found["rollout/stale_kl"] == pytest.approx(old["rollout/logprob_kl"].item() / 2)


@pytest.mark.parametrize(("share", "gone"), [(0.0, "rollout/logprob"), (1.0, "rollout/stale")])
def test_of_tokens_that_are_not_there_nothing_is_said(share: float, gone: str):
    engine_M, trainer_M = torch.tensor([-1.0, -2.0]), torch.tensor([-1.5, -1.0])
    sums = mismatch(trainer_M, engine_M, torch.full((2,), share))
    found = split_by_age(
        {name: value.item() / (1 if name.endswith("max") else 2) for name, value in sums.items()}
    )
    assert not [name for name in found if name.startswith(gone)]
    assert 0.75 in (found.get("rollout/logprob_abs_diff"), found.get("rollout/stale_abs_diff"))


def test_where_all_are_fresh_nothing_is_changed():
    assert split_by_age({"rollout/logprob_kl": 2.0}) == {"rollout/logprob_kl": 2.0}
