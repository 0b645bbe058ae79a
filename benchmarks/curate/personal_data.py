"""Personal data in texts: what is found and what is taken for it, beside datatrove, presidio and scrubadub.

python benchmarks/curate/personal_data.py --peer-python PYTHON     # has faker, and the rivals that are to run

Planted: faker's e-mail addresses, phone numbers, cards, accounts, national ids and public IP addresses of seven
countries, and tokens, stand between words of real sentences (`text/train`), half of them behind a word such as
"Tel:". As many decoys stand in other places: prices, dates, ISBNs, versions, hashes, formulas. An item counts as
found when nine tenths of its characters are covered, of whatever kind the finder takes it for. Precision is the
share of findings that touch an item; recall of NIK and MyKad, which faker does not make, is not measured here.
Clean: findings in a MB of text of 17 languages, of mathematics and of code, which hold next to no personal data.
Seconds are CPU seconds on the clean texts. The rivals get the same texts, in one process each.
"""

from __future__ import annotations

import argparse
import gzip
import json
import lzma
import random
import subprocess
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any, NamedTuple

from foresail.curate.pii.find import find

DATA = Path(__file__).parents[3] / "shared/data"
PEER = Path(__file__).with_name("personal_data_peer.py")
COVERED = 0.9
CLEAN_BYTES = 400_000  # of a file
MATHS = ("math/MATH/train7500", "math/gsm8k/train", "math/deepmath_5k/train")
CODE = ("code/mbpp/mbpp", "code/humaneval/HumanEval", "code/leetcodedataset/v0.2.0-train")
# A word that says what follows. Written before the finder's own list, and not after it.
WORDS = {
    "phone": {
        "id": "Telp:", "th": "โทร", "vi": "Điện thoại:", "pt": "Telefone:", "tl": "Tel. no.", "en": "Phone:",
        "zh": "电话：",
    },
    "email": {
        "id": "Surel:", "th": "อีเมล", "vi": "Email:", "pt": "E-mail:", "tl": "Email:", "en": "Mail:",
        "zh": "邮箱：",
    },
    "national_id": {"th": "เลขประจำตัวประชาชน", "pt": "CPF/CNPJ:", "en": "SSN:", "zh": "身份证号："},
    "ip": dict.fromkeys(("id", "th", "vi", "pt", "tl", "en", "zh"), "IP:"),
}  # fmt: skip


class Item(NamedTuple):
    kind: str
    start: int
    end: int
    named: bool  # behind a word that says what it is


class Planted(NamedTuple):
    text: str
    items: list[Item]


def main() -> None:
    options = read_options()
    peers = json.loads(subprocess.check_output([options.peer_python, str(PEER)]))
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "made.json"
        arguments = ["make", str(options.seed), str(options.count), str(made)]
        subprocess.run([options.peer_python, str(PEER), *arguments], check=True)
        values = json.loads(made.read_text())
        planted = plant(values, options.data, options.seed)
        clean = clean_texts(options.data)
        texts = [document.text for document in planted] + [text for _, text in clean]
        runs = {"foresail": run_ours(texts)}
        for name in peers:
            runs[name] = run_peer(options.peer_python, name, texts, Path(folder))
    figures = {
        name: figures_of(run["spans"], run["seconds"], planted, clean, run.get("kinds"))
        for name, run in runs.items()
    }
    for name, found in figures.items():
        print(name, json.dumps(found, ensure_ascii=False))
    if options.missed:
        show_missed(runs["foresail"]["spans"], planted, clean, options.missed)
    print(
        json.dumps({"seed": options.seed, "documents": len(planted), "finders": figures}, ensure_ascii=False)
    )


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--peer-python", required=True, help="an interpreter that has faker and rivals")
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--count", type=int, default=60, help="how often each kind is made, in each language")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--missed", type=int, default=0, help="show so many items that were missed")
    return parser.parse_args()


# Texts.


def plant(values: dict[str, Any], data: Path, seed: int) -> list[Planted]:
    chance = random.Random(seed)
    decoys = values.pop("decoys")
    documents = []
    for language, items in values.items():
        sentences = plain_sentences(data / f"text/train/{language}.jsonl.xz", 4 * len(items), chance)
        for number, (kind, value) in enumerate(items):
            words = sentences[4 * number].split(" ")
            lead = WORDS.get(kind, {}).get(language, "") if chance.random() < 0.5 else ""
            place = chance.randrange(len(words) + 1)
            before = " ".join([sentences[4 * number + 1], *words[:place], *filter(None, [lead]), ""])
            behind = " " + " ".join(
                [*words[place:], sentences[4 * number + 2], chance.choice(decoys), sentences[4 * number + 3]]
            )
            item = Item(kind, len(before), len(before) + len(value), bool(lead))
            documents.append(Planted(before + value + behind, [item]))
    return documents


def plain_sentences(file: Path, count: int, chance: random.Random) -> list[str]:
    """Without @, and without long numbers: what is found in them is not what was planted."""
    with lzma.open(file, "rt") as lines:
        texts = [json.loads(line)["text"] for line in lines]
    plain = [
        text for text in texts if 20 < len(text) < 300 and "@" not in text and sum(map(str.isdigit, text)) < 4
    ]
    return chance.choices(plain, k=count)


