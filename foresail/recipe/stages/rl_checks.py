"""Checks across the tables of an RL recipe."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from foresail.recipe.reward_function import Function
from foresail.recipe.tables import parts
from foresail.recipe.tables.cluster import Cluster
from foresail.recipe.tables.dynamic_sampling import DynamicSampling
from foresail.recipe.tables.reward import JUDGE, MODEL, NO_GRADER, QUICK, Reward
from foresail.recipe.tables.sources import named
from foresail.recipe.tables.values import Mix


def part_mistakes(advantage: str, reward: Reward) -> Iterator[str]:
    if advantage == "gdpo" and reward.num_parts < 2:
        yield (
            'advantage.kind "gdpo" compares each of several rewards by itself, and there is one; add '
            '[[reward.terms]], or set advantage.kind = "grpo"'
        )


def determinism_mistakes(run: parts.Run, sampling: parts.Sampling, *, carry: bool) -> Iterator[str]:
    """Settings under which a deterministic run's numbers would depend on timing."""
    if not run.deterministic:
        return
    if carry:
        yield (
            "with dynamic_sampling.carry results depend on the machine's speed, and run.deterministic is "
            "set; set dynamic_sampling.carry = false"
        )
    if sampling.truncates and run.device != "cpu":
        yield (
            "top_p, top_k and min_p sum probabilities, which PyTorch does in no fixed order on a GPU, "
            'and run.deterministic is set; remove them, or set run.device = "cpu"'
        )


def grader_host_mistakes(
    cluster: Cluster, reward: Reward, graders: Sequence[Function | None]
) -> Iterator[str]:
    """Grader hosts without work; sources may have `graders` of their own."""
    quick = reward.is_quick and all(grader in (None, *QUICK) for grader in graders)
    if cluster.grader_hosts and quick and not reward.workers:
        yield (
            "these graders are fast and run in the trainer's process, so cluster.grader_hosts have "
            "nothing to do; remove it, or set reward.workers to the processes that each of them has"
        )


def group_mistakes(samples_per_prompt: int, advantage: str, *, dynamic_sampling: bool) -> Iterator[str]:
    """Advantages that need several samples of a problem."""
    if samples_per_prompt > 1:
        return
    if advantage not in ("gae", "reinforce++"):
        yield f'advantage.kind "{advantage}" compares the samples of a problem; set samples_per_prompt = 2 or more'
    elif dynamic_sampling:
        yield (
            "with samples_per_prompt = 1 no group has two different rewards, so dynamic sampling would drop all; "
            "set dynamic_sampling.enabled = false"
        )


def split_mistakes(prompts: int, updates: int, passes: int) -> Iterator[str]:
    """Whether a step's prompts can be split evenly over its updates, with that many passes."""
    if updates % passes:
        near = nearest_multiples(updates, passes)
        yield (
            f"updates_per_step {updates} is not divisible by passes_per_step {passes}; "
            f"try updates_per_step = {near}"
        )
    elif prompts % (updates // passes):
        near = nearest_multiples(prompts, updates // passes)
        each = f" in {passes} passes" if passes > 1 else ""
        yield (
            f"prompts_per_step {prompts} (prompts) is not divisible by updates_per_step "
            f"{updates}{each}; try prompts_per_step = {near}"
        )


def nearest_multiples(number: int, divisor: int) -> str:
    """nearest_multiples(100, 8) -> "96 or 104"."""
    below = number // divisor * divisor
    return f"{below} or {below + divisor}" if below else f"{below + divisor}"


def sampling_mistakes(sampling: parts.Sampling, reward: Reward) -> Iterator[str]:
    if sampling.temperature == 0:
        yield "sampling.temperature 0 gives identical samples, so nothing is learned; try 1.0"
    if reward.overlong_buffer >= sampling.max_new_tokens:
        yield (
            f"reward.overlong_buffer {reward.overlong_buffer} is not below sampling.max_new_tokens "
            f"{sampling.max_new_tokens}; try {sampling.max_new_tokens // 5}"
        )
    yield from budget_mistakes(sampling)


def reward_mistakes(reward: Reward, graders: Sequence[Function | None]) -> Iterator[str]:
    """Whether every response gets a reward; sources may have `graders` of their own."""
    if reward.model_copy(update={"grader": NO_GRADER}).is_empty and (reward.is_empty or NO_GRADER in graders):
        yield 'reward: grader "none" leaves no reward; add [[reward.terms]], or name a grader'


def budget_mistakes(sampling: parts.Sampling) -> Iterator[str]:
    budget, longest = sampling.thinking_budget, sampling.max_new_tokens
    if budget is not None and budget >= longest:
        yield (
            f"sampling.thinking_budget {budget} is not below sampling.max_new_tokens {longest}, so that it is "
            f"never reached, or no answer follows it; try thinking_budget = {longest * 3 // 4}"
        )


def mode_mistakes(tables: Mapping[str, Sequence[parts.Problems]]) -> Iterator[str]:
    """Whether sources with an environment set thinking, which only applies to the first turn."""
    for key, sources in tables.items():
        for place, source in named(key, sources):
            if source.thinking is not None:
                word = "true" if source.thinking else "false"
                yield (
                    f"{place}.thinking sets the switch for a first turn, and an [environment] has several; remove "
                    f'it, and set model.template_options = ["enable_thinking={word}"], which holds for all'
                )


def ungraded_mistakes(reward: Reward, dynamic_sampling: DynamicSampling) -> Iterator[str]:
    """Settings that need right and wrong, where no grader tells them apart."""
    judges_scores = reward.judge is not None and reward.judge.right_from is None
    if reward.grader not in (NO_GRADER, MODEL, *((JUDGE,) if judges_scores else ())):
        return
    for key in ("easy_pool", "window"):
        if getattr(dynamic_sampling, key) is not None:
            yield (
                f"dynamic_sampling.{key} needs the pass rates of problems, and reward.grader is "
                f'"{reward.grader}"; remove it, or name a grader'
            )


def level_mistakes(data: Sequence[parts.Problems], mix: Mix | None) -> Iterator[str]:
    for place, source in named("data", data):
        if source.difficulty is not None and source.difficulty_key is not None:
            yield f"{place}.difficulty and {place}.difficulty_key both say how hard problems are; remove one"
        if mix is not None and source.difficulty is None and source.difficulty_key is None:
            yield (
                f"a mix of levels needs problems with levels; set {place}.difficulty to a file that `foresail data "
                f"grade-difficulty` wrote, or {place}.difficulty_key to a column"
            )
