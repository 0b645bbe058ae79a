"""The checks before the first step: they pass on a sound model, and each fails when its subject is broken."""

from __future__ import annotations

import copy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from tiny_world import PROBLEMS, rl_recipe, tiny_shape
from torch import Tensor

from foresail.data.problems.problems import load_problems
from foresail.data.problems.prompts import encode_problems
from foresail.engine.engine import Engine
from foresail.model import packed
from foresail.model.attention import PackedAttention
from foresail.model.decoder import Decoder
from foresail.model.hf import build_model
from foresail.model.shared_prompts import SharedPromptAttention
from foresail.recipe.shape.model_shape import Experts
from foresail.recipe.tables.parts import Problems, Rollout, Sampling
from foresail.rollout.build import gather
from foresail.rollout.fleet import Fleet
from foresail.rollout.groups import GroupSpec
from foresail.rollout.native import NativeInstance
from foresail.tokenizer.tokenizer import Tokenizer
from foresail.train.learner import save_weights
from foresail.train.rollouts import self_test as selftest
from foresail.train.rollouts import setup as rollout_setup
from foresail.train.rollouts.self_test import SelfTestFailed, self_test
from foresail.train.stages import rl


@pytest.fixture
def subject(tiny_tokenizer: Path, tmp_path: Path) -> SimpleNamespace:
    tokenizer = Tokenizer.load(tiny_tokenizer)
    group_spec = GroupSpec(
        sampling=Sampling(max_new_tokens=12), num_samples=4, stop_ids=tokenizer.eos_ids, seed=0, step=0
    )
    return SimpleNamespace(
        model=build_model(tiny_shape(tokenizer.vocab_size), seed=0),
        tokenizer=tokenizer,
        problems=encode_problems(load_problems(Problems(source=PROBLEMS)), tokenizer, 20),
        group_spec=group_spec,
        folder=tmp_path,
    )


def fleet_on(model: Decoder) -> Fleet:
    engine = NativeInstance("engine", Engine(model, num_pages=400, page_size=4))
    return gather([engine], Rollout(), max_length=40)


def check(subject: SimpleNamespace, engine_model: Decoder | None = None, **sampling: Any) -> dict[str, float]:
    fleet = fleet_on(engine_model or subject.model)
    group_spec = GroupSpec(
        **{**vars(subject.group_spec), "sampling": Sampling(**{"max_new_tokens": 12} | sampling)}
    )
    return self_test(subject.model, subject.tokenizer, fleet, subject.problems, group_spec, subject.folder)


@pytest.mark.parametrize("sampling", [{}, {"temperature": 0.6}, {"top_p": 0.5, "top_k": 3, "min_p": 0.2}])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_sound_model_passes(subject: SimpleNamespace, dtype: torch.dtype, sampling: dict[str, Any]) -> None:
    subject.model.to(dtype)
    found = check(subject, **sampling)
    assert found["selftest/saved_logits_diff"] == 0
    largest = 1e-5 if dtype == torch.float32 else 5e-2
    assert found["selftest/logprob_diff"] < largest and found["selftest/micro_batch_diff"] < largest


@pytest.mark.parametrize("experts", [False, True])
def test_a_frozen_model_beside_layers_that_learn_passes_and_stays_frozen(
    subject: SimpleNamespace, experts: bool
) -> None:
    if experts:
        mixture = Experts(routed=4, active=2, inner_size=16, shared=1, correction=True)
        shape = subject.model.shape.model_copy(update={"family": "ernie4_5_moe", "experts": mixture})
        subject.model = build_model(shape, seed=0)
    subject.model.requires_grad_(False)
    assert check(subject)["selftest/micro_batch_diff"] < 1e-5
    assert not any(weight.requires_grad for weight in subject.model.parameters())


def test_it_changes_neither_weights_nor_gradients_and_leaves_no_files(subject: SimpleNamespace) -> None:
    before = copy.deepcopy(subject.model.state_dict())
    check(subject)
    assert all(torch.equal(before[name], value) for name, value in subject.model.state_dict().items())
    assert all(parameter.grad is None for parameter in subject.model.parameters())
    assert list(subject.folder.iterdir()) == []


