"""The step `responses`: recall of made faults by kind and language, and what untouched responses lose by reason.

    python benchmarks/curate/response_faults.py --clones FOLDER [--half held] [--read FILE]

Real responses: LLaMA-Factory's demo sets, hh-rlhf and GSM8K of the shared data; with --clones, work trees of
aisingapore/SEA-HELM (its safeguard sets), bofenghuang/vigogne, thisserand/alpaca-lora-finetune-language,
ariazevedopt/pt-ai-instruction-dataset and tatsu-lab/alpaca_eval (40 responses of each of its models), each under
its name without the owner. Spanish responses are made of sentences of the shared texts. A response belongs to the
half `dev` or `held` by a hash of its question. Faults are made in responses that the step keeps; foreign sentences
are the UDHR's. --read lists untouched responses that are dropped, to be read by hand. Seconds are CPU seconds.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import lzma
import random
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from response_kinds import MAKES, PARTS, STRAY, composed_refusal, with_stray_letters

from foresail.curate.conversations.responses.completeness import cut_off
from foresail.curate.conversations.responses.parts import read_response
from foresail.curate.conversations.responses.refusals import refusal
from foresail.curate.conversations.responses.repetition import repeats, said_before
from foresail.curate.conversations.responses.step import REASONS, Fault, ResponseCheck, Responses

DATA = Path(__file__).parents[3] / "shared/data"
LANGUAGES = ("en", "id", "ms", "th", "vi", "tl", "pt", "zh", "de", "fr", "es")
MOST = 3000  # responses of a language
Chat = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--clones", type=Path)
    parser.add_argument("--half", choices=("dev", "held"), default="held")
    parser.add_argument("--read", type=Path, help="a file for up to 50 untouched drops of each reason")
    parser.add_argument("--of-each", type=int, default=60, help="made faults of a kind and language")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    chats: dict[str, list[Chat]] = defaultdict(list)
    for language, chat in real_chats(options.data, options.clones):
        if half_of(chat) == options.half:
            chats[language].append(chat)
    for one in chats.values():
        random.Random(options.seed).shuffle(one)
        del one[MOST:]
    check = Responses().open()
    assert isinstance(check, ResponseCheck)
    dropped, whole = untouched(check, chats)
    if options.read:
        lines = [line for reason in REASONS for line in list_drops(dropped, reason)]
        options.read.write_text("\n".join(lines), encoding="utf-8")
    lost = {
        language: dict(Counter(faults[0].reason for faults, _ in drops))
        for language, drops in dropped.items()
    }
    report = {
        "half": options.half,
        "untouched": {language: len(one) for language, one in chats.items()},
        "lost": lost,
        "recall": recall(check, whole, options),
        "responses per CPU-second": speed(check, chats),
    }
    print(json.dumps(report, ensure_ascii=False, indent=1))


def half_of(chat: Chat) -> str:
    question = next(one["content"] for one in chat["messages"] if one["role"] == "user")
    return "dev" if hashlib.sha256(question.encode()).digest()[0] < 128 else "held"


# Real responses.


def real_chats(data: Path, clones: Path | None) -> Iterator[tuple[str, Chat]]:
    folder = data / "preference/llamafactory_demo"
    for language in ("en", "zh"):
        for row in json_lines(folder / f"dpo_{language}_demo.jsonl.gz"):
            roles = {"human": "user", "gpt": "assistant", "system": "system"}
            messages = [{"role": roles[m["from"]], "content": m["value"]} for m in row["conversations"]]
            for side in ("chosen", "rejected"):
                answer = {"role": "assistant", "content": row[side]["value"]}
                yield language, {"source": f"dpo_demo/{side}", "messages": [*messages, answer]}
    for row in json_lines(folder / "kto_en_demo.jsonl.gz"):
        yield "en", {"source": "kto_demo", "messages": row["messages"]}
    for row in json_lines(data / "preference/hh_rlhf_harmless_base_test/test.jsonl.gz"):
        yield from hh_chats(row)
    for row in json_lines(data / "math/gsm8k/train.jsonl.gz"):
        yield "en", pair("gsm8k", row["question"], row["answer"])
    dice, texts = random.Random(0), []
    for row in json_lines(data / "text/train/es.jsonl.xz"):
        if row["src"].startswith(("xquad", "k8s", "ethereum")) and row["text"].endswith("."):
            texts.append(row["text"])
    for place in range(0, min(len(texts), 6000) - 6, 6):
        yield (
            "es",
            pair(
                "es-texts",
                f"Por favor, dime qué es lo que dice el texto número {place} de la colección de textos.",
                " ".join(texts[place : place + dice.randrange(2, 6)]),
            ),
        )
    if clones is not None:
        yield from cloned_chats(clones)


def hh_chats(row: Chat) -> Iterator[tuple[str, Chat]]:
    turns = [turn for turn in row["chosen"].split("\n\n") if turn]
    messages: list[dict[str, str]] = []
    for turn in turns:
        role, _, content = turn.partition(": ")
        if role in ("Human", "Assistant"):
            messages.append({"role": "user" if role == "Human" else "assistant", "content": content})
        elif messages:
            messages[-1]["content"] += f"\n\n{turn}"
    if len(messages) > 1 and messages[-1]["role"] == "assistant":
        yield "en", {"source": "hh-rlhf", "messages": messages}


def cloned_chats(clones: Path) -> Iterator[tuple[str, Chat]]:
    for path in sorted((clones / "SEA-HELM/seahelm_tasks/safety/safeguard").glob("*/data/*.jsonl")):
        language = path.name[:2]
        if language in LANGUAGES:
            for row in json_lines(path):
                for one in row["prompts"]:
                    if isinstance(one.get("response_text"), str):
                        yield language, pair(f"seahelm/{path.stem}", one["prompt_text"], one["response_text"])
    for row in json_lines(clones / "vigogne/data/chat/oasst_20230412_fr_top1.jsonl"):
        messages = [{"role": m["role"].lower(), "content": m["content"]} for m in row["messages"]]
        yield "fr", {"source": "oasst-fr", "messages": messages}
    for name in ("deepl_12k", "openai_12k"):
        path = clones / f"alpaca-lora-finetune-language/data/translated/translated_tasks_de_{name}.json"
        for row in json.loads(path.read_text()):
            yield "de", pair(f"alpaca-de/{name}", asked(row), row["output"])
    for row in json_lines(
        clones / "pt-ai-instruction-dataset/datasets/processed/lusosupport_pt_v1_alpaca.jsonl"
    ):
        yield "pt", pair("lusosupport", asked(row), row["output"])
    for number, path in enumerate(sorted((clones / "alpaca_eval/results").glob("*/model_outputs.json"))):
        rows = [row for row in json.loads(path.read_text()) if isinstance(row.get("output"), str)]
        for row in random.Random(number).sample(rows, min(40, len(rows))):
            yield "en", pair(f"alpaca_eval/{path.parent.name}", row["instruction"], row["output"])


def pair(source: str, question: str, answer: str) -> Chat:
    messages = [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]
    return {"source": source, "messages": messages}


def asked(row: Chat) -> str:
    return "\n\n".join(filter(None, (row["instruction"], row.get("input"))))


def json_lines(path: Path) -> Iterator[Any]:
    openers: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".xz": lzma.open}
    if path.exists():
        with openers.get(path.suffix, open)(path, "rt", encoding="utf-8") as file:
            yield from (json.loads(line) for line in file if line.strip())


# What untouched responses lose.


def untouched(check: ResponseCheck, chats: dict[str, list[Chat]]) -> Any:
    dropped: dict[str, list[tuple[list[Fault], Chat]]] = defaultdict(list)
    whole: dict[str, list[Chat]] = defaultdict(list)
    for language, one in chats.items():
        for chat in one:
            if faults := list(check.faults(chat)):
                dropped[language].append((faults, chat))
            else:
                whole[language].append(chat)
    return dropped, whole


def list_drops(dropped: dict[str, list[tuple[list[Fault], Chat]]], reason: str) -> Iterator[str]:
    drops = [
        (language, fault, chat)
        for language, one in sorted(dropped.items())
        for faults, chat in one
        for fault in faults
        if fault.reason == reason
    ]
    random.Random(0).shuffle(drops)
    yield f"{reason}: {len(drops)} drops"
    for language, fault, chat in drops[:50]:
        answer = chat["messages"][fault.place]["content"]
        question = chat["messages"][fault.place - 1]["content"]
        yield (
            f"[{language} {chat['source']}] {fault.detail}\n   Q {question[:90]!r}\n"
            f"   A {answer[:90]!r} … {answer[-90:]!r}"
        )


# Recall of made faults.


def recall(check: ResponseCheck, whole: dict[str, list[Chat]], options: argparse.Namespace) -> dict[str, Any]:
    """By kind and language: share with the right reason, share that is dropped at all, number."""
    udhr = {
        language: [
            line
            for line in (options.data / f"text/heldout_udhr/{language}.txt").read_text().splitlines()
            if len(line) > 60
        ]
        for language in LANGUAGES
    }
    table: dict[str, dict[str, list[float]]] = defaultdict(dict)
    for language in LANGUAGES:
        dice = random.Random(f"{options.seed} {language}")
        long = [
            chat
            for chat in whole[language]
            if len(chat["messages"][-1]["content"]) > (80 if language == "zh" else 200)
        ]
        if not long:
            continue
        for kind, (reason, made) in faulty(dice, language, long, udhr, options.of_each).items():
            right = [{fault.reason for fault in check.faults(chat)} for chat in made]
            if right:
                table[kind][language] = [
                    round(sum(reason in one for one in right) / len(right), 3),
                    round(sum(bool(one) for one in right) / len(right), 3),
                    len(right),
                ]
    return table


def faulty(
    dice: random.Random, language: str, chats: list[Chat], udhr: dict[str, list[str]], of_each: int
) -> dict[str, tuple[str, list[Chat]]]:
    made: dict[str, tuple[str, list[Chat]]] = {}

    def add(kind: str, reason: str, make: Any) -> None:
        rows: list[Chat] = []
        for _ in range(4 * of_each):
            chat = dice.choice(chats)
            text = make(chat["messages"][-1]["content"], chat)
            if text is not None and len(rows) < of_each:
                rows.append({"messages": [*chat["messages"][:-1], {"role": "assistant", "content": text}]})
        made[kind] = (reason, rows)

    def foreign() -> str:
        return dice.choice(
            [
                one
                for one in LANGUAGES
                if one != language and {one, language} not in ({"id", "ms"}, {"es", "pt"})
            ]
        )

    def with_sentence(text: str, _: Chat) -> str:
        lines = text.split("\n")
        place = dice.randrange(len(lines) + 1)
        return "\n".join([*lines[:place], dice.choice(udhr[foreign()]), *lines[place:]])

    for kind, (reason, make) in MAKES.items():
        add(kind, reason, lambda text, _, make=make: make(dice, text))
    add(
        "question again",
        "repeating",
        lambda _, chat: (
            chat["messages"][-2]["content"] if len(chat["messages"][-2]["content"]) > 40 else None
        ),
    )
    add("refusal", "refused", lambda _, __: composed_refusal(dice, language))
    add("foreign sentence", "mixed_language", with_sentence)
    add("other language", "other_language", lambda _, __: " ".join(dice.sample(udhr[foreign()], 3)))
    for kind in [one for one in STRAY if not one.startswith({"zh": "Han", "th": "Thai"}.get(language, "-"))]:
        add(kind, "mixed_language", lambda text, _, kind=kind: with_stray_letters(dice, text, kind))
    assert set(PARTS) == set(LANGUAGES)
    return made


def speed(check: ResponseCheck, chats: dict[str, list[Chat]]) -> dict[str, float]:
    rows = [chat["messages"] for one in chats.values() for chat in one[:200]]
    start = time.process_time()
    for messages in rows:
        response, question = read_response(messages[-1]["content"]), messages[-2]["content"]
        refusal(response, question), repeats(response), said_before(response, question, ()), cut_off(response)
    middle = time.process_time()
    for messages in rows:
        list(check.faults({"messages": [*messages[:-1]][-1:] + messages[-1:]}))
    end = time.process_time()
    mean = sum(len(messages[-1]["content"]) for messages in rows) / len(rows)
    return {
        "without languages": round(len(rows) / (middle - start)),
        "with": round(len(rows) / (end - middle)),
        "mean characters": round(mean),
    }


if __name__ == "__main__":
    main()
