"""From problems to samples: every problem drawn `num_samples` times, samples or groups in the order they end.

One engine in this process; the scheduler over many engines will stand here too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from foresail.data.prompts import PromptedProblem
from foresail.engine.engine import Engine
from foresail.engine.noise import noise_key
from foresail.engine.request import Completion, Request
from foresail.recipe.parts import Sampling
from foresail.records import Sample


@dataclass(frozen=True, kw_only=True)
class Draw:
    """What to draw for every problem, and the part of the noise key they have in common."""

    sampling: Sampling
    num_samples: int
    stop_ids: tuple[int, ...]
    seed: int
    step: int


class Drawn(NamedTuple):
    """A sample, the problem it answers, and its number among that problem's samples."""

    problem: PromptedProblem
    number: int
    sample: Sample


def draw_groups(
    engine: Engine, problems: Sequence[PromptedProblem], draw: Draw
) -> Iterator[tuple[PromptedProblem, tuple[Sample, ...]]]:
    """Each problem with its samples, as soon as the last of them ends."""
    groups: dict[str, dict[int, Sample]] = {entry.problem.id: {} for entry in problems}
    for entry, number, sample in draw_samples(engine, problems, draw):
        group = groups[entry.problem.id]
        group[number] = sample
        if len(group) == draw.num_samples:
            yield entry, tuple(group[number] for number in range(draw.num_samples))


def draw_samples(engine: Engine, problems: Sequence[PromptedProblem], draw: Draw) -> Iterator[Drawn]:
    """Every sample of every problem, as it ends."""
    wanted = [request for index, problem in enumerate(problems) for request in requests(problem, draw, index)]
    for completion in engine.generate(wanted):
        index, number = map(int, completion.request.id.split("."))
        yield Drawn(problems[index], number, to_sample(completion))


def requests(problem: PromptedProblem, draw: Draw, group: int) -> list[Request]:
    """All samples of one problem, named "group.sample"."""
    return [
        Request(
            id=f"{group}.{number}",
            prompt=problem.ids,
            key=noise_key(draw.seed, draw.step, problem.problem.id, number),
            sampling=draw.sampling,
            stop_ids=draw.stop_ids,
        )
        for number in range(draw.num_samples)
    ]


def to_sample(completion: Completion) -> Sample:
    """Prompt and response as one flat record."""
    prompt = completion.request.prompt
    zeros = [0] * len(prompt)
    num_tokens = len(prompt) + len(completion.ids)
    return Sample(
        ids=[*prompt, *completion.ids],
        loss_mask=zeros + [1] * len(completion.ids),
        logprobs=[0.0] * len(prompt) + completion.logprobs,
        versions=zeros + completion.versions,
        turns=[0] * num_tokens,
        finish=completion.finish,
    )
