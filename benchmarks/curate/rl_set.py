"""What raw sets of problems lose on their way to a set for reinforcement: counts by source and reason.

    python benchmarks/curate/rl_set.py --out /tmp/rl-set                        # recipes/curate/rl-problems.toml
    python benchmarks/curate/rl_set.py --out /tmp/rl-set --read 50 > read.txt   # drops of each reason, to be read

Data: MATH train, DeepScaleR (1,209), MBPP, LeetCode train, and as further sources DeepMath (5k), AIME 1983 to 2023
and the 7,474 problems of MATH in rllm's form. A folder that is finished is read, not run again.
"""

from __future__ import annotations

import argparse
import json
import random
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from foresail.curate.curation import curate
from foresail.curate.recipe import build_curation
from foresail.curate.run.ledger import DONE, Entry, entries

ROOT = Path(__file__).parents[2]
DATA = ROOT / "../shared/data"
RECIPE = ROOT / "recipes/curate/rl-problems.toml"
SOURCES = {
    "math": "math/MATH/train7500.jsonl.gz",
    "deepscaler": "math/deepscaler_sub1209/train.jsonl.gz",
    "aime": "math/rllm_train/aime1983_2023.jsonl.gz",
    "deepmath": "math/deepmath_5k/train.jsonl.gz",
    "math7474": "math/rllm_train/math7474_difficulty.jsonl.gz",
    "mbpp": "code/mbpp/mbpp.jsonl.gz",
    "leetcode": "code/leetcodedataset/v0.2.0-train.jsonl.gz",
}
SHOWN = 700


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--sources", nargs="*", default=[*SOURCES], choices=SOURCES)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--limit", type=int, help="problems of every source, for a try")
    parser.add_argument("--read", type=int, default=0, help="drops of each reason, and keeps, to print")
    parser.add_argument("--seed", type=int, default=0, help="of what is printed")
    options = parser.parse_args()
    recipe = build_curation(table(options), str(RECIPE)).limited(options.limit)
    curate(recipe)
    ends = [*read_ends(recipe.out)]
    if options.read:
        show(ends, options.read, options.seed)
    print(json.dumps(count(ends)))


def table(options: argparse.Namespace) -> dict[str, Any]:
    """The recipe, on the files that are here."""
    recipe = tomllib.loads(RECIPE.read_text(encoding="utf-8"))
    recipe["source"] = [
        {"path": str(options.data / SOURCES[name]), "name": name, "holds": "problems"}
        for name in options.sources
    ]
    return recipe | {"out": str(options.out), "cluster": {"workers": options.workers}}


End = tuple[str, str, str, str, dict[str, Any]]  # id, reason or "kept", detail, text, row


def read_ends(out: Path) -> Iterator[End]:
    """What became of every problem, from the ledgers of all phases; kept ones from the last."""
    folders = sorted(
        (path for path in (out / "work").iterdir() if path.name.isdigit()), key=lambda path: int(path.name)
    )
    for number, folder in enumerate(folders):
        for file in sorted(folder.glob(f"*{DONE}")):
            for entry in entries(file):
                yield from ends_of(entry, is_last=number == len(folders) - 1)


def ends_of(entry: Entry, is_last: bool) -> Iterator[End]:
    for drop in entry.result.dropped:
        yield entry.id, drop.reason, drop.detail, drop.document.text, drop.document.row or {}
    if is_last:
        for document in entry.result.kept:
            yield document.id, "kept", json.dumps(document.metadata), document.text, document.row or {}


def count(ends: list[End]) -> dict[str, Any]:
    by_source: dict[str, Counter[str]] = defaultdict(Counter)
    for _, reason, _, _, row in ends:
        by_source[str(row.get("data_source"))][reason] += 1
    total: Counter[str] = sum(by_source.values(), Counter())
    return {
        "problems": total.total(),
        "ends": dict(total.most_common()),
        "by_source": {source: dict(reasons.most_common()) for source, reasons in by_source.items()},
    }


def show(ends: list[End], most: int, seed: int) -> None:
    by_reason: dict[str, list[End]] = defaultdict(list)
    for end in ends:
        by_reason[end[1]].append(end)
    for reason, of_reason in sorted(by_reason.items()):
        print(f"===== {reason}: {len(of_reason)}")
        chosen = random.Random(f"{seed}:{reason}").sample(of_reason, min(most, len(of_reason)))
        for name, _, detail, text, row in chosen:
            answer = str(row.get("answer", ""))[:80]
            line = " ".join(text.split())
            print(f"[{name}] {{{detail[:120]}}} {line[:SHOWN]} ==> {answer}")


if __name__ == "__main__":
    main()
