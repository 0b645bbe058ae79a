"""The engine reads low-rank pairs where the trainer has them, and agrees with it."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from small_engines import (
    SHAPES,
    TOLERANCE,
    ask,
    assert_same,
    finish_all,
    full_logprobs,
    mixed_requests,
    random_prompt,
    small_engine,
    small_model,
)

from foresail.data.packing import pack
from foresail.model.decoder import Decoder
from foresail.model.hf import load_model, save_model
from foresail.model.lora import attach
from foresail.model.packed import token_logprobs
from foresail.recipe.tables.parts import Lora, Optimizer
from foresail.records import TrainSequence
from foresail.train.learner import Learner
from foresail.train.optim.master_adamw import MasterAdamW
from foresail.train.update.step import token_loss, train_step


def adapted(family: str = "qwen2", targets: tuple[str, ...] = ("attention", "mlp")) -> Decoder:
    model = small_model(family)
    attach(model, Lora(rank=3, alpha=6.0, targets=targets), seed=1)
    learn(model)
    return model


@torch.no_grad()
def learn(model: Decoder, seed: int = 0) -> None:
    generator = torch.Generator().manual_seed(seed)
    for weight in model.parameters():
        if weight.requires_grad:
            weight.add_(torch.randn(weight.shape, generator=generator) * 0.2)


@pytest.mark.parametrize("targets", [("attention", "mlp"), ("q", "v"), ("k", "down")])
@pytest.mark.parametrize("family", [name for name in SHAPES if "experts" not in SHAPES[name]])
def test_cached_decode_matches_full_forward(family: str, targets: tuple[str, ...]) -> None:
    model = adapted(family, targets)
    requests = [ask(f"{n}", random_prompt(n), stop_ids=()) for n in (1, 4, 5, 11)]
    for completion in finish_all(small_engine(model), requests).values():
        torch.testing.assert_close(
            torch.tensor(completion.logprobs), full_logprobs(model, completion), rtol=0, atol=TOLERANCE
        )


@pytest.mark.parametrize("batch_invariant", [False, True])
def test_an_engine_sees_an_update_and_agrees_with_the_trainer(batch_invariant: bool) -> None:
    """The same engine before and after: nothing was handed over to it."""
    model = adapted()
    engine = small_engine(model, batch_invariant=batch_invariant)
    learner = Learner(name="policy", model=model, optimizer=MasterAdamW(model, Optimizer()))
    requests = [ask(f"{n}", random_prompt(n), temperature=0.7) for n in range(1, 9)]
    drawn = []
    for version in range(2):
        completions = list(finish_all(engine, requests).values())
        drawn.append([completion.ids for completion in completions])
        sequences = [
            TrainSequence(
                ids=[*completion.request.prompt, *completion.ids],
                loss_mask=[0] * len(completion.request.prompt) + [1] * len(completion.ids),
                rollout_logprobs=[0.0] * len(completion.request.prompt) + completion.logprobs,
            )
            for completion in completions
        ]
        (batch,) = pack(sequences, [1.0] * len(sequences), max_tokens=999)
        logprobs_M, _ = token_logprobs(model, batch, temperature=0.7)
        torch.testing.assert_close(logprobs_M, batch.rollout_logprobs_M, rtol=0, atol=TOLERANCE)
        loss = partial(token_loss, loss=lambda logprobs_M, _: (logprobs_M.sum(), {}))
        train_step(learner, [batch], loss, learning_rate=0.05)
        engine.weights_changed(version + 1)
    assert drawn[0] != drawn[1]


def test_merged_weights_draw_the_same_tokens(tmp_path) -> None:
    model = adapted("qwen3")
    save_model(model, tmp_path / "merged")
    merged = load_model(tmp_path / "merged", dtype=torch.float32, device="cpu")
    found = finish_all(small_engine(model), mixed_requests())
    assert_same(found, finish_all(small_engine(merged), mixed_requests()))