def clean_texts(data: Path) -> list[tuple[str, str]]:
    """Kind of text, text: the first rows of each file."""
    found = []
    for file in sorted(data.glob("text/train/*.jsonl.xz")):
        with lzma.open(file, "rt") as lines:
            found += [("text", text) for text in first_rows(lines)]
    for kind, names in (("maths", MATHS), ("code", CODE)):
        for name in names:
            with gzip.open(data / f"{name}.jsonl.gz", "rt") as lines:
                found += [(kind, text) for text in first_rows(lines)]
    return found


def first_rows(lines: Any) -> list[str]:
    """Documents of ten rows."""
    rows, size = [], 0
    for line in lines:
        row = json.loads(line)
        rows.append("\n".join(value for key, value in row.items() if isinstance(value, str) and key != "src"))
        size += len(rows[-1].encode())
        if size > CLEAN_BYTES:
            break
    return ["\n\n".join(rows[start : start + 10]) for start in range(0, len(rows), 10)]


# Finders.


def run_ours(texts: list[str]) -> dict[str, Any]:
    find("warm up: ann@b.org, +6281234567890")
    spans, kinds, seconds = [], [], []
    for text in texts:
        began = time.process_time()
        found = find(text)
        seconds.append(time.process_time() - began)
        spans.append([(start, end) for _, start, end in found])
        kinds.append([kind for kind, _, _ in found])
    return {"spans": spans, "seconds": seconds, "kinds": kinds}


def run_peer(python: str, name: str, texts: list[str], folder: Path) -> dict[str, Any]:
    source, target = folder / "in.json", folder / "out.json"
    source.write_text(json.dumps(texts))
    subprocess.run([python, str(PEER), name, str(source), str(target)], check=True)
    run: dict[str, Any] = json.loads(target.read_text())
    return run


# Figures.


def figures_of(
    spans: list[list[tuple[int, int]]],
    seconds: list[float],
    planted: list[Planted],
    clean: list[tuple[str, str]],
    kinds: list[list[str]] | None,
) -> dict[str, Any]:
    recalled: dict[str, list[bool]] = defaultdict(list)
    touching = total = right_kind = 0
    for number, (document, found) in enumerate(zip(planted, spans, strict=False)):
        for item in document.items:
            caught = coverage(item, found) >= COVERED
            recalled[item.kind].append(caught)
            if item.kind == "phone":
                recalled["phone, named" if item.named else "phone, bare"].append(caught)
            touches = [start < item.end and end > item.start for start, end in found]
            touching += sum(touches)
            if kinds is not None:
                right_kind += sum(
                    kind == item.kind for kind, hit in zip(kinds[number], touches, strict=True) if hit
                )
        total += len(found)
    counts, sizes = Counter[str](), Counter[str]()
    for (kind, text), found in zip(clean, spans[len(planted) :], strict=True):
        counts[kind] += len(found)
        sizes[kind] += len(text.encode("utf-8", "replace"))
    items = [caught for kind, all_caught in recalled.items() if "," not in kind for caught in all_caught]
    figures: dict[str, Any] = {
        "recall": round(sum(items) / len(items), 4),
        "precision": round(touching / max(1, total), 4),
        "recall_by_kind": {kind: round(sum(each) / len(each), 3) for kind, each in sorted(recalled.items())},
        "findings_per_clean_MB": {kind: round(counts[kind] / size * 1e6, 2) for kind, size in sizes.items()},
        "clean_MB": {kind: round(size / 1e6, 2) for kind, size in sizes.items()},
        "MB_per_CPU_second": round(sizes.total() / 1e6 / sum(seconds[len(planted) :]), 2),
    }
    if kinds is not None:
        figures["of_the_right_kind"] = round(right_kind / max(1, touching), 4)
    return figures


def coverage(item: Item, found: list[tuple[int, int]]) -> float:
    covered = {place for start, end in found for place in range(max(start, item.start), min(end, item.end))}
    return len(covered) / (item.end - item.start)


def show_missed(
    spans: list[list[tuple[int, int]]], planted: list[Planted], clean: list[tuple[str, str]], count: int
) -> None:
    missed: dict[str, list[str]] = defaultdict(list)
    for document, found in zip(planted, spans, strict=False):
        for item in document.items:
            if coverage(item, found) < COVERED:
                missed[f"missed {item.kind}"].append(document.text[item.start - 12 : item.end + 4])
            for start, end in found:
                if end <= item.start or start >= item.end:
                    missed["false"].append(document.text[max(0, start - 15) : end + 5])
    for (kind, text), found in zip(clean, spans[len(planted) :], strict=True):
        missed[f"in clean {kind}"] += [
            f"{text[max(0, start - 20) : start]}[{text[start:end]}]" for start, end in found
        ]
    for title, texts in missed.items():
        print(title, len(texts), texts[:count])


if __name__ == "__main__":
    main()
