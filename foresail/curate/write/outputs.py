"""Writes the sinks of a recipe from the last phase's ledgers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from foresail.curate.recipe import CurationRecipe
from foresail.curate.run.executor import Executor
from foresail.curate.run.folders import WORK
from foresail.curate.sink import Sink
from foresail.curate.write.shards import open_shards, plan_shards
from foresail.data.corpus.documents import TextForm
from foresail.data.corpus.tokenize import tokenize
from foresail.runlog.atomic import clean_leftovers

MIB = 2**20
TEXTS = "texts"  # JSONL that only token shards are made of


def write_outputs(
    recipe: CurationRecipe, ledgers: Mapping[Path, Mapping[str, Any]], executor: Executor
) -> dict[str, Any]:
    """Documents (and tokens) of each sink, by folder."""
    sinks = recipe.curation.sink or (Sink(),)
    written: dict[str, Any] = {}
    for sink in sinks:
        if sink.kind == "tokens":
            written[sink.name] = write_tokens(recipe, sink, ledgers, executor)
        else:
            written[sink.name] = write_shards(recipe, sink, recipe.out / sink.name, ledgers, executor)
    return written


def write_shards(
    recipe: CurationRecipe,
    sink: Sink,
    folder: Path,
    ledgers: Mapping[Path, Mapping[str, Any]],
    executor: Executor,
) -> dict[str, Any]:
    """Documents of each group; {"": 790} without groups."""
    folder.mkdir(parents=True, exist_ok=True)
    receipts = recipe.out / WORK / f"sink-{folder.name}"
    receipts.mkdir(parents=True, exist_ok=True)
    for below in (folder, *(path for path in folder.iterdir() if path.is_dir())):
        clean_leftovers(below)
    shards = plan_shards(ledgers, sink.shard_mib * MIB)
    done = executor.named(f"writing {folder.name}")(
        shards, partial(open_shards, folder, sink), folder=receipts
    )
    counts: Counter[str] = Counter()
    for receipt in done.values():
        counts.update(receipt["documents"])
    return {"documents": dict(sorted(counts.items()))}


def write_tokens(
    recipe: CurationRecipe, sink: Sink, ledgers: Mapping[Path, Mapping[str, Any]], executor: Executor
) -> dict[str, Any]:
    """A corpus for `foresail pretrain`, or one of each group."""
    texts = recipe.out / WORK / f"{TEXTS}-{sink.name}"
    plain = Sink(kind="jsonl", by=sink.by, shard_mib=sink.shard_mib)
    groups = write_shards(recipe, plain, texts, ledgers, executor)["documents"]
    tokens = {}
    for group in groups:
        manifest = tokenize(
            sorted(str(file) for file in (texts / group).glob("shard-*")),
            tokenizer=str(sink.tokenizer),
            out=recipe.out / sink.name / group,
            form=TextForm(key="text"),
            workers=recipe.curation.cluster.workers,
            encoder=sink.encoder,
        )
        tokens[group] = manifest.tokens
    return {"documents": groups, "tokens": tokens}
