"""`foresail data judge` and `train-classifier`: labels from a model's judgements, and classifiers from labels."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from foresail.commands.interruption import explaining_interrupt
from foresail.commands.options import Device, Seed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from foresail.chat.endpoint import Refused
    from foresail.curate.judging.judge import Answer
    from foresail.records import Message


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
    sources: Annotated[list[str], typer.Argument(help="documents: files, folders or globs")],
    out: Annotated[Path, typer.Option(help="folder for labels.jsonl")],
    endpoint: Annotated[
        str | None, typer.Option(help="address of a server with OpenAI's API, such as http://HOST:8000/v1")
    ] = None,
    model: Annotated[str, typer.Option(help="the model's name there")] = "",
    checkpoint: Annotated[
        Path | None, typer.Option(help="instead of an endpoint: a checkpoint or run of ours")
    ] = None,
    rubric: Annotated[
        list[str] | None, typer.Option(help="fluency, education, reasoning, domain, or a file NAME.toml")
    ] = None,
    share: Annotated[float, typer.Option(help="of the documents, drawn by their ids")] = 1.0,
    most: Annotated[int | None, typer.Option(min=1, help="documents at most")] = None,
    max_chars: Annotated[int, typer.Option(help="shown of a document")] = 6000,
    max_new_tokens: Annotated[int, typer.Option(min=1, help="of an answer, thinking included")] = 1024,
    parallel: Annotated[int, typer.Option(min=1, help="requests at a time")] = 16,
    key_env: Annotated[
        str | None, typer.Option(help="environment variable that holds the server's key")
    ] = None,
    seed: Seed = 0,
    device: Device = "auto",
) -> None:
    """A model scores documents by rubrics: labels for `train-classifier`; stopped, it goes on where it was."""
    from foresail.curate.judging.judge import JudgeSettings, describe_counts
    from foresail.curate.judging.judge import judge as judge_all
    from foresail.curate.read.source import Source
    from foresail.recipe.reading.load import check_table

    if (endpoint is None) == (checkpoint is None):
        raise ValueError("say who judges: --endpoint URL --model NAME, or --checkpoint FOLDER")
    table = {
        "model": model or str(checkpoint),
        "share": share,
        "most": most,
        "seed": seed,
        "max_chars": max_chars,
    }
    settings = check_table(
        "judge",
        table | {"batch": 4 * parallel} | ({"rubrics": rubric} if rubric else {}),
        {},
        [],
        JudgeSettings,
    )
    answer = (
        ask_checkpoint(checkpoint, max_new_tokens, device)
        if checkpoint is not None
        else ask_endpoint(str(endpoint), model, parallel, max_new_tokens, key_env)
    )
    with explaining_interrupt("the same command goes on after the last document"):
        counts = judge_all(
            check_table("judge", {"path": sources}, {}, [], Source),
            out,
            answer=answer,
            settings=settings,
            note=lambda counts: print(describe_counts(counts), flush=True),
        )
    print(f"{out}/labels.jsonl: {describe_counts(counts)}")
    print(f"next: foresail data train-classifier {out}/labels.jsonl quality.npz")


def ask_endpoint(url: str, model: str, parallel: int, max_tokens: int, key_env: str | None) -> Answer:
    import os

    from foresail.chat.endpoint import Endpoint

    if not model:
        raise ValueError("--endpoint needs --model, the name that the server gives the model")
    if key_env is not None and key_env not in os.environ:
        raise ValueError(
            f"the environment has no {key_env}; set it to the server's key, or leave --key-env out"
        )
    key = os.environ[key_env] if key_env is not None else ""
    return Endpoint(url=url, model=model, key=key, parallel=parallel, max_tokens=max_tokens).answer


def ask_checkpoint(checkpoint: Path, max_new_tokens: int, device: str) -> Answer:
    """A question that is too long for the model, alone, is refused; the others are answered together."""
    from foresail.chat.endpoint import Refused
    from foresail.evaluation.answers import AnsweringModel
    from foresail.evaluation.target import find_target

    loaded = AnsweringModel(find_target(checkpoint), max_new_tokens=max_new_tokens, device=device)

    def answer(conversations: Sequence[Sequence[Message]]) -> Sequence[str | Refused]:
        try:
            return loaded.answer_conversations(conversations)
        except ValueError as error:
            if len(conversations) == 1:
                return [Refused(str(error))]
        return [answer([conversation])[0] for conversation in conversations]

    return answer
