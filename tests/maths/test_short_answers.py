"""Short answers in words: whole answers count, and nothing that hedges, lists or repeats is paid."""

import gzip
import json
import random
import re
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from foresail.maths.short_answers import ballot, find_answers, grade, normalise, token_f1

QA = Path(__file__).parents[3] / "shared/data/qa"
WORDS = (
    "Paris London Rome yes no the a an of and or not maybe film King Henry VIII 1990 1.5 15 -5 5 C++ C Vitamin A "
    "Galați Évreux U.S. 10:30 1030 3,000 3000 12 1/2 1939–1945 Bernard-Roger O'Hara 東京 x² x2 € &"
).split()
phrases = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join)


def status(response: str, *accepted: str) -> str:
    return grade(response, accepted).status


@pytest.mark.parametrize(
    ("response", "answer"),
    [
        ("<answer>Paris</answer>", "Paris"),
        ("<think>London? No.</think> It is in France. <answer> the PARIS. </answer>", "Paris"),
        (r"\boxed{Paris}", "Paris"),
        (r"Therefore \boxed{\text{Paris}}.", "Paris"),
        (r"<answer>\boxed{\text{Paris}}</answer>", "Paris"),
        ("Paris lies in France.\n\nSo the answer is: **Paris**", "Paris"),
        ("Final answer: Paris", "Paris"),
        ("Paris", "Paris"),
        ("<answer>Paris</answer> I say it again: <answer>paris</answer>", "Paris"),
        ("<answer>Paris</answer><|im_end|>", "Paris"),
        ("<answer>Bernard-Roger, Count of Bigorre</answer>", "Bernard-Roger, Count of Bigorre"),
        ("<answer>12 December 2012</answer>", "12 December, 2012"),
        ("<answer>1939-1945</answer>", "1939–1945"),
        ("<answer>$3,000</answer>", "3000"),
        ("<answer>Ｐａｒｉｓ</answer>", "Paris"),
        ("<answer>Par\u200bis</answer>", "Paris"),
        ("<answer>The</answer>", "The"),
        ("<answer>?</answer>", "?"),
    ],
)
def test_the_right_answer_is_right_in_many_forms(response: str, answer: str) -> None:
    verdict = grade(response, [answer])
    assert (verdict.status, verdict.score, verdict.terms) == ("correct", 1.0, {"f1": 1.0})


@pytest.mark.parametrize(
    ("response", "answer"),
    [
        ("<answer>Paris or London</answer>", "Paris"),
        ("<answer>not Paris</answer>", "Paris"),
        ("<answer>Paris</answer> or <answer>London</answer>", "Paris"),
        ("<answer>London</answer> or <answer>Paris</answer>", "Paris"),
        (r"\boxed{Paris} or \boxed{London}", "Paris"),
        (r"<answer>Paris</answer>, that is \boxed{Rome}", "Paris"),
        ("<answer>Paris<answer>London</answer>", "London"),
        ("<answer>yes and no</answer>", "yes"),
        ("<answer>yes/no</answer>", "yes"),
        ("It may be Paris", "Paris"),
        ("The answer isn't Paris", "Paris"),
        ("The answer is not Paris", "Paris"),
        ("Which is older, Paris or Rome?", "Paris"),
        ("Paris\nI am not sure.", "Paris"),
        ("<search>Paris</search>", "Paris"),
        ("<answer>1.5</answer>", "15"),
        ("<answer>-5</answer>", "5"),
        ("<answer>1/2</answer>", "12"),
        ("<answer>½</answer>", "12"),
        ("<answer>10²</answer>", "102"),
        ("<answer>10:30</answer>", "1030"),
        ("<answer>10,00</answer>", "1000"),
        ("<answer>C++</answer>", "C"),
        ("<answer>Vitamin</answer>", "Vitamin A"),
        ("<answer>€5</answer>", "$5"),
        ("<answer>the</answer>", "Paris"),
    ],
)
def test_hedges_lists_and_other_answers_are_wrong(response: str, answer: str) -> None:
    verdict = grade(response, [answer])
    assert (verdict.status, verdict.score) == ("wrong", 0.0)


@pytest.mark.parametrize(
    "response",
    [
        "",
        "<think>Paris",
        "<think>Paris</think>",
        "<answer></answer>",
        "<answer>Paris",
        "<answer>Paris</answer> or rather <answer>London",
        "<answer>Paris</answer> or rather <answer> </answer>",
        "Paris</answer>",
        r"\boxed{}",
    ],
)
def test_what_is_empty_or_cut_off_is_no_answer(response: str) -> None:
    verdict = grade(response, ["Paris"])
    assert (verdict.status, verdict.score, ballot(response)) == ("unparsable", 0.0, None)


def test_a_problem_without_an_answer_is_a_failure_and_no_score() -> None:
    assert grade("<answer>Paris</answer>", [" "]).status == "ungradable"
    assert grade("<answer></answer>", []).status == "ungradable"


def test_any_alias_is_right_and_f1_is_of_the_best() -> None:
    accepted = ["Lutetia", "City of Paris"]
    assert grade("<answer>the city of Paris</answer>", accepted).status == "correct"
    verdict = grade("<answer>Paris</answer>", accepted)
    assert (verdict.status, verdict.terms["f1"]) == ("wrong", 0.5)


