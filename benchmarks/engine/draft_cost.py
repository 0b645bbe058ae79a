"""What drafts from siblings bring, and what finding them costs.

Accepted length: each of 8 real responses to 100 problems is drawn again, token by token, and a draft is accepted
as far as it equals what the response says. Its group holds the prompt, the response so far, and 0, 1, 3 or 7
whole siblings ("references"); or all eight grow together, as in a rollout. Tokens a step count the one that is
drawn anyway; Seer's table, for other models and longer texts, stands beside it. Siblings in this trace are much
alike (15 % are the same to the letter), so that a row without the copies is printed too.

Cost: 64, 256 and 1,024 running requests in groups of 8 that each have some thousand tokens behind them; every
step appends two tokens to each and drafts for each, in one call each. The goal is under 10 % of a decode step;
beyond the 256 rows that were measured, a step's time is carried on in a straight line.
The last line is JSON.

    pip install numba
    python benchmarks/engine/draft_cost.py            # a minute; without numba, --quick is advised
    python benchmarks/engine/draft_cost.py --quick    # a tenth of the problems, shorter texts
"""

from __future__ import annotations

import argparse
import gzip
import json
import lzma
import os
import platform
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from step_times import StepTimes
from tokenizers import Tokenizer

from foresail.rollout.drafts.allocation import Acceptance, best_length, time_per_token
from foresail.rollout.drafts.compiled import numba
from foresail.rollout.drafts.drafting import GroupDrafts
from foresail.simulate.costs import read_step_table

ROOT = Path(__file__).resolve().parents[2]
STEP_TIMES = ROOT / "benchmarks/measured/h200_step_costs.json"
END = 151_645  # Qwen's end of a turn; the trace is text and leaves it out
REFERENCES = (0, 1, 3, 7)
LENGTHS = (8, 16)  # of a draft
SEER = "1.70 / 2.04 / 2.32 / 2.53"
CONTEXT = 2000  # tokens, of the decode step that drafting is compared with


@dataclass(frozen=True, kw_only=True)
class Problem:
    """A prompt and the responses to it, as token ids."""

    prompt: list[int]
    responses: list[list[int]]


@dataclass(frozen=True, kw_only=True)
class Replay:
    """Tokens a step, tokens drafted a step, and how far every draft got."""

    tokens_per_step: float
    drafted_per_step: float
    acceptance: Acceptance


def main() -> None:
    options = read_options()
    problems = read_problems(options.data)[:: 10 if options.quick else 1]
    machine = {
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "compiled": f"numba {numba.__version__}" if numba is not None else "no: plain Python",
    }
    print(", ".join(f"{name} {value}" for name, value in machine.items()))
    accepted, acceptances = measure_acceptance(problems)
    gains = measure_gain(acceptances)
    costs = measure_costs(problems, options.tokens, options.steps)
    print(json.dumps({**machine, "tokens_per_step": accepted, "gain_at_7b": gains, "cost": costs}))


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data", type=Path, default=ROOT.parent / "shared/data", help="the shared data folder"
    )
    parser.add_argument("--tokens", type=int, default=2048, help="behind each running request")
    parser.add_argument("--steps", type=int, default=60, help="timed steps")
    parser.add_argument("--quick", action="store_true", help="every tenth problem, 256 tokens, 20 steps")
    options = parser.parse_args()
    if options.quick:
        options.tokens, options.steps = 256, 20
    return options


def read_problems(data: Path) -> list[Problem]:
    trace, vocabulary = (
        data / "traces/qwen_math_100x8.jsonl.gz",
        data / "tokenizers/qwen2_5/tokenizer.json.xz",
    )
    if not trace.exists() or not vocabulary.exists():
        raise SystemExit(f"{trace} or {vocabulary} is not there; say where the shared data is with --data")
    tokenizer = Tokenizer.from_str(lzma.decompress(vocabulary.read_bytes()).decode())

    def encode(text: str) -> list[int]:
        return tokenizer.encode(text).ids

    rows = [json.loads(line) for line in gzip.decompress(trace.read_bytes()).splitlines()]
    return [
        Problem(
            prompt=encode(row["question"]),
            responses=[[*encode(response), END] for response in row["responses"]],
        )
        for row in rows
    ]


# What drafts bring.


