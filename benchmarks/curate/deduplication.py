"""Near duplicates: the pairs of datasketch, its speed beside ours, recall against exact similarity, growth, a plan.

python benchmarks/curate/deduplication.py pairs --peer-python ENV/bin/python    # ENV has datasketch 2
python benchmarks/curate/deduplication.py speed --peer-python ENV/bin/python
python benchmarks/curate/deduplication.py recall
python benchmarks/curate/deduplication.py growth --sizes 10000 100000 1000000     # into benchmarks/measured
python benchmarks/curate/deduplication.py pipeline --sizes 100000                 # the same in `data curate`
python benchmarks/curate/deduplication.py draw plan                               # of what was measured

Needs ../shared/data. Seconds are CPU seconds; both sides run in turn on the same texts.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from deduplication_growth import measure_growth, measure_pipeline
from deduplication_kernel import Shingles
from deduplication_plan import draw, plan
from deduplication_texts import Text, real_texts, with_copies

from foresail.curate.deduplicate.collected import Collected
from foresail.curate.deduplicate.minhash import Minhash
from foresail.curate.deduplicate.shingles import shingles
from foresail.curate.document import Document, Drop

DATA = Path(__file__).parents[3] / "shared/data"
PEER = Path(__file__).with_name("deduplication_peer.py")
PERMUTATIONS, SEED = 128, 1
CUTS = [(0.8, 0, 0), (0.7, 0, 0), (0.5, 0, 0), (0.0, 16, 8), (0.0, 32, 4)]  # threshold, or bands and rows
ROUNDS = 3
RANGES = (0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parts = ("pairs", "speed", "recall", "growth", "pipeline", "draw", "plan")
    parser.add_argument("parts", nargs="+", choices=parts)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--peer-python", help="an interpreter with datasketch 2")
    parser.add_argument("--out", type=Path, default=Path("runs/deduplication"), help="for scratch files")
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--picture", type=Path, default=Path("docs/curate-dedup.png"))
    parser.add_argument("--each", type=int, default=150, help="texts of a language")
    options = parser.parse_args()
    if {"pairs", "speed"} & {*options.parts} and not options.peer_python:
        parser.error("pairs and speed need --peer-python, an interpreter with datasketch 2")
    options.out.mkdir(parents=True, exist_ok=True)
    for part in options.parts:
        match part:
            case "pairs":
                print(json.dumps({part: compare_pairs(options)}))
            case "speed":
                print(json.dumps({part: compare_speed(options)}))
            case "recall":
                print(json.dumps({part: measure_recall(options)}))
            case "growth":
                measure_growth(options.data, options.out, options.sizes)
            case "pipeline":
                for size in options.sizes:
                    print(json.dumps({part: measure_pipeline(options.data, options.out, size)}))
            case "draw":
                draw(options.picture)
            case "plan":
                print(json.dumps({part: plan()}))


def ask_peer(python: str, task: dict[str, Any], texts: Sequence[str]) -> tuple[dict[str, Any], Any]:
    """The peer's reply, and its signatures; it gets our shingles."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        task |= {"permutations": PERMUTATIONS, "seed": SEED}
        (folder / "task.json").write_text(json.dumps(task))
        lines = "".join(json.dumps(shingles(text)) + "\n" for text in texts)
        (folder / "shingles.jsonl").write_text(lines)
        subprocess.run([python, PEER, folder], check=True)
        return json.loads((folder / "reply.json").read_text()), np.load(folder / "signatures.npy")


# Pairs.


def compare_pairs(options: argparse.Namespace) -> dict[str, Any]:
    texts = [*with_copies(real_texts(options.data, each=options.each), seed=1, most=2, largest=0.1)]
    reply, theirs_nP = ask_peer(options.peer_python, {"part": "pairs", "settings": CUTS}, own(texts))
    ours_nP, _ = Minhash(permutations=PERMUTATIONS, seed=SEED).signatures(own(texts))
    rows = []
    for (threshold, bands, rows_of_band), found in zip(CUTS, reply["found"], strict=True):
        step = Minhash(threshold=threshold or 0.5, bands=bands, rows=rows_of_band, verify=False)
        pairs = candidate_pairs(step, texts)
        theirs = {(one, other) for one, other in found["pairs"]}
        rows.append(
            {
                "threshold": threshold or None,
                "cut": list(step.cut),
                "same_cut": list(step.cut) == found["cut"],
                "pairs": len(pairs),
                "ours_alone": len(pairs - theirs),
                "theirs_alone": len(theirs - pairs),
            }
        )
    figures = {
        "datasketch": reply["version"],
        "texts": len(texts),
        "copies": sum(text.of >= 0 for text in texts),
        "equal_signatures": int(np.all(ours_nP == theirs_nP, axis=1).sum()),
        "cuts": rows,
    }
    if figures["equal_signatures"] != len(texts) or any(
        row["ours_alone"] or row["theirs_alone"] or not row["same_cut"] for row in rows
    ):
        raise SystemExit(f"not equal to datasketch: {json.dumps(figures)}")
    return figures


