"""The step `blocked_urls` with a list of a million hosts: CPU seconds to load it, memory, addresses a core-second.

    python benchmarks/curate/block_lists.py

Hosts and addresses are made; a tenth of the addresses is on the list. The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import tempfile
import time
from pathlib import Path

from foresail.curate.document import Document, Drop
from foresail.curate.lists.urls import BlockedUrls


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--hosts", type=int, default=1_000_000)
    parser.add_argument("--addresses", type=int, default=100_000)
    options = parser.parse_args()
    dice = random.Random(0)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "domains"
        with file.open("w") as lines:
            lines.writelines(f"{host(dice, number)}\n" for number in range(options.hosts))
        before = peak_MB()
        begun = time.process_time()
        step = BlockedUrls(lists=(str(file),), words=("casino",)).open()
        load_s = time.process_time() - begun
        memory = peak_MB() - before
    dice = random.Random(0)
    listed = [host(dice, number) for number in range(options.addresses // 10)]
    urls = [
        f"https://www.{listed[n // 10] if n % 10 == 0 else host(dice, -n)}/news/2026/{n}?page=2"
        for n in range(options.addresses)
    ]
    documents = [Document(id=url, url=url) for url in urls]
    begun = time.process_time()
    dropped = sum(isinstance(step(document), Drop) for document in documents)
    seconds = time.process_time() - begun
    figures = {
        "hosts": options.hosts,
        "load_cpu_s": round(load_s, 2),
        "memory_MB": round(memory),
        "addresses": options.addresses,
        "dropped": dropped,
        "addresses_per_core_second": round(options.addresses / seconds),
    }
    print(json.dumps(figures))


def host(dice: random.Random, number: int) -> str:
    kind = dice.choice(["shop", "best", "my", "the"])
    return f"{kind}-{dice.getrandbits(40):x}{'n' if number < 0 else 'p'}{abs(number)}.example"


def peak_MB() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()
