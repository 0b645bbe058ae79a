"""Kills curations and commands while one step is at work and lets them go on: are the bytes the same?

python benchmarks/curate/step_kills.py                           # every step, source and command of kill_jobs.py
python benchmarks/curate/step_kills.py balance translate --kills 10 --seed 3

Of each job a quiet run comes first. Every other run is killed up to three times by SIGKILL, its process group or
one worker alone (the run then goes on by itself), at moments that kill_moments.py draws while the step is at work.
The same command finishes it. Compared are all files but JSON and HTML, which hold CPU seconds, and the figures of
summary.json without those.

Jobs that ask have a server that is killed and started again at random moments, and answers otherwise at every call.
Their runs are compared with a quiet run whose server repeats the answers that the killed run has noted, and no
question may be asked again whose answer was noted. The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

from kill_jobs import JOBS, Job
from kill_moments import kill_when, watched
from kill_outages import ANSWERS, UnsteadyServer
from kill_rows import write_inputs

KILLS = 3  # of a run, at most
LONGEST = 600.0  # seconds of a run that is let be
TOLD = b"waiting for it"
SAMPLES = "sampled.jsonl"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("jobs", nargs="*", help="default: all")
    parser.add_argument("--kills", type=int, default=10, help="of each job")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    if unknown := {*args.jobs} - {*JOBS}:
        parser.error(f"no {', '.join(unknown)}; there are {', '.join(JOBS)}")
    chance = random.Random(args.seed)
    results = {}
    with tempfile.TemporaryDirectory() as path:
        folder = Path(path)
        write_inputs(folder, args.seed)
        train = ["data", "train-classifier", str(folder / "labels.jsonl"), str(folder / "labels.npz")]
        subprocess.run([sys.executable, "-m", "foresail", *train], check=True, capture_output=True)
        for name in args.jobs or JOBS:
            results[name] = JobRun(folder, name, chance, args.workers).attack(args.kills)
            print(f"{name}: {results[name]}", flush=True)
    print(json.dumps({"seed": args.seed, "workers": args.workers, "jobs": results}))


class JobRun:
    """One job, in a folder with the inputs of all."""

    def __init__(self, folder: Path, name: str, chance: random.Random, workers: int) -> None:
        self.folder, self.name, self.chance, self.workers = folder, name, chance, workers
        self.job: Job = JOBS[name]
        self.server = UnsteadyServer(folder / "calls.jsonl", chance)
        self.counts: Counter[str] = Counter({"group": 0, "worker": 0, "too_late": 0, "differ": 0})

    def attack(self, kills: int) -> dict[str, Any]:
        """Of a job that asks, the quiet run only says how many changes there are: every run has other answers."""
        whole = self.folder / f"{self.name.replace(' ', '-')}-whole"
        with self.server if self.job.asks else nullcontext():
            changes = self.finish(whole)
        number = 0
        while self.counts["group"] + self.counts["worker"] < kills:
            number += 1
            out = self.folder / f"{self.name.replace(' ', '-')}-{number}"
            if self.job.asks:
                expected = self.kill_asking(out, changes)
            else:
                self.kill_often(out, changes)
                expected = outputs(whole)
            if differing := different(outputs(out), expected):
                self.counts["differ"] += 1
                print(f"{out.name} differs: {', '.join(differing)}", flush=True)
            shutil.rmtree(out)
        return {**self.counts, "runs": number, "changes": changes}

    def kill_asking(self, out: Path, changes: int) -> dict[str, Any]:
        before = self.server.outages
        with self.server:
            self.kill_often(out, changes)
        self.counts["outages"] += self.server.outages - before
        self.counts["told"] += out.with_suffix(".log").read_bytes().count(TOLD)
        answers, lost = self.server.noted_answers(out)
        self.counts["answers"] += len(answers)
        self.counts["lost_in_flight"] += lost
        replayed = out.with_name(f"{out.name}-replayed")
        with self.server.replaying(answers):
            self.finish(replayed)
        return outputs(replayed)

    def kill_often(self, out: Path, changes: int) -> None:
        for _ in range(KILLS):
            process, moment = self.start(out), self.chance.randint(1, changes)
            killed = kill_when(process, out, partial(self.job.is_at_work, out), moment, self.chance)
            self.counts[killed or "too_late"] += 1
            self.server.remember(out)
            if killed != "group":
                break
        self.finish(out)

    def finish(self, out: Path) -> int:
        """Changes that were seen while the step was at work."""
        process = self.start(out)
        changes = watched(process, out, partial(self.job.is_at_work, out))
        code = process.wait(LONGEST)
        assert code == 0, out.with_suffix(".log").read_text()[-3000:]
        return changes

    def start(self, out: Path) -> subprocess.Popen[bytes]:
        command = self.job.command(self.folder, out, self.server.url, self.workers)
        with out.with_suffix(".log").open("ab") as log:
            return subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)


def outputs(out: Path) -> dict[str, Any]:
    """Answers and samples are noted as they come, in any order, so of these files the lines are compared."""
    files: dict[str, Any] = {}
    for path in sorted(out.rglob("*")):
        name = str(path.relative_to(out))
        if path.match(ANSWERS) or path.name == SAMPLES:
            files[name] = sorted(path.read_bytes().splitlines())
        elif path.name in ("summary.json", "figures.json"):
            files[name] = {key: value for key, value in json.loads(path.read_text()).items() if key != "work"}
        elif path.is_file() and path.suffix not in (".json", ".html") and path.name != ".lock":
            files[name] = path.read_bytes()
    return files


def different(ours: dict[str, Any], theirs: dict[str, Any]) -> list[str]:
    return [name for name in sorted(ours.keys() | theirs.keys()) if ours.get(name) != theirs.get(name)]


if __name__ == "__main__":
    main()
