"""Tokens per character of tokenizers that `foresail tokenizer train` makes, beside those of known models.

    python benchmarks/tokenizer/fertility.py --out runs/fertility
    python benchmarks/tokenizer/fertility.py --out runs/fertility --arms joint --part all

Arms: `joint` is recipes/tokenizer/sea-64k.toml, `merged` makes sub-tokenizers of the same groups and merges them to
the same size, `superwords` has a second stage, `unweighted` counts every text once. `pattern` trains Thai alone, by
GPT-2's pattern and by ours.

Part `all` trains on every text but the declaration of human rights, and measures on that. Parts `sources` and
`news` keep one source of several languages out of training as well (HELD_OUT), and measure on both: a recipe that
only fits the declaration is seen by it. Tokenizers are kept in --out and not trained again; figures are in
figures.json.
"""

from __future__ import annotations

import argparse
import json
import lzma
import time
import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path

import tokenizers
from tokenizers import models, pre_tokenizers, trainers

from foresail.recipe.reading.load import load_table
from foresail.tokenizer.report.fertility import measure, measure_all
from foresail.tokenizer.report.plot import draw
from foresail.tokenizer.report.rival import Rival, open_rival
from foresail.tokenizer.report.tables import as_json, describe
from foresail.tokenizer.training.build import build
from foresail.tokenizer.training.groups import repeat
from foresail.tokenizer.training.pattern import WORDS, cut_by
from foresail.tokenizer.training.recipe import Group, TokenizerRecipe

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT.parent / "shared/data"
RECIPE = ROOT / "recipes/tokenizer/sea-64k.toml"
ARMS: dict[str, list[str]] = {
    "joint": ["training=joint"],
    "merged": ["training=merged"],
    "superwords": ["training=joint", "superwords.tokens=8000"],
    "unweighted": ["training=joint"],
}
RIVALS = ("gemma3", "qwen2_5", "llama3", "deepseek_v3", "o200k_base/o200k_base.tiktoken.xz")
HELD_OUT: dict[str, dict[str, str]] = {
    "all": {},
    "sources": {
        "en": "c4_demo",
        "zh": "k8s_docs_ccby",
        "id": "ud_gsd_wiki_ccbysa",
        "ms": "ted_ccbyncnd",
        "th": "xquad_wiki_ccbysa",
        "vi": "xquad_wiki_ccbysa",
        "tl": "ud_newscrawl_ccbysa",
        "pt": "k8s_docs_ccby",
        "es": "xquad_wiki_ccbysa",
        "ro": "xquad_wiki_ccbysa",
    },
    "news": {
        "en": "wikipedia_demo",
        "id": "news_mesolitica",
        "ms": "news_majoriti_mesolitica",
        "th": "ud_tud_ccbysa",
        "vi": "ud_vtb_ccbysa",
        "tl": "alt_wikinews_ccby",
        "pt": "commonvoice_cc0",
    },
}
THAI_VOCABULARY = 16_000


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--arms", nargs="*", choices=[*ARMS, "pattern"], default=[*ARMS, "pattern"])
    parser.add_argument("--part", nargs="*", choices=[*HELD_OUT], default=[*HELD_OUT])
    args = parser.parse_args()
    rivals = [open_rival(DATA / "tokenizers" / name) for name in RIVALS]
    figures: dict[str, object] = {}
    for part in args.part:
        held_out = HELD_OUT[part]
        own = [trained(arm, held_out, args.out / part / arm) for arm in args.arms if arm in ARMS]
        tests = {"udhr": declaration()}
        if held_out:
            tests[part] = {name: [*source_texts(name, source)] for name, source in held_out.items()}
        for name, texts in tests.items():
            results = measure_all([*own, *rivals], texts)
            sizes = {rival.name: rival.size for rival in (*own, *rivals)}
            print(f"trained without {name}, part {part}", *describe(results, sizes), sep="\n")
            figures[f"{part}/{name}"] = as_json(results, sizes)
            draw(results, args.out / f"{part}-{name}.png", ours=len(own))
    if "pattern" in args.arms:
        figures["thai_pattern"] = thai_patterns()
        print(figures["thai_pattern"])
    (args.out / "figures.json").write_text(json.dumps(figures, indent=1) + "\n")


def trained(arm: str, held_out: dict[str, str], folder: Path) -> Rival:
    if not (folder / "tokenizer.json").exists():
        recipe = load_table(RECIPE, ARMS[arm], TokenizerRecipe)
        start = time.process_time()
        if arm == "unweighted":
            groups = [group.model_copy(update={"weights": (), "weight": 1.0}) for group in recipe.group]
            recipe = recipe.model_copy(update={"group": tuple(groups)})
        build(recipe, lambda group: group_texts(group, held_out)).tokenizer.save(folder)
        print(f"{folder}: {time.process_time() - start:.0f} CPU seconds", flush=True)
    return open_rival(folder)


def group_texts(group: Group, held_out: dict[str, str]) -> Iterator[str]:
    for file, weight in group.weighted_files:
        folder, name = Path(file).parts[-2:]
        left_out = held_out.get(name.split(".")[0])
        texts = (text for source, text in rows(DATA / "text" / folder / name) if source != left_out)
        yield from repeat(texts, weight)


def source_texts(language: str, wanted: str) -> Iterator[str]:
    for source, text in rows(DATA / "text/train" / f"{language}.jsonl.xz"):
        if source == wanted:
            yield text


def rows(file: Path) -> Iterator[tuple[str, str]]:
    """Source and text of each line."""
    with lzma.open(file, "rt", encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            yield row["src"], row["text"]


def declaration() -> dict[str, list[str]]:
    """By language. The file of vi writes tones as marks behind their letters; "vi NFC" joins them, as texts do."""
    files = sorted((DATA / "text/heldout_udhr").glob("*.txt"))
    texts = {file.stem: [file.read_text()] for file in files}
    return texts | {"vi NFC": [unicodedata.normalize("NFC", texts["vi"][0])]}


def thai_patterns() -> dict[str, float]:
    """Tokens per character of the Thai declaration, by what cuts texts into words."""
    digits = pre_tokenizers.Digits(individual_digits=True)
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    gpt2 = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    cuts = {"GPT-2": [digits, gpt2], "marks": [cut_by(WORDS), byte_level]}
    texts = [
        text for folder in ("train", "courses") for _, text in rows(DATA / "text" / folder / "th.jsonl.xz")
    ]
    return {name: thai_fertility(cut, texts) for name, cut in cuts.items()}


def thai_fertility(cuts: Sequence[pre_tokenizers.PreTokenizer], texts: Sequence[str]) -> float:
    core = tokenizers.Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.Sequence([*cuts])
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=THAI_VOCABULARY, initial_alphabet=alphabet, show_progress=False)
    core.train_from_iterator(texts, trainer)
    rival = Rival(name="thai", core=core, partial=frozenset())
    return round(measure(rival, declaration()["th"]).per_character, 4)


if __name__ == "__main__":
    main()
