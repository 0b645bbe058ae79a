"""A reward model's scores do not depend on how sequences are packed."""

from __future__ import annotations

import random

import torch

from foresail.model.hf import build_model
from foresail.recipe.shape.model_shape import ModelShape
from foresail.rewards.scoring import score_answers

SHAPE = ModelShape(
    vocab_size=50,
    hidden_size=16,
    intermediate_size=24,
    num_layers=2,
    num_heads=2,
    num_kv_heads=1,
    head_dim=8,
    max_context=64,
).with_score()


def test_packed_scores_equal_scores_one_by_one_for_any_lengths_prompts_and_limits():
    model, chance = build_model(SHAPE, seed=1), random.Random(0)
    for _ in range(15):
        prompts = [[chance.randrange(50) for _ in range(chance.randint(1, 20))] for _ in range(3)]
        starts, sequences = [], []
        for _ in range(chance.randint(1, 9)):
            prompt = chance.choice(prompts)
            sequences.append(prompt + [chance.randrange(50) for _ in range(chance.randint(1, 12))])
            starts.append(len(prompt))
        together = score_answers(model, sequences, starts=starts, max_tokens=chance.randint(32, 90))
        alone = [
            score_answers(model, [ids], starts=[1], max_tokens=40)[0] for ids in sequences
        ]  # each as if its prompt were one token
        torch.testing.assert_close(torch.tensor(together), torch.tensor(alone), atol=1e-5, rtol=0)
