"""Sequences of several problems, in random order, as one update packs them."""

from __future__ import annotations

import random

from small_training import VOCABULARY

from foresail.records import TrainSequence

GROUPS = [
    (5, [3, 1, 7]),
    (2, [4]),
    (9, [2, 2]),
    (1, [6, 5, 1, 1]),
]  # tokens of the prompt, and of each answer


def grouped_sequences(seed: int = 0) -> list[TrainSequence]:
    """Answers of several problems, in no order; one has a span in its middle that is not its own."""
    numbers = random.Random(seed)
    sequences = []
    for prompt_length, answers in GROUPS:
        prompt = [numbers.randrange(VOCABULARY) for _ in range(prompt_length)]
        for place, answer in enumerate(answers):
            length = prompt_length + answer
            mask = [0] * prompt_length + [1] * answer
            if answer == 7:
                mask[-4:-2] = [0, 0]
            sequences.append(
                TrainSequence(
                    name=f"{len(sequences)}",
                    ids=prompt + [numbers.randrange(VOCABULARY) for _ in range(answer)],
                    loss_mask=mask,
                    advantages=[numbers.gauss(0, 1)] * length,
                    old_logprobs=[-3 + numbers.gauss(0, 0.5) for _ in range(length)],
                    rollout_logprobs=[-3.0 - place] * length,
                )
            )
    numbers.shuffle(sequences)
    return sequences