@torch.no_grad()
def perturbed(model: Decoder) -> Decoder:
    """The same model with one weight matrix one percent larger."""
    other = copy.deepcopy(model)
    other.blocks[1].mlp.down.weight.mul_(1.01)  # type: ignore[union-attr, operator]
    return other


def test_an_engine_with_other_weights_fails(subject: SimpleNamespace) -> None:
    with pytest.raises(SelfTestFailed, match=r'engine and trainer disagree.*Set model.dtype = "float32"'):
        check(subject, engine_model=perturbed(subject.model))


def test_an_engine_that_gives_nan_as_log_probability_fails(
    subject: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    def draw_nan(*args: Any) -> Any:
        first, *others = sequences(*args)
        assert first.rollout_logprobs is not None
        first.rollout_logprobs[-1] = float("nan")
        return [first, *others]

    sequences = selftest.sample_sequences
    monkeypatch.setattr(selftest, "sample_sequences", draw_nan)
    with pytest.raises(SelfTestFailed, match="disagree on log-probabilities by nan"):
        check(subject)


def test_a_save_that_changes_a_weight_fails(
    subject: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(selftest, "save_weights", lambda model, *rest: save_weights(perturbed(model), *rest))
    with pytest.raises(
        SelfTestFailed, match=r"gives other logits .* other weights: blocks.1.mlp.down.weight"
    ):
        check(subject)
    assert list(subject.folder.iterdir()) == []


def test_a_device_that_rounds_otherwise_now_and_then_fails(
    subject: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The weights being equal."""
    answers, logits = iter([0.5, 0.0]), selftest.logits
    monkeypatch.setattr(selftest, "logits", lambda *asked: logits(*asked) + next(answers, 0.0))
    with pytest.raises(SelfTestFailed, match=r"they differ by 5.00e-01; weights are equal, a kernel raced"):
        check(subject)


class MixingAttention(PackedAttention):
    """Sees all packed sequences as one."""

    def __init__(self, starts_S1: Tensor, parents_S: Tensor | None = None) -> None:
        super().__init__(starts_S1[[0, -1]])


@pytest.mark.parametrize(("dtype", "rounding"), [(torch.float32, 1e-5), (torch.bfloat16, 0.1)])
def test_packed_sequences_that_see_each_other_fail(
    subject: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, dtype: torch.dtype, rounding: float
) -> None:
    subject.model.to(dtype)
    sequences = selftest.sample_sequences(fleet_on(subject.model), subject.problems[:4], subject.group_spec)
    assert selftest.check_micro_batches(subject.model, sequences) < rounding
    monkeypatch.setattr(packed, "PackedAttention", MixingAttention)
    with pytest.raises(SelfTestFailed, match=r"other micro-batches; packed sequences see each other"):
        selftest.check_micro_batches(subject.model, sequences)


def test_answers_that_do_not_see_a_shared_prompt_fail(
    subject: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    attend = SharedPromptAttention.attend

    def blind(family: SharedPromptAttention, *heads: Tensor) -> Tensor:
        own = family.seen_C1LJ.shape[-2]
        family.seen_C1LJ[..., : family.seen_C1LJ.shape[-1] - own] = False
        return attend(family, *heads)

    monkeypatch.setattr(SharedPromptAttention, "attend", blind)
    with pytest.raises(SelfTestFailed, match="engine and trainer disagree"):
        check(subject)


def test_a_failed_self_test_stops_the_run_before_its_first_step(
    tiny_checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build = rollout_setup.build_fleet
    monkeypatch.setattr(
        rollout_setup, "build_fleet", lambda model, *args, **named: build(perturbed(model), *args, **named)
    )
    with pytest.raises(SelfTestFailed, match="engine and trainer disagree"):
        rl.run_rl(rl_recipe(tiny_checkpoint, tmp_path))
    assert not (tmp_path / "rl" / "metrics.jsonl").exists()
    assert not list(tmp_path.glob("rl/checkpoints/*"))
