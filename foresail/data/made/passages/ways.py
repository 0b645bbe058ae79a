"""The four ways to ask about passages, as Compass-v2 has them after Chen et al. (2023).

noise           the passages that answer the question, among others that do not
rejection       only others: the right answer is that they do not say
integration     a question that needs several passages, all of them there
counterfactual  the passages say something else than the truth: the right answer is what they say

None means that a question cannot be asked in this way, or that the answer would be given away.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from foresail.data.made.passages.library import Passage, Question
from foresail.data.made.passages.replacements import YES_NO, Answers, other_answer

UNANSWERABLE = "not stated"


@dataclass(frozen=True, kw_only=True)
class Asked:
    """`evidence` are places in `passages`, which are in the order in which they are shown."""

    passages: tuple[Passage, ...]
    answer: str
    evidence: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Draw:
    """What chance decides: the order, and how many passages there are. `answers`: of all questions, by kind."""

    chance: random.Random
    others: Sequence[Passage]
    total: int
    answers: Answers


def noise(question: Question, draw: Draw) -> Asked | None:
    if not says(question.gold, question.answer) and question.answer.lower() not in YES_NO:
        return None
    return arrange(question.gold, question.answer, draw)


def rejection(question: Question, draw: Draw) -> Asked | None:
    if question.answer.lower() in YES_NO:
        return None
    titles = {passage.title for passage in question.gold}
    others = [
        passage
        for passage in draw.others
        if passage.title not in titles and not says([passage], question.answer)
    ]
    if len(others) < draw.total:
        return None
    return Asked(passages=tuple(draw.chance.sample(others, draw.total)), answer=UNANSWERABLE)


def integration(question: Question, draw: Draw) -> Asked | None:
    if len(question.gold) < 2:
        return None
    return noise(question, replace(draw, total=len(question.gold) + draw.chance.randint(0, 1)))


def counterfactual(question: Question, draw: Draw) -> Asked | None:
    answer = question.answer
    if answer.lower() in YES_NO or not says(question.gold, answer) or says_text(question.text, answer):
        return None
    if any(says_text(passage.title, answer) for passage in question.gold):
        return None
    replacement = other_answer(answer, question.text, draw.answers, draw.chance)
    if replacement is None or says(question.gold, replacement):
        return None
    gold = tuple(
        replace(passage, text=replaced(passage.text, answer, replacement)) for passage in question.gold
    )
    if gives_away(gold, answer):
        return None  # a part of it stands elsewhere: a surname
    clean = [passage for passage in draw.others if not gives_away([passage], answer)]
    return arrange(gold, replacement, replace(draw, others=clean))


def arrange(gold: Sequence[Passage], answer: str, draw: Draw) -> Asked | None:
    titles = {passage.title for passage in gold}
    others = [passage for passage in draw.others if passage.title not in titles]
    missing = max(0, draw.total - len(gold))
    if len(others) < missing:
        return None
    passages = [*gold, *draw.chance.sample(others, missing)]
    order = draw.chance.sample(range(len(passages)), len(passages))
    evidence = sorted(order.index(number) for number in range(len(gold)))
    return Asked(
        passages=tuple(passages[number] for number in order), answer=answer, evidence=tuple(evidence)
    )


def says(passages: Sequence[Passage], answer: str) -> bool:
    return any(says_text(f"{passage.title}\n{passage.text}", answer) for passage in passages)


def says_text(text: str, answer: str) -> bool:
    # most texts do not hold it, and a search without a pattern is far quicker
    return answer.lower() in text.lower() and whole(answer).search(text) is not None


def whole(phrase: str) -> re.Pattern[str]:
    """The phrase, not as a part of a longer word."""
    return re.compile(rf"(?<!\w){re.escape(phrase)}(?!\w)", re.IGNORECASE)


def replaced(text: str, answer: str, replacement: str) -> str:
    return whole(answer).sub(lambda _: replacement, text)


def gives_away(passages: Sequence[Passage], answer: str) -> bool:
    """Whether a telling word of the answer is still there."""
    telling = [word for word in re.findall(r"\w+", answer) if len(word) > 3 and not word.isdigit()]
    is_number = any(character.isdigit() for character in answer)
    return any(says(passages, word) for word in ([answer] if is_number or not telling else telling))


WAYS: dict[str, Callable[[Question, Draw], Asked | None]] = {
    "noise": noise,
    "rejection": rejection,
    "integration": integration,
    "counterfactual": counterfactual,
}