def measure_acceptance(problems: Sequence[Problem]) -> tuple[dict[str, Any], dict[str, Acceptance]]:
    """A table of tokens a step; and how far drafts of 8 get."""
    apart = [without_copies(problem) for problem in problems]
    results: dict[str, Any] = {}
    print(
        f"\ntokens a step (tokens drafted)   references {' / '.join(map(str, REFERENCES))}, growing together"
    )
    for max_draft in LENGTHS:
        name = f"one path of {max_draft}"
        runs = [*(replay(problems, max_draft, references=count) for count in REFERENCES)]
        runs.append(replay(problems, max_draft, references=None))
        results[name] = [round(run.tokens_per_step, 2) for run in runs]
        cells = (f"{run.tokens_per_step:.2f} ({run.drafted_per_step:.1f})" for run in runs)
        print(f"  {name:16}" + "   ".join(cells))
        if max_draft == 8:
            acceptances = {"7 references": runs[-2].acceptance, "growing together": runs[-1].acceptance}
    distinct = [replay(apart, 8, references=count).tokens_per_step for count in REFERENCES]
    results["one path of 8, no copies"] = [round(tokens, 2) for tokens in distinct]
    print("  one path of 8, groups without copies: " + " / ".join(f"{tokens:.2f}" for tokens in distinct))
    print(f"  Seer, one path, with 0 / 1 / 5 / 15 references: {SEER}")
    return results, acceptances


def without_copies(problem: Problem) -> Problem:
    distinct = dict.fromkeys(map(tuple, problem.responses))
    return Problem(prompt=problem.prompt, responses=[list(response) for response in distinct])


def replay(problems: Sequence[Problem], max_draft: int, *, references: int | None) -> Replay:
    """Replay all responses, all at once, each with so many siblings known; None: they grow together."""
    drafts, rows, texts = GroupDrafts(), [], []
    for number, problem in enumerate(problems):
        for sample, response in enumerate(problem.responses):
            group = number if references is None else 1000 * number + sample
            if references is not None or sample == 0:
                drafts.register(group, problem.prompt)
            siblings = [*problem.responses[sample + 1 :], *problem.responses[:sample]][: references or 0]
            for place, sibling in enumerate(siblings):
                drafts.append(group, f"reference {place}", 0, sibling)
            rows.append(drafts.join(group, str(sample)))
            texts.append(np.array(response))
    return draw_again(drafts, rows, texts, max_draft)


def draw_again(drafts: GroupDrafts, rows: list[int], texts: list[np.ndarray], max_draft: int) -> Replay:
    rows_R, lengths_R = np.array(rows), np.array([len(text) for text in texts])
    drawn_R = np.zeros_like(rows_R)
    steps = drafted = 0
    acceptance = Acceptance(weight=1e-3, memory=1e12)
    while (open_R := np.flatnonzero(drawn_R < lengths_R)).size:
        sizes_R, tokens_RK = drafts.draft_rows(rows_R[open_R], max_draft)
        rests = [texts[row][drawn_R[row] : drawn_R[row] + max_draft + 1] for row in open_R.tolist()]
        drafted_R = zip(sizes_R.tolist(), tokens_RK.tolist(), rests, strict=True)
        accepted = np.array([accept(tokens[:size], rest) for size, tokens, rest in drafted_R])
        counts = np.minimum(accepted + 1, lengths_R[open_R] - drawn_R[open_R])
        tokens = np.concatenate([rest[:count] for rest, count in zip(rests, counts.tolist(), strict=True)])
        drafts.append_rows(rows_R[open_R], drawn_R[open_R], counts, tokens)
        drawn_R[open_R] += counts
        steps, drafted = steps + len(open_R), drafted + int(sizes_R.sum())
        acceptance.record(np.full(len(open_R), max_draft), sizes_R, accepted)
    return Replay(
        tokens_per_step=int(lengths_R.sum()) / steps,
        drafted_per_step=drafted / steps,
        acceptance=acceptance,
    )


def accept(draft: list[int], rest: np.ndarray) -> int:
    """How many tokens of a draft are what comes next."""
    right = takewhile(lambda pair: pair[0] == pair[1], zip(draft, rest.tolist(), strict=False))
    return sum(1 for _ in right)


