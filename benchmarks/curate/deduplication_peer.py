"""datasketch's side of `deduplication.py`, in an interpreter that has it; imports nothing of Foresail.

python deduplication_peer.py FOLDER     reads FOLDER/task.json and shingles.jsonl; writes signatures.npy, reply.json
"""

from __future__ import annotations

import json
import statistics
import sys
import time
import zlib
from importlib import import_module
from pathlib import Path
from typing import Any


def main() -> None:
    folder = Path(sys.argv[1])
    task = json.loads((folder / "task.json").read_text())
    with (folder / "shingles.jsonl").open(encoding="utf-8") as lines:
        shingles = [[part.encode() for part in json.loads(line)] for line in lines]
    reply = {"pairs": pairs, "speed": speed}[task["part"]](folder, task, shingles)
    (folder / "reply.json").write_text(json.dumps(reply))


def pairs(folder: Path, task: dict[str, Any], shingles: list[list[bytes]]) -> dict[str, Any]:
    """The pairs that MinHashLSH finds for each setting: [threshold, bands, rows], bands 0 for its own choice."""
    datasketch = import_module("datasketch")
    import numpy as np

    made = datasketch.MinHash.bulk(shingles, num_perm=task["permutations"], seed=task["seed"])
    np.save(folder / "signatures.npy", np.array([own.hashvalues for own in made]))
    found = []
    for threshold, bands, rows in task["settings"]:
        lsh = datasketch.MinHashLSH(
            threshold or 0.5, task["permutations"], params=(bands, rows) if bands else None
        )
        for number, own in enumerate(made):
            if shingles[number]:
                lsh.insert(number, own)
        both = sorted(
            [other, number]
            for number, own in enumerate(made)
            if shingles[number]
            for other in lsh.query(own)
            if other < number
        )
        found.append({"cut": [lsh.b, lsh.r], "pairs": both})
    return {"version": datasketch.__version__, "found": found}


def speed(folder: Path, task: dict[str, Any], shingles: list[list[bytes]]) -> dict[str, Any]:
    """CPU seconds for all signatures, by each way that it offers; the median of some rounds."""
    datasketch = import_module("datasketch")
    import numpy as np

    count, seed = task["permutations"], task["seed"]

    def one_by_one() -> list[Any]:
        made = []
        for own in shingles:
            made.append(datasketch.MinHash(num_perm=count, seed=seed))
            made[-1].update_batch(own)
        return made

    def bulk(**settings: Any) -> list[Any]:
        return datasketch.MinHash.bulk(shingles, num_perm=count, seed=seed, **settings)

    def generated() -> list[Any]:
        return [own.hashvalues for own in datasketch.MinHash.generator(shingles, num_perm=count, seed=seed)]

    def crc32() -> list[Any]:
        return bulk(hashfunc=zlib.crc32)

    seconds: dict[str, list[float]] = {}
    for _ in range(task["rounds"]):
        for way in (one_by_one, bulk, generated, crc32):
            begin = time.process_time()
            way()
            seconds.setdefault(way.__name__, []).append(time.process_time() - begin)
    np.save(folder / "signatures.npy", np.array([own.hashvalues for own in bulk()]))
    return {
        "version": datasketch.__version__,
        "seconds": {name: statistics.median(those) for name, those in seconds.items()},
    }


if __name__ == "__main__":
    main()
