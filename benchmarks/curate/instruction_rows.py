"""The instruction set of `instruction_selection.py`: conversations of 20 sources, some of which repeat themselves.

read_instructions(Path("../shared/data"), share=1.0) -> {"gsm8k": Rows(train=[...], held_out=[...]), ...}

Real sets stand beside made ones that repeat their templates (sums, word problems, names of languages, opinions on
two sentences). Rows of evaluation sets (Global-MMLU-lite, XCOPA, ENEM) serve here as training data, for there is
little else in Thai, Vietnamese and Malay: models of this study are not to be measured on them.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import lzma
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Messages = list[dict[str, Any]]
LANGUAGES = {
    "en": "English",
    "zh": "Chinese",
    "id": "Indonesian",
    "ms": "Malay",
    "th": "Thai",
    "vi": "Vietnamese",
    "tl": "Tagalog",
    "pt": "Portuguese",
}
GO_ON = {
    "zh": "请继续写下去:",
    "id": "Lanjutkan teks ini:",
    "ms": "Sambung teks ini:",
    "th": "เขียนต่อจากข้อความนี้:",
    "vi": "Hãy viết tiếp đoạn văn này:",
    "tl": "Ituloy ang tekstong ito:",
    "pt": "Continue este texto:",
}
LETTERS = "ABCDE"


@dataclass(frozen=True)
class Rows:
    train: list[Messages]
    held_out: list[Messages]


def read_instructions(data: Path, share: float = 1.0, seed: int = 0) -> dict[str, Rows]:
    """Of each source so many rows, a share of them for trials; up to 100 are held out."""
    sources = {}
    for name, (count, read) in SOURCES.items():
        rows = unique(read(data))
        random.Random(f"{seed}:{name}").shuffle(rows)
        held_out = min(100, len(rows) // 8)
        rows = rows[: held_out + count]
        if share < 1:
            held_out, rows = max(2, int(held_out * share)), rows[: max(6, int(len(rows) * share))]
        sources[name] = Rows(train=rows[held_out:], held_out=rows[:held_out])
    return sources


def unique(rows: Iterator[Messages]) -> list[Messages]:
    """Each question once: a held-out one is in no training."""
    by_question: dict[str, Messages] = {}
    for messages in rows:
        key = " ".join(message["content"] for message in messages if message["role"] == "user")
        if len(key) < 4000 and any(message["content"].strip() for message in messages[1:]):
            by_question.setdefault(" ".join(key.split()), messages)
    return list(by_question.values())


def turn(question: str, answer: str) -> Messages:
    return [{"role": "user", "content": question.strip()}, {"role": "assistant", "content": answer.strip()}]


def lines(file: Path) -> Iterator[dict[str, Any]]:
    for line in text_of(file).split("\n"):  # texts may hold other line ends
        if line:
            yield json.loads(line)


def text_of(file: Path) -> str:
    content = file.read_bytes()
    return (lzma.decompress(content) if file.suffix == ".xz" else gzip.decompress(content)).decode()


# The sources.


def gsm8k(data: Path) -> Iterator[Messages]:
    for row in lines(data / "math/gsm8k/train.jsonl.gz"):
        yield turn(row["question"], re.sub(r"<<.*?>>", "", row["answer"]))


def math(data: Path) -> Iterator[Messages]:
    for row in lines(data / "math/MATH/train7500.jsonl.gz"):
        yield turn(row["problem"], row["solution"])


def made(source: str) -> Callable[[Path], Iterator[Messages]]:
    def read(data: Path) -> Iterator[Messages]:
        from foresail.data.chats.conversations import load_chats

        for chat in load_chats(source, thinking=False if source.startswith("arith") else None):
            yield [{"role": message.role, "content": message.content} for message in chat.messages]

    return read


def mbpp(data: Path) -> Iterator[Messages]:
    for row in lines(data / "code/mbpp/mbpp.jsonl.gz"):
        code = row["code"].replace("\r", "").replace("\t", "    ")
        yield turn(row["text"], f"```python\n{code}\n```")


SPEAKERS = {
    "human": "user",
    "gpt": "assistant",
    "function_call": "assistant",
    "observation": "tool",
    "system": "system",
}


def said(row: dict[str, str]) -> dict[str, Any]:
    content = row["value"]
    if row["from"] == "function_call":
        content = f"<tool_call>\n{content}\n</tool_call>"
    role = SPEAKERS[row["from"]]
    return {"role": "user" if role == "tool" else role, "content": content}


def preferred(name: str) -> Callable[[Path], Iterator[Messages]]:
    def read(data: Path) -> Iterator[Messages]:
        for row in lines(data / f"preference/llamafactory_demo/{name}.jsonl.gz"):
            yield [*map(said, row["conversations"]), said(row["chosen"])]

    return read


def tool_calls(data: Path) -> Iterator[Messages]:
    for row in lines(data / "preference/llamafactory_demo/glaive_toolcall_en_demo.jsonl.gz"):
        yield [
            {"role": "system", "content": f"You may call: {row['tools']}"},
            *map(said, row["conversations"]),
        ]


def liked(data: Path) -> Iterator[Messages]:
    for row in lines(data / "preference/llamafactory_demo/kto_en_demo.jsonl.gz"):
        if row["label"]:
            yield [{"role": message["role"], "content": message["content"]} for message in row["messages"]]


def harmless(data: Path) -> Iterator[Messages]:
    for row in lines(data / "preference/hh_rlhf_harmless_base_test/test.jsonl.gz"):
        parts = re.split(r"\n\n(Human|Assistant): ", row["chosen"])[1:]
        roles = ["user" if speaker == "Human" else "assistant" for speaker in parts[::2]]
        messages = [{"role": r, "content": c.strip()} for r, c in zip(roles, parts[1::2], strict=True)]
        if roles == ["user", "assistant"] * (len(roles) // 2) and messages and messages[-1]["content"]:
            yield messages


def two_wiki(data: Path) -> Iterator[Messages]:
    for row in lines(data / "qa/2wiki/qa_matched_to_corpus.jsonl.gz"):
        yield turn(row["question"], row["answer"])


def hotpot(data: Path) -> Iterator[Messages]:
    for row in lines(data / "qa/hotpotqa_100_distractor/qa.jsonl.gz"):
        named = {title for title, _ in row["supporting_facts"]}
        facts = [f"{title}: {''.join(text)}" for title, text in row["context"] if title in named]
        yield turn("\n".join(facts) + f"\n\n{row['question']}", row["answer"])


def choice(question: str, options: list[str], answer: str) -> Messages:
    listed = "\n".join(f"{letter}. {option}" for letter, option in zip(LETTERS, options, strict=False))
    return turn(f"{question}\n{listed}", f"{answer}. {options[LETTERS.index(answer)]}")


def enem(data: Path) -> Iterator[Messages]:
    for row in lines(data / "eval/enem/2024.jsonl.xz"):
        if row["label"] in LETTERS and len(row["alternatives"]) == 5 and all(row["alternatives"]):
            yield choice(row["question"], row["alternatives"], row["label"])


def exams(data: Path) -> Iterator[Messages]:
    for file in sorted((data / "eval/global_mmlu_lite").glob("*.test.jsonl.xz")):
        for row in lines(file):
            (prompt,) = row["prompts"]
            options = [str(prompt[f"option_{letter}"]) for letter in "abcd"]
            yield choice(prompt["question"], options, row["label"])


CAUSES = {
    "id": ("Apa penyebabnya?", "Apa akibatnya?"),
    "th": ("สาเหตุคืออะไร", "ผลลัพธ์คืออะไร"),
    "vi": ("Nguyên nhân là gì?", "Kết quả là gì?"),
    "zh": ("原因是什么?", "结果是什么?"),
}


def causes(data: Path) -> Iterator[Messages]:
    for file in sorted((data / "eval/xcopa").glob("*.jsonl.xz")):
        cause, effect = CAUSES[file.name[:2]]
        for row in lines(file):
            asked = cause if row["question"] == "cause" else effect
            yield choice(
                f"{row['premise']} {asked}", [row["choice1"], row["choice2"]], LETTERS[int(row["label"])]
            )


def customs(data: Path) -> Iterator[Messages]:
    for row in csv.DictReader(io.StringIO(text_of(data / "eval/copal_id/test.csv.xz"))):
        asked = CAUSES["id"][row["question"] != "cause"]
        yield choice(
            f"{row['premise']} {asked}", [row["choice1"], row["choice2"]], LETTERS[int(row["label"])]
        )


def texts(data: Path, language: str) -> list[str]:
    return [row["text"] for row in lines(data / f"text/train/{language}.jsonl.xz")]


def languages(data: Path) -> Iterator[Messages]:
    for code, name in LANGUAGES.items():
        short = [text for text in texts(data, code) if 30 < len(text) < 200]
        for text in random.Random(code).sample(short, min(500, len(short))):
            yield turn(f"Which language is this?\n{text}", f"This is {name}.")


def going_on(data: Path) -> Iterator[Messages]:
    for code, request in GO_ON.items():
        long = [text for text in texts(data, code) if len(text) > (200 if code in ("zh", "th") else 400)]
        for text in random.Random(code).sample(long, min(300, len(long))):
            middle = min(len(text) // 2, 200 if code in ("zh", "th") else 400)
            yield turn(f"{request}\n{text[:middle]}", text[middle : 2 * middle])


def shopping(data: Path) -> Iterator[Messages]:
    for row in lines(data / "ecommerce/webshop_goals/goal_query_map.jsonl.gz"):
        if row["queries"]:
            yield turn(f"Write a search query for a shop: {row['instruction']}", row["queries"][0])


def bound(data: Path) -> Iterator[Messages]:
    """Instructions with conditions on the form; only answers that keep them."""
    for row in lines(data / "eval/ifeval/gpt4.jsonl.xz"):
        answer = row["response"]
        if answer and len(answer) < 2500:
            yield turn(row["prompt"], answer)


SOURCES: dict[str, tuple[int, Callable[[Path], Iterator[Messages]]]] = {
    "gsm8k": (3000, gsm8k),
    "math": (2000, math),
    "word-problems": (9000, made("word-problems:count=13000,seed=1,split=train")),
    "sums": (3000, made("arithmetic:count=4600,seed=1,split=train")),
    "programs": (1500, made("programs:count=1600,seed=1,split=train")),
    "mbpp": (874, mbpp),
    "tool-calls": (300, tool_calls),
    "chats-en": (300, preferred("dpo_en_demo")),
    "chats-zh": (300, preferred("dpo_zh_demo")),
    "styles": (300, liked),
    "harmless": (1000, harmless),
    "2wiki": (450, two_wiki),
    "hotpot": (100, hotpot),
    "enem": (180, enem),
    "exams": (1200, exams),
    "causes": (1200, causes),
    "customs": (500, customs),
    "languages": (1600, languages),
    "going-on": (1000, going_on),
    "shopping": (1400, shopping),
    "conditions": (450, bound),
}
