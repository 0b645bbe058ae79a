"""The quickstart on several seeds: seconds by part, and accuracy on held-out problems before and after.

Each seed is a fresh `foresail quickstart` in its own process and folder, as a newcomer would run it.
The last line is JSON.

    python benchmarks/proofs/quickstart.py    # five seeds
    python benchmarks/proofs/quickstart.py --seeds 0 7
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    options = parser.parse_args()
    print(f"{'seed':>4}{'seconds':>9}{'greedy':>17}{'mean@8':>17}{'tokens':>15}")
    summaries = []
    for seed in options.seeds:
        summaries.append(run(seed))
        print(describe(summaries[-1]), flush=True)
    seconds = [summary["seconds"]["total"] for summary in summaries]
    figures = {
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "seconds_max": max(seconds),
        "before_max": worst("before", summaries, max),
        "after_min": worst("after", summaries, min),
        "seeds": [
            {key: summary[key] for key in ("seed", "seconds", "before", "after")} for summary in summaries
        ],
    }
    print(json.dumps(figures))


def run(seed: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable,
            "-m",
            "foresail.cli",
            "quickstart",
            "--run",
            f"{folder}/run",
            "--seed",
            str(seed),
        ]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return json.loads((Path(folder) / "run" / "summary.json").read_text())


def describe(summary: dict[str, Any]) -> str:
    before, after = summary["before"], summary["after"]
    columns = [f"{before[name]:.1%} -> {after[name]:.1%}" for name in ("greedy", "mean@8")]
    lengths = f"{before['response_length']:.1f} -> {after['response_length']:.1f}"
    return f"{summary['seed']:>4}{summary['seconds']['total']:>9.0f}{columns[0]:>17}{columns[1]:>17}{lengths:>15}"


def worst(when: str, summaries: list[dict[str, Any]], choose: Any) -> dict[str, float]:
    return {name: choose(summary[when][name] for summary in summaries) for name in ("greedy", "mean@8")}


if __name__ == "__main__":
    main()