def own(texts: Sequence[Text]) -> list[str]:
    return [text.text for text in texts]


def candidate_pairs(step: Minhash, texts: Sequence[Text]) -> set[tuple[int, int]]:
    """By the step's own files and sorting, in little memory."""
    little = step.model_copy(update={"memory_gib": 1e-5})
    pairs = set()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "0.features"
        little.collect(documents(texts), file)
        collected = Collected.open([file])
        for numbers, starts in little.groups(collected, Path(folder) / "groups"):
            for begin, end in pairwise(starts.tolist()):
                pairs |= {*combinations(sorted(numbers[begin:end].tolist()), 2)}
    return pairs


def documents(texts: Sequence[Text]) -> list[Document]:
    return [Document(id=str(number), text=text.text) for number, text in enumerate(texts)]


# Speed.


def compare_speed(options: argparse.Namespace) -> dict[str, Any]:
    """Signatures per CPU-second: both from ready shingles on, and both from the text on.

    For datasketch, texts are cut by the plainest Python, `split`: other shingles, but what they take is the same.
    """
    figures: dict[str, Any] = {"rounds": ROUNDS}
    step = Minhash(permutations=PERMUTATIONS, seed=SEED)
    real = real_texts(options.data, each=10**6)
    for name, languages, count in (("English", ("en",), 1000), ("all languages", (), 1000)):
        texts = own([text for text in real if not languages or text.language in languages])
        texts = texts[:: max(1, len(texts) // count)]
        cut = [shingles(text) for text in texts]
        ready = Shingles.of(cut)
        made_nP = ready.signatures(PERMUTATIONS, SEED)
        ours: list[list[float]] = [[], [], []]

        def take_turns(ready: Shingles, texts: Sequence[str], ours: list[list[float]]) -> None:
            for _ in range(ROUNDS):
                ours[0].append(cpu_seconds(lambda: ready.signatures(PERMUTATIONS, SEED)))
                ours[1].append(cpu_seconds(lambda: step.signatures(texts)))
                ours[2].append(cpu_seconds(lambda: [*map(split_shingles, texts)]))

        step.signatures(texts[:1])
        take_turns(ready, texts, ours)
        reply, theirs_nP = ask_peer(options.peer_python, {"part": "speed", "rounds": ROUNDS}, texts)
        take_turns(ready, texts, ours)  # on both sides of the peer: the machine may have changed
        from_shingles, from_texts, cutting = (len(texts) / statistics.median(own) for own in ours)
        theirs = {way: len(texts) / those for way, those in reply["seconds"].items()}
        best = max(rate for way, rate in theirs.items() if way != "crc32")
        whole = 1 / (1 / best + 1 / cutting)
        figures[name] = {
            "texts": len(texts),
            "shingles": round(statistics.mean(map(len, cut)), 1),
            "equal": bool(np.all(made_nP == theirs_nP) and np.all(step.signatures(texts)[0] == theirs_nP)),
            "from_shingles": round(from_shingles),
            "datasketch_from_shingles": {way: round(rate) for way, rate in theirs.items()},
            "ratio_from_shingles": round(from_shingles / best, 1),
            "ratio_to_crc32": round(from_shingles / theirs["crc32"], 1),
            "from_texts": round(from_texts),
            "datasketch_from_texts": round(whole),
            "ratio_from_texts": round(from_texts / whole, 1),
            "from_texts_to_its_from_shingles": round(from_texts / best, 1),
        }
    return figures


def cpu_seconds(work: Callable[[], Any]) -> float:
    begin = time.process_time()
    work()
    return time.process_time() - begin


def split_shingles(text: str) -> list[bytes]:
    words = text.lower().split()
    return [" ".join(words[at : at + 5]).encode() for at in range(max(1, len(words) - 4))]


# Recall and precision.


def measure_recall(options: argparse.Namespace) -> dict[str, Any]:
    """Against the exact similarity of all pairs."""
    originals = real_texts(options.data, each=options.each)
    texts = with_copies(originals, seed=2, most=3, largest=0.12)
    exact = exact_pairs(own(texts))
    figures: dict[str, Any] = {"texts": len(texts), "pairs_that_share_a_shingle": len(exact)}
    for threshold in (0.7, 0.8):
        plain = Minhash(threshold=threshold, verify=False)
        bands, rows = plain.cut
        steps = {
            "datasketch's bands, no comparison": plain,
            "datasketch's bands, compared": Minhash(threshold=threshold, bands=bands, rows=rows),
            "the default": Minhash(threshold=threshold),
        }
        for name, step in steps.items():
            figures[f"{threshold}, {name}"] = judge(step, texts, exact)
    return figures


def exact_pairs(texts: Sequence[str]) -> dict[tuple[int, int], float]:
    """Jaccard similarity of every pair that shares a shingle; all others have 0."""
    numbers: dict[str, int] = {}
    sizes, found = [], []
    for number, text in enumerate(texts):
        ids = {numbers.setdefault(shingle, len(numbers)) for shingle in shingles(text)}
        sizes.append(len(ids))
        found += [(one, number) for one in ids]
    owners = defaultdict(list)
    for shingle, number in found:
        owners[shingle].append(number)
    common: dict[tuple[int, int], int] = defaultdict(int)
    for those in owners.values():
        for pair in combinations(those, 2):
            common[pair] += 1
    return {(one, other): both / (sizes[one] + sizes[other] - both) for (one, other), both in common.items()}


def judge(step: Minhash, texts: Sequence[Text], exact: dict[tuple[int, int], float]) -> dict[str, Any]:
    """Of pairs: which are candidates. Of documents: which are dropped, and how like the one that they name."""
    pairs = candidate_pairs(step, texts)
    dropped = dropped_documents(step, texts)
    like = [exact.get((first, number), 0.0) for number, first in dropped.items()]
    repeated = {other for (_, other), value in exact.items() if value >= step.threshold}
    left = {
        other
        for (one, other), value in exact.items()
        if value >= step.threshold and one not in dropped and other not in dropped
    }
    found = {f"{low} to {high}": share_found(pairs, exact, low, high) for low, high in pairwise(RANGES)}
    return {
        "cut": list(step.cut),
        "candidate_pairs": len(pairs),
        "pairs_found": found,
        "pair_recall": share_found(pairs, exact, step.threshold, 1.0),
        "pair_precision": share([exact.get(pair, 0.0) >= step.threshold for pair in pairs]),
        "dropped": len(dropped),
        "recall": share([number in dropped for number in repeated]),
        "left": len(left),
        "precision": share([value >= step.threshold for value in like]),
        "precision_less_0.05": share([value >= step.threshold - 0.05 for value in like]),
        "least_like": round(min(like, default=1.0), 3),
    }


def share_found(
    pairs: set[tuple[int, int]], exact: dict[tuple[int, int], float], low: float, high: float
) -> float | None:
    return share([pair in pairs for pair, value in exact.items() if low <= value < high + (high == 1.0)])


def share(truths: Sequence[bool]) -> float | None:
    return round(sum(truths) / len(truths), 4) if truths else None


def dropped_documents(step: Minhash, texts: Sequence[Text]) -> dict[int, int]:
    """Whom each dropped document repeats."""
    with tempfile.TemporaryDirectory() as folder:
        features, decisions, scratch = (Path(folder) / name for name in ("features", "decisions", "scratch"))
        scratch.mkdir()
        step.collect(documents(texts), features)
        step.decide([features], [decisions], scratch)
        apply = step.open(decisions)
        outcomes = [apply(number, document) for number, document in enumerate(documents(texts))]
    return {
        number: int(outcome.detail.removeprefix("repeats "))
        for number, outcome in enumerate(outcomes)
        if isinstance(outcome, Drop)
    }


if __name__ == "__main__":
    main()
