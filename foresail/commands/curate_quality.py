"""`foresail data judge` and `train-classifier`: labels from a model's judgements, and classifiers from labels."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from foresail.commands.interruption import explaining_interrupt
from foresail.commands.options import Device, Seed


def train_classifier(
    labels: Annotated[
        Path, typer.Argument(help='rows {"text": …, "labels": {"fluency": 4, "domain": "maths"}}')
    ],
    out: Annotated[Path, typer.Argument(help="file of the classifier, such as quality.npz")],
    label: Annotated[
        list[str] | None, typer.Option(help="a column that holds a label, instead of the column labels")
    ] = None,
    epochs: Annotated[int, typer.Option(min=1)] = 5,
    held_out: Annotated[float, typer.Option(help="share of the rows that only measure")] = 0.1,
    bits: Annotated[int, typer.Option(min=10, max=24, help="2**bits features")] = 18,
    seed: Annotated[int, typer.Option(min=0)] = 0,
) -> None:
    """A linear classifier over word and character n-grams; prints how well it does on rows held out."""
    from tempfile import TemporaryDirectory

    from foresail.curate.quality.figures import describe_figures
    from foresail.curate.quality.labels import read_labels
    from foresail.curate.quality.training import Training
    from foresail.curate.quality.training import train_classifier as train
    from foresail.recipe.reading.load import check_table

    table = {"epochs": epochs, "held_out": held_out, "bits": bits, "seed": seed}
    settings = check_table("train-classifier", table, {}, [], Training)
    out.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=".tmp-features-", dir=out.parent) as scratch:
        model, figures = train(read_labels(labels, label or ()), Path(scratch), settings)
    model.save(out)
    print(*describe_figures(figures), sep="\n")
    print(f"{out}: {out.stat().st_size / 2**20:.1f} MiB")
    print(f'in a curation recipe: name = "classify", model = "{out}"')


def judge(
    sources: Annotated[
        list[str], typer.Argument(help="documents: files, folders or globs; with --pairwise a file")
    ],
    out: Annotated[Path, typer.Option(help="folder for labels.jsonl, or for pairs.jsonl and figures.json")],
    endpoint: Annotated[
        str | None, typer.Option(help="address of a server with OpenAI's API, such as http://HOST:8000/v1")
    ] = None,
    model: Annotated[str, typer.Option(help="the model's name there")] = "",
    checkpoint: Annotated[
        Path | None, typer.Option(help="instead of an endpoint: a checkpoint or run of ours")
    ] = None,
    rubric: Annotated[
        list[str] | None,
        typer.Option(
            help="fluency, education, reasoning, domain; of answers quality, correctness, harmlessness; of "
            "requests task, task_detail; or a file NAME.toml"
        ),
    ] = None,
    holds: Annotated[
        str, typer.Option(help="what the files hold: documents, conversations or problems")
    ] = "documents",
    pairwise: Annotated[
        bool,
        typer.Option("--pairwise", help="the file holds preference pairs: how often does the judge agree?"),
    ] = False,
    by_levels: Annotated[
        bool,
        typer.Option(
            "--by-levels", help="with --pairwise: rate each answer alone, the higher rating decides"
        ),
    ] = False,
    read: Annotated[
        str,
        typer.Option(help="text: the answer is read; probability: of each valid answer, for small models"),
    ] = "text",
    share: Annotated[float, typer.Option(help="of the documents, drawn by their ids")] = 1.0,
    most: Annotated[int | None, typer.Option(min=1, help="documents or pairs at most")] = None,
    max_chars: Annotated[int, typer.Option(help="shown of a text")] = 6000,
    max_new_tokens: Annotated[int, typer.Option(min=1, help="of an answer, thinking included")] = 1024,
    parallel: Annotated[int, typer.Option(min=1, help="requests at a time")] = 16,
    patience: Annotated[
        float, typer.Option(min=0, help="seconds that a server which is away is waited for")
    ] = 600.0,
    key_env: Annotated[
        str | None, typer.Option(help="environment variable that holds the server's key")
    ] = None,
    seed: Seed = 0,
    device: Device = "auto",
) -> None:
    """A model scores documents by rubrics, or compares answers; stopped, it goes on where it was."""
    if (endpoint is None) == (checkpoint is None):
        raise ValueError("say who judges: --endpoint URL --model NAME, or --checkpoint FOLDER")
    if endpoint is not None and not model:
        raise ValueError("--endpoint needs --model, the name that the server gives the model")
    answerer = {
        "checkpoint": None if checkpoint is None else str(checkpoint),
        "endpoint": endpoint,
        "model": model,
        "key_env": key_env,
        "parallel": parallel,
        "patience": patience,
        "max_new_tokens": max_new_tokens,
        "device": device,
    }
    asked: dict[str, Any] = {
        "answerer": answerer,
        "form": {"max_chars": max_chars, "read": read},
        "batch": 4 * parallel,
    }
    with explaining_interrupt("the same command goes on after the last answer"):
        if pairwise:
            if len(sources) != 1 or len(rubric or ("quality",)) != 1:
                raise ValueError("--pairwise takes one file of pairs and one --rubric")
            asked |= {"rubric": rubric[0]} if rubric else {}
            compare_answers(sources[0], out, asked | {"by_levels": by_levels, "limit": most})
        else:
            asked |= {"rubrics": rubric} if rubric else {}
            label_documents(sources, holds, out, asked | {"share": share, "most": most, "seed": seed})


def label_documents(sources: list[str], holds: str, out: Path, table: dict[str, Any]) -> None:
    from foresail.curate.judging.labelling import JudgeSettings, describe_counts, label_documents
    from foresail.curate.read.source import Source
    from foresail.recipe.reading.load import check_table

    counts = label_documents(
        check_table("judge", {"path": sources, "holds": holds}, {}, [], Source),
        out,
        check_table("judge", table, {}, [], JudgeSettings),
        note=lambda counts: print(describe_counts(counts), flush=True),
    )
    print(f"{out}/labels.jsonl: {describe_counts(counts)}")
    print(f"next: foresail data train-classifier {out}/labels.jsonl quality.npz")


def compare_answers(source: str, out: Path, table: dict[str, Any]) -> None:
    from foresail.curate.judging.pairs import PairSettings, judge_pairs
    from foresail.recipe.reading.load import check_table
    from foresail.rewards.judging.agreement import describe_agreement

    figures = judge_pairs(
        source,
        out,
        check_table("judge", table, {}, [], PairSettings),
        note=lambda done, all: print(f"{done:,} of {all:,} pairs", flush=True),
    )
    print(*describe_agreement(figures), sep="\n")
    print(f"figures: {out}/figures.json")
