"""A look at the environment of an agent: opened as a run opens it, it says how prompts tell of its tools."""

from __future__ import annotations

from foresail.agents.factory import EnvironmentFactory, open_factory
from foresail.check.finding import Finding, note, refusal
from foresail.data.reader import Reader
from foresail.recipe.rollout_stage import RolloutStage


def look_at_environment(recipe: RolloutStage, reader: Reader | None) -> tuple[Reader | None, list[Finding]]:
    """A reader of prompts as the run has them, and what was found. A program brings its own tools, and what
    the preflight refuses is not told again.
    """
    settings = recipe.environment
    if settings is None or settings.program is not None or any(settings.refusals()):
        return reader, []
    try:
        with open_factory(settings) as factory:
            if reader is None:
                return None, []
            told = factory.reader(reader.tokenizer)
            if not factory.tools:
                return told, []
            return told, [note(f"environment: {describe(factory, told, reader)}")]
    except (OSError, ValueError, ImportError) as error:
        return reader, [refusal(str(error))]


def describe(factory: EnvironmentFactory, told: Reader, plain: Reader) -> str:
    """describe(…) -> "tools search, calculator; the system prompt tells of them"."""
    if told.instructions:
        how = "the system prompt tells of them"
    elif not told.says_the_same(plain):
        how = "the chat template is told of them"
    else:
        how = "prompts do not tell of them (environment.instructions = false)"
    return f"tools {', '.join(tool.name for tool in factory.tools)}; {how}"
