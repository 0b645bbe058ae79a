"""Kills a curation at random moments and lets it go on: is the output the same, byte by byte?

python benchmarks/curate/random_kills.py                 # 50 kills, two workers
python benchmarks/curate/random_kills.py --kills 6 --seed 3

The recipe reads an archive, rows and a book, extracts, runs a user's step that notes every document it sees, and
drops exact and near duplicates. Quiet runs come first: two must agree, and the second says what CPU time a run
takes. Then every run is killed at two moments drawn from that time, by SIGKILL: its whole process group, or one
worker alone (the run then goes on by itself). The same command finishes it. Compared are all files but JSON and
HTML, which hold CPU seconds, and the figures of summary.json without those. Documents that were in work when a kill
came are seen by the user's step again; their number is reported. The last line is JSON.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from small_files import PAGE, book, page_record

WORKERS = 2
WORDS = "sea ship crew port sail wind rope deck mast star map night storm island harbour captain".split()
STEP = """
def noted(document, file=""):
    with open(file, "a") as notes:
        notes.write(document.id + "\\n")
    return document
"""
RECIPE = """
out = "{out}"

[[source]]
path = "{folder}/in"

[[step]]
name = "extract"
scope = "whole"

[[step]]
name = "{folder}/steps.py:noted"
file = "{out}.notes"

[[step]]
name = "exact_duplicates"

[[step]]
name = "minhash"
threshold = 0.7

[[sink]]
kind = "jsonl"

[cluster]
workers = {workers}
"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--documents", type=int, default=1500)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(kill_often(Path(folder), args)))


def kill_often(folder: Path, args: argparse.Namespace) -> dict[str, Any]:
    chance = random.Random(args.seed)
    write_inputs(folder, args.documents, chance)
    whole = finished_run(folder, "whole")  # compiles kernels for those that follow
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    again = finished_run(folder, "again")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert outputs(whole) == outputs(again), "two quiet runs differ"
    seen_once = notes(whole)
    result = {"kills": 0, "of_one_worker": 0, "came_too_late": 0, "runs_that_differ": 0, "seen_again": 0}
    runs = 0
    while result["kills"] < args.kills:
        runs += 1
        out = folder / f"killed-{runs}"
        moments = (seconds * chance.random() for _ in range(2))
        while (moment := next(moments, None)) is not None and kill_once(folder, out, moment, chance, result):
            pass
        finished_run(folder, out.name)
        differs = outputs(out) != outputs(whole)
        result["runs_that_differ"] += differs
        result["seen_again"] += notes(out) - seen_once
        print(f"run {runs}: {result}", flush=True)
        if differs:
            report_difference(out, whole)
        shutil.rmtree(out)
    return {**result, "runs": runs, "documents": seen_once, "cpu_seconds_of_a_quiet_run": round(seconds, 1)}


def write_inputs(folder: Path, documents: int, chance: random.Random) -> None:
    """Every ninth document repeats an earlier one, every seventh with a few words changed."""
    (folder / "in").mkdir()
    (folder / "steps.py").write_text(STEP)
    texts: list[str] = []
    for number in range(documents):
        words = [*chance.choices(WORDS, k=chance.randrange(40, 400)), str(number)]
        if texts and number % 9 == 0:
            words = chance.choice(texts).split()
        elif texts and number % 7 == 0:
            words = [*chance.choice(texts).split(), "again", str(number)]
        texts.append(" ".join(words))
    third = documents // 3
    with gzip.open(folder / "in/pages.warc.gz", "wb") as archive:
        for number, text in enumerate(texts[:third]):
            page = PAGE.replace("A ship", text).encode()
            archive.write(page_record(f"http://a/{number}", page))
    for name, part in (("b", texts[third : 2 * third]), ("c", texts[2 * third :])):
        rows = (json.dumps({"text": text}) + "\n" for text in part)
        (folder / f"in/{name}.jsonl").write_text("".join(rows))
    (folder / "in/book.epub").write_bytes(book())


def start_run(folder: Path, name: str) -> subprocess.Popen[bytes]:
    recipe = folder / f"{name}.toml"
    recipe.write_text(RECIPE.format(out=folder / name, folder=folder, workers=WORKERS))
    command = [sys.executable, "-m", "foresail", "data", "curate", str(recipe)]
    log = (folder / f"{name}.log").open("ab")
    return subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)


def finished_run(folder: Path, name: str) -> Path:
    code = start_run(folder, name).wait()
    assert code == 0, (folder / f"{name}.log").read_text()[-3000:]
    return folder / name


def kill_once(folder: Path, out: Path, moment: float, chance: random.Random, result: dict[str, int]) -> bool:
    """Kill the process group after so many CPU seconds, or every third time one worker; False: it had ended."""
    process = start_run(folder, out.name)
    while process.poll() is None and cpu_seconds(process.pid) < moment:
        time.sleep(0.005)
    workers = children(process.pid)
    if process.poll() is not None:
        result["came_too_late"] += 1
        return False
    if workers and chance.randrange(3) == 0:
        os.kill(chance.choice(workers), signal.SIGKILL)
        process.wait()
        result["kills"] += 1
        result["of_one_worker"] += 1
    else:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        result["kills"] += 1
    return True


def cpu_seconds(group: int) -> float:
    """Of all processes of the group, and of those that they have waited for."""
    ticks = 0
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = file.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(fields[2]) == group:
            ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def children(pid: int) -> list[int]:
    """Worker processes: children that run a piece, not multiprocessing's own helper."""
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            candidates = task.read_text().split()
            found += [
                int(child)
                for child in candidates
                if b"resource_tracker" not in Path(f"/proc/{child}/cmdline").read_bytes()
            ]
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


def notes(out: Path) -> int:
    return Path(f"{out}.notes").read_bytes().count(b"\n")


def outputs(out: Path) -> dict[str, Any]:
    files: dict[str, Any] = {
        str(path.relative_to(out)): path.read_bytes()
        for path in sorted(out.rglob("*"))
        if path.is_file() and path.suffix not in (".json", ".html") and path.name != ".lock"
    }
    summary = json.loads((out / "summary.json").read_text())
    del summary["work"]
    return {**files, "summary": summary}


def report_difference(out: Path, whole: Path) -> None:
    ours, theirs = outputs(out), outputs(whole)
    for name in sorted(ours.keys() | theirs.keys()):
        if ours.get(name) != theirs.get(name):
            print(f"  {out.name}: {name} differs", flush=True)


if __name__ == "__main__":
    main()
