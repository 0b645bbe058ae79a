"""Rejection sampling: a checkpoint's own right solutions, as conversations to learn from.

    foresail data sample-solutions CHECKPOINT --data FILE

writes solutions.jsonl, which `foresail sft` reads as it is. Right solutions are kept as they come (sampled.jsonl):
the same command goes on where it was stopped or killed, and writes the same file.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from foresail.data.problems.problems import load_problems
from foresail.data.problems.prompts import PromptedProblem, encode_problems
from foresail.evaluation.checkpoint import check_context, choose_grader, longest, make_folder, open_checkpoint
from foresail.evaluation.judged_groups import judged_groups
from foresail.evaluation.pass_rates import check_settings, digest
from foresail.model.weights import checksum
from foresail.recipe.tables import parts
from foresail.records import FAILURES, Group, Message
from foresail.rewards.trajectory import read_trajectory
from foresail.rollout.groups import specify_groups
from foresail.runlog.atomic import write_text
from foresail.runlog.jsonl_log import JsonlLog
from foresail.tokenizer.tokenizer import Tokenizer

SOLUTION_STEP = -3  # a stream of noise apart from training (1, 2, …), evaluation (-1) and difficulty (-2)


@dataclass(frozen=True, kw_only=True)
class SolvedProblem:
    """A line of sampled.jsonl: how a problem went, and its right solutions in the order of sampling.

    `cut` solutions said the right answer and ended at the limit: nothing to imitate. `prompt` is a digest.
    """

    id: str
    prompt: str
    judged: int
    right: int
    cut: int
    solutions: list[str]

    @property
    def pass_rate(self) -> float:
        return self.right / max(1, self.judged)


@dataclass(frozen=True, kw_only=True)
class Solutions:
    """Conversations to write, and what was counted on the way."""

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
    """Of every problem at most so many different right solutions, in the data's order."""
    reward = choose_grader(grader)
    model, tokenizer = open_checkpoint(checkpoint, device=device, max_length=sampling.max_new_tokens)
    prompted = encode_problems(load_problems(problems), tokenizer, model.shape.max_context)
    check_context(longest(prompted), sampling.max_new_tokens, model.shape.max_context)
    make_folder(output)
    settings = {"weights": f"{checksum(model):016x}", "samples": num_samples, "seed": seed, "grader": grader}
    check_settings(output / "settings.json", settings | sampling.model_dump(mode="json"))
    log = JsonlLog(output / "sampled.jsonl")
    solved = {(found.id, found.prompt): found for found in read_solved(log.path)}
    missing = [entry for entry in prompted if key_of(entry) not in solved]
    if len(missing) < len(prompted):
        note(f"{len(prompted) - len(missing)} of {len(prompted)} problems are sampled already")
    if missing:
        spec = specify_groups(tokenizer, sampling, num_samples, seed=seed, step=SOLUTION_STEP)
        prompts = {entry.problem.id: digest(entry) for entry in missing}
        groups = judged_groups(model, tokenizer, missing, spec, reward, batch_invariant=False)
        for done, group in enumerate(groups, start=1):
            found = read_solutions(group, prompts[group.problem.id], tokenizer)
            if found.judged:  # else the next call tries it again
                log.append([asdict(found)])
            solved[found.id, found.prompt] = found
            if done % max(1, len(missing) // 20) == 0:
                note(f"{done} of {len(missing)} problems")
    chosen = choose_solutions([(entry, solved[key_of(entry)]) for entry in prompted], num_samples, most)
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in chosen.rows)
    write_text(output / "solutions.jsonl", lines)
    return chosen


def read_solved(path: Path) -> list[SolvedProblem]:
    lines = (
        path.read_bytes().split(b"\n")[:-1] if path.exists() else []
    )  # the rest was not written to its end
    try:
        return [SolvedProblem(**json.loads(line)) for line in lines]
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"{path} holds lines that are no sampled problems ({error}); remove it to sample anew"
        ) from None


def key_of(entry: PromptedProblem) -> tuple[str, str]:
    return entry.problem.id, digest(entry)


def read_solutions(group: Group, prompt: str, tokenizer: Tokenizer) -> SolvedProblem:
    right = [
        sample
        for sample, verdict in zip(group.samples, group.verdicts, strict=True)
        if verdict.status == "correct"
    ]
    ended = [sample for sample in right if sample.finish == "stop"]
    return SolvedProblem(
        id=group.problem.id,
        prompt=prompt,
        judged=sum(verdict.status not in FAILURES for verdict in group.verdicts),
        right=len(right),
        cut=len(right) - len(ended),
        solutions=[read_trajectory(tokenizer, sample).response for sample in ended],
    )


def choose_solutions(
    solved: Sequence[tuple[PromptedProblem, SolvedProblem]], num_samples: int, most: int
) -> Solutions:
    """Each text once, and of a problem the first `most`."""
    counts: Counter[str] = Counter(problems=len(solved), samples=len(solved) * num_samples)
    rows = []
    for entry, found in solved:
        different = [*first_of_each(found.solutions)]
        kept = different[:most]
        counts["failed"] += num_samples - found.judged
        counts["right"] += found.right
        counts["cut"] += found.cut
        counts["duplicates"] += len(found.solutions) - len(different)
        counts["over"] += len(different) - len(kept)
        counts["kept"] += len(kept)
        counts["unsolved"] += not kept
        rows += [
            {
                "messages": [*map(to_asked, entry.problem.prompt), {"role": "assistant", "content": text}],
                "id": found.id,
                "problem": found.id,
                "pass_rate": round(found.pass_rate, 4),
            }
            for text in kept
        ]
    return Solutions(rows=rows, counts=dict(counts))


def to_asked(message: Message) -> dict[str, Any]:
    """A message of the prompt; answers among them (worked examples, earlier turns) are not to be imitated."""
    row = {"role": message.role, "content": message.content, **message.extra}
    return row | {"train": False} if message.role == "assistant" else row


def first_of_each(texts: Iterable[str]) -> Iterator[str]:
    """["a  b", "c", "a b"] -> "a  b", "c": texts that differ by white space alone are the same. None is empty."""
    seen: set[str] = set()
    for text in texts:
        squeezed = " ".join(text.split())
        if squeezed and squeezed not in seen:
            seen.add(squeezed)
            yield text


def describe_solutions(found: Solutions) -> list[str]:
    counts = found.counts
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
