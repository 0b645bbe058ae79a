r"""The texts that the shipped language model is trained on, as files for `foresail data train-language`.

    python benchmarks/curate/language_files.py --common-voice CLONE --nusax CLONE --talpco CLONE \
        --indonlu CLONE --malaysian CLONE --out runs/language
    foresail data train-language runs/language/*.jsonl --examples 60000 --passes 3 \
        --out foresail/curate/language/model.npz

The clones are of common-voice/common-voice (CC0), IndoNLP/nusax, matbahasa/TALPCo (CC-BY), IndoNLP/indonlu and
mesolitica/malaysian-dataset; a bare clone does. Of the 17 languages: `text/train` and `text/courses` of
../shared/data, and for Indonesian, Malay, Thai, Vietnamese and English sentences of the latter four: the two
sisters need many sources, or a model learns their topics. The model should know what it does not know: eight groups
of other languages, each file a class, each language a source; and what is no language, code and noise.
The sources that tests measure on, UDHR and FLORES, are in none of these.
"""

from __future__ import annotations

import argparse
import ast
import base64
import csv
import gzip
import io
import json
import lzma
import random
import re
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

DATA = Path(__file__).parents[3] / "shared/data"
PER_SOURCE = 4000  # sentences of another language
NOISE = 6000
OTHERS = {
    "slavic": "sk sl hr sr mk ru uk bg be",
    "germanic": "sv-SE da nb-NO nn-NO is fy-NL af",
    "romance": "ca gl oc ast sc ia rm-sursilv",
    "turkic-uralic-baltic": "tr tk kk ky tt et fi lv eu sq eo",
    "east": "ja ko",
    "scripts": "ar fa he ur ckb el ka am hi mr ta te ml lo my km",
    "africa-celtic": "sw ha ig yo rw lg tn xh zu cy ga-IE br mt gn",
}
NUSAX_OTHERS = (
    "acehnese banjarese madurese ngaju sundanese balinese buginese javanese minangkabau toba_batak".split()
)
NUSAX = {"id": "indonesian", "en": "english"}
TALPCO = {"id": "ind", "ms": "zsm", "th": "tha", "vi": "vie"}
CARS = "crawl/motomalaya/mm_artikel_100_200.json"
FENCE = re.compile(r"^```[a-z]*\n(.*?)^```", re.S | re.M)
Row = tuple[str, str]  # text, source


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name in ("common-voice", "nusax", "talpco", "indonlu", "malaysian"):
        parser.add_argument(f"--{name}", type=Path, required=True, help="a clone")
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    for name, rows in files_of(options):
        lines = [json.dumps({"text": text, "src": source}, ensure_ascii=False) for text, source in rows]
        (options.out / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
        print(f"{name}: {len(lines):,} rows", flush=True)


def files_of(options: argparse.Namespace) -> Iterator[tuple[str, Iterable[Row]]]:
    data, common_voice = options.data, options.common_voice
    parallel = list(csv.DictReader(io.StringIO(text_of(options.nusax, "datasets/mt/train.csv"))))
    for file in sorted((data / "text/train").glob("*.jsonl.xz")):
        language = file.name.partition(".")[0]
        rows = [(row["text"], row["src"]) for row in rows_of(file)]
        if (courses := data / f"text/courses/{file.name}").exists():
            rows += [(row["text"], "courses") for row in rows_of(courses)]
        if language in NUSAX:
            rows += [(row[NUSAX[language]], "nusax") for row in parallel]
        if language in TALPCO:
            table = text_of(options.talpco, f"{TALPCO[language]}/data_{TALPCO[language]}.txt")
            rows += [(line.partition("\t")[2], "talpco") for line in table.splitlines()]
        if language == "id":
            rows += indonlu_rows(options.indonlu)
        if language == "ms":
            rows += malaysian_rows(options.malaysian)
        if language == "zh":
            rows += sentences(common_voice, "zh-TW")
        yield language, rows
    for group, languages in OTHERS.items():
        yield f"other-{group}", [row for name in languages.split() for row in sentences(common_voice, name)]
    yield "other-nusantara", [(row[name], name) for name in NUSAX_OTHERS for row in parallel]
    yield "none-code", code_rows(data)
    yield "none-noise", noise(random.Random(0))


def indonlu_rows(clone: Path) -> Iterator[Row]:
    """News and encyclopedia, words in lines; reviews and messages, texts in lines."""
    for name in ("bapos_pos-idn", "nerp_ner-prosa"):
        for block in text_of(clone, f"dataset/{name}/train_preprocess.txt").split("\n\n"):
            yield " ".join(line.split("\t")[0] for line in block.splitlines()), name
    for line in text_of(clone, "dataset/smsa_doc-sentiment-prosa/train_preprocess.tsv").splitlines():
        yield line.split("\t")[0], "smsa_doc-sentiment-prosa"
    table = csv.DictReader(io.StringIO(text_of(clone, "dataset/facqa_qa-factoid-itb/train_preprocess.csv")))
    for text in dict.fromkeys(row["passage"] for row in table):
        yield " ".join(ast.literal_eval(text)), "facqa_qa-factoid-itb"


def malaysian_rows(clone: Path) -> Iterator[Row]:
    """Headlines, articles on cars, and reviews and plots of films, the last by machine translation."""
    headlines = json.loads(text_of(clone, "crawl/bernama/bernama-ms.json"))
    for text in dict.fromkeys(row["text"] for row in headlines):
        if len(text) > 40:
            yield text, "bernama"
    for text in json.loads(text_of(clone, CARS))["konten"]:
        yield from (
            (line, "motomalaya") for line in text.split("\n") if len(line) > 60 and "Posted on" not in line
        )
    for name in ("positive", "negative"):
        for line in text_of(clone, f"corpus/subjectivity/subjectivity-{name}-bm.txt").splitlines():
            if len(line) > 40:
                yield line, "subjectivity"


def text_of(clone: Path, path: str) -> str:
    command = ["git", "-C", str(clone), "show", f"HEAD:{path}"]
    return subprocess.run(command, check=True, capture_output=True).stdout.decode("utf-8", "replace")


def rows_of(file: Path) -> list[dict[str, str]]:
    with lzma.open(file, "rt") as lines:
        return [json.loads(line) for line in lines]


def sentences(clone: Path, language: str) -> list[Row]:
    """Of Common Voice, drawn by a seed."""
    listing = subprocess.run(
        ["git", "-C", str(clone), "ls-tree", "-l", f"HEAD:server/data/{language}"],
        check=True,
        capture_output=True,
        text=True,
    )
    # a partial clone shows the size BAD for files that it lacks
    files = [line.split("\t")[1] for line in listing.stdout.splitlines() if " BAD\t" not in line]
    texts = [
        line
        for name in files
        if name.endswith(".txt")
        for line in text_of(clone, f"server/data/{language}/{name}").splitlines()
    ]
    texts = sorted({text.strip() for text in texts if len(text.strip()) >= 10})
    drawn = random.Random(language).sample(texts, min(PER_SOURCE, len(texts)))
    return [(text, language) for text in drawn]


def code_rows(data: Path) -> list[Row]:
    """Code blocks of the courses (JavaScript, HTML, Python, C++) and Python programs, in pieces of some lines."""
    programs: list[Row] = []
    for row in rows_of(data / "text/courses/pt.jsonl.xz"):
        programs += [(block, "courses") for block in FENCE.findall(row["text"])]
    for name, key in (("code/mbpp/mbpp", "code"), ("code/leetcodedataset/v0.2.0-train", "completion")):
        with gzip.open(data / f"{name}.jsonl.gz", "rt") as file:
            programs += [(json.loads(line)[key], name) for line in file]
    chance = random.Random(0)
    pieces = []
    for program, source in programs:
        lines = [line for line in program.splitlines() if line.strip()]
        while lines:
            count = chance.randrange(1, 8)
            pieces.append(("\n".join(lines[:count]), source))
            lines = lines[count:]
    return pieces


def noise(chance: random.Random) -> list[Row]:
    letters = "abcdefghijklmnopqrstuvwxyz"
    rows = []
    for _ in range(NOISE):
        content = chance.randbytes(chance.randrange(8, 120))
        words = [
            "".join(chance.choices(letters, k=chance.randrange(1, 9))) for _ in range(chance.randrange(1, 12))
        ]
        rows += [
            (base64.b64encode(content).decode(), "base64"),
            (content.hex(), "hexadecimal"),
            (content.decode("latin-1"), "bytes"),
            (" ".join(words), "random letters"),
            (" ".join(f"{chance.randrange(10**4)}{chance.choice(UNITS)}" for _ in words), "numbers"),
        ]
    return rows


UNITS = ("", "", "kg", "px", "ms", "x", "%", "GB", "e-3")

if __name__ == "__main__":
    main()
