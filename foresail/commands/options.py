"""Options that several commands share: name, type, and the line for `--help`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, TypeVar

import typer

RecipeFile = Annotated[Path, typer.Argument(help="recipe in TOML")]
Overrides = Annotated[list[str] | None, typer.Argument(help="changes, such as optimizer.lr=1e-5")]
RunFolder = Annotated[Path, typer.Argument(help="folder of a run")]
Workers = Annotated[int, typer.Option(min=0, help="processes that grade; 0: this one")]
Show = Annotated[int, typer.Option(min=0, help="how many of the doubtful rows to print")]
System = Annotated[str | None, typer.Option(help="system message before every prompt")]


def with_newlines(text: str | None) -> str | None:
    from foresail.recipe.reading.overrides import with_newlines as translate

    return None if text is None else translate(text)


def each_with_newlines(texts: list[str] | None) -> list[str] | None:
    return None if not texts else [with_newlines(text) or "" for text in texts]


Thinking = Literal["on", "off", "both"]
OneMode = Annotated[
    Literal["on", "off"] | None,
    typer.Option("--thinking", help="the chat template's switch; default: as the template has it"),
]
Examples = Annotated[str | None, typer.Option(help="conversations put before every prompt, as turns")]
Stop = Annotated[
    list[str] | None,
    typer.Option(help="text that ends an answer; may be given again", callback=each_with_newlines),
]
T = TypeVar("T")  # a number, or None where a run's recipe knows better
Temperature = Annotated[T, typer.Option(min=0.0)]
TopP = Annotated[T, typer.Option(min=0.01, max=1.0)]
MaxNewTokens = Annotated[T, typer.Option(min=1)]
ThinkingBudget = Annotated[int | None, typer.Option(min=0, help="close thinking after so many tokens")]
Suffix = Annotated[T, typer.Option(help="text after every prompt", callback=with_newlines)]
Data = Annotated[str, typer.Option(help="problems: a file, or a generator such as arithmetic:…")]
SamplesPerProblem = Annotated[int, typer.Option(min=1, help="samples per problem")]
Grader = Annotated[T, typer.Option(help="math, exact, qa, code or file.py:function")]
Seed = Annotated[int, typer.Option()]
Limit = Annotated[int | None, typer.Option(min=1, help="only the first so many problems")]
Device = Annotated[str, typer.Option(help="auto, cpu or cuda")]
PromptKey = Annotated[str | None, typer.Option(help="column of the prompt; default: the usual names")]
AnswerKey = Annotated[str | None, typer.Option(help="column of the answer; default: the usual names")]
