"""Samples many problems and records each on disk; stopped or killed, the same call resumes.

measured.jsonl   {"id": "gsm8k:17", "prompt": "9f3c…", "right": 5, "judged": 8, …}    a line as a problem ends
settings.json    by whom and how: records of other weights or another temperature are none of these

Difficulty levels and rejection sampling are two kinds of such records. Every sample's noise is keyed by seed,
problem and sample, so what was sampled before or beside it changes nothing but the last bits of its logits, and
with `batch_invariant` not even those.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

from foresail.data.problems.prompts import PromptedProblem
from foresail.evaluation.checkpoint import choose_grader, make_folder
from foresail.evaluation.evaluator import EpisodeSource, Evaluator
from foresail.model.weights import checksum
from foresail.recipe.reward_function import Function, name_of
from foresail.recipe.tables import parts
from foresail.recipe.tables.reward import Reward
from foresail.records import FAILURES, Group, RunStopped, Verdict
from foresail.rollout.groups import GroupSpec, specify_groups
from foresail.rollout.stream import sample_all
from foresail.runlog.atomic import write_text
from foresail.runlog.jsonl_log import JsonlLog
from foresail.tokenizer.tokenizer import Tokenizer


@dataclass(frozen=True, kw_only=True)
class ProblemRecord:
    """A problem's result: `right` of its `judged` samples. `prompt` is a digest of prompt and answer."""

    id: str
    prompt: str
    right: int
    judged: int

    @property
    def pass_rate(self) -> float | None:
        return self.right / self.judged if self.judged else None


Record = TypeVar("Record", bound=ProblemRecord)


@dataclass(frozen=True, kw_only=True)
class SamplingCost:
    """What is left to sample, before it begins. A prompt is computed once for all its samples."""

    problems: int
    samples: int
    prompt_tokens: int
    new_tokens: int  # at most

    def __str__(self) -> str:
        return (
            f"{self.problems:,} problems to sample: {self.samples:,} samples, {self.prompt_tokens:,} tokens of "
            f"prompts, at most {self.new_tokens:,} new tokens"
        )


def no_announcement(cost: SamplingCost) -> None:
    """Nobody asked."""


