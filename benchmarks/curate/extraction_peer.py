"""A rival's main content of pages, for `extraction.py`. Imports nothing of Foresail.

python extraction_peer.py                          # prints which rivals this interpreter has
python extraction_peer.py trafilatura IN OUT       # IN: JSON list of {html, url}; OUT: {"seconds", "texts"}
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

Extractor = Callable[[str, str], str]
PACKAGES = {
    "trafilatura": "trafilatura",
    "trafilatura, recall": "trafilatura",
    "trafilatura, fast": "trafilatura",
    "rs-trafilatura": "rs_trafilatura",
    "resiliparse, main": "resiliparse",
    "resiliparse, all": "resiliparse",
}
TRAFILATURA = {
    "trafilatura": {},
    "trafilatura, recall": {"favor_recall": True},
    "trafilatura, fast": {"fast": True},
}


def extractor(name: str) -> Extractor:
    if name in TRAFILATURA:
        trafilatura = import_module("trafilatura")
        return lambda html, url: trafilatura.extract(html, url=url or None, **TRAFILATURA[name]) or ""
    if name == "rs-trafilatura":
        rust = import_module("rs_trafilatura")
        return lambda html, url: rust.extract(html, url=url or None).main_content or ""
    html2text = import_module("resiliparse.extract.html2text")
    main = name == "resiliparse, main"
    return lambda html, url: html2text.extract_plain_text(html, main_content=main)


def main() -> None:
    if len(sys.argv) == 1:
        print(json.dumps([name for name, package in PACKAGES.items() if find_spec(package)]))
        return
    name, source, target = sys.argv[1:]
    extract = extractor(name)
    pages = json.loads(Path(source).read_text())
    for page in pages[:2]:
        extract(page["html"], page["url"])
    texts = []
    began = time.process_time()
    for page in pages:
        texts.append(extract(page["html"], page["url"]))
    seconds = time.process_time() - began
    Path(target).write_text(json.dumps({"seconds": seconds, "texts": texts}))


if __name__ == "__main__":
    main()
