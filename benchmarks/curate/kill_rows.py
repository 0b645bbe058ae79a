"""Made rows for step_kills.py: of every kind of row some that its step drops, and some that it keeps.

write_inputs(folder, seed=0) -> folder/problems/0.jsonl, …, folder/chats/0.jsonl, …, a checkpoint in folder/model
"""

from __future__ import annotations

import csv
import json
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

PIECES = 6
Row = dict[str, Any]
THINGS = "pens cups lamps boats ropes maps stars sails".split()
WORDS = "sea ship crew port sail wind rope deck mast star map night storm island harbour captain".split()
ADD = {
    "type": "function",
    "function": {
        "name": "add",
        "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
    },
}


def write_inputs(folder: Path, seed: int) -> None:
    chance = random.Random(seed)
    problems, chats = problem_rows(1600, chance), chat_rows(1600, chance)
    write_pieces(folder / "problems", problems)
    write_pieces(folder / "few-problems", problems[:240])
    write_pieces(folder / "chats", chats)
    write_pieces(folder / "few-chats", chats[:200])
    write_pieces(folder / "code", code_rows(70, chance))
    write_pieces(folder / "pens", [pen_row(number) for number in range(70)])
    write_rows(folder / "benchmark.jsonl", ({"text": row["problem"]} for row in problems[::7]))
    samples = (
        {"id": row["id"], "responses": [rf"\boxed{{{chance.randrange(9)}}}" for _ in range(6)]}
        for row in problems
    )
    write_rows(folder / "samples.jsonl", samples)
    labels = ({"text": words(60, chance), "labels": {"fluency": number % 4}} for number in range(300))
    write_rows(folder / "labels.jsonl", labels)
    pairs = (
        {"prompt": f"Which {number}?", "chosen": words(9, chance), "rejected": words(8, chance)}
        for number in range(80)
    )
    write_rows(folder / "pairs.jsonl", pairs)
    write_towns(folder)
    write_shop(folder / "shop.csv", chance)
    (folder / "grader.py").write_text(
        "def grade(response, answer):\n    return float(len(response) % 3 == 1)\n"
    )
    write_checkpoint(folder / "model")


def write_pieces(folder: Path, rows: list[Row]) -> None:
    """A piece is read by one process at a time; of several some are done when a kill comes."""
    for number in range(PIECES):
        write_rows(folder / f"{number}.jsonl", rows[number::PIECES])


def write_rows(path: Path, rows: Iterable[Row]) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def words(count: int, chance: random.Random) -> str:
    return " ".join(chance.choices(WORDS, k=count))