def measure_gain(acceptances: dict[str, Acceptance]) -> dict[str, Any]:
    """At the acceptance just measured: which draft length a 7B model on an H200 takes, and what it gains."""
    times = StepTimes(read_step_table(STEP_TIMES, "7B"))
    gains: dict[str, Any] = {}
    print(f"\n7B on one H200, context {CONTEXT}, by its measured step times: draft length and speed-up")
    for name, acceptance in acceptances.items():
        cells: dict[int, dict[str, float]] = {}
        for batch in (1, 8, 32, 64, 128, 256):
            length = best_length(batch, CONTEXT, acceptance, times)
            step = times(batch, acceptance.tokens_to_check(length), CONTEXT)
            gain = times(batch, 0, CONTEXT) / time_per_token(acceptance.beta, length, step)
            cells[batch] = {"draft_length": length, "speedup": round(gain, 2)}
        gains[name] = {"alpha": round(acceptance.alpha, 3), "rows": cells}
        print(
            f"  {name}, alpha {acceptance.alpha:.2f}: "
            + ", ".join(
                f"{batch} rows {cell['draft_length']} {cell['speedup']:.2f}x" for batch, cell in cells.items()
            )
        )
    return gains


# What finding them costs.


def measure_costs(problems: Sequence[Problem], tokens: int, steps: int) -> list[dict[str, Any]]:
    times = StepTimes(read_step_table(STEP_TIMES, "7B"))
    print(f"\n{tokens} tokens behind each request, two more a step; median of {steps} steps")
    results = []
    for num_rows in (64, 256, 1024):
        result = measure_cost(problems, num_rows, tokens, steps)
        step = times(num_rows, 0, CONTEXT)
        total = result["append_ms"] + result["draft_ms"]
        print(
            f"  {num_rows:4} rows: {result['append_us_per_token']:.2f} us a token appended, "
            f"{result['draft_us']:.2f} us a draft; append + draft {total:.2f} ms, "
            f"{total / step:.1%} of a 7B step of {step:.1f} ms; {result['bytes_per_token']:.0f} bytes a token"
        )
        results.append({"rows": num_rows, **result, "share_of_7b_step": round(total / step, 4)})
    return results


def measure_cost(problems: Sequence[Problem], num_rows: int, tokens: int, steps: int) -> dict[str, float]:
    drafts = GroupDrafts()
    texts = [long_text(problems, row, tokens + 2 * steps) for row in range(num_rows)]
    rows_R = []
    for row, text in enumerate(texts):
        group, sample = divmod(row, 8)
        if sample == 0:
            drafts.register(group, problems[group % len(problems)].prompt)
        drafts.append(group, str(sample), 0, text[:tokens])
        rows_R.append(drafts.join(group, str(sample)))
    rows, counts = np.array(rows_R), np.full(num_rows, 2)
    watch = Stopwatch()
    for step in range(steps):
        at = tokens + 2 * step
        fresh, before = np.concatenate([text[at : at + 2] for text in texts]), np.full(num_rows, at)
        with watch("append"):
            drafts.append_rows(rows, before, counts, fresh)
        with watch("path"):
            drafts.draft_rows(rows, 8)
    append, path = watch.median("append"), watch.median("path")
    return {
        "append_ms": round(append * 1e3, 3),
        "draft_ms": round(path * 1e3, 3),
        "append_us_per_token": round(append * 1e6 / (2 * num_rows), 3),
        "draft_us": round(path * 1e6 / num_rows, 3),
        "bytes_per_token": round(4 * drafts.slabs.used / (num_rows * (tokens + 2 * steps)), 1),
    }


def long_text(problems: Sequence[Problem], row: int, length: int) -> np.ndarray:
    """Responses to a run of problems; siblings answer the same ones, each in its own words."""
    group, sample = divmod(row, 8)
    text: list[int] = []
    while len(text) < length:
        text += problems[group % len(problems)].responses[sample]
        group += 1
    return np.array(text[:length])


class Stopwatch:
    """with watch("append"): …; then watch.median("append") is seconds."""

    def __init__(self) -> None:
        self.times: dict[str, list[float]] = {}

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.times.setdefault(name, []).append(time.perf_counter() - start)

    def median(self, name: str) -> float:
        return median(self.times[name])


if __name__ == "__main__":
    main()
