"""What deduplication, heuristics, a classifier and resampling come to: a 30M model's loss at equal tokens.

Arms, each but the last with one thing more than the one before it:

    raw           natural text, whole web pages, repetitions, boilerplate, shuffled and garbled text, keywords
    exact         less deduplication: repeated texts are dropped
    minhash       more deduplication: near duplicates are dropped
    heuristics    rules by language
    classifier    quality by a linear classifier, below 1.5 of 3 is dropped
    resampled     the worst 30 % less often, the others times occurrences ** 0.5, at most 4
    repeats kept  heuristics and classifier without any deduplication

The noise is made (`selection_corpus.py` says how): the differences tell what the steps do against such noise, not
what a crawl would show. Every arm has the same number of tokens, so that a smaller corpus is read in more epochs.
The loss is measured on clean held-out documents of eight languages. Seeds change weights and order alike in all
arms, so differences are paired by seed.

On a CPU, some minutes; the folder has 20 to 40 MB:
    python benchmarks/curate/selection_corpus.py --data ../shared/data --out runs/selection
On the card, with runs/selection carried; torch, numpy, and what foresail itself imports (pydantic, tokenizers,
safetensors, …) are needed, numba is not:
    python benchmarks/curate/selection_study.py runs/selection --out $OUT --seeds 1 --arms raw --tokens 2e6
    python benchmarks/curate/selection_study.py runs/selection --out $OUT --minutes 8.5
The same command with `--before FILE`, the results.jsonl that came back, goes on with what is left. Runs that do not
fit into the minutes are not begun. Without a card: --shape tiny --tokens 1e5 --device cpu.
The last line is JSON.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

ARMS = ("raw", "exact", "minhash", "heuristics", "classifier", "resampled", "repeats kept")
PAIRS = (
    ("exact", "raw"),
    ("minhash", "exact"),
    ("heuristics", "minhash"),
    ("classifier", "heuristics"),
    ("resampled", "classifier"),
    ("repeats kept", "classifier"),
)
SHAPES = {
    "30M": {
        "hidden_size": 512,
        "intermediate_size": 1408,
        "num_layers": 8,
        "num_heads": 8,
        "num_kv_heads": 4,
    },
    "tiny": {"hidden_size": 64, "intermediate_size": 128, "num_layers": 2, "num_heads": 2, "num_kv_heads": 1},
}
LENGTH, BATCH = 512, 32_768
LONGEST_RUN = 120.0  # seconds, before one was measured
Result = dict[str, Any]


def main() -> None:
    options = read_options()
    if options.run is not None:
        arm, seed = options.run
        print(json.dumps(train(options, arm, int(seed))))
        return
    file = options.out / "results.jsonl"
    options.out.mkdir(parents=True, exist_ok=True)
    if options.before is not None and options.before.resolve() != file.resolve():
        shutil.copyfile(options.before, file)
    plan = [(arm, seed) for seed in range(options.seeds) for arm in options.arms]
    run_all(options, file, [key for key in plan if key not in {*read_results(file, options)}])
    results = read_results(file, options)
    left = [f"{arm} {seed}" for arm, seed in plan if (arm, seed) not in results]
    print(json.dumps({"left": left, **summarise(list(results.values()))}))


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path, help="folder of selection_corpus.py")
    parser.add_argument("--out", type=Path, required=True, help="folder for results.jsonl")
    parser.add_argument("--before", type=Path, help="results.jsonl of an earlier call")
    parser.add_argument("--arms", nargs="+", default=list(ARMS), choices=ARMS)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--tokens", type=float, default=16e6, help="of each run")
    parser.add_argument(
        "--minutes", type=float, default=8.5, help="no run is begun that would not end by then"
    )
    parser.add_argument("--parallel", type=int, default=4, help="runs at a time")
    parser.add_argument("--shape", choices=SHAPES, default="30M")
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    parser.add_argument("--lr", type=float, default=1.5e-3)
    parser.add_argument("--run", nargs=2, metavar=("ARM", "SEED"), help="one run, in this process")
    return parser.parse_args()


# Many runs, each in a process of its own.


def run_all(options: argparse.Namespace, file: Path, waiting: list[tuple[str, int]]) -> None:
    end = time.monotonic() + options.minutes * 60
    running: dict[tuple[str, int], tuple[subprocess.Popen[str], float]] = {}
    longest = None
    while waiting or running:
        fits = time.monotonic() + (longest or min(LONGEST_RUN, options.minutes * 30)) < end
        if waiting and fits and len(running) < options.parallel:
            key = waiting.pop(0)
            running[key] = start(*key), time.monotonic()
            continue
        if not running:
            break
        time.sleep(0.2)
        for key, (process, begin) in [*running.items()]:
            if process.poll() is None:
                continue
            del running[key]
            longest = max(longest or 0.0, time.monotonic() - begin)
            note(file, key, *process.communicate())


def start(arm: str, seed: int) -> subprocess.Popen[str]:
    command = [sys.executable, __file__, *sys.argv[1:], "--run", arm, str(seed)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def note(file: Path, key: tuple[str, int], output: str, errors: str) -> None:
    """Append the result; a run that failed is begun again by the next call."""
    try:
        result = json.loads(output.strip().splitlines()[-1])
    except (IndexError, ValueError):
        print(f"{key} failed: {errors[-1500:]}", flush=True)
        return
    with file.open("a") as results:
        results.write(json.dumps(result) + "\n")
    shown = {name: round(value, 4) for name, value in result["loss"].items()}
    print(f"{result['arm']} {result['seed']}: {result['seconds']:.0f} s, {shown}", flush=True)


def read_results(file: Path, options: argparse.Namespace) -> dict[tuple[str, int], Result]:
    """Of this shape and number of tokens."""
    if not file.is_file():
        return {}
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    return {
        (row["arm"], row["seed"]): row
        for row in rows
        if (row["shape"], row["asked"]) == (options.shape, options.tokens)
    }


# One run.


def train(options: argparse.Namespace, arm: str, seed: int) -> Result:
    from foresail.recipe.reading.load import build_recipe
    from foresail.recipe.stages.pretrain import Pretrain
    from foresail.runlog.directory import RunDirectory
    from foresail.train.stages.pretrain import run_pretrain

    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sizes = write_corpora(options.data, arm, folder)
        recipe = build_recipe(recipe_of(options, folder, [*sizes["held_out"]], seed))
        assert isinstance(recipe, Pretrain)
        with (folder / "log").open("w") as log, contextlib.redirect_stdout(log):
            run_pretrain(recipe)
        lines = RunDirectory(folder / "study").metrics.read()
    losses = next(line for line in reversed(lines) if any(key.startswith("val/loss/") for key in line))
    paces = sorted(line["timing_s/step"] for line in lines if "timing_s/step" in line)
    return {
        "arm": arm,
        "seed": seed,
        "shape": options.shape,
        "asked": options.tokens,
        "tokens": lines[-1]["data/tokens_seen"],
        "epochs": round(lines[-1]["data/tokens_seen"] / sizes["tokens"], 3),
        "corpus_tokens": sizes["tokens"],
        "loss": {language: losses[f"val/loss/{language}"] for language in sizes["held_out"]},
        "seconds": round(time.monotonic() - begin, 1),
        "median_step_seconds": paces[len(paces) // 2],
    }


def recipe_of(options: argparse.Namespace, folder: Path, languages: list[str], seed: int) -> dict[str, Any]:
    shape = SHAPES[options.shape]
    length = min(LENGTH, 128) if options.shape == "tiny" else LENGTH
    batch = 2048 if options.shape == "tiny" else BATCH
    vocabulary = json.loads((folder / "train" / "manifest.json").read_text())["vocab_size"]
    tokens = int(options.tokens) // batch * batch
    return {
        "stage": "pretrain",
        "micro_batch_tokens": batch,
        "run": {"name": "study", "root": str(folder), "seed": seed, "device": options.device},
        "model": {
            "tokenizer": str(options.data / "tokenizer"),
            "shape": {
                "family": "qwen3",
                "qk_norm": True,
                "vocab_size": vocabulary,
                "head_dim": 64,
                "max_context": length,
                **shape,
            },
        },
        "optimizer": {"lr": options.lr, "weight_decay": 0.1},
        "stages": [
            {
                "data": [{"source": str(folder / "train")}],
                "tokens": tokens,
                "length": length,
                "batch_tokens": batch,
                "warmup_tokens": tokens // 20,
                "decay": "cosine",
                "final_lr": options.lr / 20,
            }
        ],
        "held_out": [{"source": str(folder / language), "name": language} for language in languages],
        "checkpoints": {"every": None, "minutes": None, "keep": 1, "resumable": 1},
    }


def write_corpora(data: Path, arm: str, folder: Path) -> dict[str, Any]:
    """Token shards of the arm and of each held-out language, as `foresail data tokenize` would write them."""
    from foresail.recipe.tables.corpus import fingerprint
    from foresail.tokenizer.tokenizer import Tokenizer

    tokenizer = Tokenizer.load(str(data / "tokenizer"))
    about = fingerprint(tokenizer.files.definition), tokenizer.vocab_size
    with np.load(data / "pool.npz") as pool, np.load(data / "arms.npz") as arms:
        tokens, ends, chosen = pool["tokens"], pool["ends"], arms[arm]
    starts = np.concatenate([[0], ends[:-1]])
    parts = [tokens[starts[number] : ends[number]] for number in chosen]
    size = write_corpus(
        folder / "train", np.concatenate(parts), np.cumsum([len(part) for part in parts]), *about
    )
    held_out = {}
    with np.load(data / "held-out.npz") as held:
        for name in held.files:
            language, _, kind = name.partition(".")
            if kind == "tokens":
                own = held[name], held[f"{language}.ends"]
                held_out[language] = write_corpus(folder / language, *own, *about)
    return {"tokens": size, "held_out": held_out}


def write_corpus(folder: Path, tokens: np.ndarray, ends: np.ndarray, tokenizer: str, vocabulary: int) -> int:
    from foresail.recipe.tables.corpus import MANIFEST, Manifest, ShardEntry

    folder.mkdir()
    contents = {"tokens": tokens.astype("<u2").tobytes(), "ends": ends.astype("<i8").tobytes()}
    for suffix, content in contents.items():
        (folder / f"shard-00000.{suffix}").write_bytes(content)
    shard = ShardEntry(
        name="shard-00000",
        documents=len(ends),
        tokens=len(tokens),
        **{f"{suffix}_checksum": hashlib.sha256(content).hexdigest() for suffix, content in contents.items()},
    )
    manifest = Manifest(
        format=1,
        tokenizer=tokenizer,
        vocab_size=vocabulary,
        id_type="uint16",
        request="selection study",
        sources=[],
        documents=len(ends),
        tokens=len(tokens),
        longest=int(np.diff(ends, prepend=0).max()),
        shards=[shard],
    )
    (folder / MANIFEST).write_text(manifest.model_dump_json())
    return len(tokens)


# What came out.


def summarise(results: list[Result]) -> dict[str, Any]:
    """Mean over languages and seeds ± standard deviation over seeds; differences paired by seed."""
    means = {(row["arm"], row["seed"]): statistics.fmean(row["loss"].values()) for row in results}
    table = {}
    for arm in ARMS:
        if not (own := [row for row in results if row["arm"] == arm]):
            continue
        languages = {
            name: round(statistics.fmean(row["loss"][name] for row in own), 4) for name in own[0]["loss"]
        }
        table[arm] = {
            "loss": spread([means[arm, row["seed"]] for row in own]),
            "epochs": own[0]["epochs"],
            "corpus_tokens": own[0]["corpus_tokens"],
            "languages": languages,
            "seconds": round(statistics.fmean(row["seconds"] for row in own), 1),
        }
    differences = {}
    for arm, other in PAIRS:
        seeds = [seed for name, seed in means if name == arm and (other, seed) in means]
        if seeds:
            differences[f"{arm} - {other}"] = spread(
                [means[arm, seed] - means[other, seed] for seed in seeds]
            )
    return {"arms": table, "differences": differences}


def spread(values: list[float]) -> dict[str, Any]:
    deviation = statistics.stdev(values) if len(values) > 1 else None
    return {
        "mean": round(statistics.fmean(values), 4),
        "sd": None if deviation is None else round(deviation, 4),
        "seeds": len(values),
    }


if __name__ == "__main__":
    main()
