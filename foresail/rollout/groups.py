"""Makes the requests of a problem's group, and samples from their completions.

A request may be continued with a longer prompt: in the next step (`leftovers.py`), or after a tool's answer. Each
part is a request of its own, made by `continue_request`, and `to_sample` makes one flat record of all parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from foresail.data.problems.prompts import PromptedProblem
from foresail.engine.noise import noise_key
from foresail.engine.request import Completion, Parked, Request
from foresail.recipe.tables.parts import Sampling
from foresail.records import Sample
from foresail.rollout.plan import SampleSpec
from foresail.tokenizer.tokenizer import Tokenizer


@dataclass(frozen=True, kw_only=True)
class GroupSpec:
    """How to sample every problem, and the common part of the noise keys."""

    sampling: Sampling
    num_samples: int
    besides: tuple[Sampling, ...] = ()  # one more sample each: a greedy one, say
    stop_ids: tuple[int, ...]
    closing: tuple[int, ...] = ()  # tokens that close thinking at sampling.thinking_budget
    seed: int
    step: int

    @property
    def samplings(self) -> tuple[Sampling, ...]:
        """The sampling of every sample of a problem, by its number."""
        return (self.sampling,) * self.num_samples + self.besides


def specify_groups(
    tokenizer: Tokenizer,
    sampling: Sampling,
    num_samples: int,
    *,
    besides: tuple[Sampling, ...] = (),
    seed: int,
    step: int,
) -> GroupSpec:
    """A spec with the tokenizer's stop ids and the tokens that close thinking."""
    return GroupSpec(
        sampling=sampling,
        num_samples=num_samples,
        besides=besides,
        stop_ids=tokenizer.eos_ids,
        closing=tokenizer.encode_closing(sampling.thinking_budget, sampling.thinking_end),
        seed=seed,
        step=step,
    )


def requests(problem: PromptedProblem, group_spec: GroupSpec, group: int) -> list[Request]:
    """All samples of one problem, named "group.sample"."""
    return [
        Request(
            id=f"{group}.{number}",
            prompt=problem.ids,
            key=noise_key(group_spec.seed, group_spec.step, problem.problem.id, number),
            sampling=sampling,
            stop_ids=group_spec.stop_ids,
            closing=group_spec.closing,
        )
        for number, sampling in enumerate(group_spec.samplings)
    ]


def to_spec(request: Request, group: int, sample: int) -> SampleSpec:
    return SampleSpec(
        id=request.id,
        group=group,
        sample=sample,
        prompt_tokens=len(request.prompt),
        max_tokens=request.sampling.max_new_tokens,
    )


def continue_request(before: Parked | Completion, appended: Sequence[int] = ()) -> Request:
    """The rest of a request as a new one; its prompt is all tokens so far and the appended ones.

    The noise continues, since it is keyed by position, and the limit counts all parts: a request of at most 100 new
    tokens that has generated 60 and gets 10 appended may generate 30 more.
    """
    request, behind = before.request, (*before.ids, *appended)
    left = request.sampling.max_new_tokens - len(behind)
    return replace(
        request,
        prompt=request.prompt + behind,
        begun=0 if appended else request.begun + len(before.ids),
        sampling=request.sampling.model_copy(update={"max_new_tokens": left}),
    )


def behind_prompt(spec: SampleSpec, request: Request, ids: Sequence[int]) -> Sequence[int]:
    """All tokens after a sample's first prompt: earlier turns, appended tokens and `ids`."""
    earlier = request.prompt[spec.prompt_tokens :]
    return [*earlier, *ids] if earlier else ids


def to_sample(*parts: Parked | Completion) -> Sample:
    """Prompt and response as one flat record; of several parts, each continues the one before.

    Tokens that a later part's prompt appends are the environment's: they begin a turn, with loss mask 0.
    Prompt 1 2, generated 3, appended 4, generated 5: ids 1 2 3 4 5, loss mask 0 0 1 0 1, turns 0 0 0 1 1.
    Tokens that a thinking budget inserted belong to the model's turn, with loss mask 0.
    """
    last = parts[-1]
    assert isinstance(last, Completion), "the last part has ended"
    side: dict[str, list[Any]] = {}
    sample = Sample(ids=[], loss_mask=[], logprobs=[], versions=[], turns=[], finish=last.finish, side=side)
    turn = 0
    for part in parts:
        prompt, known = part.request.prompt, len(sample.ids)
        assert prompt[:known] == tuple(sample.ids), (
            f"request {part.request.id} does not continue its last part"
        )
        turn += 0 < known < len(prompt)
        zeros = [0] * (len(prompt) - known)
        sample.ids.extend((*prompt[known:], *part.ids))
        sample.loss_mask.extend((*zeros, *[1] * len(part.ids)))
        sample.logprobs.extend((*map(float, zeros), *part.logprobs))
        sample.versions.extend((*zeros, *part.versions))
        for place in (len(prompt) + number for number in part.forced):
            sample.loss_mask[place], sample.logprobs[place], sample.versions[place] = 0, 0.0, 0
            sample.forced.append(place)
        sample.turns.extend([turn] * (len(zeros) + len(part.ids)))
        for name in side.keys() | part.side.keys():
            side[name] = merge_side(side.get(name, []), part.side.get(name, []), len(sample.ids))
    return sample


def merge_side(before: Sequence[Any], after: Sequence[Any], count: int) -> list[Any]:
    """Merge data of a sample's first and of its last tokens into `count` values; `before` has precedence:

    merge_side([1, None], [8, 3, 5], 4) -> [1, 8, 3, 5], merge_side([1, 2], [], 3) -> [1, 2, None]
    """
    new = [*[None] * (count - len(after)), *after]
    return [old if old is not None else value for old, value in zip(before, new, strict=False)] + new[
        len(before) :
    ]