def test_yes_and_no_share_nothing_with_other_words() -> None:
    assert token_f1("yes", "yes") == 1.0
    assert token_f1("no paris", "no") == token_f1("yes", "yes of course") == 0.0


# A judge of its own: texts are the same if what a careless reader would keep of them is, in order.


def letters_and_numbers(text: str) -> list[str]:
    """Words without their punctuation, numbers as they are: "U.S., 1.5" -> ["us", "1.5"]."""
    found = []
    for word in text.lower().replace("–", " ").split():
        word = re.sub(r"(?<=\d),(?=\d{3}\b)", "", word)
        numeric = re.search(r"\d", word) and not word.isalnum()
        found.append(word.strip(".,!?*'\"") if numeric else re.sub(r"(?<![\w+#])[+#]+|[^\w+#€²]", "", word))
    return [word for word in found if word not in ("a", "an", "the", "")]


def combine(rng: random.Random, right: str, others: list[str], question: str) -> str:
    """What a policy might try that does not know the answer, or will not commit itself to one."""
    options = [right, *others]
    rng.shuffle(options)
    ways = [
        lambda: rng.choice([" or ", ", ", "; ", " / ", " and ", "\n", " "]).join(options),
        lambda: rng.choice(["not ", "maybe ", "It is not ", "un", "no, "]) + right,
        lambda: (
            right + rng.choice([" not", ", or not", " is wrong", " (or another one)", ", I guess", " etc"])
        ),
        lambda: question,
        lambda: f"{question} {right}",
        lambda: f"{right} {right}",
        lambda: f"{right}</answer> <answer>{others[0]}",
        lambda: f"{others[0]}</answer>{right}<answer>{right}",
        lambda: f"<answer>{right}</answer>{others[0]}",
        lambda: rf"\boxed{{{right}}} \boxed{{{others[0]}}}",
        lambda: rf"{others[0]} \boxed{{{right}}}",
        lambda: " ".join(rng.sample(right.split(), len(right.split()) - 1)),
        lambda: f"{right}{rng.choice(['s', '7', ' 7', '.5', '%7', '++', '²'])}",
    ]
    return rng.choice(ways)()


def wrap(rng: random.Random, text: str) -> str:
    return rng.choice(
        [
            f"<answer>{text}</answer>",
            f"<think>{text}</think><answer>{text}</answer>",
            rf"\boxed{{{text}}}",
            f"The answer is {text}",
            text,
        ]
    )


def commits_to(response: str, right: str) -> bool:
    """Whether every answer that the response gives is the right one, by the judge above."""
    spans = find_answers(response)
    return bool(spans) and all(letters_and_numbers(span) == letters_and_numbers(right) for span in spans)


@given(st.lists(phrases, min_size=3, max_size=5, unique_by=lambda text: text.lower()), st.integers())
@settings(max_examples=1500)
@example(["C", "C++", "Paris"], 0)
def test_no_made_up_hedge_is_paid(texts: list[str], seed: int) -> None:
    rng, (right, question, *others) = random.Random(seed), texts
    response = wrap(rng, combine(rng, right, others, question))
    if grade(response, [right]).status == "correct":
        assert commits_to(response, right), (response, right)


@given(phrases, phrases)
@settings(max_examples=500)
def test_a_whole_other_answer_is_never_the_same(one: str, other: str) -> None:
    if letters_and_numbers(one) != letters_and_numbers(other):
        assert normalise(one) != normalise(other), (one, other)


@given(st.text(max_size=60), st.text(max_size=60))
@settings(max_examples=500)
def test_any_text_gets_a_verdict_that_agrees_with_its_vote(response: str, answer: str) -> None:
    verdict = grade(response, [answer])
    assert verdict.status in ("correct", "wrong", "unparsable", "ungradable")
    assert 0.0 <= verdict.terms.get("f1", 0.0) <= 1.0
    if verdict.status == "correct":
        assert ballot(response) == normalise(answer)
    if answer.strip() and "<" not in answer and "\\" not in answer and answer.isprintable():
        assert status(f"<answer>{answer}</answer>", answer) == "correct"


@pytest.mark.parametrize("name", ["2wiki/qa_matched_to_corpus", "hotpotqa_100_distractor/qa"])
def test_gold_answers_of_real_data_are_right_and_hedges_over_them_are_not(name: str) -> None:
    path = QA / f"{name}.jsonl.gz"
    if not path.is_file():
        pytest.skip(f"{path} is not there: data for tests is not part of the project")
    with gzip.open(path, "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    answers, rng = [row["answer"] for row in rows], random.Random(0)
    for row in rows:
        right, question = row["answer"], row["question"]
        assert (
            status(f"<answer>{right}</answer>", right) == status(f"The answer is {right}", right) == "correct"
        )
        others = [other for other in rng.sample(answers, 4) if normalise(other) != normalise(right)][:2]
        for _ in range(20):
            response = wrap(rng, combine(rng, right, others, question))
            if grade(response, [right]).status == "correct":
                assert commits_to(response, right), (response, right)
