"""`foresail eval-reward`: evaluates a reward model on pairs and on a policy's samples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from foresail.commands.interruption import explaining_interrupt
from foresail.commands.options import (
    AnswerKey,
    Device,
    Limit,
    MaxNewTokens,
    PromptKey,
    Seed,
    System,
    Temperature,
)


def eval_reward(
    checkpoint: Annotated[Path, typer.Argument(help="a reward model: folder of a run, or a directory")],
    pairs: Annotated[str | None, typer.Option(help="preference pairs, a file: accuracy, calibration")] = None,
    policy: Annotated[
        Path | None, typer.Option(help="a model whose samples it ranks: best-of-n, with --data")
    ] = None,
    data: Annotated[str | None, typer.Option(help="problems with answers: a file or a generator")] = None,
    samples: Annotated[int, typer.Option(min=1, help="samples a problem; n goes up to it")] = 64,
    temperature: Temperature[float | None] = None,
    max_new_tokens: MaxNewTokens[int | None] = None,
    prompt_key: PromptKey = None,
    answer_key: AnswerKey = None,
    system: System = None,
    limit: Limit = None,
    grader: Annotated[str | None, typer.Option(help="who says what is right: math, exact, qa, code")] = None,
    seed: Seed = 0,
    device: Device = "auto",
    output: Annotated[Path | None, typer.Option(help="folder for figures and picture")] = None,
) -> None:
    """Pair accuracy and calibration of a reward model; and best-of-n against majority, pass@1 and pass@n."""
    import json

    from foresail.evaluation.best_of import best_of_figures
    from foresail.evaluation.best_of_run import sample_candidates
    from foresail.evaluation.checkpoint import default_output, make_folder
    from foresail.evaluation.pair_figures import pair_figures
    from foresail.evaluation.pair_run import score_leads
    from foresail.evaluation.reward_plots import try_to_save
    from foresail.evaluation.target import find_target
    from foresail.recipe.tables.sources import HeldOutPreferences
    from foresail.runlog.atomic import write_text
    from foresail.train.checkpoints.export import find_checkpoint

    if pairs is None and (policy is None or data is None):
        raise ValueError("nothing to measure on: give --pairs FILE, or --policy MODEL with --data PROBLEMS")
    scorer = find_checkpoint(checkpoint)
    folder = output or default_output("eval-reward", scorer, pairs or data or "")
    make_folder(folder)
    summary: dict[str, Any] = {"reward_model": str(scorer), "seed": seed}
    of_pairs = of_samples = None
    with explaining_interrupt("nothing of it is kept"):
        if pairs is not None:
            source = HeldOutPreferences(source=pairs, limit=limit, too_long="drop")
            scored = score_leads(scorer, source, device=device)
            of_pairs = pair_figures(scored.leads)
            summary["pairs"] = {"data": pairs, **asdict(of_pairs), "left_out": dict(scored.left_out)}
            print(
                *describe_pairs(of_pairs.accuracy, of_pairs.interval, of_pairs.ece, of_pairs.count), sep="\n"
            )
            if scored.left_out:
                print(
                    f"  left out: {', '.join(f'{count:,} {why}' for why, count in scored.left_out.items())}"
                )
        if policy is not None and data is not None:
            target = find_target(policy)
            form = {"prompt_key": prompt_key, "answer_key": answer_key, "system": system, "limit": limit}
            (problems,) = target.problem_sets(data, form)
            candidates = sample_candidates(
                target.checkpoint,
                scorer,
                problems,
                target.sampling({"temperature": temperature, "max_new_tokens": max_new_tokens}),
                num_samples=samples,
                rules=target.reward(problems, grader),
                seed=seed,
                device=device,
            )
            of_samples = best_of_figures(candidates, seed=seed)
            unjudged = sum(problem.unjudged for problem in candidates)
            summary["best_of"] = {
                "policy": str(target.checkpoint),
                "data": data,
                "unjudged": unjudged,
                "n": of_samples,
            }
            rows = "".join(json.dumps(asdict(problem)) + "\n" for problem in candidates)
            write_text(folder / "candidates.jsonl", rows)
            print(*describe_best_of(of_samples), sep="\n")
            if unjudged:
                print(f"  left out: {unjudged:,} samples that the grader or the reward model could not judge")
    write_text(folder / "figures.json", json.dumps(summary, indent=2) + "\n")
    print(try_to_save(folder / "reward_model.png", best_of=of_samples, pairs=of_pairs))
    print(f"figures: {folder}/figures.json")


def describe_pairs(accuracy: float, interval: tuple[float, float], ece: float, count: int) -> list[str]:
    low, high = interval
    return [
        f"{count:,} pairs",
        f"  accuracy           {accuracy:.1%}   {low:.1%} to {high:.1%}",
        f"  calibration error  {ece:.3f}",
    ]


def describe_best_of(figures: Mapping[str, Mapping[str, Mapping[str, float]]]) -> list[str]:
    lines = [f"{'n':>4}{'best of n':>12}{'majority':>12}{'pass@n':>12}   best of n less majority"]
    for size, row in figures.items():
        values = "".join(f"{row[name]['value']:>12.1%}" for name in ("best_of", "majority", "pass"))
        lead = row["lead"]
        lines.append(f"{size:>4}{values}   {lead['value']:+.1%} ({lead['low']:+.1%} to {lead['high']:+.1%})")
    return lines
