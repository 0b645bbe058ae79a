"""`foresail grade`: verdicts of the maths grader."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from foresail.commands.options import AnswerKey, Show, Workers


def grade(
    response: Annotated[str, typer.Argument(help="a response, or a JSONL or parquet file of them")],
    answer: Annotated[str | None, typer.Argument(help="the answer to compare a single response with")] = None,
    accept: Annotated[
        Literal["boxed", "stated", "any"], typer.Option(help="where an answer may stand")
    ] = "any",
    out: Annotated[Path | None, typer.Option(help="file for the verdicts, one line a row")] = None,
    response_key: Annotated[str | None, typer.Option(help="column of the response")] = None,
    answer_key: AnswerKey = None,
    show: Show = 20,
    workers: Workers = 0,
) -> None:
    """Verdicts of the maths grader: on one response and answer, or on a file. Exit code 0 whatever they are."""
    if answer is not None:
        from foresail.maths.verdict import grade as grade_one
        from foresail.rewards.tally import one_line

        verdict = grade_one(response, answer, accept=accept)
        print(f"status  {verdict.status}\nscore   {verdict.score:g}\ndetail  {one_line(verdict.detail)}")
        return
    from foresail.evaluation.verdict_file import describe_file, grade_file, write_verdicts
    from foresail.recipe.tables.reward import Reward

    settings = Reward(grader="math", accept=accept, workers=workers)
    graded = grade_file(response, settings, response_key=response_key, answer_key=answer_key)
    print(*describe_file(graded, show=show), sep="\n")
    if out is not None:
        write_verdicts(out, graded.rows)
        print(f"verdicts: {out}")
