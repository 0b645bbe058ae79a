"""Inspects the environment of an agent: opens it as a run does, and reports how prompts describe its tools.

For a program: whether the data has the columns that it receives, and whether they hold the answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from foresail.agents.factory import EnvironmentFactory, open_factory
from foresail.agents.programs.columns import holds, show
from foresail.check.finding import Finding, note, refusal, warning
from foresail.data.mixtures.reader import Reader
from foresail.recipe.stages.rollout_stage import RolloutStage
from foresail.recipe.tables.environment import Environment
from foresail.records import Problem


def look_at_environment(recipe: RolloutStage, reader: Reader | None) -> tuple[Reader | None, list[Finding]]:
    """A reader of prompts as the run has them, and the findings. A program brings its own tools; what the
    preflight refuses is not repeated.
    """
    settings = recipe.environment
    if settings is None or settings.program is not None or any(settings.refusals()):
        return reader, []
    try:
        with open_factory(settings) as factory:
            if reader is None:
                return None, []
            with_tools = factory.reader(reader.tokenizer)
            if not factory.tools:
                return with_tools, []
            return with_tools, [note(f"environment: {describe(factory, with_tools, reader)}")]
    except (OSError, ValueError, ImportError) as error:
        return reader, [refusal(str(error))]


def describe(factory: EnvironmentFactory, with_tools: Reader, without: Reader) -> str:
    """describe(…) -> "tools search, calculator; the system prompt tells of them"."""
    if with_tools.instructions:
        how = "the system prompt tells of them"
    elif not with_tools.encodes_alike(without):
        how = "the chat template is told of them"
    else:
        how = "prompts do not tell of them (environment.instructions = false)"
    return f"tools {', '.join(tool.name for tool in factory.tools)}; {how}"


def look_at_columns(
    key: str, problems: Sequence[Problem], environment: Environment | None
) -> Iterator[Finding]:
    """`key` is where the recipe has their source, such as "data"."""
    for column in () if environment is None else environment.columns:
        shown = [show(problem.extra, (column,)) for problem in problems]
        if not any(map(is_there, shown)):
            there = ", ".join(sorted({name for problem in problems for name in problem.extra}))
            yield refusal(f"environment.columns: {key} has no column {column}; it has {there or 'no others'}")
        num_revealing = sum(
            bool(problem.answer) and holds(columns, problem.answer)
            for problem, columns in zip(problems, shown, strict=True)
        )
        if 2 * num_revealing > len(problems):
            yield warning(
                f"environment.columns shows programs {column}, which holds the answer in {num_revealing} of "
                f"{len(problems)} problems of {key}; remove it"
            )


def is_there(value: object) -> bool:
    """Whether a column holds any value: False for None, {"extra_info": {}} and lists of such."""
    if isinstance(value, dict):
        return any(map(is_there, value.values()))
    if isinstance(value, list):
        return any(map(is_there, value))
    return value is not None
