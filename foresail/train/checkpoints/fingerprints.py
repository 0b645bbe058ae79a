"""Fingerprints of a run's data, models and rewards, kept in `Progress`: a resume with others is refused."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from foresail.data.problems.prompts import PromptedProblem
from foresail.model.decoder import Decoder
from foresail.model.weights import checksum
from foresail.recipe.function_source import fingerprint
from foresail.recipe.reward_function import IN_PROGRAM, Function, file_of, name_of
from foresail.train.checkpoints.checkpoint import Progress


def fingerprint_data(progress: Progress, source: str, kind: str, texts: Iterable[str]) -> Progress:
    """One text for each of the data's rows: all that its order, noise and verdicts depend on."""
    count, total = 0, 0
    for text in texts:
        count, total = count + 1, zlib.crc32(text.encode(errors="surrogatepass"), total)
    now = f"{count} {kind}, checksum {total:08x}"
    if progress.data not in ("", now):
        raise ValueError(
            f"{source} is not what the run began with ({progress.data}; now {now}); "
            "restore it, or start a new run from the checkpoint"
        )
    return replace(progress, data=now)


def describe_problem(entry: PromptedProblem) -> str:
    """Includes the columns that a grader may read; values that are no JSON count by their type alone."""
    problem = entry.problem
    columns = json.dumps(dict(problem.extra), skipkeys=True, default=lambda value: type(value).__name__)
    return f"{problem.id} {problem.answer} {problem.level} {entry.ids} {columns}\n"


def fingerprint_reference(progress: Progress, path: str | None, reference: Decoder) -> Progress:
    """The reference is read again at every start."""
    now = f"{checksum(reference):016x}"
    if progress.reference not in ("", now):
        raise ValueError(
            f"{path or 'the fresh model'} is not the model that this run began with and its KL term pulls towards "
            f"(checksum {now}, not {progress.reference}); bring back those weights, in the same model.dtype, or "
            "start a new run from the checkpoint"
        )
    return replace(progress, reference=now)


def fingerprint_teacher(progress: Progress, path: str, teacher: Decoder) -> Progress:
    """The teacher is read again at every start."""
    now = f"{checksum(teacher):016x}"
    if progress.teacher not in ("", now):
        raise ValueError(
            f"{path} is not the teacher that this run began with (checksum {now}, not {progress.teacher}); bring "
            "back those weights, in the same model.dtype, or start a new run from the checkpoint"
        )
    return replace(progress, teacher=now)


def fingerprint_rewards(
    progress: Progress,
    functions: Iterable[Function],
    models: Mapping[str, str] | None = None,
    environment: Iterable[Path] = (),
    *,
    may_change: bool,
) -> tuple[Progress, list[str]]:
    """The files of reward functions and of the environment, the source of functions that a program gave, and the
    fingerprints of reward models by their paths; with `may_change` those that changed are given back, not refused.
    """
    functions = [*functions]
    files = {file for function in functions if (file := file_of(function)) is not None} | {*environment}
    now = {str(file): checksum_of(file) for file in sorted(files)} | dict(models or {})
    for function in functions:
        if callable(function) and (name := name_of(function)).startswith(IN_PROGRAM):
            now[name] = now.get(name, "") + fingerprint(function)  # several lambdas have one name
    changed = [name for name in now if progress.rewards.get(name, now[name]) != now[name]]
    if changed and not may_change:
        raise ValueError(
            f"{', '.join(changed)} changed since the run began, so samples and rewards may be others; restore it, "
            "or go on with the new one: foresail resume RUN --changed-reward, in Python changed_reward=True"
        )
    return replace(progress, rewards=now), changed


def checksum_of(file: Path) -> str:
    """Read in pieces: a corpus may be larger than the memory."""
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()[:16]
