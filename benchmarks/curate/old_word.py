"""Text of .doc files (Word 97 to 2003) beside other libraries: how many give text, and whether it is the same.

python benchmarks/curate/old_word.py poi/test-data/document --peer-python PYTHON

FOLDER holds .doc files, such as those of Apache POI's tests. PYTHON has kreuzberg, unword and legacy-doc; each
reads the files in a process of its own. `same`: files with the same words (F1 of at least .99), of those that both
read.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
from collections import Counter
from pathlib import Path

from foresail.curate.document import Document
from foresail.curate.extract.doc.step import ExtractDoc
from foresail.curate.read.kinds import MEDIA_TYPES

WORD = re.compile(r"\w+")
PEERS = {
    "kreuzberg": "import kreuzberg; read = lambda b: kreuzberg.extract_bytes_sync(b, 'application/msword').content",
    "unword": "import unword; read = lambda b: unword.parse_doc(b).body_text",
    "legacy-doc": "import legacy_doc; read = lambda b: legacy_doc.extract_text(b).text",
}
LOOP = """
import json, sys
for path in sys.argv[1:]:
    try:
        text = read(open(path, "rb").read())
    except BaseException:
        text = ""
    print(json.dumps(text))
"""


def by_peer(python: str, code: str, files: list[Path]) -> list[str]:
    command = [python, "-c", code + LOOP, *map(str, files)]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in run.stdout.splitlines()]


def by_ours(files: list[Path]) -> tuple[list[str], Counter[str]]:
    extract = ExtractDoc(markup=False).open()
    texts, reasons = [], Counter[str]()
    for path in files:
        outcome = extract(Document(id="a", content=path.read_bytes(), media_type=MEDIA_TYPES["doc"]))
        texts.append(outcome.text if isinstance(outcome, Document) else "")
        reasons["text" if isinstance(outcome, Document) else getattr(outcome, "reason", "")] += 1
    return texts, reasons


def word_f1(one: str, other: str) -> float:
    a, b = Counter(WORD.findall(one)), Counter(WORD.findall(other))
    return 2 * (a & b).total() / max(1, a.total() + b.total())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--peer-python")
    arguments = parser.parse_args()
    files = sorted(path for path in arguments.folder.iterdir() if path.suffix.lower() == ".doc")
    ours, reasons = by_ours(files)
    report: dict[str, object] = {"files": len(files), "ours": reasons}
    for name, code in PEERS.items() if arguments.peer_python else ():
        texts = by_peer(arguments.peer_python, code, files)
        both = [(a, b) for a, b in zip(ours, texts, strict=True) if a.strip() and b.strip()]
        same = sum(word_f1(a, b) >= 0.99 for a, b in both)
        report[name] = {"text": sum(bool(text.strip()) for text in texts), "both": len(both), "same": same}
    print(json.dumps(report))


if __name__ == "__main__":
    main()
