"""A model of 512 tokens lengthened eightfold: what it finds in long texts, and what short texts cost it.

A small dense model is pretrained from fresh weights on texts and needles of at most 512 tokens, then goes on at
4,096 with a raised rotary base (ABF) and Compass-v2's mixture, 60 % of the tokens from documents longer than 512.
Before and after: needle in a haystack by length and depth, and the loss on held-out texts shorter than 512.

    python benchmarks/proofs/lengthen.py --texts ../shared/data/text/train    # some minutes on an H200
    python benchmarks/proofs/lengthen.py --size tiny --device cpu             # half a minute: does it run?
Heat-maps and runs are in --out; what is there is not made again. The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

from foresail.data.corpus.join import join_short_and_long, join_texts
from foresail.data.corpus.tokenize import tokenize
from foresail.data.long_context.document_file import write_documents
from foresail.data.long_context.documents import DocumentMaker, DocumentPlan
from foresail.data.long_context.filler import TextFiller, made_filler
from foresail.data.long_context.texts import read_texts
from foresail.evaluation.long_context import ask
from foresail.evaluation.long_context_plot import plot_answers
from foresail.evaluation.long_context_results import write_results
from foresail.quickstart.stages import train_stage
from foresail.recipe.stages.pretrain import Pretrain
from foresail.recipe.tables.long_context import LongContext
from foresail.rollout.checkpoint import open_checkpoint
from foresail.runlog.canvas import save_figure
from foresail.runlog.directory import RunDirectory
from foresail.tokenizer.tokenizer import Tokenizer
from foresail.tokenizer.train import train_bpe
from foresail.train.session import Outcome

FACTOR = 8
SHORT_KINDS = ("drill", "niah_single", "drill", "niah_multikey", "drill", "line_retrieval")
LONG_KINDS = (  # drills teach the most: several keys, and every one asked for
    "drill",
    "niah_single",
    "drill",
    "niah_multikey",
    "drill",
    "line_retrieval",
    "drill",
    "niah_multivalue",
    "niah_multiquery",
    "vt",
)
Figures = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Size:
    """Tokens of the two runs, and of a row of the first; rows of the second are eight times as long."""

    shape: dict[str, int]
    vocab_size: int
    length: int
    first_tokens: int
    second_tokens: int
    batch_tokens: int
    lr: float
    needles: tuple[int, int]  # documents for the first run and for the second
    lengths: tuple[int, ...]
    depths: int
    per_cell: int


SIZES = {
    "small": Size(
        shape={
            "hidden_size": 512,
            "intermediate_size": 1408,
            "num_layers": 8,
            "num_heads": 8,
            "head_dim": 64,
        },
        vocab_size=8192,
        length=512,
        first_tokens=100_000_000,
        second_tokens=45_000_000,
        batch_tokens=32_768,  # many updates: heads that look things up take thousands
        lr=1e-3,
        needles=(90_000, 18_000),
        lengths=(512, 1024, 1536, 2048, 2560, 3072, 3584, 4096),
        depths=11,
        per_cell=10,
    ),
    "tiny": Size(
        shape={"hidden_size": 32, "intermediate_size": 64, "num_layers": 2, "num_heads": 2, "head_dim": 16},
        vocab_size=600,
        length=256,
        first_tokens=8192,
        second_tokens=16_384,
        batch_tokens=2048,
        lr=3e-3,
        needles=(20, 20),
        lengths=(256, 2048),
        depths=2,
        per_cell=1,
    ),
}


def main() -> None:
    options = read_options()
    size, out, began = SIZES[options.size], options.out, time.perf_counter()
    seconds: dict[str, float] = {}

    def note(what: str) -> None:
        seconds[what] = round(time.perf_counter() - began - sum(seconds.values()), 1)
        print(f"{what}: {seconds[what]} s", flush=True)

    make_data(out, size, options.texts, options.workers)
    note("data")
    first = train_stage(first_run(out, size, options))
    note("pretrain")
    before = measure(first, out / "before", size, (size.length,), options)
    note("measure before")
    second = train_stage(second_run(out, size, options, first))
    note("lengthen")
    after = measure(second, out / "after", size, size.lengths, options)
    note("measure after")
    result = {
        "size": options.size,
        "device": options.device,
        "seconds": seconds,
        "length": [size.length, size.length * FACTOR],
        "rope_theta": [10_000.0, options.rope_theta],
        "lr": [size.lr, second_lr(size, options)],
        "recall_before": before,
        "recall_after": after,
        "short_text_loss": compare(losses(first), losses(second)),
        "tokens_per_second": {"pretrain": speed(first), "lengthen": speed(second)},
    }
    (out / "result.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(result))


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", choices=SIZES, default="small")
    parser.add_argument("--texts", type=Path, help="JSONL, text or a folder of such; default: made sentences")
    parser.add_argument("--out", type=Path, default=Path("runs/lengthen"))
    parser.add_argument("--device", default="auto", choices=("auto", "cpu", "cuda"))
    parser.add_argument("--rope-theta", type=float, default=100_000.0)
    parser.add_argument("--first-tokens", type=int, help="of the first run")
    parser.add_argument("--second-tokens", type=int, help="of the lengthening")
    parser.add_argument("--second-lr", type=float, help="of the lengthening; default: a tenth of the first's")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    return parser.parse_args()


# Data.


def make_data(out: Path, size: Size, texts: Path | None, workers: int) -> None:
    """Texts in documents of all lengths, a part of them held out; needles, short and long; all as token shards."""
    if (out / "corpora/long-needles/manifest.json").exists():
        return
    out.mkdir(parents=True, exist_ok=True)
    files = {"texts": out / "texts.jsonl", "held-out": out / "held-out.jsonl"}
    longest = size.length * FACTOR
    learned, held_out = split(read_all(texts))
    documents = list(
        join_short_and_long(
            learned, short=(100, 2 * size.length), long=(4 * size.length, 4 * longest), seed=0
        )
    )
    write_lines(files["texts"], documents)
    write_lines(files["held-out"], join_texts(held_out, characters=(100, size.length), seed=0))  # none is cut
    train_tokenizer(documents, size.vocab_size).save(out / "tokenizer")
    for name, kinds, longest_needle, count in (
        ("short-needles", SHORT_KINDS, size.length, size.needles[0]),
        ("long-needles", LONG_KINDS, longest, size.needles[1]),
    ):
        files[name] = out / f"{name}.jsonl"
        plan = DocumentPlan(lengths=(size.length // 4, longest_needle), kinds=kinds)
        write_documents(
            files[name],
            plan,
            tokenizer=str(out / "tokenizer"),
            count=count,
            filler=str(files["texts"]),
            workers=workers,
        )
    for name, file in files.items():
        tokenize([str(file)], tokenizer=str(out / "tokenizer"), out=out / "corpora" / name, workers=workers)


def read_all(texts: Path | None) -> Iterator[str]:
    return islice(made_filler(Random(0)), 3000) if texts is None else read_texts(texts)


def split(texts: Iterable[str]) -> tuple[list[str], list[str]]:
    """To learn from, and to keep: of every 5,000 texts the first hundred."""
    numbered = list(enumerate(texts))
    return [t for n, t in numbered if n % 5000 >= 100], [t for n, t in numbered if n % 5000 < 100]


def train_tokenizer(documents: list[str], vocab_size: int) -> Tokenizer:
    """On some of the texts, and on needles, whose words should not be many tokens."""
    some = Random(1).sample(documents, min(len(documents), 4000))
    plan = DocumentPlan(lengths=(1500, 4000), kinds=(*LONG_KINDS, "cwe"))
    maker = DocumentMaker(plan=plan, encode=str.encode, filler=TextFiller(some[:50]))
    return train_bpe([*some, *map(maker.make, range(200))], vocab_size=vocab_size)


def write_lines(path: Path, texts: Iterable[str]) -> None:
    path.write_text(
        "".join(json.dumps({"text": text}, ensure_ascii=False) + "\n" for text in texts), encoding="utf-8"
    )


# The two runs.


def first_run(out: Path, size: Size, options: argparse.Namespace) -> Pretrain:
    shape = {
        "family": "qwen3",
        "qk_norm": True,
        "vocab_size": Tokenizer.load(out / "tokenizer").vocab_size,
        "num_kv_heads": size.shape["num_heads"],
        "max_context": size.length,
        **size.shape,
    }
    tokens = options.first_tokens or size.first_tokens
    stage = {
        "data": mixture(out, "short-needles", 0.4),
        "tokens": tokens,
        "length": size.length,
        "batch_tokens": size.batch_tokens,
        "warmup_tokens": tokens // 20,
        "decay": "cosine",
        "final_lr": size.lr / 10,
    }
    model = {"shape": shape, "tokenizer": str(out / "tokenizer")}
    return recipe("first", out, size, options, model, stage, size.length)


def second_run(out: Path, size: Size, options: argparse.Namespace, first: Outcome) -> Pretrain:
    tokens = options.second_tokens or size.second_tokens
    length, lr = size.length * FACTOR, second_lr(size, options)
    stage = {
        "data": mixture(out, "long-needles", 0.3),
        "tokens": tokens,
        "length": length,
        "batch_tokens": max(length, size.batch_tokens),
        "long_share": 0.6,
        "long_from": size.length,
        "rope_theta": options.rope_theta,
        "lr": lr,
        "warmup_tokens": tokens // 20,
        "decay": "cosine",
        "final_lr": lr / 10,
    }
    return recipe("second", out, size, options, {"path": str(first.checkpoint)}, stage, length)


def second_lr(size: Size, options: argparse.Namespace) -> float:
    """The learning rate at which the first run ended, unless an option sets another."""
    return float(options.second_lr or size.lr / 10)


def mixture(out: Path, needles: str, texts: float) -> list[Figures]:
    """`texts`: their share of the tokens. There are few, which must not be learned by heart."""
    shares = {"texts": texts, needles: 1 - texts}
    return [{"source": str(out / "corpora" / name), "weight": share} for name, share in shares.items()]


def recipe(
    name: str,
    out: Path,
    size: Size,
    options: argparse.Namespace,
    model: Figures,
    stage: Figures,
    length: int,
) -> Pretrain:
    return Pretrain.model_validate(
        {
            "run": {"name": name, "root": str(out / "runs"), "device": options.device, "seed": options.seed},
            "model": model,
            "stages": [stage],
            "long_context": {"lengths": [length], "every": 1000},  # whether it has learned to look things up
            "held_out": [{"source": str(out / "corpora/held-out"), "tokens": 500_000}],
            "micro_batch_tokens": max(length, min(65_536, size.batch_tokens)),
            "optimizer": {"lr": size.lr, "weight_decay": 0.1},
            "checkpoints": {"every": 1000, "keep": 1},
        }
    )


# Figures.


def measure(
    run: Outcome, folder: Path, size: Size, lengths: tuple[int, ...], options: argparse.Namespace
) -> Figures:
    """Recall by task and length, and the least of all cells; heat-map and answers go to `folder`."""
    settings = LongContext(
        lengths=lengths,
        tasks=("niah_single", "niah_multikey", "line_retrieval"),
        depths=size.depths,
        per_cell=size.per_cell,
        filler=str(options.out / "held-out.jsonl"),
    )
    model, tokenizer = open_checkpoint(run.checkpoint, device=options.device, max_length=max(lengths))
    answers = ask(model, tokenizer, settings, seed=options.seed)
    folder.mkdir(parents=True, exist_ok=True)
    summary = write_results(folder, answers, {"checkpoint": str(run.checkpoint)})
    save_figure(plot_answers(answers, title=folder.name), folder / "heat-map.png")
    return {
        task: {
            **{length: round(figure["value"], 4) for length, figure in figures.items()},
            "interval": [round(figures["all"][end], 4) for end in ("low", "high")],
            "least_cell": min(cell["value"] for cell in summary["cells"] if cell["task"] == task),
        }
        for task, figures in summary["tasks"].items()
    }


def losses(run: Outcome) -> float:
    """On held-out texts, at the end of the run."""
    lines = RunDirectory(run.run).metrics.read()
    return float([line["val/loss/held-out"] for line in lines if "val/loss/held-out" in line][-1])


def compare(before: float, after: float) -> Figures:
    return {"before": round(before, 4), "after": round(after, 4), "change": round(after / before - 1, 4)}


def speed(run: Outcome) -> int:
    lines = [line for line in RunDirectory(run.run).metrics.read() if "perf/throughput" in line]
    return round(sorted(line["perf/throughput"] for line in lines)[len(lines) // 2])


if __name__ == "__main__":
    main()
