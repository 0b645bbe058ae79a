"""The language of sentences and documents of sources that no model was trained on, beside three rivals.

    python benchmarks/curate/language.py --flores CLONE --peer-python PYTHON
    python benchmarks/curate/language.py --flores CLONE --files runs/language    # and trained without some sources

FLORES: 1,004 sentences in each of 17 languages, from a clone of dadelani/sib-200. UDHR: some 110 sentences in each,
from ../shared/data. The shipped model was trained on neither (`language_files.py`). Documents are ten sentences in
a row. With --files, two models are trained on the files of `language_files.py` without the sources in HELD_OUT, and
measured on sentences of these; Dutch has one source only and is left out there.
"Undecided" is what the step says with its default margin. Seconds are CPU seconds on the sentences of FLORES.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import subprocess
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from foresail.curate.language.guess import UNDECIDED
from foresail.curate.language.model import LanguageModel, load_model
from foresail.curate.language.sentences import split_sentences
from foresail.curate.language.step import Language
from foresail.curate.language.train import Fit, read_examples, train

DATA = Path(__file__).parents[3] / "shared/data"
PEER = Path(__file__).with_name("language_peer.py")
FLORES = {
    "cs": "ces_Latn", "de": "deu_Latn", "en": "eng_Latn", "es": "spa_Latn", "fr": "fra_Latn", "hu": "hun_Latn",
    "id": "ind_Latn", "it": "ita_Latn", "ms": "zsm_Latn", "nl": "nld_Latn", "pl": "pol_Latn", "pt": "por_Latn",
    "ro": "ron_Latn", "th": "tha_Thai", "tl": "tgl_Latn", "vi": "vie_Latn", "zh": "zho_Hans",
}  # fmt: skip
# Languages that the model does not name: some it was trained to call "other", and some it has never seen.
TAUGHT = (
    "slk_Latn",
    "swe_Latn",
    "cat_Latn",
    "tur_Latn",
    "rus_Cyrl",
    "jpn_Jpan",
    "arb_Arab",
    "jav_Latn",
    "swh_Latn",
)
UNSEEN = (
    "ceb_Latn",
    "ilo_Latn",
    "hat_Latn",
    "lmo_Latn",
    "som_Latn",
    "sna_Latn",
    "mri_Latn",
    "guj_Gujr",
    "sin_Sinh",
)
# Each fold holds out at most one of the large sources of a language.
HELD_OUT: tuple[dict[str, tuple[str, ...]], ...] = (
    {
        "cs": ("bible_ebible",), "de": ("ethereum_docs_mit",), "en": ("c4_demo", "wikipedia_demo"),
        "es": ("bible_ebible",), "fr": ("ethereum_docs_mit",), "hu": ("bible_ebible",),
        "id": ("news_mesolitica",), "it": ("ethereum_docs_mit",), "ms": ("ted_ccbyncnd",),
        "pl": ("bible_ebible",), "pt": ("k8s_docs_ccby",), "ro": ("bible_ebible",), "th": ("ud_tud_ccbysa",),
        "tl": ("palito_literary_lgpl",), "vi": ("k8s_docs_ccby",), "zh": ("k8s_docs_ccby",),
    },
    {
        "cs": ("ethereum_docs_mit",), "de": ("commonvoice_cc0",), "en": ("commonvoice_cc0",),
        "es": ("commonvoice_cc0",), "fr": ("commonvoice_cc0",), "hu": ("commonvoice_cc0",),
        "id": ("commonvoice_cc0",), "it": ("commonvoice_cc0",), "ms": ("essays_karangan_mesolitica",),
        "pl": ("ethereum_docs_mit",), "pt": ("commonvoice_cc0",), "ro": ("xquad_wiki_ccbysa",),
        "th": ("thaigov_news",), "tl": ("alt_wikinews_ccby",), "vi": ("commonvoice_cc0",),
        "zh": ("commonvoice_wiki_cc0",),
    },
)  # fmt: skip
PER_LANGUAGE = 500  # sentences of held-out sources
SHORTEST = 40  # characters of these; 15 without spaces between words
Texts = dict[str, list[str]]  # by language


def main() -> None:
    options = read_options()
    model = load_model()
    sets = {"flores": flores(options.flores, FLORES), "udhr": udhr(options.data)}
    sets |= {f"{name}, documents": documents(texts) for name, texts in sets.items()}
    figures: dict[str, Any] = {
        "foresail": {name: scores(named(model), texts) for name, texts in sets.items()}
    }
    figures["foresail"] |= speed(model, sets["flores"])
    figures["undecided"] = undecided(model, sets, options)
    if options.peer_python:
        for name in json.loads(subprocess.check_output([options.peer_python, str(PEER)])):
            figures[name] = run_peer(options.peer_python, name, sets)
    if options.files:
        figures["retrained"] = [retrained(options.files, fold) for fold in HELD_OUT]
    show(figures)
    print(json.dumps(figures, ensure_ascii=False))


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--flores", type=Path, required=True, help="a clone of dadelani/sib-200")
    parser.add_argument("--peer-python", default="", help="an interpreter that has the rivals")
    parser.add_argument("--files", type=Path, help="folder of language_files.py: train without some sources")
    parser.add_argument("--data", type=Path, default=DATA)
    return parser.parse_args()


# Texts.


def flores(clone: Path, languages: dict[str, str]) -> Texts:
    return {
        language: [
            line.split("\t")[2]
            for part in ("train", "dev", "test")
            for line in show_file(clone, f"data/annotated/{name}/{part}.tsv").splitlines()[1:]
        ]
        for language, name in languages.items()
    }


def show_file(clone: Path, path: str) -> str:
    command = ["git", "-C", str(clone), "show", f"HEAD:{path}"]
    return subprocess.run(command, check=True, capture_output=True).stdout.decode()


def udhr(data: Path) -> Texts:
    """Lines of a word or two are headings."""
    return {
        language: [
            sentence
            for line in (data / f"text/heldout_udhr/{language}.txt").read_text().splitlines()
            for sentence in split_sentences(line)
            if sum(map(str.isalpha, sentence)) >= (8 if language in ("th", "zh") else 20)
        ]
        for language in FLORES
    }


def documents(texts: Texts) -> Texts:
    return {
        language: ["\n".join(own[start : start + 10]) for start in range(0, len(own) - 9, 10)]
        for language, own in texts.items()
    }


# Figures.


def named(model: LanguageModel) -> Callable[[Sequence[str]], list[str]]:
    return lambda texts: [model.guess(text).best for text in texts]


def scores(name: Callable[[Sequence[str]], list[str]], texts: Texts) -> dict[str, Any]:
    return scores_of({language: name(own) for language, own in texts.items()})


def scores_of(answers: dict[str, list[str]]) -> dict[str, Any]:
    """The share that is right, by language, in the mean of languages, and in the mean of Indonesian and Malay."""
    right = {language: sum(each == language for each in own) / len(own) for language, own in answers.items()}
    return {
        "mean": round(sum(right.values()) / len(right), 4),
        "id and ms": round((right["id"] + right["ms"]) / 2, 4),
        "by language": {language: round(share, 3) for language, share in right.items()},
    }


def speed(model: LanguageModel, texts: Texts) -> dict[str, float]:
    sentences = [sentence for own in texts.values() for sentence in own]
    began = time.process_time()
    for sentence in sentences:
        model.guess(sentence)
    return per_second(sentences, time.process_time() - began)


def per_second(sentences: Sequence[str], seconds: float) -> dict[str, float]:
    size = sum(len(sentence.encode()) for sentence in sentences)
    return {
        "sentences per CPU-second": round(len(sentences) / seconds),
        "MB per CPU-second": round(size / 1e6 / seconds, 2),
    }


def undecided(model: LanguageModel, sets: dict[str, Texts], options: argparse.Namespace) -> dict[str, Any]:
    """Share that is left undecided, and share of the decided that are right."""
    margin = Language().margin
    chance = random.Random(0)

    def verdicts(texts: Texts) -> dict[str, float]:
        pairs = [
            (language, model.guess(text).language(margin)) for language, own in texts.items() for text in own
        ]
        decided = [(language, said) for language, said in pairs if said != UNDECIDED]
        return {
            "undecided": round(1 - len(decided) / len(pairs), 4),
            "right of decided": round(sum(language == said for language, said in decided) / len(decided), 4),
        }

    def unknown(texts: Sequence[str]) -> dict[str, float]:
        said = [model.guess(text).language(margin) for text in texts]
        return {
            "undecided": round(said.count(UNDECIDED) / len(said), 4),
            "other": round(said.count("other") / len(said), 4),
            "one of the 17": round(sum(each not in (UNDECIDED, "other") for each in said) / len(said), 4),
        }

    sentences = sets["flores"]
    spaced = {language: own for language, own in sentences.items() if language not in ("th", "zh")}
    found: dict[str, Any] = {name: verdicts(texts) for name, texts in sets.items()}
    for count in (1, 3, 5):
        first = {
            language: [" ".join(text.split()[:count]) for text in own] for language, own in spaced.items()
        }
        found[f"first {count} words"] = verdicts(first)
    found["languages it was taught as other"] = unknown(flat(flores(options.flores, {x: x for x in TAUGHT})))
    found["languages it has never seen"] = unknown(flat(flores(options.flores, {x: x for x in UNSEEN})))
    found["numbers"] = unknown([numbers(chance) for _ in range(1000)])
    found["code"] = unknown(code(options.data))
    halves = [half(chance.choice(spaced["en"]), chance.choice(spaced["id"])) for _ in range(1000)]
    found["half English, half Indonesian"] = unknown(halves)
    return found


def flat(texts: Texts) -> list[str]:
    return [text for own in texts.values() for text in own]


def numbers(chance: random.Random) -> str:
    return " ".join(f"{chance.randrange(10 ** chance.randrange(1, 9)):,}" for _ in range(8))


def code(data: Path) -> list[str]:
    """Solutions of HumanEval, which the model was not trained on."""
    with gzip.open(data / "code/humaneval/HumanEval.jsonl.gz", "rt") as lines:
        return [json.loads(line)["canonical_solution"] for line in lines]


def half(one: str, other: str) -> str:
    return f"{one[: len(one) // 2]} {other[: len(other) // 2]}"


def run_peer(python: str, name: str, sets: dict[str, Texts]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "in.json", Path(folder) / "out.json"
        for title, texts in sets.items():
            source.write_text(json.dumps(flat(texts)))
            subprocess.run([python, str(PEER), name, str(source), str(target)], check=True)
            run = json.loads(target.read_text())
            answers = iter(run["languages"])
            found[title] = scores_of(
                {language: [next(answers) for _ in own] for language, own in texts.items()}
            )
            if title == "flores":
                found |= per_second(flat(texts), run["seconds"])
    return found


def retrained(folder: Path, fold: dict[str, tuple[str, ...]]) -> dict[str, Any]:
    """Trained without the fold's sources; right on sentences of them."""
    learned, held_out = [], defaultdict(list)
    for example in read_examples(sorted(folder.glob("*.jsonl"))):
        if example.source not in fold.get(example.name, ()):
            learned.append(example)
        elif len(example.text) >= (15 if example.name in ("th", "zh") else SHORTEST):
            held_out[example.name].append(example.text)
    model = train(learned, Fit(examples=60_000, passes=3), note=lambda line: None)
    texts = {
        language: random.Random(language).sample(own, min(PER_LANGUAGE, len(own)))
        for language, own in sorted(held_out.items())
    }
    return {
        "held out": {language: sources[0] for language, sources in fold.items()},
        "sentences": scores(named(model), texts),
        "documents": scores(named(model), documents(texts)),
    }


def show(figures: dict[str, Any]) -> None:
    for name, found in figures.items():
        if name == "retrained":
            for fold in found:
                print("trained without", fold["held out"])
                print(
                    "   ",
                    fold["sentences"],
                    "documents",
                    fold["documents"]["mean"],
                    fold["documents"]["id and ms"],
                )
            continue
        print(name)
        for title, value in found.items():
            print("   ", title, value)


if __name__ == "__main__":
    main()
