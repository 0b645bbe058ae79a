"""`foresail eval`: evaluates a checkpoint on problems."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from foresail.commands.interruption import explaining_interrupt
from foresail.commands.options import (
    AnswerKey,
    Device,
    Examples,
    Grader,
    Limit,
    MaxNewTokens,
    PromptKey,
    Seed,
    Stop,
    Suffix,
    System,
    Temperature,
    Thinking,
    ThinkingBudget,
    TopP,
)


def evaluate(
    checkpoint: Annotated[Path, typer.Argument(help="folder of a run, or a Hugging Face directory")],
    overrides: Annotated[
        list[str] | None, typer.Argument(help="of a run: changes to its recipe, such as eval.limit=100")
    ] = None,
    data: Annotated[
        str | None, typer.Option(help="problems: a file or a generator; default: the run's [eval]")
    ] = None,
    samples: Annotated[
        int | None, typer.Option(min=0, help="samples per problem for mean@k, pass@k, maj@k; default: 8")
    ] = None,
    temperature: Temperature[float | None] = None,
    top_p: TopP[float | None] = None,
    max_new_tokens: MaxNewTokens[int | None] = None,
    stop: Stop = None,
    prompt_key: PromptKey = None,
    answer_key: AnswerKey = None,
    system: System = None,
    suffix: Suffix[str | None] = None,
    examples: Examples = None,
    limit: Limit = None,
    thinking: Annotated[
        Thinking | None,
        typer.Option(help="on, off or both: the chat template's switch; default: as the data says"),
    ] = None,
    thinking_budget: ThinkingBudget = None,
    grader: Grader[str | None] = None,
    seed: Seed = 0,
    device: Device = "auto",
    output: Annotated[Path | None, typer.Option(help="folder for the records")] = None,
) -> None:
    """Greedy, mean@k, pass@k and maj@k with confidence intervals; every attempt is kept.

    Of a run, its recipe says which problems, how prompts look, how long answers are and who grades.
    """
    from rich.console import Console

    from foresail.api.evaluate import open_evaluator
    from foresail.evaluation.checkpoint import default_output
    from foresail.evaluation.results import figures_table
    from foresail.evaluation.target import find_target, in_modes

    target = find_target(checkpoint, overrides or [])
    form = {"prompt_key": prompt_key, "answer_key": answer_key, "system": system, "suffix": suffix}
    sets = target.problem_sets(data, {**form, "examples": examples, "limit": limit})
    asked = {"temperature": temperature, "top_p": top_p, "max_new_tokens": max_new_tokens, "stop": stop}
    asked["thinking_budget"] = thinking_budget
    measured = in_modes(sets, thinking)

    def folder_for(source: str) -> Path:
        return output or default_output("eval", target.checkpoint, source)

    # made before the model is loaded, as a wrong grader is refused here
    rewards = [target.reward(problems, grader) for problems, _ in measured]
    settings = target.sampling(asked)
    with (
        explaining_interrupt("nothing of it is kept"),
        open_evaluator(target, settings, device=device) as evaluator,
    ):
        for (problems, mode), reward in zip(measured, rewards, strict=True):
            base = folder_for(problems.source)
            labels = {one.label for one, _ in measured if folder_for(one.source) == base}
            folder = base / problems.label if len(labels) > 1 else base
            folder = folder / mode.replace(" ", "-") if mode else folder
            named = (problems.label,) if len({one.label for one, _ in measured}) > 1 else ()
            replaced = (folder / "records.jsonl").exists()
            results = evaluator.evaluate(
                problems,
                settings,
                num_samples=target.num_samples(problems, samples),
                output=folder,
                grader=reward,
                seed=seed,
            )
            Console().print(figures_table(results, ", ".join(filter(None, (*named, mode)))))
            print(f"records: {folder}/records.jsonl" + (" (replaced)" if replaced else ""))
