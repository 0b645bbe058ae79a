"""Pass rates of problems on disk, one line each as it is measured: what was measured is never measured again.

measured.jsonl   {"id": "gsm8k:17", "prompt": "9f3c…", "right": 5, "judged": 8, "mean_length": 211.5}
settings.json    by whom and how: rates of other weights or another temperature are no rates of these
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from foresail.data.problems.prompts import PromptedProblem
from foresail.records import FAILURES, Group
from foresail.runlog.atomic import write_text
from foresail.runlog.jsonl_log import JsonlLog


@dataclass(frozen=True, kw_only=True)
class PassRate:
    """How a problem went: of the `judged` samples so many were `right`. `prompt` is a digest of what was asked."""

    id: str
    prompt: str
    right: int
    judged: int
    mean_length: float  # tokens, over all samples

    @property
    def value(self) -> float | None:
        return self.right / self.judged if self.judged else None


def measure(group: Group, prompt: str) -> PassRate:
    statuses = [verdict.status for verdict in group.verdicts]
    return PassRate(
        id=group.problem.id,
        prompt=prompt,
        right=statuses.count("correct"),
        judged=sum(status not in FAILURES for status in statuses),
        mean_length=fmean(sample.num_response_tokens for sample in group.samples),
    )


class PassRates:
    """The rates in a folder, by problem. Lines reach the disk as they come; a torn last one is no line."""

    def __init__(self, folder: Path, settings: Mapping[str, Any]) -> None:
        self.log = JsonlLog(folder / "measured.jsonl")
        check_settings(folder / "settings.json", settings)
        self.found = {(rate.id, rate.prompt): rate for rate in read_rates(self.log.path)}

    def of(self, problem: PromptedProblem) -> PassRate | None:
        """None also where another prompt or answer stands under the same id now."""
        return self.found.get((problem.problem.id, digest(problem)))

    def add(self, rate: PassRate) -> None:
        self.log.append([asdict(rate)])
        self.found[rate.id, rate.prompt] = rate


def digest(problem: PromptedProblem) -> str:
    text = f"{','.join(map(str, problem.ids))}\x1f{problem.problem.answer}"
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def read_rates(path: Path) -> Sequence[PassRate]:
    if not path.exists():
        return []
    lines = path.read_bytes().split(b"\n")[:-1]  # what follows the last newline was not written to its end
    try:
        return [PassRate(**json.loads(line)) for line in lines]
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"{path} holds lines that are no pass rates ({error}); remove it to measure anew"
        ) from None


def check_settings(path: Path, settings: Mapping[str, Any]) -> None:
    """Write them down, or compare with what is there: half of a file by one model, half by another is worthless."""
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
            f"{path.parent} holds pass rates measured otherwise ({differences}); choose another --output, or "
            "remove that folder"
        )