def record_samples(
    checkpoint: Path,
    problems: parts.Problems,
    sampling: parts.Sampling,
    *,
    file: Path,
    kind: type[Record],
    describe: Callable[[Group, Tokenizer], Mapping[str, Any]],
    step: int,
    num_samples: int,
    grader: Function | Reward,
    seed: int,
    device: str,
    batch_invariant: bool = False,
    note: Callable[[str], None] = print,
    announce: Callable[[SamplingCost], None] = no_announcement,
    episodes: EpisodeSource | None = None,
    template_options: Mapping[str, Any] | None = None,
    played_by: Mapping[str, Any] | None = None,
) -> list[tuple[PromptedProblem, Record]]:
    """Every problem with its record, in the data's order; what `file` holds already is not sampled again.

    `announce` hears what is left to sample before it begins, and may raise an error to stop there.
    `describe` gives the further fields of a record. `step` is the stream of noise. A problem without a valid
    verdict is not recorded: the next call samples it again. `episodes` are of an environment, whose table is
    `played_by`.
    """
    reward = choose_grader(grader)
    with Evaluator(
        checkpoint,
        max_new_tokens=sampling.max_new_tokens,
        device=device,
        template_options=template_options,
        episodes=episodes,
    ) as evaluator:
        tokenizer = evaluator.tokenizer
        prompted = evaluator.encode(problems, sampling.max_new_tokens)
        make_folder(file.parent)
        settings = {
            "weights": f"{checksum(evaluator.model):016x}",
            "samples": num_samples,
            "seed": seed,
            "grader": name_of(reward.grader),
        }
        if played_by is not None:
            settings["environment"] = dict(played_by)
            sampling = sampling.model_copy(update={"stop": (*sampling.stop, *evaluator.stop)})
        unset = {"thinking_budget", "thinking_end"} if sampling.thinking_budget is None else set()
        settings |= sampling.model_dump(mode="json", exclude=unset)  # as it is read back
        check_settings(file.with_name("settings.json"), settings)
        log = JsonlLog(file)
        records = {(record.id, record.prompt): record for record in read_records(file, kind)}
        digests = {entry.problem.id: digest(entry) for entry in prompted}
        missing = [
            entry for entry in prompted if (entry.problem.id, digests[entry.problem.id]) not in records
        ]
        if len(missing) < len(prompted):
            note(f"{len(prompted) - len(missing)} of {len(prompted)} problems are measured already")
        announce(
            SamplingCost(
                problems=len(missing),
                samples=len(missing) * num_samples,
                prompt_tokens=sum(len(entry.ids) for entry in missing),
                new_tokens=len(missing) * num_samples * sampling.max_new_tokens,
            )
        )
        failures: list[Verdict] = []
        spec = specify_groups(tokenizer, sampling, num_samples, seed=seed, step=step)
        groups = judged_groups(evaluator, missing, spec, reward, batch_invariant) if missing else ()
        for done, group in enumerate(groups, start=1):
            record = kind(**count(group), prompt=digests[group.problem.id], **describe(group, tokenizer))
            records[record.id, record.prompt] = record
            if record.judged:
                log.append([asdict(record)])
            else:
                failures.append(group.verdicts[0])
            if done % max(1, len(missing) // 20) == 0:
                note(f"{done} of {len(missing)} problems")
    if len(failures) == len(prompted):
        raise RunStopped(
            f"no verdict of {len(prompted)} problems held; the first: {failures[0].status}: {failures[0].detail}. "
            "Correct the grader or the problems, and call again"
        )
    return [(entry, records[entry.problem.id, digests[entry.problem.id]]) for entry in prompted]


def judged_groups(
    evaluator: Evaluator,
    problems: Sequence[PromptedProblem],
    spec: GroupSpec,
    reward: Reward,
    batch_invariant: bool,
) -> Iterator[Group]:
    """Samples with their verdicts, of many problems at once, in the order in which their last verdicts come."""
    attempts = len(problems) * spec.num_samples
    with evaluator.at_work(
        problems, spec.sampling, reward, attempts=attempts, batch_invariant=batch_invariant
    ) as (fleet, examiner):
        yield from sample_all(
            fleet,
            problems,
            spec,
            examiner.judge,
            judge_group=examiner.judge_group,
            stream=evaluator.stream(problems, spec.sampling),
        )


def count(group: Group) -> dict[str, Any]:
    statuses = [verdict.status for verdict in group.verdicts]
    return {
        "id": group.problem.id,
        "right": statuses.count("correct"),
        "judged": sum(status not in FAILURES for status in statuses),
    }


def digest(entry: PromptedProblem) -> str:
    """A digest of prompt and answer, which change where an id is used for another problem."""
    text = f"{','.join(map(str, entry.ids))}\x1f{entry.problem.answer}"
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def read_records(path: Path, kind: type[Record]) -> list[Record]:
    if not path.exists():
        return []
    lines = path.read_bytes().split(b"\n")[:-1]  # what follows the last newline was not written to its end
    try:
        return [kind(**json.loads(line)) for line in lines]
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"{path} holds lines that are no records of problems ({error}); remove it to measure anew"
        ) from None


def check_settings(path: Path, settings: Mapping[str, Any]) -> None:
    """Write the settings, or raise if a file with others is there: one model must sample the whole file."""
    if not path.exists():
        write_text(path, json.dumps(settings, indent=2, ensure_ascii=False) + "\n")
        return
    try:
        before = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        raise ValueError(f"{path} is not JSON; remove {path.parent} to measure anew") from None
    if changed := [name for name in settings if before.get(name) != settings[name]]:
        differences = ", ".join(f"{name} {before.get(name)} there, {settings[name]} now" for name in changed)
        raise ValueError(
            f"{path.parent} was measured otherwise ({differences}); choose another --output, or remove that folder"
        )
