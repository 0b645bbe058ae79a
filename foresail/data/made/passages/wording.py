"""How a question over passages is put, and the short solution that names its evidence."""

from __future__ import annotations

import random

from foresail.data.made.passages.ways import UNANSWERABLE, Asked

INSTRUCTIONS = (
    "Answer the question from the passages below.",
    "Read the passages and answer the question. Go by the passages, even where you know it otherwise.",
    "Use only what the passages say.",
    "Below are search results. Some have nothing to do with the question. Answer from them alone.",
    "You are given numbered passages and a question. Find the answer in the passages.",
)
REFUSALS = (
    f'If they do not say, answer "{UNANSWERABLE}".',
    f'Answer "{UNANSWERABLE}" if the passages do not contain the answer.',
    f'If the answer is not in them, write "{UNANSWERABLE}".',
)
FORMS = (
    "Answer in a few words.",
    "Give the answer only.",
    "Keep the answer as short as it can be.",
)


def word_prompt(question: str, asked: Asked, chance: random.Random) -> tuple[str, str]:
    """The prompt, and the template's name."""
    instruction, refusal, form = (chance.randrange(len(each)) for each in (INSTRUCTIONS, REFUSALS, FORMS))
    passages = "\n\n".join(
        f"[{number}] {passage.title}\n{passage.text}" for number, passage in enumerate(asked.passages, 1)
    )
    opening = f"{INSTRUCTIONS[instruction]} {REFUSALS[refusal]} {FORMS[form]}"
    first = chance.random() < 0.5
    middle = f"Question: {question}\n\n{passages}" if first else f"{passages}\n\nQuestion: {question}"
    return f"{opening}\n\n{middle}", f"{instruction}{refusal}{form}{'q' if first else 'p'}"


def solution(asked: Asked) -> str:
    """solution(…) -> "<think>\\nPassages 2 and 5 tell it.\\n</think>\\n\\nGalați"."""
    if not asked.evidence:
        thought = f"None of the {len(asked.passages)} passages says it."
    else:
        numbers = [str(place + 1) for place in asked.evidence]
        one = len(numbers) == 1
        listed = numbers[0] if one else f"{', '.join(numbers[:-1])} and {numbers[-1]}"
        thought = f"Passage {listed} says it." if one else f"Passages {listed} together say it."
    return f"<think>\n{thought}\n</think>\n\n{asked.answer}"