def problem_rows(count: int, chance: random.Random) -> list[Row]:
    """Every fifth in the words of an earlier one, every eleventh a proof, some with a wrong answer."""
    rows: list[Row] = []
    for number in range(count):
        one, other, thing = chance.randrange(20, 99), chance.randrange(2, 19), chance.choice(THINGS)
        text = (
            f"A shop sells {one} red {thing} and {other} blue {thing} on day {number}. How many does it sell?"
        )
        answer = str(one + other + number % 13 // 12)
        if rows and number % 5 == 0:
            earlier = chance.choice(rows)
            text, answer = earlier["problem"].replace(". ", ".\n"), earlier["answer"]
        elif number % 11 == 0:
            text = f"Prove that {one} and {other} {thing} are more than {other}, number {number}."
        rows.append(
            {
                "id": f"p{number}",
                "problem": text,
                "answer": answer,
                "solution": rf"\boxed{{{answer}}}",
                "topic": chance.choice(("sums", "sums", "rates")),
                "level": chance.randrange(1, 6),
                "rate": chance.random(),
            }
        )
    return rows


def pen_row(number: int) -> Row:
    """What kill_server.py can translate."""
    sold = f"A shop sells {number + 12} red pens and {3 * number + 36} blue pens."
    text = f"{sold} How many pens does the shop sell altogether?"
    return {"id": f"q{number}", "problem": text, "answer": str(4 * number + 48)}


def code_rows(count: int, chance: random.Random) -> list[Row]:
    """Of some the program fails, and some a constant passes."""
    rows = []
    for number in range(count):
        step = chance.randrange(1, 9)
        wrong = number % 7 == 3
        tests = [f"assert move_{number}({n}) == {n + step + wrong}" for n in (1, 5, 9)]
        rows.append(
            {
                "text": f"Write a function to move a ship number {number} by {step}.",
                "code": f"def move_{number}(place):\n  return place + {step}",
                "test_list": [f"assert move_{number}(3) == {3 + step}"] * 3 if number % 5 == 1 else tests,
            }
        )
    return rows


def chat_rows(count: int, chance: random.Random) -> list[Row]:
    """Responses to some sixty questions; every fourth row calls a tool, some of these wrongly."""
    rows = []
    for number in range(count):
        question = f"Tell me of the {chance.choice(WORDS)} and the {chance.choice(WORDS[:4])}."
        messages: list[Row] = [{"role": "user", "content": question}]
        if number % 4 == 0:
            call = {"id": "1", "type": "function", "function": {"name": "add", "arguments": {"a": number}}}
            if number % 12 == 0:
                call["function"] = {"name": "add", "arguments": {"a": "many"}}
            messages += [
                {"role": "assistant", "content": "", "tool_calls": [call]},
                {"role": "tool", "content": "7", "tool_call_id": "1"},
            ]
        messages.append({"role": "assistant", "content": words(chance.randrange(3, 40), chance)})
        row = {"id": f"c{number}", "messages": messages, "quality": chance.randrange(5)}
        rows.append(row | ({"tools": [ADD]} if number % 4 == 0 else {}))
    return rows


def write_towns(folder: Path) -> None:
    """Questions over passages; every town has a founder and a year, and is named by other passages too."""
    names = [
        f"{one}{two}" for one in ("Al", "Bor", "Cel", "Dun", "Eg") for two in ("ford", "wick", "ham", "ton")
    ]
    people = [f"{name} {name[::-1].capitalize()}" for name in ("Ada", "Ben", "Cid", "Dot", "Eli", "Fay")]
    questions, corpus = [], []
    for number, town in enumerate(names):
        founder, year = people[number % 6], str(1500 + 37 * number)
        corpus.append({"title": town, "text": f"{town} was founded in {year} by {founder}, a miller."})
        for word in WORDS[:8]:
            corpus.append({"title": f"{town} {word}", "text": f"The {word} of {town} is much loved."})
        questions.append({"question": f"Who founded {town}?", "answer": founder, "titles": [town]})
        questions.append({"question": f"In what year was {town} founded?", "answer": year, "titles": [town]})
    write_rows(folder / "qa.jsonl", questions)
    write_rows(folder / "corpus.jsonl", corpus)


def write_shop(path: Path, chance: random.Random) -> None:
    names = "lamp chair kettle scarf drum tent sofa mug clock rug bell fan cart pen mat hat box jar".split()
    values = {
        "color": ("black", "blue", "red"),
        "size": ("S", "M", "L"),
        "material": ("oak", "steel", "glass"),
    }
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, ["name", "brand", "category", "price", "stock", *values])
        writer.writeheader()
        for name in names:
            brand, category = chance.choice(("Ardo", "Bexil", "Cavo")), chance.choice(("home", "tools"))
            for _ in range(6):
                row = {"name": name, "brand": brand, "category": category}
                row |= {"price": f"{chance.randrange(2, 900)}.50", "stock": str(chance.choice((0, 3, 12)))}
                writer.writerow(row | {key: chance.choice(options) for key, options in values.items()})


def write_checkpoint(folder: Path) -> None:
    """Random weights, so its answers are noise; the grader of the job calls a third of them right."""
    from foresail.model.hf import build_model, save_model
    from foresail.recipe.shape.hf_config import SpecialIds
    from foresail.recipe.shape.model_shape import ModelShape
    from foresail.tokenizer.train import train_bpe

    tokenizer = train_bpe(["2 + 2 = 4"] * 4, vocab_size=270)
    shape = ModelShape(
        vocab_size=tokenizer.vocab_size,
        hidden_size=24,
        intermediate_size=48,
        num_layers=2,
        num_heads=2,
        num_kv_heads=1,
        head_dim=12,
        max_context=256,
    )
    save_model(build_model(shape, seed=3), folder, special=SpecialIds(eos=tuple(tokenizer.eos_ids)))
    tokenizer.save(folder)
