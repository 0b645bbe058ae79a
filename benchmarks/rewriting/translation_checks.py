"""What the checks of the step `translate` find: human translations, and each way to be wrong, by kind.

    python benchmarks/rewriting/translation_checks.py [--texts 100]

English texts with their translations, from ../shared/data: the Universal Declaration of Human Rights (six
languages), MGSM (Thai, Chinese), questions of Global-MMLU-Lite (Indonesian, Malay, Filipino, Vietnamese, Chinese).
No translator is here, so the back-translation is scripted: the English text that the translation stands for, of
which `--noise` of the words are replaced by others or left out, and some change places. So the language, the
numbers and the copies are measured on real translations, and the figures of chrF depend on the noise.
"""

from __future__ import annotations

import argparse
import json
import lzma
import random
import re
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from foresail.curate.language.step import open_model
from foresail.curate.rewriting.chrf import chrf
from foresail.curate.rewriting.translation_checks import Limits, check_translation

DATA = Path(__file__).parents[3] / "shared/data"
UDHR = ("id", "ms", "th", "tl", "pt", "zh")  # of others, lines are not the same paragraphs
Pair = tuple[str, str, str]  # English, a language, the text in it


def pairs(count: int) -> list[Pair]:
    translations: list[Pair] = []
    folder = DATA / "text/heldout_udhr"
    english = (folder / "en.txt").read_text().split("\n")
    for code in UDHR:
        lines = (folder / f"{code}.txt").read_text().split("\n")
        if len(lines) == len(english):  # else paragraphs are joined otherwise
            same = [(a, code, b) for a, b in zip(english, lines, strict=True) if len(a) > 60]
            translations += same[:count]
    for code in ("th", "zh"):
        texts = [rows("eval/mgsm/{}.tsv.xz", one) for one in ("en", code)]
        both = [[line.split("\t")[0] for line in text] for text in texts]
        translations += [(a, code, b) for a, b in zip(*both, strict=True)][:count]
    for code in ("id", "ms", "tl", "vi", "zh"):
        form = "eval/global_mmlu_lite/{}.test.jsonl.xz"
        tables = [dict(map(question, rows(form, one))) for one in ("en", code)]
        both_have = [name for name in tables[0] if name in tables[1] and len(tables[0][name]) > 60]
        translations += [(tables[0][name], code, tables[1][name]) for name in both_have][:count]
    return translations


def rows(form: str, code: str) -> list[str]:
    with lzma.open(DATA / form.format(code), "rt") as file:
        return [line for line in file if line.strip()]


def question(line: str) -> tuple[str, str]:
    row = json.loads(line)
    return row["metadata"]["sample_id"], row["prompts"][0]["question"]


def noisy(text: str, chance: random.Random, share: float, words: list[str]) -> str:
    """As another translator may say it; numbers stay."""
    said = []
    for word in text.split():
        kind = chance.random()
        if any(map(str.isdigit, word)) or kind > share or word.lower().strip(",.") in SPOKEN:
            said.append(word)
        elif kind < share * 0.7:
            said.append(chance.choice(words))
    for place in range(len(said) - 1):
        if chance.random() < share / 3:
            said[place], said[place + 1] = said[place + 1], said[place]
    return " ".join(said)


SPOKEN = frozenset(
    "two three four five six seven eight nine ten half twice double third quarter dozen hundred thousand twenty "
    "thirty forty fifty sixty seventy eighty ninety eleven twelve first triple million fifth fourth".split()
)


