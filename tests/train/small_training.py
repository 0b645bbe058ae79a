"""A small model and sequences that this room's tests share."""

from __future__ import annotations

import random
from functools import partial

import torch
from torch import Tensor

from foresail.model.decoder import Decoder
from foresail.model.hf import build_model
from foresail.recipe.shape.model_shape import Experts, ModelShape
from foresail.recipe.tables.parts import Optimizer
from foresail.records import PackedBatch, TrainSequence
from foresail.train.learner import Learner
from foresail.train.optim.master_adamw import MasterAdamW
from foresail.train.update.step import Loss, token_loss, train_step

VOCABULARY = 23
TOLERANCE = 2e-5
SHAPE = ModelShape(
    family="qwen2",
    vocab_size=VOCABULARY,
    hidden_size=16,
    intermediate_size=24,
    num_layers=2,
    num_heads=4,
    num_kv_heads=2,
    head_dim=4,
    max_context=40,
    qkv_bias=True,
    tied=True,
)
WITH_EXPERTS = SHAPE.model_copy(
    update={
        "family": "ernie4_5_moe",
        "qkv_bias": False,
        "experts": Experts(routed=5, active=2, inner_size=12, shared=1, correction=True),
    }
)


@torch.no_grad()
def small_model(*, seed: int = 0, dtype: torch.dtype = torch.float32, shape: ModelShape = SHAPE) -> Decoder:
    """Random weights, biases and norms, far enough from their usual values for mistakes to show."""
    model = build_model(shape, seed=seed)
    generator = torch.Generator().manual_seed(seed)
    for parameter in model.parameters():
        noise = torch.randn(parameter.shape, generator=generator)
        parameter.copy_(1 + 0.3 * noise if parameter.ndim == 1 else noise * parameter.shape[-1] ** -0.5)
    return model.to(dtype)


def small_sequences(seed: int = 0) -> list[TrainSequence]:
    """Six of 3 to 14 tokens: prompts, responses, and one with two spans of loss."""
    numbers = random.Random(seed)
    sequences = []
    for index, (prompt, response) in enumerate([(2, 5), (6, 8), (1, 2), (4, 4), (3, 9), (5, 1)]):
        length = prompt + response
        mask = [0] * prompt + [1] * response
        if response == 9:
            mask[6:8] = [0, 0]
        sequences.append(
            TrainSequence(
                name=f"sequence {index}",
                ids=[numbers.randrange(VOCABULARY) for _ in range(length)],
                loss_mask=mask,
                advantages=[numbers.gauss(0, 1)] * length,
                old_logprobs=[-3 + numbers.gauss(0, 0.5) for _ in range(length)],
                rollout_logprobs=[-3.0] * length,
            )
        )
    return sequences


class Keeper(MasterAdamW):
    """Keeps the update's gradient for the test to look at, and leaves the weights as they are."""

    def __init__(self, model: Decoder, *, clip_norm: float = 1e9) -> None:
        super().__init__(model, Optimizer(lr=1.0, clip_norm=clip_norm))
        self.kept: list[Tensor] = []

    def update(self, learning_rate: float) -> None:
        found = [self.gradients[number] for number in range(len(self.weights))]
        self.kept = [gradient.clone() for gradient in found if gradient is not None]
        self.zero_grad()


def update(
    model: Decoder,
    optimizer: MasterAdamW,
    batches: list[PackedBatch],
    loss: Loss,
    *,
    learning_rate: float = 1.0,
    temperature: float = 1.0,
) -> dict[str, float]:
    """One step of a language model by `loss`."""
    learner = Learner(name="policy", model=model, optimizer=optimizer)
    batch_loss = partial(token_loss, loss=loss, temperature=temperature)
    return train_step(learner, batches, batch_loss, learning_rate=learning_rate)


def snapshot(model: Decoder, optimizer: MasterAdamW) -> dict[str, Tensor]:
    """A copy of all that an update changes."""
    tensors = {**dict(model.named_parameters()), **optimizer.state()}
    return {name: tensor.detach().clone() for name, tensor in tensors.items()}
