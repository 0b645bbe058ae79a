"""`foresail data …`: fetch, check, grade and tokenize data."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from foresail.commands.curate import curate, why
from foresail.commands.curate_quality import judge, train_classifier
from foresail.commands.interruption import explaining_interrupt
from foresail.commands.language import train_language
from foresail.commands.options import (
    AnswerKey,
    Data,
    Device,
    Examples,
    Grader,
    Limit,
    MaxNewTokens,
    OneMode,
    PromptKey,
    SamplesPerProblem,
    Seed,
    Show,
    Stop,
    Suffix,
    System,
    Temperature,
    TopP,
    Workers,
)

if TYPE_CHECKING:
    from foresail.evaluation.recorded_samples import SamplingCost
    from foresail.recipe.tables.parts import Problems

data_app = typer.Typer(help="Fetch data, and look at it before training on it.", no_args_is_help=True)
data_app.command()(curate)
data_app.command()(why)
data_app.command()(judge)
data_app.command(name="train-language")(train_language)
data_app.command(name="train-classifier")(train_classifier)


@data_app.command(name="check-answers")
def check_answers(
    file: Annotated[Path, typer.Argument(help="problems: JSONL or parquet, gzip too")],
    answer_key: AnswerKey = None,
    solution_key: Annotated[str | None, typer.Option(help="column of the worked solution")] = None,
    out: Annotated[Path | None, typer.Option(help="file for all doubtful answers, one line each")] = None,
    show: Show = 20,
    workers: Workers = 0,
) -> None:
    """Grade every answer against itself, other forms of it, wrong answers, and its own worked solution."""
    from foresail.evaluation.answer_check import check_answers as check_file
    from foresail.evaluation.answer_check import describe_gold, write_suspicious

    checks = check_file(file, answer_key=answer_key, solution_key=solution_key, workers=workers)
    print(*describe_gold(checks, show=show), sep="\n")
    if out is not None:
        write_suspicious(out, checks)
        print(f"doubtful answers: {out}")


@data_app.command(name="get")
def get_data(
    name: Annotated[str | None, typer.Argument(help="gsm8k, math, mbpp, …; none: list them")] = None,
    folder: Annotated[Path | None, typer.Option("--from", help="folder that holds its files already")] = None,
    to: Annotated[Path, typer.Option(help="where folders of data sets go")] = Path("data"),
) -> None:
    """Fetch a well-known data set as JSONL, through the library `datasets` or from a folder of yours."""
    from foresail.data.get import KNOWN, get

    if name is None:
        print(*(f"{known:<12}{entry.about} ({entry.hub})" for known, entry in KNOWN.items()), sep="\n")
        return
    for fetched in get(name, to, folder):
        print(fetched)


@data_app.command(name="grade-difficulty")
def grade_difficulty(
    checkpoint: Annotated[Path, typer.Argument(help="Hugging Face directory of the model to grade by")],
    data: Data,
    samples: SamplesPerProblem = 16,
    temperature: Temperature[float] = 1.0,
    top_p: TopP[float] = 1.0,
    max_new_tokens: MaxNewTokens[int] = 1024,
    stop: Stop = None,
    prompt_key: PromptKey = None,
    answer_key: AnswerKey = None,
    system: System = None,
    suffix: Suffix[str] = "",
    examples: Examples = None,
    limit: Limit = None,
    thinking: OneMode = None,
    grader: Grader[str] = "math",
    seed: Seed = 0,
    device: Device = "auto",
    batch_invariant: Annotated[
        bool, typer.Option("--batch-invariant", help="a stop changes no bit of what comes after; slower")
    ] = False,
    output: Annotated[Path | None, typer.Option(help="folder for the levels")] = None,
) -> None:
    """Pass rates of a checkpoint and difficulty levels 1 to 5 from them; stopped, it goes on where it was."""
    from foresail.evaluation.checkpoint import default_output
    from foresail.evaluation.difficulty import describe_levels
    from foresail.evaluation.difficulty import grade_difficulty as grade_all
    from foresail.evaluation.difficulty_plot import try_to_plot
    from foresail.recipe.tables.parts import Sampling

    folder = output or default_output("difficulty", checkpoint, data)
    form = {"prompt_key": prompt_key, "answer_key": answer_key, "system": system, "suffix": suffix}
    problems = as_problems(data, thinking, **form, examples=examples, limit=limit)
    sampling = Sampling(
        temperature=temperature, top_p=top_p, max_new_tokens=max_new_tokens, stop=tuple(stop or ())
    )
    with explaining_interrupt("the same command goes on with what is left"):
        graded = grade_all(
            checkpoint,
            problems,
            sampling,
            num_samples=samples,
            output=folder,
            grader=grader,
            seed=seed,
            device=device,
            batch_invariant=batch_invariant,
        )
    print(*describe_levels(graded), try_to_plot(graded, folder / "difficulty.png"), sep="\n")
    print(f'levels: {folder}/difficulty.jsonl; in a recipe: data.difficulty = "{folder}/difficulty.jsonl"')


@data_app.command(name="sample-solutions")
def sample_solutions(
    checkpoint: Annotated[Path, typer.Argument(help="a run, or a Hugging Face directory")],
    data: Data,
    recipe: Annotated[
        Path | None, typer.Option(help="of rl, whose environment is played; default: the run's own")
    ] = None,
    samples: SamplesPerProblem = 16,
    most: Annotated[int, typer.Option(min=1, help="solutions kept of a problem")] = 4,
    shortest: Annotated[bool, typer.Option("--shortest", help="the shortest ones, not the first")] = False,
    least_pass_rate: Annotated[float, typer.Option(min=0, max=1, help="of problems that are kept")] = 0.0,
    most_pass_rate: Annotated[float, typer.Option(min=0, max=1, help="of problems that are kept")] = 1.0,
    as_written: Annotated[
        bool, typer.Option("--as-written", help="episodes: calls stay in the text, in the model's own format")
    ] = False,
    temperature: Temperature[float] = 1.0,
    top_p: TopP[float] = 1.0,
    max_new_tokens: Annotated[
        int | None, typer.Option(min=1, help="default: 1024; of an environment's recipe, as it says")
    ] = None,
    stop: Stop = None,
    prompt_key: PromptKey = None,
    answer_key: AnswerKey = None,
    system: System = None,
    suffix: Suffix[str | None] = None,
    examples: Examples = None,
    limit: Limit = None,
    thinking: OneMode = None,
    grader: Grader[str | None] = None,
    seed: Seed = 0,
    device: Device = "auto",
    output: Annotated[Path | None, typer.Option(help="folder for the solutions")] = None,
    cost: Annotated[
        bool, typer.Option("--cost", help="stop before sampling, and say what it may cost")
    ] = False,
) -> None:
    """Right solutions of a checkpoint, as conversations for `foresail sft` (rejection sampling).

    Where the run's recipe, or --recipe, has an environment, it is played: right episodes, with their tool calls.
    """
    from foresail.agents.build import open_played
    from foresail.evaluation.checkpoint import default_output
    from foresail.evaluation.played_episodes import Play, describe_unfit
    from foresail.evaluation.solutions import Choice, describe_solutions
    from foresail.evaluation.solutions import sample_solutions as sample_all
    from foresail.evaluation.target import find_player
    from foresail.recipe.tables.parts import Sampling

    player = find_player(checkpoint, recipe)
    folder = output or default_output("solutions", checkpoint, data)
    form = {
        "prompt_key": prompt_key,
        "answer_key": answer_key,
        "system": system if system is not None else player.system,
        "suffix": suffix if suffix is not None else player.suffix,
    }
    problems = as_problems(data, thinking, **form, examples=examples, limit=limit)
    sampling = Sampling(
        temperature=temperature,
        top_p=top_p,
        max_new_tokens=max_new_tokens or player.max_new_tokens or 1024,
        stop=tuple(stop or player.stop),
    )
    with (
        explaining_interrupt("the same command goes on with what is left"),
        open_played(player.environment) as episodes,
    ):
        table = {} if player.environment is None else player.environment.model_dump(mode="json")
        playing = None if episodes is None else Play(episodes=episodes, table=table, as_written=as_written)
        solutions = sample_all(
            player.checkpoint,
            problems,
            sampling,
            num_samples=samples,
            choice=Choice(per_problem=most, shortest=shortest, window=(least_pass_rate, most_pass_rate)),
            output=folder,
            grader=player.reward(problems, grader),
            seed=seed,
            device=device,
            announce=announced(stops=cost),
            template_options=player.template_options,
            playing=playing,
        )
    print(*describe_solutions(solutions), sep="\n")
    if unfit := describe_unfit(solutions.counts):
        print(unfit)
    print(f'solutions: {folder}/solutions.jsonl; in a recipe of sft: data = "{folder}/solutions.jsonl"')


def announced(*, stops: bool) -> Callable[[SamplingCost], None]:
    """Prints what is left to sample; `stops`: and ends the command there."""

    def announce(cost: SamplingCost) -> None:
        print(cost)
        if stops:
            print("nothing was sampled; the same command without --cost goes on from here")
            raise typer.Exit

    return announce


def as_problems(source: str, thinking: OneMode, **form: str | int | None) -> Problems:
    """The recipe's [data] table, from a command's options."""
    from foresail.recipe.tables.parts import Problems

    switch = None if thinking is None else thinking == "on"
    return Problems.model_validate({"source": source, "thinking": switch, **form})


@data_app.command(name="tokenize")
def tokenize_texts(
    sources: Annotated[
        list[str], typer.Argument(help="JSONL, parquet or text, compressed too; or folders of such files")
    ],
    tokenizer: Annotated[str, typer.Option(help="directory of the tokenizer, as of the model to train")],
    out: Annotated[Path, typer.Option(help="folder of the corpus")],
    text_key: Annotated[str | None, typer.Option(help="column of the text; default: text or content")] = None,
    separator: Annotated[
        str | None, typer.Option(help="line between documents of a text file; default: a file is one")
    ] = None,
    special_tokens: Annotated[
        bool, typer.Option("--special-tokens", help="names of special tokens in a text mean these tokens")
    ] = False,
    workers: Annotated[int, typer.Option(min=0, help="processes; 0: one for every core")] = 0,
    encoder: Annotated[
        Literal["tokenizers", "gigatoken", "auto"],
        typer.Option(
            help="gigatoken is faster, of the extra fast-tokenize; auto: it where it gives the same ids"
        ),
    ] = "tokenizers",
) -> None:
    """Texts to token shards for `foresail pretrain`; stopped, it goes on where it was."""
    from rich.progress import Progress

    from foresail.data.corpus.documents import TextForm, passed_over
    from foresail.data.corpus.tokenize import tokenize

    with (
        explaining_interrupt("the same command goes on with what is left"),
        Progress(transient=True) as progress,
    ):
        bar = progress.add_task("tokenizing")
        manifest = tokenize(
            sources,
            tokenizer=tokenizer,
            out=out,
            form=TextForm(key=text_key, separator=separator),
            special_tokens=special_tokens,
            workers=workers,
            encoder=encoder,
            note=lambda done, total: progress.update(bar, completed=done, total=total),
            say=progress.print,
        )
    empty_note = f", {manifest.empty:,} empty ones left out" if manifest.empty else ""
    surrogates_note = f", lone surrogates replaced in {manifest.mended:,}" if manifest.mended else ""
    print(
        f"{out}: {manifest.tokens:,} tokens in {manifest.documents:,} documents{empty_note}{surrogates_note}"
    )
    if others := passed_over(sources):
        print(f"not read, for they are no file of texts: {len(others):,} files, such as {others[0]}")


@data_app.command(name="verify")
def verify_corpus(
    corpus: Annotated[Path, typer.Argument(help="folder that `foresail data tokenize` has made")],
    tokenizer: Annotated[str | None, typer.Option(help="directory of the tokenizer it is for")] = None,
) -> None:
    """Read all of a corpus, and compare it with its manifest."""
    from foresail.data.corpus.corpus import Corpus
    from foresail.recipe.tables.corpus import tokenizer_mistakes

    opened = Corpus(corpus)
    wrong = [*opened.verify()]
    wrong += [] if tokenizer is None else tokenizer_mistakes(corpus, opened.manifest, tokenizer)
    if wrong:
        raise ValueError("\n".join(wrong))
    print(f"{corpus} is whole: {opened.num_tokens:,} tokens in {opened.num_documents:,} documents")


@data_app.command(name="train-tokenizer")
def train_tokenizer(
    sources: Annotated[
        list[str], typer.Argument(help="JSONL, parquet or text, compressed too; or folders of such files")
    ],
    out: Annotated[Path, typer.Option(help="directory to write")],
    vocab_size: Annotated[int, typer.Option(min=1, help="tokens, special ones included")] = 32_768,
    documents: Annotated[int, typer.Option(min=1, help="at most so many of each source")] = 20_000,
    whole: Annotated[list[str] | None, typer.Option(help="text that is never split, such as <think>")] = None,
) -> None:
    """A byte-level BPE with a chat template, from some of the texts."""
    from itertools import islice

    from foresail.data.long_context.texts import read_texts
    from foresail.tokenizer.train import train_bpe

    texts = (text for source in sources for text in islice(read_texts(Path(source)), documents))
    tokenizer = train_bpe(texts, vocab_size=vocab_size, whole_tokens=whole or ())
    tokenizer.save(out)
    print(f"{out}: {tokenizer.vocab_size} tokens")


@data_app.command(name="make-long-context")
def make_long_context(
    tokenizer: Annotated[str, typer.Option(help="directory of the tokenizer, as of the model to train")],
    out: Annotated[Path, typer.Option(help="JSONL file to write, for `foresail data tokenize`")],
    count: Annotated[int, typer.Option(min=1, help="documents")] = 1000,
    lengths: Annotated[str, typer.Option(help="shortest and longest, in tokens")] = "512-4096",
    kinds: Annotated[
        str, typer.Option(help="all, or some of drill, niah_single, …, vt, cwe, fwe, line_retrieval")
    ] = "all",
    filler: Annotated[
        str | None, typer.Option(help="JSONL or text file to hide needles in; default: made sentences")
    ] = None,
    seed: Annotated[int, typer.Option()] = 0,
    workers: Annotated[int, typer.Option(min=0, help="processes; 0: one for every core")] = 0,
) -> None:
    """Needles, variables, words and lines to find, written out with their answers: documents to learn from."""
    import os

    from foresail.data.long_context.document_file import kinds_of, write_documents
    from foresail.data.long_context.documents import DocumentPlan
    from foresail.data.made.generators import to_range

    plan = DocumentPlan(
        lengths=to_range("make-long-context", "lengths", lengths), kinds=kinds_of(kinds), seed=seed
    )
    with explaining_interrupt("nothing of it is kept"):
        write_documents(
            out, plan, tokenizer=tokenizer, count=count, filler=filler, workers=workers or os.cpu_count() or 1
        )
    print(f"{out}: {count} documents of {lengths} tokens")
