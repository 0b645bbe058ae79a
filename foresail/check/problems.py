"""A look at the problems of an RL recipe: rows, prompts as the model will see them, and what a grader says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from foresail.check.finding import Finding, may_open, note, refusal, warning
from foresail.check.grading import look_at_grading
from foresail.data.mixture import name_problems, tell_apart
from foresail.data.problems import load_problems
from foresail.data.prompts import PromptedProblem, add_ids, check_ids
from foresail.data.selection.selection import check_supply
from foresail.recipe.parts import Problems
from foresail.recipe.rl import Rl
from foresail.recipe.sources import named, reward_for
from foresail.records import Problem
from foresail.tokenizer.tokenizer import Tokenizer


def look_at_problems(
    recipe: Rl, tokenizer: Tokenizer | None, *, max_context: int | None, largest: int | None
) -> Iterator[Finding]:
    """Training data first, then the sets that are measured on."""
    learned = {key: load_look(key, source, largest) for key, source in named("data", recipe.data)}
    sets = named("eval", recipe.eval if recipe.eval_every else ())
    measured = {key: load_look(key, source, largest) for key, source in sets}
    yield from (found for found in [*learned.values(), *measured.values()] if isinstance(found, Finding))
    problems = {key: found for key, found in (learned | measured).items() if isinstance(found, list)}
    sources = dict([*named("data", recipe.data), *named("eval", recipe.eval)])
    kept: dict[str, list[PromptedProblem]] = {}
    if tokenizer is not None:
        for key, of_source in problems.items():
            encoded = encode_look(key, of_source, tokenizer)
            if isinstance(encoded, Finding):
                yield encoded
                continue
            yield from look_at_lengths(key, sources[key], encoded, recipe, max_context)
            kept[key] = [entry for entry in encoded if len(entry.ids) <= recipe.max_prompt_tokens]
    if kept.keys() >= learned.keys():
        yield from look_at_mixture([kept[key] for key in learned], recipe)
    for key, of_source in problems.items():
        if tokenizer is None or key in kept:
            yield from look_at_grading(key, of_source, reward_for(sources[key], recipe.reward), tokenizer)


def load_look(key: str, source: Problems, largest: int | None) -> list[Problem] | Finding | None:
    """Its problems, or what is wrong with its rows; None where it is too large, or the preflight has refused it."""
    if not may_open(source.source, largest) or (source.examples and not may_open(source.examples, largest)):
        return None
    try:
        problems = load_problems(source)
    except (OSError, ValueError, ImportError) as error:
        return refusal(f"{key}: {error}")
    return name_problems(problems, source.label)


def encode_look(
    key: str, problems: Sequence[Problem], tokenizer: Tokenizer
) -> list[PromptedProblem] | Finding:
    try:
        return add_ids(problems, tokenizer)
    except ValueError as error:  # a character without a token, or a template that refuses
        return refusal(f"{key}: {error}")


def look_at_lengths(
    key: str, source: Problems, encoded: Sequence[PromptedProblem], recipe: Rl, max_context: int | None
) -> Iterator[Finding]:
    limit = recipe.max_prompt_tokens
    lengths = [len(entry.ids) for entry in encoded]
    longest = max(encoded, key=lambda entry: len(entry.ids))
    yield note(
        f"{key}: {len(encoded):,} problems of {source.label}, prompts of {min(lengths)} to {max(lengths)} tokens"
    )
    too_long = sum(length > limit for length in lengths)
    if not too_long:
        return
    told = f"{key}: {too_long:,} of {len(encoded):,} prompts are longer than max_prompt_tokens {limit}"
    told += f", the longest ({longest.problem.id}) has {len(longest.ids)} tokens"
    if source.too_long == "drop" and too_long < len(encoded):
        yield warning(f'{told}; they are left out ({key}.too_long = "drop")')
    elif too_long == len(encoded):
        yield refusal(f"{told}; {room_for(len(longest.ids), recipe, max_context)}")
    else:
        room = room_for(len(longest.ids), recipe, max_context)
        yield refusal(f'{told}; {room}, or leave them out: {key}.too_long = "drop"')


def room_for(prompt: int, recipe: Rl, max_context: int | None) -> str:
    """What to set for a prompt of so many tokens, as far as the model's context goes."""
    answer = recipe.max_length - recipe.max_prompt_tokens
    if max_context is None or prompt + answer <= max_context:
        return f"set max_prompt_tokens = {prompt}"
    if prompt < max_context:
        return f"set max_prompt_tokens = {prompt} and sampling.max_new_tokens = {max_context - prompt}"
    return f"use a model with a longer context than {max_context} tokens"


def look_at_mixture(sources: Sequence[Sequence[PromptedProblem]], recipe: Rl) -> Iterator[Finding]:
    """All sources together: ids that tell problems apart, and enough for a step."""
    apart = tell_apart([[entry.problem for entry in source] for source in sources])
    entries = [
        PromptedProblem(problem=problem, ids=entry.ids)
        for source, problems in zip(sources, apart, strict=True)
        for entry, problem in zip(source, problems, strict=True)
    ]
    for check in (lambda: check_ids(entries), lambda: check_supply(entries, recipe)):
        try:
            check()
        except ValueError as error:
            yield refusal(str(error))
