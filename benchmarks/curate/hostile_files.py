"""Damages small files of every kind: each gives documents or counted drops, in bounded time and memory.

python benchmarks/curate/hostile_files.py --cases 20000
python benchmarks/curate/hostile_files.py --case 4711       # one of them, in this process, with a traceback
python benchmarks/curate/hostile_files.py --bombs 1024      # MB: what a bomb of `bombs.py` unpacks to

A case is a number: it chooses the file and the damage (bits, cuts, doubled, swapped and overwritten parts, numbers
made huge, layers of compression around and inside); some are pages of few parts, thousands of times each. Processes
of their own read the cases, with a limit of CPU seconds each; one that dies or raises is printed with its number.
`--bombs` runs `foresail data curate` on a folder of bombs that are made by hand. With `shared/data` beside the
repository, its archives are damaged too.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path

from bomb_pages import repetition
from bomb_run import run_bombs
from small_files import small_files, zipped

from foresail.curate.document import Document, Drop
from foresail.curate.extract.step import Extract
from foresail.curate.read.kinds import kind_by_suffix
from foresail.curate.read.source import Source, list_pieces, read_documents

CPU_SECONDS = 20  # of one case
ROUND = 500  # cases of one process
ARCHIVES = Path(__file__).parents[3] / "shared/data/warc"
LARGEST = 300_000  # bytes of a file that is damaged
REPETITIONS = 0.05  # of the cases
NUMBER = re.compile(rb"\d+")


@cache
def seeds() -> list[tuple[str, bytes]]:
    files = small_files()
    for path in sorted(ARCHIVES.rglob("*.gz")) if ARCHIVES.is_dir() else ():
        files[path.name] = path.read_bytes()[:LARGEST]
    return sorted(files.items())


def flip(data: bytearray, chance: random.Random) -> None:
    for _ in range(chance.choice([1, 1, 3, 20])):
        if data:
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)


def cut(data: bytearray, chance: random.Random) -> None:
    place = chance.randrange(len(data) + 1)
    if chance.random() < 0.5:
        del data[place:]
    else:
        del data[place : place + chance.randrange(1, 200)]


def double(data: bytearray, chance: random.Random) -> None:
    place, length = chance.randrange(len(data) + 1), chance.randrange(1, 2000)
    data[place:place] = data[place : place + length] * chance.choice([1, 2, 50])


def swap(data: bytearray, chance: random.Random) -> None:
    a, b = sorted(chance.randrange(len(data) + 1) for _ in range(2))
    data[:] = data[:a] + data[b:] + data[a:b]


def overwrite(data: bytearray, chance: random.Random) -> None:
    place, length = chance.randrange(len(data) + 1), chance.choice([1, 4, 8, 100])
    fill = chance.choice(
        [b"\0", b"\xff", b"\x80", b"\n", b"<", b"PK\x03\x04", b"\x1f\x8b\x08", chance.randbytes(8)]
    )
    data[place : place + length] = (fill * length)[:length]


def huge_number(data: bytearray, chance: random.Random) -> None:
    numbers = list(NUMBER.finditer(data[:20_000]))
    if numbers:
        number = chance.choice(numbers)
        value = chance.choice([b"0", b"-1", b"4294967295", b"99999999999999999999", b"1e9", b"7"])
        data[number.start() : number.end()] = value


def other_file(data: bytearray, chance: random.Random) -> None:
    other = chance.choice(seeds())[1]
    place, start = chance.randrange(len(data) + 1), chance.randrange(len(other))
    data[place:place] = other[start : start + chance.randrange(1, 5000)]


DAMAGES: tuple[Callable[[bytearray, random.Random], None], ...] = (
    flip, flip, cut, double, swap, overwrite, huge_number, other_file,
)  # fmt: skip


def make_case(number: int) -> tuple[str, bytes]:
    """A file's name and content. Damage inside of a compressed file: unpacked, damaged, packed again."""
    chance = random.Random(number)
    if chance.random() < REPETITIONS:
        return "page.html", repetition(chance, LARGEST)
    name, content = chance.choice(seeds())
    inside = name.endswith(".gz") and chance.random() < 0.5
    if inside:
        try:
            content = gzip.decompress(content)
        except (EOFError, OSError):
            inside = False
    data = bytearray(content)
    for _ in range(chance.choice([1, 1, 2, 5])):
        chance.choice(DAMAGES)(data, chance)
    content = bytes(data)
    if inside:
        content = gzip.compress(content)
    if chance.random() < 0.05:
        content = gzip.compress(content) if chance.random() < 0.5 else zipped({name: content})
    return name, content


