"""The texts of recipes/small: documents to learn from, some of them held out, and conversations to imitate.

    python recipes/small/prepare.py --data ../shared/data --out runs/small/texts

Sentences of data/text become documents, neighbours joined: half of the sentences in documents of 100 to 1,000
characters, half in such of 2,000 to 16,000. Rows of data/math and data/code become a problem and its solution each.
Without --data sentences are made, enough to see that all runs.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from random import Random

from foresail.data.corpus.join import join_short_and_long
from foresail.data.long_context.filler import made_filler
from foresail.data.long_context.texts import read_texts
from foresail.data.made.arithmetic import direct, make_problems, worked
from foresail.runlog.atomic import write_text

HELD_OUT = 50  # one document in so many is
PROBLEMS = {
    "math": {
        "MATH/train7500.jsonl.gz": ("problem", "solution"),
        "gsm8k/train.jsonl.gz": ("question", "answer"),
    },
    "code": {
        "mbpp/mbpp.jsonl.gz": ("text", "code"),
        "leetcodedataset/v0.2.0-train.jsonl.gz": ("prompt", "completion"),
    },
}
DIRECT_SHARE = 0.5  # of the arithmetic to imitate is answered at once, mostly wrong; the rest is worked out
STEPS = (3, 5)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="folder with text/train, math and code; default: none")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--problems", type=int, default=6000, help="of arithmetic to imitate")
    options = parser.parse_args()
    write_all(options.data, options.out, options.problems)


def write_all(data: Path | None, out: Path, problems: int) -> None:
    """Files that are there already stay as they are. The conversations come last: then all is there."""
    out.mkdir(parents=True, exist_ok=True)
    for name, documents in corpora(data).items():
        learned, held_out = split(documents)
        write_lines(out / f"{name}.jsonl", ({"text": text} for text in learned))
        write_lines(out / f"held-out-{name}.jsonl", ({"text": text} for text in held_out))
    write_lines(out / "arithmetic.jsonl", imitated(problems))


def corpora(data: Path | None) -> dict[str, Iterable[str]]:
    if data is None:
        sentences = islice(made_filler(Random(0)), 3000)
        made = list(join(list(sentences)))
        return {"web": made, "math": made[::2], "code": made[1::2]}
    return {
        "web": join([*read_texts(data / "text/train")]),
        "math": solved(data / "math", PROBLEMS["math"]),
        "code": solved(data / "code", PROBLEMS["code"]),
    }


def join(sentences: list[str]) -> Iterator[str]:
    """In documents shorter than a row of the first stages, and in such that only the last stage sees whole."""
    return join_short_and_long(sentences, short=(100, 1000), long=(2000, 16_000), seed=0)


def solved(folder: Path, files: dict[str, tuple[str, str]]) -> Iterator[str]:
    for file, (problem, solution) in files.items():
        with gzip.open(folder / file, "rt", encoding="utf-8") as lines:
            for row in map(json.loads, lines):
                yield f"{row[problem].strip()}\n\n{row[solution].strip()}"


def split(documents: Iterable[str]) -> tuple[list[str], list[str]]:
    """To learn from, and to keep; in random order, so that the first ones are of all kinds."""
    every = list(documents)
    Random(0).shuffle(every)
    held_out = max(1, len(every) // HELD_OUT)
    return every[held_out:], every[:held_out]


def imitated(count: int) -> Iterator[dict[str, str]]:
    """Both habits of the quickstart: answering at once, and working in steps."""
    habit = Random("habit")
    for problem in make_problems(count, seed=0, steps=STEPS):
        completion = direct(problem) if habit.random() < DIRECT_SHARE else worked(problem)
        yield {"prompt": problem.prompt[-1].content, "completion": completion}


def write_lines(path: Path, rows: Iterable[dict[str, str]]) -> None:
    if not path.exists():
        write_text(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


if __name__ == "__main__":
    main()
