"""datatrove's side of `decontamination.py`: runs where datatrove is installed, and imports nothing of Foresail.

    python decontamination_peer.py TASK.json     # {"language": "english", "rows": […], "documents": […]}

Its n-gram filter with 13 words, and n-grams of the questions; prints JSON: which documents it drops, CPU seconds
without those of the index.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

N = 13


def main() -> None:
    import numpy as np
    from datatrove.data import Document
    from datatrove.pipeline.decont.n_grams import NGramsDecontConfig, NGramsDecontFilter
    from datatrove.utils.text import ngrams, simplify_text

    task: dict[str, Any] = json.loads(Path(sys.argv[1]).read_text())
    config = NGramsDecontConfig(n_grams=N, find_query_ngrams=True)
    with TemporaryDirectory() as folder:
        step = NGramsDecontFilter(folder, config, language=task["language"])
        hashes = set()
        for row in task["rows"]:
            words = step.tokenizer.word_tokenize(simplify_text(row, config.norm_config))
            hashes |= {step.hash_func(" ".join(gram)) for gram in ngrams(words, N)}
        array = np.array(sorted(hashes), dtype=config.hash_config.np_descr)
        array.tofile(Path(folder) / "task.index.hashes")
        step.filter(Document(text="warm up", id="0"))
        start = time.process_time()
        dropped = [step.filter(Document(text=text, id="0")) is not True for text in task["documents"]]
    print(json.dumps({"dropped": dropped, "cpu_seconds": time.process_time() - start}))


if __name__ == "__main__":
    main()
