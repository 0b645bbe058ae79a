"""Episodes of several turns for tests of credit: made by hand, or of a world small enough to enumerate."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from foresail.algorithms.evidence import ScoredSample
from foresail.records import Sample


def episode(*turns: tuple[int, int]) -> Sample:
    """episode((2, 3), (1, 2)): two tokens of a prompt and three of the policy, then one of a tool and two more."""
    mask = [bit for world, policy in turns for bit in [0] * world + [1] * policy]
    numbers = [number for number, turn in enumerate(turns) for _ in range(sum(turn))]
    return flat_sample(mask, numbers)


def flat_sample(loss_mask: Sequence[int], turns: Sequence[int]) -> Sample:
    size = len(loss_mask)
    return Sample(
        ids=list(range(size)),
        loss_mask=list(loss_mask),
        logprobs=[0.0] * size,
        versions=[0] * size,
        turns=list(turns),
        finish="stop",
    )


def with_gains(sample: Sample, gains: Sequence[float], ignored: Sequence[int] | None = None) -> ScoredSample:
    """Gains are for the policy's tokens in order; where the world speaks, nothing is known."""
    given = iter(gains)
    teacher = [-1.0 + next(given) if bit else math.nan for bit in sample.loss_mask]
    assert next(given, None) is None, "more gains than tokens with a loss"
    student = [-1.0 if bit else math.nan for bit in sample.loss_mask]
    return ScoredSample(sample=sample, teachers=[teacher], student=student, ignored=ignored)


@dataclass(frozen=True)
class World:
    """All episodes of one shape with all answers: `joint[y1, y2, o1, …, answer]` is a probability.

    Every conditional follows from it by sums, so teacher and student are exact.
    """

    mask: tuple[int, ...]  # 1: the policy's token, 0: the world's
    turns: tuple[int, ...]
    joint: np.ndarray

    def logprobs(self, tokens: tuple[int, ...], answers: Sequence[int]) -> list[float]:
        """log P(token | those before, the answer is one of these) for each token of an episode."""
        mass = self.joint[..., list(answers)].sum(-1)
        before, found = mass.sum(), []
        for length in range(1, len(tokens) + 1):
            here = mass[tokens[:length]].sum()
            found.append(math.log(here / before))
            before = here
        return found

    def episodes(self) -> Sequence[tuple[int, ...]]:
        return list(np.ndindex(*self.joint.shape[:-1]))

    def log_posterior_ratio(self, tokens: tuple[int, ...], answers: Sequence[int]) -> float:
        """log P(answer | episode) / P(answer)"""
        chosen = list(answers)
        posterior = self.joint[tokens][chosen].sum() / self.joint[tokens].sum()
        return math.log(posterior / self.joint[..., chosen].sum())

    def sample(self) -> Sample:
        return flat_sample(self.mask, self.turns)


MASK = (1, 1, 0, 1, 1, 0, 1)
TURNS = (0, 0, 1, 1, 1, 2, 2)
CHOICES, ANSWERS = 2, 3


def conditionals(rng: np.random.Generator, depth: int, size: int = CHOICES) -> np.ndarray:
    """A random distribution over the next token after each of the histories of so many tokens."""
    return rng.dirichlet(np.ones(size), size=(CHOICES,) * depth)


def world_that_answers_at_the_end(seed: int, *, chance: bool) -> World:
    """Policy and tools write the episode, which then decides about the answer.

    Unless they answer by chance, tools are functions of what came before.
    """
    rng = np.random.default_rng(seed)
    joint = np.ones(())
    for place, policy in enumerate(MASK):
        step = conditionals(rng, place)
        if not policy and not chance:
            step = np.eye(CHOICES)[step.argmax(-1)]
        joint = joint[..., None] * step
    return World(MASK, TURNS, joint[..., None] * conditionals(rng, len(MASK), ANSWERS))


def world_with_a_hidden_answer(seed: int) -> World:
    """The answer comes first and the policy half knows it; tools answer by chance, and do not know it."""
    rng = np.random.default_rng(seed)
    prior = rng.dirichlet(np.ones(ANSWERS))
    each = []
    tools = {place: conditionals(rng, place) for place, policy in enumerate(MASK) if not policy}
    for share in prior:
        joint = np.full((), share)
        for place in range(len(MASK)):
            joint = joint[..., None] * (tools[place] if place in tools else conditionals(rng, place))
        each.append(joint)
    return World(MASK, TURNS, np.stack(each, axis=-1))
