"""Rejection sampling: a checkpoint's own right solutions, as conversations to learn from.

    foresail data sample-solutions CHECKPOINT --data FILE

writes solutions.jsonl, which `foresail sft` reads. Right solutions are recorded as they come (sampled.jsonl):
stopped or killed, the same command resumes and writes the same file (`recorded_samples.py`).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foresail.data.problems.prompts import PromptedProblem
from foresail.evaluation.recorded_samples import ProblemRecord, record_samples
from foresail.recipe.tables import parts
from foresail.records import Group, Message
from foresail.rewards.trajectory import read_trajectory
from foresail.runlog.atomic import write_text
from foresail.tokenizer.tokenizer import Tokenizer

SOLUTION_STEP = -3  # a stream of noise apart from training (1, 2, …), evaluation (-1) and difficulty (-2)


@dataclass(frozen=True, kw_only=True)
class SolvedProblem(ProblemRecord):
    """A line of sampled.jsonl: a problem's result, and its right solutions in the order of sampling.

    `cut` solutions had the right answer but ended at the token limit: they are not used.
    """

    cut: int
    solutions: list[str]


@dataclass(frozen=True, kw_only=True)
class Solutions:
    """Conversations to write, and the counts for the report."""

    rows: list[dict[str, Any]]
    counts: dict[str, int]


def sample_solutions(
    checkpoint: Path,
    problems: parts.Problems,
    sampling: parts.Sampling,
    *,
    num_samples: int,
    most: int,
    output: Path,
    grader: str = "math",
    seed: int = 0,
    device: str = "auto",
    note: Callable[[str], None] = print,
) -> Solutions:
    """At most `most` different right solutions of every problem, in the data's order."""
    solved = record_samples(
        checkpoint,
        problems,
        sampling,
        file=output / "sampled.jsonl",
        kind=SolvedProblem,
        describe=read_solutions,
        step=SOLUTION_STEP,
        num_samples=num_samples,
        grader=grader,
        seed=seed,
        device=device,
        note=note,
    )
    chosen = choose_solutions(solved, num_samples, most)
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in chosen.rows)
    write_text(output / "solutions.jsonl", lines)
    return chosen


def read_solutions(group: Group, tokenizer: Tokenizer) -> dict[str, Any]:
    right = [
        sample
        for sample, verdict in zip(group.samples, group.verdicts, strict=True)
        if verdict.status == "correct"
    ]
    ended = [sample for sample in right if sample.finish == "stop"]
    return {
        "cut": len(right) - len(ended),
        "solutions": [read_trajectory(tokenizer, sample).response for sample in ended],
    }


def choose_solutions(
    solved: Sequence[tuple[PromptedProblem, SolvedProblem]], num_samples: int, most: int
) -> Solutions:
    """Each text once, and of a problem the first `most`."""
    counts: Counter[str] = Counter(problems=len(solved), samples=len(solved) * num_samples)
    rows = []
    for entry, record in solved:
        different = [*first_of_each(record.solutions)]
        chosen = different[:most]
        counts["failed"] += num_samples - record.judged
        counts["right"] += record.right
        counts["cut"] += record.cut
        counts["duplicates"] += len(record.solutions) - len(different)
        counts["over"] += len(different) - len(chosen)
        counts["kept"] += len(chosen)
        counts["unsolved"] += not chosen
        rows += [
            {
                "messages": [*map(to_asked, entry.problem.prompt), {"role": "assistant", "content": text}],
                "id": record.id,
                "problem": record.id,
                "pass_rate": round(record.pass_rate or 0.0, 4),
            }
            for text in chosen
        ]
    return Solutions(rows=rows, counts=dict(counts))


def to_asked(message: Message) -> dict[str, Any]:
    """A message of the prompt; answers among them (worked examples, earlier turns) are not to be imitated."""
    row = {"role": message.role, "content": message.content, **message.extra}
    return row | {"train": False} if message.role == "assistant" else row


def first_of_each(texts: Iterable[str]) -> Iterator[str]:
    """["a  b", "c", "a b"] -> "a  b", "c": texts that differ by white space alone are the same. None is empty."""
    squeezed_texts: set[str] = set()
    for text in texts:
        squeezed = " ".join(text.split())
        if squeezed and squeezed not in squeezed_texts:
            squeezed_texts.add(squeezed)
            yield text


def describe_solutions(solutions: Solutions) -> list[str]:
    counts = solutions.counts
    lines = [
        f"{counts['problems']:,} problems, {counts['samples']:,} samples, {counts['right']:,} right "
        f"({100 * counts['right'] / max(1, counts['samples']):.1f} %)",
        f"kept {counts['kept']:,}; left out: {counts['cut']:,} cut at the limit, {counts['duplicates']:,} that say "
        f"the same again, {counts['over']:,} over the most of a problem",
    ]
    if counts["unsolved"]:
        lines.append(f"{counts['unsolved']:,} problems have no solution")
    if counts["failed"]:
        lines.append(f"{counts['failed']:,} samples could not be graded")
    return lines