def shorter(text: str) -> str:
    """Without its second half of clauses."""
    parts = re.split(r"(?<=[,;.!?，。；、])\s*", text)
    parts = [part for part in parts if part]
    if len(parts) < 2:
        parts = text.split() if " " in text else [*text]
        return (" " if " " in text else "").join(parts[: max(1, len(parts) * 3 // 5)])
    return " ".join(parts[: max(1, len(parts) * 3 // 5)])


def other_number(text: str) -> str:
    digits = list(re.finditer(r"\d+", text))
    if not digits:
        return ""
    match = digits[len(digits) // 2]
    return text[: match.start()] + str(int(match[0]) + 7) + text[match.end() :]


def without_number(text: str) -> str:
    return re.sub(r"\d+", "", text, count=1) if re.search(r"\d", text) else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--texts", type=int, default=100, help="of each source and language")
    parser.add_argument("--noise", type=float, default=0.3, help="of the words of a back-translation")
    parser.add_argument("--show", type=int, default=0)
    args = parser.parse_args()
    guess, every = open_model("").guess, pairs(args.texts)
    words = [
        word for text, _, _ in every for word in text.split() if word.isalpha() and word.lower() not in SPOKEN
    ]
    by_language: dict[str, list[Pair]] = defaultdict(list)
    for pair in every:
        by_language[pair[1]].append(pair)
    tried: Counter[str] = Counter()
    reasons: dict[str, Counter[str]] = defaultdict(Counter)
    likeness: dict[str, list[float]] = defaultdict(list)
    shown: Counter[str] = Counter()

    for number, (english, code, text) in enumerate(every):
        chance = random.Random(number)

        def say(of: str, chance: random.Random = chance) -> str:
            return noisy(of, chance, args.noise, words)

        stranger = chance.choice(by_language[code])
        foreign_code = chance.choice(
            [one for one in by_language if one != code and {one, code} != {"id", "ms"}]
        )
        elsewhere = next((pair for pair in by_language[foreign_code] if pair[0] == english), None)
        elsewhere = elsewhere or chance.choice(by_language[foreign_code])
        cut, short = shorter(text), shorter(english)
        answers: dict[str, tuple[str, str]] = {
            f"right/{code}": (text, say(english)),
            "wrong/other_text": (stranger[2], say(stranger[0])) if stranger[0] != english else ("", ""),
            "wrong/dropped_clauses": (cut, say(short)) if len(short) < 0.75 * len(english) else ("", ""),
            "wrong/changed_number": (other_number(text), say(other_number(english) or english)),
            "wrong/number_left_out": (without_number(text), say(without_number(english) or english)),
            "wrong/untranslated": (english, english),
            "wrong/half_untranslated": (f"{cut} {english[len(english) // 3 :]}", say(english)),
            "wrong/other_language": (elsewhere[2], say(english)),
            "wrong/meta_talk": (f"Here is the translation: {text}", say(english)),
            "wrong/said_twice": (f"{text}\n{text}\n{text}", say(english)),
            "wrong/empty": ("", ""),
        }
        for kind, (target, back) in answers.items():
            if not target and kind != "wrong/empty":
                continue
            tried[kind] += 1
            likeness[kind].append(chrf(back, english))
            drop = check_translation(english, target, back, Limits(language=code), guess)
            if drop is not None:
                reasons[kind][drop.reason] += 1
            if (drop is None) == kind.startswith("wrong") and shown[kind] < args.show:
                shown[kind] += 1
                print(f"--- {kind} {drop}\n{english}\n=> {target}\n<= {back}")
    kinds: dict[str, Any] = {}
    for kind in sorted(tried):
        ordered = sorted(likeness[kind])
        kinds[kind] = {
            "texts": tried[kind],
            "dropped": round(reasons[kind].total() / tried[kind], 4),
            "reasons": dict(reasons[kind].most_common(4)),
            "chrf": {
                str(share): round(ordered[int(share * (len(ordered) - 1))], 3) for share in (0.01, 0.5, 0.99)
            },
        }
        row = kinds[kind]
        print(f"{kind:24} {tried[kind]:5} {100 * row['dropped']:6.1f} %  {row['reasons']} {row['chrf']}")
    summary: dict[str, float] = {}
    for name in ("right", "wrong"):
        own = [kind for kind in kinds if kind.startswith(name)]
        summary[name] = round(
            sum(reasons[kind].total() for kind in own) / sum(tried[kind] for kind in own), 4
        )
    print(json.dumps({"kinds": kinds, "false_positives": summary["right"], "recall": summary["wrong"]}))


if __name__ == "__main__":
    main()
