"""The command line that the lab-scale proofs share, and the results of their seeds, a file each.

A seed that has its result.json under --output is read, not run. So seeds may run in processes of their own, on any
machines, and a last call with all of them joins what they found:

    for seed in 0 1 2; do python benchmarks/proofs/LAB.py --size lab --first-seed $seed --seeds 1 & done; wait
    python benchmarks/proofs/LAB.py --size lab --seeds 3 --draw docs/LAB.png
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from word_lab import Size

from foresail.runlog.atomic import write_text

S = TypeVar("S", bound=Size)
PLACES = ("device", "seeds", "first_seed", "output", "draw")  # options that change no figure


def lab_parser(description: str | None, sizes: Collection[str], output: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", choices=sizes, default="tiny")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--set", nargs="+", default=[], metavar="KEY=NUMBER", help="of the size: goal=0.3")
    parser.add_argument("--tries", nargs="+", type=int, help="steps of the start that are tried, rising")
    parser.add_argument("--output", type=Path, default=Path(output))
    parser.add_argument("--draw", type=Path, help="picture of all seeds")
    return parser


def size_of(options: argparse.Namespace, sizes: Mapping[str, S]) -> S:
    """With what --set and --tries change."""
    size = sizes[options.size]
    changes = dict(change.split("=") for change in options.set)
    if unknown := changes.keys() - vars(size).keys():
        raise SystemExit(f"--set {', '.join(unknown)}: the size has {', '.join(vars(size))}")
    numbers = {key: type(getattr(size, key))(float(value)) for key, value in changes.items()}
    return replace(size, tries=tuple(options.tries or size.tries), **numbers)


def every_seed(
    options: argparse.Namespace, measure: Callable[[Path, int], dict[str, Any]]
) -> list[dict[str, Any]]:
    """The result of `measure` for each seed; one that is finished is read from its folder."""
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    return [one_seed(options, measure, seed) for seed in seeds]


def one_seed(
    options: argparse.Namespace, measure: Callable[[Path, int], dict[str, Any]], seed: int
) -> dict[str, Any]:
    folder = options.output / f"{options.size}-{seed}"
    path, settings = folder / "result.json", settings_of(options)
    if path.exists():
        result: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if result["settings"] != settings:
            raise SystemExit(f"{path} is of other settings: {result['settings']}; choose another --output")
        return result
    begin = time.monotonic()
    result = {"seed": seed, **measure(folder, seed), "settings": settings}
    result["seconds"] = round(time.monotonic() - begin, 1)
    write_text(path, json.dumps(result) + "\n")
    return result


def settings_of(options: argparse.Namespace) -> dict[str, Any]:
    """As they are read back from JSON."""
    chosen = {key: value for key, value in vars(options).items() if key not in PLACES}
    settings: dict[str, Any] = json.loads(json.dumps(chosen, default=str))
    return settings


def tell(options: argparse.Namespace, results: list[dict[str, Any]], **figures: Any) -> None:
    """The last line; curves are in the results of the seeds."""
    seconds = [seed["seconds"] for seed in results]
    print(json.dumps({**settings_of(options), "seeds": len(results), "seconds": seconds, **figures}))
