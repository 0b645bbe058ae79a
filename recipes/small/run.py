"""From texts to a small reasoner on one GPU: tokenizer, pretrain, anneal, lengthen, SFT, RL.

    python recipes/small/run.py --data ../shared/data                     # minutes on a GPU
    python recipes/small/run.py --with moe --out runs/small-moe           # changed as recipes/small/moe.toml says
    python recipes/small/run.py --with tiny --out runs/tiny               # made sentences: does all of it run?

What is done is not done again, and what was stopped goes on: give the same command. The recipes are those beside
this file; the folder of each run has its own as it was run, recipe.toml. The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import prepare

from foresail.data.corpus.tokenize import tokenize
from foresail.data.long_context.document_file import write_documents
from foresail.data.long_context.documents import DocumentPlan
from foresail.data.long_context.texts import read_texts
from foresail.evaluation.long_context import ask
from foresail.evaluation.long_context_plot import plot_answers
from foresail.evaluation.long_context_results import write_results
from foresail.quickstart.stages import Interrupted, train_stage
from foresail.recipe.reading.load import build_recipe
from foresail.recipe.stages.stage import Stage
from foresail.recipe.tables.long_context import LongContext
from foresail.rollout.checkpoint import open_checkpoint
from foresail.runlog.atomic import write_text
from foresail.runlog.canvas import save_figure
from foresail.runlog.directory import RunDirectory
from foresail.tokenizer.tokenizer import Tokenizer
from foresail.tokenizer.train import train_bpe
from foresail.train.session import Outcome
from foresail.train.stopwatch import Stopwatch

HERE = Path(__file__).parent
WRITTEN_AS = "runs/small"  # the folder that the recipes name
TRAINED = ("pretrain", "sft", "rl")
Table = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Small:
    """One run of it all: settings of what is no stage, changes to the recipes of stages, and where it lives."""

    out: Path
    data: Path | None
    settings: Table
    workers: int

    def __call__(self) -> Table:
        watch = Stopwatch()
        for part in (self.write_texts, self.make_tokenizer, self.make_needles, self.tokenize):
            with watch(part.__name__):
                part()
        outcomes: dict[str, Outcome] = {}
        for name in TRAINED:
            with watch(name):
                outcomes[name] = train_stage(self.recipe(name, [*outcomes.values()]))
            if name == "pretrain":
                with watch("long_context"):
                    recall = self.measure(outcomes[name])
        seconds = {name: round(value, 1) for name, value in {**watch.seconds, "total": watch.total}.items()}
        summary = {"seconds": seconds, "long_context": recall} | figures(outcomes)
        write_text(self.out / "summary.json", json.dumps(summary, indent=1) + "\n")
        return summary

    # Data.

    def write_texts(self) -> None:
        if not (self.out / "texts/arithmetic.jsonl").exists():
            prepare.write_all(self.data, self.out / "texts", self.settings["data"]["problems"])

    def make_tokenizer(self) -> None:
        if (self.out / "tokenizer/tokenizer.json").exists():
            return
        settings = self.settings["tokenizer"]
        texts = (
            text
            for name in ("web", "math", "code")
            for text in islice(read_texts(self.out / f"texts/{name}.jsonl"), settings["documents"])
        )
        whole = ["<think>", "</think>", r"\boxed{"]
        train_bpe(texts, vocab_size=settings["vocab_size"], whole_tokens=whole).save(self.out / "tokenizer")

    def make_needles(self) -> None:
        for name, settings in self.settings["needles"].items():
            file = self.out / f"texts/{name}.jsonl"
            if not file.exists():
                plan = DocumentPlan(lengths=tuple(settings["lengths"]), kinds=tuple(settings["kinds"]))
                write_documents(
                    file,
                    plan,
                    tokenizer=str(self.out / "tokenizer"),
                    count=settings["count"],
                    filler=str(self.out / "texts/web.jsonl"),
                    workers=self.workers,
                )

    def tokenize(self) -> None:
        """All texts but the conversations, a corpus each; what is whole is left as it is."""
        for file in sorted((self.out / "texts").glob("*.jsonl")):
            corpus = self.out / "corpora" / file.stem
            if file.stem != "arithmetic" and not (corpus / "manifest.json").exists():
                tokenize([str(file)], tokenizer=str(self.out / "tokenizer"), out=corpus, workers=self.workers)

    # Stages.

    def recipe(self, name: str, before: Sequence[Outcome]) -> Stage:
        """That of the file, changed; it starts from the stage before, or from fresh weights for the tokenizer."""
        table = merged(read_table(HERE / f"{name}.toml", self.out), self.settings.get(name, {}))
        if before:
            table["model"]["path"] = str(before[-1].checkpoint)
        else:
            table["model"]["shape"]["vocab_size"] = Tokenizer.load(self.out / "tokenizer").vocab_size
        return build_recipe(table, name)

    def measure(self, base: Outcome) -> dict[str, float]:
        """Recall of the base model by task; the heat-map is beside its run."""
        settings = LongContext.model_validate(self.settings["long_context"])
        model, tokenizer = open_checkpoint(base.checkpoint, device="auto", max_length=max(settings.lengths))
        answers = ask(model, tokenizer, settings, seed=0)
        folder = self.out / "long-context"
        folder.mkdir(exist_ok=True)
        summary = write_results(folder, answers, {"checkpoint": str(base.checkpoint)})
        save_figure(plot_answers(answers), folder / "heat-map.png")
        return {task: figures["all"]["value"] for task, figures in summary["tasks"].items()}


def figures(outcomes: dict[str, Outcome]) -> Table:
    """Held-out losses at the end of pretraining, and held-out accuracies before and after RL."""
    lines = {name: RunDirectory(outcome.run).metrics.read() for name, outcome in outcomes.items()}
    held_out = [line for line in lines["rl"] if any(name.startswith("val-core/") for name in line)]
    return {
        "loss": chosen(lines["pretrain"][-1], "val/loss/"),
        "accuracy_before": chosen(held_out[0], "val-core/"),
        "accuracy_after": chosen(held_out[-1], "val-core/"),
        "checkpoints": {name: str(outcome.checkpoint) for name, outcome in outcomes.items()},
    }


def chosen(line: Table, prefix: str) -> dict[str, float]:
    return {name.removeprefix(prefix): round(line[name], 4) for name in line if name.startswith(prefix)}


# Tables.


def read_table(path: Path, out: Path) -> Table:
    return tomllib.loads(path.read_text(encoding="utf-8").replace(WRITTEN_AS, str(out)))


def merged(table: Any, changes: Any) -> Any:
    """Keys of both, the changes' values where both have one; lists of tables one by one.

    merged({"a": 1, "b": [{"c": 2}]}, {"b": [{"d": 3}]}) -> {"a": 1, "b": [{"c": 2, "d": 3}]}
    """
    if isinstance(table, dict) and isinstance(changes, dict):
        return table | {name: merged(table.get(name), value) for name, value in changes.items()}
    if are_tables(table) and are_tables(changes) and len(table) == len(changes):
        return [merged(one, change) for one, change in zip(table, changes, strict=True)]
    return changes


def are_tables(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(entry, dict) for entry in value)


def main(words: Sequence[str] | None = None, note: Callable[[str], None] = print) -> int:
    options = read_options(words)
    settings = read_table(HERE / "settings.toml", options.out)
    for name in options.changes:
        settings = merged(settings, read_table(HERE / f"{name}.toml", options.out))
    try:
        summary = Small(out=options.out, data=options.data, settings=settings, workers=options.workers)()
    except Interrupted as stopped:
        note(str(stopped))
        return 1
    except (ValueError, OSError) as error:
        note(f"error: {error}")
        return 1
    note(json.dumps(summary))
    return 0


def read_options(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data", type=Path, help="folder with text/train, math and code; default: made texts"
    )
    parser.add_argument("--out", type=Path, default=Path(WRITTEN_AS))
    parser.add_argument(
        "--with", dest="changes", action="append", default=[], help="tiny, moe or mtp, or several"
    )
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    return parser.parse_args(words)


if __name__ == "__main__":
    raise SystemExit(main())
