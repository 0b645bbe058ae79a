"""Inspects a run's inputs before a model loads: tokenizer, template, data, and the reward on some answers.

    inspect_sources(recipe, max_context=2048) -> Inspection(refusals=("data: 3 of 900 prompts are longer …",), …)

`recipe/reading/preflight.py` takes a second and only looks at the file system; this opens the files. Neither
imports torch, unless long contexts are measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

from foresail.check.chats import look_at_chats
from foresail.check.corpora import look_at_corpora
from foresail.check.environment import look_at_environment
from foresail.check.finding import Finding, note, refusal
from foresail.check.pairs import look_at_answers, look_at_pairs
from foresail.check.problems import look_at_problems
from foresail.check.teacher import look_at_taught_problems
from foresail.data.mixtures.reader import Reader
from foresail.recipe.reading.preflight import Preflight
from foresail.recipe.stages.stage import Stage
from foresail.recipe.tables.inputs import check_tokenizer
from foresail.tokenizer.tokenizer import Tokenizer

# What a stage reads besides its model.
LOOKS: dict[str, Callable[..., Iterator[Finding]]] = {
    "rl": look_at_taught_problems,
    "sft": look_at_chats,
    "distill": look_at_taught_problems,
    "online-dpo": look_at_problems,
    "dpo": look_at_pairs,
    "kto": look_at_answers,
    "reward-model": look_at_pairs,
}
# Stages whose data are token shards, which the run itself opens again.
SHARDS: dict[str, Callable[..., Iterator[Finding]]] = {"pretrain": look_at_corpora}
# Stages whose prompts hold more than the data: the tools of an environment.
PROMPTS: dict[str, Callable[..., tuple[Reader | None, list[Finding]]]] = {
    "rl": look_at_environment,
    "distill": look_at_environment,
    "online-dpo": look_at_environment,
}


@dataclass(frozen=True, kw_only=True)
class Inspection:
    """Refusals, warnings and notes on the data, and the reader with all that was read."""

    refusals: tuple[str, ...]
    warnings: tuple[str, ...]
    notes: tuple[str, ...]
    reader: Reader | None


def inspect_sources(
    recipe: Stage, *, max_context: int | None = None, largest: int | None = None
) -> Inspection:
    """Inspect all sources, or those of at most `largest` bytes. What the preflight refuses is not repeated."""
    tokenizer, findings = open_tokenizer(recipe)
    kind: Callable[..., Iterator[Finding]] = LOOKS.get(recipe.stage, nothing)
    reader = Reader(tokenizer) if tokenizer is not None and recipe.stage in LOOKS else None
    if recipe.stage in PROMPTS:
        reader, about_prompts = PROMPTS[recipe.stage](recipe, reader)
        findings = [*findings, *about_prompts]
    if recipe.stage in SHARDS:
        findings = [*findings, *SHARDS[recipe.stage](recipe, tokenizer, max_context=max_context)]
    findings = [*chain(findings, kind(recipe, reader, max_context=max_context, largest=largest))]
    return Inspection(
        refusals=tuple(finding.text for finding in findings if finding.kind == "refusal"),
        warnings=tuple(finding.text for finding in findings if finding.kind == "warning"),
        notes=tuple(finding.text for finding in findings if finding.kind == "note"),
        reader=reader,
    )


def inspect_data(preflight: Preflight, largest: int | None = None) -> tuple[Preflight, Inspection]:
    """The preflight with what data, tokenizer and reward add to it; and the inspection itself."""
    max_context = preflight.shape.max_context if preflight.shape else None
    inspection = inspect_sources(preflight.recipe, max_context=max_context, largest=largest)
    refusals = (*preflight.refusals, *inspection.refusals)
    warnings = (*preflight.warnings, *inspection.warnings)
    return replace(preflight, refusals=refusals, warnings=warnings), inspection


def open_tokenizer(recipe: Stage) -> tuple[Tokenizer | None, list[Finding]]:
    model = recipe.model
    place = model.tokenizer or model.path
    if (
        place is None
        or not Path(place).is_dir()
        or any(check_tokenizer(Path(place), None, model.chat_template, chats=recipe.chats))
    ):
        return None, []
    try:
        tokenizer = Tokenizer.load(place, template=model.chat_template, options=model.template_arguments())
    except (OSError, ValueError) as error:
        return None, [refusal(str(error))]
    return tokenizer, [note(f"tokenizer of {place}: {tokenizer.vocab_size:,} tokens")]


def nothing(*_: Any, **__: Any) -> Iterator[Finding]:
    """For stages without an inspection of their own."""
    yield from ()
