"""Inspects the problems of an RL recipe: rows, prompts as the model will see them, and verdicts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from foresail.check.environment import look_at_columns
from foresail.check.finding import Finding, may_open, note, refusal, warning
from foresail.check.grading import look_at_grading
from foresail.check.lengths import look_at_lengths
from foresail.check.problem_faults import look_at_faults
from foresail.data.mixtures.mixture import prompt_limit, tell_apart
from foresail.data.mixtures.reader import Reader
from foresail.data.problems.hints import check_hint
from foresail.data.problems.problems import load_problems
from foresail.data.problems.prompts import PromptedProblem, check_ids
from foresail.data.selection.selection import check_supply
from foresail.recipe.stages.rl import Rl
from foresail.recipe.stages.rollout_stage import RolloutStage
from foresail.recipe.tables.parts import Problems
from foresail.recipe.tables.sources import as_graded, named, reward_for
from foresail.records import Problem


def look_at_problems(
    recipe: RolloutStage, reader: Reader | None, *, max_context: int | None, largest: int | None
) -> Iterator[Finding]:
    """Training data first, then the sets that are measured on."""
    learned = dict(named("data", recipe.data))
    sources = learned | dict(named("eval", recipe.eval if recipe.eval_every else ()))
    sources = {key: as_graded(source, recipe.reward) for key, source in sources.items()}
    limit = prompt_limit(recipe.max_prompt_tokens)
    room_for = partial(set_lengths, recipe=recipe, max_context=max_context)
    problems: dict[str, list[Problem]] = {}
    prompts: dict[str, list[PromptedProblem]] = {}
    for key, source in sources.items():
        if not may_open(source.source, largest) or (
            source.examples and not may_open(source.examples, largest)
        ):
            continue
        try:
            if reader is None:
                problems[key] = load_problems(source)
                continue
            prompts[key] = reader.problems(source)
        except (OSError, ValueError, ImportError) as error:
            yield refusal(f"{key}: {error}")
            continue
        problems[key] = [entry.problem for entry in prompts[key]]
        yield note(describe(key, source, prompts[key]))
        yield from look_at_lengths(key, source, prompts[key], limit, room_for)
    if prompts.keys() >= learned.keys():
        fitting = [[entry for entry in prompts[key] if limit.fits(entry)] for key in learned]
        yield from look_at_mixture(fitting, recipe)
    if reader is not None:
        yield from look_at_budget(recipe, reader)
        yield from look_at_hint(recipe, [entry for key in learned for entry in prompts.get(key, ())], reader)
    for key, of_source in problems.items():
        reward = reward_for(sources[key], recipe.reward)
        yield from look_at_columns(key, of_source, recipe.environment)
        yield from look_at_grading(key, of_source, reward, None if reader is None else reader.tokenizer)
        yield from look_at_faults(key, of_source, reward)


def look_at_hint(
    recipe: RolloutStage, entries: Sequence[PromptedProblem], reader: Reader
) -> Iterator[Finding]:
    """Check the hint with the first problem, as the run does."""
    if isinstance(recipe, Rl) and entries:
        try:
            check_hint(recipe.credit, entries[0].problem, reader.tokenizer)
        except ValueError as error:
            yield refusal(str(error))


def look_at_budget(recipe: RolloutStage, reader: Reader) -> Iterator[Finding]:
    """Whether the text that ends thinking leaves room for an answer, and whether prompts lead to thinking."""
    budget, end = recipe.sampling.thinking_budget, recipe.sampling.thinking_end
    if budget is None or reader.tokenizer.chat is None:
        return
    try:
        closing = reader.tokenizer.encode_closing(budget, end)
    except ValueError as error:
        yield refusal(f"sampling.thinking_end: {error}; or set it to what the tokenizer knows")
        return
    room = recipe.sampling.max_new_tokens - budget - len(closing)
    if room <= 0:
        yield refusal(
            f"sampling.thinking_budget {budget} and the {len(closing)} tokens of sampling.thinking_end leave no "
            f"room for an answer in sampling.max_new_tokens {recipe.sampling.max_new_tokens}; lower the budget"
        )
    if "</think>" not in reader.tokenizer.chat.source:
        yield warning(
            "sampling.thinking_budget is set, and the chat template knows no <think>: it acts only where the model "
            'opens its thinking by itself; set model.chat_template = "hybrid" for a template that does'
        )


def describe(key: str, source: Problems, entries: Sequence[PromptedProblem]) -> str:
    lengths = [len(entry.ids) for entry in entries]
    return f"{key}: {len(entries):,} problems of {source.label}, prompts of {min(lengths)} to {max(lengths)} tokens"


def set_lengths(prompt: int, *, recipe: RolloutStage, max_context: int | None) -> str:
    """The key to set so that a prompt of so many tokens fits, within the model's context."""
    answer = recipe.max_length - recipe.max_prompt_tokens
    if max_context is None or prompt + answer <= max_context:
        return f"set max_prompt_tokens = {prompt}"
    if prompt < max_context:
        return f"set max_prompt_tokens = {prompt} and sampling.max_new_tokens = {max_context - prompt}"
    return f"use a model with a longer context than {max_context} tokens"


def look_at_mixture(sources: Sequence[Sequence[PromptedProblem]], recipe: RolloutStage) -> Iterator[Finding]:
    """All sources together: unique ids, and enough problems for a step."""
    entries = [entry for source in tell_apart(sources) for entry in source]
    for check in (lambda: check_ids(entries), lambda: check_supply(entries, recipe)):
        try:
            check()
        except ValueError as error:
            yield refusal(str(error))
