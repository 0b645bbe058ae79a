"""The step `heuristics`: how much prose, maths and code it keeps, and how much noise it drops, beside datatrove.

    python benchmarks/curate/heuristic_rules.py --peer-python /tmp/peers/bin/python

PYTHON has `pip install "datatrove[processing]" spacy jieba pythainlp pyvi python-crfsuite` (without it: only ours).
datatrove runs FineWeb's filters: Gopher repetition and quality, C4 without its rule on the ends of lines, FineWeb
quality. It is told each document's language, and has our stop words for all but English; Foresail is told none.
Limits were chosen on the half `tune`; the half `report` is what counts. The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from heuristic_documents import KEPT, Sample, documents

from foresail.curate.document import Document, Drop
from foresail.curate.heuristics.rules import read_rules
from foresail.curate.heuristics.step import Heuristics

DATA = Path(__file__).parents[3] / "shared/data"
Rows = list[Sample]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--half", choices=("tune", "report"), default="report")
    parser.add_argument("--peer-python", help="an interpreter that has datatrove")
    options = parser.parse_args()
    samples = documents(options.data, options.half)
    figures: dict[str, Any] = {"half": options.half, "foresail": run_ours(samples)}
    print_table("foresail", figures["foresail"])
    if options.peer_python:
        figures["datatrove"] = run_peer(samples, options.peer_python)
        print_table("datatrove", figures["datatrove"])
    print(json.dumps(figures))


def run_ours(samples: Rows) -> dict[str, Any]:
    step = Heuristics().open()
    step(Document(id="first", text="Compiles the loops."))
    verdicts, seconds = [], Counter[str]()
    for sample in samples:
        metadata = {"page_type": sample.page_type} if sample.page_type else {}
        begun = time.process_time()
        outcome = step(Document(id="a", text=sample.text, metadata=metadata))
        seconds[sample.part] += time.process_time() - begun  # type: ignore[assignment]
        verdicts.append(outcome.reason if isinstance(outcome, Drop) else "")
    return described(samples, verdicts, seconds)


def run_peer(samples: Rows, python: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "documents.jsonl"
        rows = [json.dumps(read_rules("").stop_words), *(json.dumps(vars(sample)) for sample in samples)]
        file.write_text("\n".join(rows), encoding="utf-8")
        command = [python, str(Path(__file__).parent / "heuristic_peer.py"), str(file)]
        run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode:
        raise SystemExit(f"{python} failed: {run.stderr[-2000:]}")
    found = json.loads(run.stdout.splitlines()[-1])
    return described(samples, found["verdicts"], found["seconds"])


def described(samples: Rows, verdicts: list[str], seconds: Any) -> dict[str, Any]:
    """Shares that are kept, of each part, and of prose and of shuffled words by language; MB a core-second."""
    kept, count, size = Counter[str](), Counter[str](), Counter[str]()
    reasons: dict[str, Counter[str]] = {}
    for sample, reason in zip(samples, verdicts, strict=True):
        keys = [sample.part]
        if sample.part in ("prose", "shuffled", "lessons"):
            keys.append(f"{sample.part} {sample.language}")
        size[sample.part] += len(sample.text.encode("utf-8", "replace"))
        for key in keys:
            count[key] += 1
            kept[key] += not reason
        if reason:
            reasons.setdefault(sample.part, Counter())[reason] += 1
    return {
        "documents": dict(count),
        "kept": {key: round(kept[key] / count[key], 4) for key in sorted(count)},
        "MB_per_core_second": {part: round(size[part] / 1e6 / seconds[part], 2) for part in size},
        "reasons": {part: dict(own.most_common(6)) for part, own in reasons.items()},
    }


def print_table(name: str, figures: dict[str, Any]) -> None:
    print(f"{name}: kept, of documents, MB a core-second, most frequent reasons")
    for part in [*KEPT, *(part for part in figures["MB_per_core_second"] if part not in KEPT)]:
        print(
            f"  {part:18} {figures['kept'][part]:6.1%} of {figures['documents'][part]:5}  "
            f"{figures['MB_per_core_second'][part]:6.2f}  {figures['reasons'].get(part, {})}"
        )
    for key in figures["kept"]:
        if " " in key:
            print(f"  {key:18} {figures['kept'][key]:6.1%} of {figures['documents'][key]:5}")
    print(flush=True)


if __name__ == "__main__":
    main()