def read_case(name: str, content: bytes, chance: random.Random, folder: Path) -> Counter[str]:
    """Reads and extracts it; counts outcomes. Reading from the middle gives what reading all gives there."""
    path = folder / name
    path.write_bytes(content)
    kind = kind_by_suffix(path) if chance.random() < 0.5 else "auto"
    outcomes: Counter[str] = Counter()
    extract = Extract().open()
    try:
        try:
            pieces = list_pieces(Source(path=(str(path),), kind=kind or "auto", max_document_bytes=2**22))  # type: ignore[arg-type]
        except ValueError as error:
            if "holds nothing that can be read" not in str(error):
                raise
            return Counter(["nothing_to_read"])
        for piece in pieces:
            pairs = list(read_documents(piece))
            start = chance.randrange(len(pairs) + 1)
            assert list(read_documents(piece, start)) == pairs[start:], f"start {start}"
            for id, outcome in pairs:
                check(id, outcome)
                if isinstance(outcome, Document):
                    outcome = extract(outcome)  # type: ignore[assignment]
                    check(id, outcome)
                outcomes[outcome.reason if isinstance(outcome, Drop) else "document"] += 1
    finally:
        path.unlink()
    return outcomes


def check(id: str, outcome: Document | Drop) -> None:
    assert id and id.encode()
    if isinstance(outcome, Drop):
        assert re.fullmatch(r"[a-z0-9_]+", outcome.reason), outcome
        assert outcome.detail.encode() is not None
    else:
        assert outcome.text.encode() is not None and outcome.url.encode() is not None
        json.dumps(outcome.metadata, allow_nan=False, ensure_ascii=False).encode()


def child(first: int, last: int) -> None:
    """Says which case begins, and at the end what came of all."""
    outcomes: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for number in range(first, last):
            print(json.dumps({"case": number}), flush=True)
            _, hard = resource.getrlimit(resource.RLIMIT_CPU)
            resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time()) + CPU_SECONDS, hard))
            name, content = make_case(number)
            outcomes += read_case(name, content, random.Random(number), Path(folder))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(json.dumps({"outcomes": outcomes, "peak_MB": peak, "cpu_s": time.process_time()}))


def search(cases: int) -> dict[str, object]:
    outcomes: Counter[str] = Counter()
    failures: list[str] = []
    peak, cpu, first = 0, 0.0, 0
    while first < cases:
        last = min(cases, first + ROUND)
        command = [sys.executable, __file__, "--child", str(first), str(last)]
        run = subprocess.run(command, capture_output=True, text=True)
        lines = [json.loads(line) for line in run.stdout.splitlines()]
        if run.returncode == 0:
            outcomes += Counter(lines[-1]["outcomes"])
            peak, cpu, first = max(peak, lines[-1]["peak_MB"]), cpu + lines[-1]["cpu_s"], last
            continue
        number = lines[-1]["case"] if lines else first
        failures.append(f"case {number}: exit {run.returncode}: {run.stderr.strip().splitlines()[-1:]}")
        print(failures[-1], flush=True)
        first = number + 1
    return {
        "cases": cases,
        "failures": failures,
        "outcomes": outcomes,
        "peak_MB": peak,
        "cpu_s": round(cpu, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=5000)
    parser.add_argument("--case", type=int)
    parser.add_argument("--bombs", type=int, metavar="MB")
    parser.add_argument("--child", type=int, nargs=2)
    options = parser.parse_args()
    if options.child:
        child(*options.child)
    elif options.case is not None:
        name, content = make_case(options.case)
        print(name, len(content), "bytes")
        with tempfile.TemporaryDirectory() as folder:
            print(read_case(name, content, random.Random(options.case), Path(folder)))
    elif options.bombs is not None:
        with tempfile.TemporaryDirectory() as folder:
            print(json.dumps(run_bombs(Path(folder), options.bombs * 2**20), indent=1))
    else:
        print(json.dumps(search(options.cases)))


if __name__ == "__main__":
    main()
