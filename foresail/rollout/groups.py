"""From a problem to the requests of its group, and from what was drawn to samples."""

from __future__ import annotations

from dataclasses import dataclass

from foresail.data.prompts import PromptedProblem
from foresail.engine.noise import noise_key
from foresail.engine.request import Completion, Request
from foresail.recipe.parts import Sampling
from foresail.records import Sample


@dataclass(frozen=True, kw_only=True)
class Draw:
    """What to draw for every problem, and the part of the noise key they have in common."""

    sampling: Sampling
    num_samples: int
    besides: tuple[Sampling, ...] = ()  # one more sample each: a greedy one, say
    stop_ids: tuple[int, ...]
    seed: int
    step: int

    @property
    def samplings(self) -> tuple[Sampling, ...]:
        """Of every sample of a problem, by its number."""
        return (self.sampling,) * self.num_samples + self.besides


def requests(problem: PromptedProblem, draw: Draw, group: int) -> list[Request]:
    """All samples of one problem, named "group.sample"."""
    return [
        Request(
            id=f"{group}.{number}",
            prompt=problem.ids,
            key=noise_key(draw.seed, draw.step, problem.problem.id, number),
            sampling=sampling,
            stop_ids=draw.stop_ids,
        )
        for number, sampling in enumerate(draw.samplings)
    ]


def to_sample(completion: Completion) -> Sample:
    """Prompt and response as one flat record."""
    prompt = completion.request.prompt
    zeros = [0] * len(prompt)
    num_tokens = len(prompt) + len(completion.ids)
    return Sample(
        ids=[*prompt, *completion.ids],
        loss_mask=zeros + [1] * len(completion.ids),
        logprobs=[0.0] * len(prompt) + [*completion.logprobs],
        versions=[*zeros, *completion.versions],
        turns=[0] * num_tokens,
        finish=completion.finish,
    )
