"""Rejection sampling: a checkpoint's own right solutions, as conversations to learn from.

    foresail data sample-solutions CHECKPOINT --data FILE

writes solutions.jsonl, which `foresail sft` reads. Right solutions are recorded as they come (sampled.jsonl):
stopped or killed, the same command resumes and writes the same file (`recorded_samples.py`). Which of them are kept
is decided afterwards: another choice samples nothing again.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

from foresail.data.problems.prompts import PromptedProblem
from foresail.evaluation.recorded_samples import (
    ProblemRecord,
    SamplingCost,
    no_announcement,
    record_samples,
)
from foresail.recipe.reward_function import Function
from foresail.recipe.tables import parts
from foresail.recipe.tables.reward import Reward
from foresail.records import Group, Message
from foresail.rewards.trajectory import read_trajectory
from foresail.runlog.atomic import write_text
from foresail.tokenizer.tokenizer import Tokenizer

Chosen = TypeVar("Chosen")
SOLUTION_STEP = -3  # a stream of noise apart from training (1, 2, …), evaluation (-1) and difficulty (-2)


@dataclass(frozen=True, kw_only=True)
class SolvedProblem(ProblemRecord):
    """A line of sampled.jsonl: a problem's result, and its right solutions in the order of sampling.

    `cut` solutions had the right answer but ended at the token limit: they are not used. `samples` are the numbers
    of the solutions among the problem's samples.
    """

    cut: int
    solutions: list[str]
    samples: list[int] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Choice:
    """Which right solutions are written: `per_problem` different ones at most, where the pass rate is in `window`.

    `shortest`: by their length in characters; else as they were sampled.
    """

    per_problem: int = 4
    shortest: bool = False
    window: tuple[float, float] = (0.0, 1.0)


class Playing(Protocol):
    """Plays episodes by the call that records samples, and chooses among them (`played_episodes.py`)."""

    def __call__(self, record: Callable[..., Any], num_samples: int, choice: Choice) -> Solutions: ...


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
    choice: Choice,
    output: Path,
    grader: Function | Reward = "math",
    seed: int = 0,
    device: str = "auto",
    note: Callable[[str], None] = print,
    announce: Callable[[SamplingCost], None] = no_announcement,
    template_options: Mapping[str, Any] | None = None,
    playing: Playing | None = None,
) -> Solutions:
    """The chosen right solutions of every problem, in the data's order; with `playing`, right episodes."""
    record = partial(
        record_samples,
        checkpoint,
        problems,
        sampling,
        file=output / "sampled.jsonl",
        step=SOLUTION_STEP,
        num_samples=num_samples,
        grader=grader,
        seed=seed,
        device=device,
        note=note,
        announce=announce,
        template_options=template_options,
    )
    if playing is None:
        chosen = choose_solutions(record(kind=SolvedProblem, describe=read_solutions), num_samples, choice)
    else:
        chosen = playing(record, num_samples, choice)
    made = {"by": "sample-solutions", "model": str(checkpoint), "seed": seed, **sampling_of(sampling)}
    rows = (with_origin(row, made, problems.source) for row in chosen.rows)
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    write_text(output / "solutions.jsonl", lines)
    return chosen


def read_solutions(group: Group, tokenizer: Tokenizer) -> dict[str, Any]:
    right = [
        (number, sample)
        for number, (sample, verdict) in enumerate(zip(group.samples, group.verdicts, strict=True))
        if verdict.status == "correct"
    ]
    ended = [(number, sample) for number, sample in right if sample.finish == "stop"]
    return {
        "cut": len(right) - len(ended),
        "solutions": [read_trajectory(tokenizer, sample).response for _, sample in ended],
        "samples": [number for number, _ in ended],
    }


def choose_solutions(
    solved: Sequence[tuple[PromptedProblem, SolvedProblem]], num_samples: int, choice: Choice
) -> Solutions:
    """Each text once, and of a problem the first or the shortest ones."""
    counts: Counter[str] = Counter(problems=len(solved), samples=len(solved) * num_samples)
    rows = []
    for entry, record in solved:
        different = [*first_of_each(record.solutions)]
        if choice.shortest:
            different.sort(key=len)
        counts["failed"] += num_samples - record.judged
        counts["right"] += record.right
        counts["cut"] += record.cut
        counts["duplicates"] += len(record.solutions) - len(different)
        rows += [
            {
                "messages": [*map(to_asked, entry.problem.prompt), {"role": "assistant", "content": text}],
                "id": record.id,
                "problem": record.id,
                "pass_rate": round(record.pass_rate or 0.0, 4),
                **sample_number(record, text),
            }
            for text in choose_some(different, record, choice, counts)
        ]
    return Solutions(rows=rows, counts=dict(counts))


def choose_some(
    different: Sequence[Chosen], record: ProblemRecord, choice: Choice, counts: Counter[str]
) -> Sequence[Chosen]:
    """The first ones of a problem whose pass rate is in the window; what is left out is counted."""
    lowest, highest = choice.window
    inside = lowest <= (record.pass_rate or 0.0) <= highest
    chosen = different[: choice.per_problem] if inside else []
    counts["over"] += len(different) - len(chosen) if inside else 0
    counts["outside"] += 0 if inside else len(different)
    counts["kept"] += len(chosen)
    counts["unsolved"] += not different
    return chosen


def sample_number(record: SolvedProblem, text: str) -> dict[str, int]:
    """Which of the problem's samples it is; older records do not say."""
    return {"sample": record.samples[record.solutions.index(text)]} if record.samples else {}


def sampling_of(sampling: parts.Sampling) -> dict[str, Any]:
    return {"temperature": sampling.temperature, "top_p": sampling.top_p}


def with_origin(row: dict[str, Any], made: dict[str, Any], source: str) -> dict[str, Any]:
    """How the row was made, as `foresail data why` reads it."""
    origin = {"source": source, "id": row["problem"]}
    return row | {"made": made | {"prompt_hash": prompt_hash(row["messages"]), "from": [origin]}}


def prompt_hash(messages: Sequence[dict[str, Any]]) -> str:
    """Of what the model was asked: system message, worked examples, question, suffix."""
    is_own = [message["role"] == "assistant" and message.get("train", True) for message in messages]
    asked = messages[: is_own.index(True)] if True in is_own else messages
    text = json.dumps([[message["role"], message["content"]] for message in asked])
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


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
        f"the same again, {counts['over']:,} over the most of a problem"
        + (f", {counts['outside']:,} outside the window of pass rates" if counts["outside"] else ""),
    ]
    if counts["unsolved"]:
        lines.append(f"{counts['unsolved']:,} problems have no solution")
    if counts["failed"]:
        lines.append(f"{counts['failed']:,} samples could not be graded")
    return lines
