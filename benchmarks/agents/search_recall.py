"""How often search finds the passages that a question needs: BM25 against a sentence embedder. Ends with JSON.

The query is the question as it is. recall@5: the share of a question's evidence titles among the first five
passages, averaged over questions; complete@5: the share of questions that have all of theirs there.

    python benchmarks/agents/search_recall.py    # bm25, and dense where the package is there
    python benchmarks/agents/search_recall.py --kinds bm25
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from statistics import mean

from foresail.agents.tools.search import Finder, open_index
from foresail.data.problems.problems import load_problems
from foresail.data.problems.qa import evidence_titles
from foresail.recipe.tables.parts import Problems
from foresail.records import Problem

ROOT = Path(__file__).resolve().parents[2]
SETS = {
    "hotpotqa": ("hotpotqa_100_distractor/qa.jsonl.gz", "hotpotqa_100_distractor/corpus.jsonl.gz"),
    "2wiki": ("2wiki/qa_matched_to_corpus.jsonl.gz", "2wiki/corpus6119.jsonl.gz"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description="Recall of BM25 and of dense search.")
    parser.add_argument(
        "--data", type=Path, default=ROOT.parent / "shared/data/qa", help="folder of the sets"
    )
    parser.add_argument("--kinds", nargs="+", default=["bm25", "dense"])
    parser.add_argument("--model", default="", help="dense: folder of a sentence embedder")
    parser.add_argument("--count", type=int, default=5)
    options = parser.parse_args()
    recall: dict[str, dict[str, dict[str, float]]] = {}
    for name, (questions, corpus) in SETS.items():
        problems = load_problems(Problems(source=str(options.data / questions)))
        for kind in options.kinds:
            began = time.perf_counter()
            index = open_index(str(options.data / corpus), kind, options.model if kind == "dense" else "")
            opened = time.perf_counter() - began
            figures = measure(index, problems, options.count) | {"index_seconds": round(opened, 2)}
            recall.setdefault(name, {})[kind] = figures
            print(f"{name:9} {kind:6} " + "  ".join(f"{key} {value}" for key, value in figures.items()))
    print(json.dumps({"count": options.count, "sets": recall}))


def measure(index: Finder, problems: list[Problem], count: int) -> dict[str, float]:
    known = {passage.title for passage in index.passages}
    recalls = []
    began = time.perf_counter()
    for problem in problems:
        evidence = set(evidence_titles(problem)) & known
        if not evidence:
            continue
        titles = {passage.title for passage in index.find(problem.prompt[-1].content, count)}
        recalls.append(len(evidence & titles) / len(evidence))
    spent = time.perf_counter() - began
    return {
        "questions": len(recalls),
        "recall": round(mean(recalls), 4),
        "complete": round(mean(recall == 1 for recall in recalls), 4),
        "milliseconds_a_query": round(1000 * spent / len(recalls), 2),
    }


if __name__ == "__main__":
    main()
