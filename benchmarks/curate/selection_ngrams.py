"""A selected sixth of an instruction set beside random ones, for a model that a CPU trains in seconds.

    python benchmarks/curate/instruction_selection.py PAYLOAD --prepare --data ../shared/data --share 0.2
    python benchmarks/curate/selection_ngrams.py PAYLOAD

The model is no language model of today: n-grams of characters up to six, interpolated as by Witten and Bell. It
says which texts a set covers, not what fine-tuning on it teaches; for that there is `instruction_selection.py`.
Measured is the loss on the answers of held-out rows, in bits per character, of each source, and their mean over
sources. The random draws have other seeds; all sets but `all` have as many characters. The last line is JSON.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import statistics
import time
from collections.abc import Sequence
from itertools import accumulate
from math import log2
from pathlib import Path
from typing import Any

from instruction_payload import SHARE

ORDER = 5  # characters before the one that is told
SYMBOLS = 10_000  # of the uniform distribution below all orders, equal for all sets
START = "\x02"
Row = dict[str, Any]


class Ngrams:
    def __init__(self) -> None:
        self.followers: list[dict[str, dict[str, int]]] = [{} for _ in range(ORDER + 1)]
        self.totals: list[dict[str, int]] = [{} for _ in range(ORDER + 1)]

    def learn(self, text: str) -> None:
        text = START * ORDER + text
        for place in range(ORDER, len(text)):
            for order in range(ORDER + 1):
                context = text[place - order : place]
                own = self.followers[order].setdefault(context, {})
                own[text[place]] = own.get(text[place], 0) + 1
                self.totals[order][context] = self.totals[order].get(context, 0) + 1

    def bits(self, text: str, start: int) -> float:
        """Of all characters from `start`."""
        shift, text = ORDER, START * ORDER + text
        return sum(self.bits_of(text, place) for place in range(start + shift, len(text)))

    def bits_of(self, text: str, place: int) -> float:
        share = 1 / SYMBOLS
        for order in range(ORDER + 1):
            context = text[place - order : place]
            if (own := self.followers[order].get(context)) is None:
                break
            total = self.totals[order][context]
            share = (own.get(text[place], 0) + len(own) * share) / (total + len(own))
        return -log2(share)


def read(payload: Path, name: str) -> list[Row]:
    (file,) = payload.glob(f"part-*/{name}")
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def parts_of(row: Row) -> tuple[str, str]:
    """The conversation up to its last answer, and this answer."""
    *before, last = row["messages"]
    return "".join(f"{message['role']}: {message['content']}\n" for message in before), last["content"]


def text_of(row: Row) -> str:
    before, answer = parts_of(row)
    return f"{before}assistant: {answer}\n"


def draw(sizes: dict[str, int], budget: int, seed: int) -> set[str]:
    ids = sorted(sizes, key=lambda name: hashlib.blake2b(f"{seed} {name}".encode()).digest())
    total = accumulate(sizes[name] for name in ids)
    return {name for name, so_far in zip(ids, total, strict=True) if so_far <= budget}


def measure(rows: Sequence[Row], held_out: Sequence[Row]) -> dict[str, Any]:
    model = Ngrams()
    for row in rows:
        model.learn(text_of(row))
    bits: dict[str, list[float]] = {}
    for row in held_out:
        before, answer = parts_of(row)
        prompt = f"{before}assistant: "
        if answer:
            loss = model.bits(f"{prompt}{answer}", len(prompt)) / len(answer)
            bits.setdefault(row["source"], []).append(loss)
    losses = {name: round(statistics.fmean(own), 4) for name, own in bits.items()}
    return {
        "rows": len(rows),
        "characters": sum(len(text_of(row)) for row in rows),
        "loss": round(statistics.fmean(losses.values()), 4),
        "losses": losses,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("payload", type=Path, help="folder that instruction_selection.py --prepare wrote")
    parser.add_argument("--seeds", type=int, default=5, help="random draws")
    options = parser.parse_args()
    begin = time.process_time()
    rows, held_out = read(options.payload, "train.jsonl"), read(options.payload, "held_out.jsonl")
    (arms_file,) = options.payload.glob("part-*/arms.json")
    selected = set(json.loads(arms_file.read_text())["selected"])
    sizes = {row["id"]: len(text_of(row)) for row in rows}
    budget = sum(sizes[name] for name in selected)
    sets = {f"random {seed}": draw(sizes, budget, seed) for seed in range(options.seeds)}
    figures = {}
    for name, ids in {"selected": selected, **sets, "all": {*sizes}}.items():
        figures[name] = measure([row for row in rows if row["id"] in ids], held_out)
        print(name, figures[name], flush=True)
    randoms = [figures[name] for name in sets]
    gaps = [figures["selected"]["loss"] - own["loss"] for own in randoms]
    by_source = {
        name: round(loss - statistics.fmean(own["losses"][name] for own in randoms), 4)
        for name, loss in figures["selected"]["losses"].items()
    }
    summary = {
        "share": SHARE,
        "loss": {name: own["loss"] for name, own in figures.items()},
        "selected - random": {
            "mean": round(statistics.fmean(gaps), 4),
            "each": [round(own, 4) for own in gaps],
        },
        "random - all": round(statistics.fmean(own["loss"] for own in randoms) - figures["all"]["loss"], 4),
        "selected - random, by source": by_source,
        "cpu seconds": round(time.process_time() - begin, 1),
    }
    print(json.dumps(summary))


if __name__ == "__main__":
    main()
