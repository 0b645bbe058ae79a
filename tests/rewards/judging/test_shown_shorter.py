"""No response gets rid of its verdict: a judge that fails on some texts is shown less of them until it judges."""

from __future__ import annotations

import json
import random

from echoing_judge import framed, name_in, scripted

from foresail.chat.endpoint import Refused
from foresail.recipe.tables.judge import JudgeForm
from foresail.records import Message
from foresail.rewards.judging.judge import Comparison, Judge, Pair, Rating, Unjudged
from foresail.rewards.judging.question import Judged
from foresail.rewards.judging.quoting import Frame
from foresail.rewards.judging.rubric import load_rubric
from foresail.rewards.judging.shorter import (
    AGAINST_REFERENCE,
    OF_SIBLINGS,
    compare_responses,
    rate_responses,
)
from foresail.rewards.judging.siblings import compare_siblings

QUALITY = load_rubric("quality")
PROMPT = (Message(role="user", content="What is 2 + 2?"),)
CONTEXT = 2500  # characters that this judge reads
PIECES = (
    "good ", "bad ", "write a poem", "\x00", "\ud800", "\U000e0041", "<|im_end|>", "{", '"', "filtered", "é" * 300,
    "x" * 4000, "\n" * 50, "<think>", "```",
)  # fmt: skip


def fails(text: str) -> str | Refused | None:
    if len(text) > CONTEXT:
        return Refused("400: maximum context length exceeded")
    if "filtered" in text:
        return Refused("400: content_filter")
    if any(ord(c) < 9 or 0xD800 <= ord(c) < 0xE000 or ord(c) >= 0xE0000 for c in text):
        return Refused("500: bad character")
    return "Roses are red" if "poem" in text else None


def fragile(asked: str) -> str | Refused:
    """It judges by the word "good", and fails on long, forbidden or commanding texts."""
    names = ("answer A", "answer B") if "<<answer A" in asked else ("answer",)
    texts = [framed(asked, name) for name in names]
    if (failed := fails(asked) or next((one for text in texts if (one := fails(text))), None)) is not None:
        return failed
    if len(texts) == 1:
        return json.dumps({name_in(asked): 8 if "good" in texts[0] else 2})
    return json.dumps({name_in(asked): "A" if "good" in texts[0] else "B"})


def responses(seed: int, count: int) -> list[str]:
    rng = random.Random(seed)
    return ["".join(rng.choices(PIECES, k=rng.randrange(1, 6))) for _ in range(count)]


def test_every_response_is_judged_whatever_it_makes_of_its_judge() -> None:
    texts = responses(1, 300)
    judge = Judge(JudgeForm(), scripted(fragile))
    ratings = rate_responses(judge, [Judged(prompt=PROMPT, response=text) for text in texts], QUALITY)
    assert all(isinstance(rating, Rating) for rating in ratings)
    assert {rating.shown for rating in ratings if isinstance(rating, Rating)} == {1.0, 0.25, 0.0}
    pairs = [Pair(prompt=PROMPT, first=text, second="4") for text in texts]
    compared = compare_responses(judge, pairs, QUALITY, AGAINST_REFERENCE)
    assert all(isinstance(one, Comparison) for one in compared)


def test_a_sibling_that_breaks_the_judge_loses_and_the_others_are_compared() -> None:
    texts = ["good", "bad and write a poem", "good too", "x" * 5000]
    judge = Judge(JudgeForm(), scripted(fragile))
    (scores,) = compare_siblings(judge, QUALITY, [PROMPT], [texts], opponents=2)
    assert scores == [1.0, 0.0, 1.0, 0.0]
    drawn = [responses(seed, 4) for seed in range(40)]
    for scores in compare_siblings(judge, QUALITY, [PROMPT] * 40, drawn, opponents=3):
        assert not any(isinstance(score, Unjudged) for score in scores)


def test_a_judge_that_says_nothing_of_any_response_gives_no_verdict() -> None:
    judge = Judge(JudgeForm(), answer := scripted(lambda asked: Refused("no")))
    (rating,) = rate_responses(judge, [Judged(prompt=PROMPT, response="4" * 100)], QUALITY)
    assert isinstance(rating, Unjudged) and answer.asked == 3
    pairs = [Pair(prompt=PROMPT, first="4" * 100, second="5" * 50)]
    (compared,) = compare_responses(judge, pairs, QUALITY, OF_SIBLINGS)
    assert isinstance(compared, Unjudged)


def test_no_text_holds_the_seal_of_its_own_answer() -> None:
    """A million texts may be tried at home; one of them would hold the first digits of its own hash."""
    first = Frame.of(["fixed", ""]).seal
    assert Frame.of([f"fixed {first}", ""]).seal not in f"fixed {first}"
    digits = "0123456789abcdef"
    crowded = " ".join(a + b + c + d + "0" + e for a in digits for b in digits for c in digits for d in digits
                       for e in "01")  # fmt: skip
    escaped = "".join(f"\\u{ord(digit):04x}" for digit in Frame.of([crowded]).seal)
    frame = Frame.of([crowded + escaped])
    assert frame.seal not in crowded and frame.seal not in json.loads(f'"{escaped}"')
