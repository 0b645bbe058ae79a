import pytest
from hypothesis import given
from hypothesis import strategies as st

from foresail.maths.extract import extract, last_box
from foresail.records import final_text


@pytest.mark.parametrize(
    ("response", "answer"),
    [
        (r"So \boxed{7}.", "7"),
        (r"\boxed{3}, no: \boxed{7}", "7"),
        (r"\fbox{7}", "7"),
        (r"\boxed {7}", "7"),
        (r"\boxed{ 7 }", "7"),
        (r"\boxed{\frac{1}{2}}", r"\frac{1}{2}"),
        (r"\boxed{\{1,2\}}", r"\{1,2\}"),
        (r"\boxed{1\\{2}}", r"1\\{2}"),
        (r"\boxed{1\\\{2}", r"1\\\{2"),
        (r"line\\\boxed{7}", "7"),
        (r"over-escaped \\boxed{7}", "7"),
        (r"\boxed{\boxed{7}}", "7"),
        (r"\boxed{ \fbox{ \boxed{7} } }", "7"),
        (r"\boxed{x=\boxed{7}}", r"x=\boxed{7}"),
        (r"\boxed{\boxed{7}8}", r"\boxed{7}8"),
        (r"\boxed{\boxed{7}\boxed{8}}", r"\boxed{7}\boxed{8}"),
        (r"\framebox{7}", "7"),
        (r"\boxed 7", "7"),
        (r"} \boxed{7} }", "7"),
        (r"{ \boxed{7}", "7"),
        (r"\boxed{oops \boxed{7}", "7"),
        (r"\boxed{7} and then \boxed{8", None),
        (r"\boxed{8", None),
        (r"\boxed{}", None),
        (r"\boxed{7} \boxed{ }", None),
        (r"\boxed{7 \} ", None),
        ("I say seven, or 7.", None),
        ("", None),
        ("The answer is 7.", "7"),
        ("**Final Answer:** $7$", "$7$"),
        ("答案是７。", "７"),
        ("<answer>7</answer>", "7"),
        ("If the answer is 7, we are done.", None),
        ("work\n#### 7", "7"),
        ("  ####7\nthanks", "7"),
        ("#### 6\n#### 7", "6, 7"),
        ("##### a heading", None),
        ("see #### 7", None),
        (r"\boxed{8}" + "\n#### 7", "8, 7"),
        ("#### 6\nWait, that is wrong.\n#### 7", "7"),
        ("The answer is: **7**", "7"),
        ("### Final Answer\n\n- $7$", "$7$"),
        ("jawabannya adalah **7**", "7"),
        ("The answer is 7, not 8.", "7"),
        ("The answer is $7$ or $8$.", "7, 8"),
        ("The answer is 7 because 3 + 4 = 7.", "7"),
        ("The answer is minus $7$.", "minus $7$"),
        ("twice the answer is 7", None),
        (r"\boxed{7} is wrong.", None),
        (r"\boxed{7}. Wait, that is wrong.", None),
        (r"\boxed{7} No, it is 8.", "7, 8"),
        (r"-\boxed{7}", None),
        (r"$\frac{1}{\boxed{7}}$", None),
        (r"it isn't \boxed{7}", None),
        (r"\boxed{7}, not \boxed{8}", "7"),
        (r"<!-- \boxed{7} -->", None),
        (r"\phantom{\boxed{7}}", None),
        (r"<think>\boxed{1}</think> \boxed{7}", "7"),
        (r"\boxed{1}</think> \boxed{7}", "7"),
        (r"a</think>\boxed{1}</think>\boxed{7}", "7"),
        (r"<think>\boxed{7}</think> I am not sure.", None),
        (r"<think>\boxed{7}", None),
        (r"<think>a</think>\boxed{7}<think>again", None),
        ("<think>#### 7", None),
    ],
)
def test_hand_cases(response: str, answer: str | None):
    extracted = extract(response, "stated")
    assert (extracted.text if extracted else None) == answer


@pytest.mark.parametrize(
    ("response", "rules"),
    [
        (r"\boxed{7}", ["boxed", "boxed", "boxed"]),
        ("#### 7", [None, "stated", "stated"]),
        ("So the total comes to 7.", [None, None, "last value"]),
        ("What is 3 + 4?", [None, None, None]),
    ],
)
def test_what_counts_is_what_the_recipe_accepts(response: str, rules: list[str | None]):
    found = [extract(response, accept) for accept in ("boxed", "stated", "any")]
    assert [extracted.rule if extracted else None for extracted in found] == rules


@pytest.mark.parametrize(
    ("response", "answer"),
    [
        (r"\boxed{1} and \boxed{2}", "1, 2"),
        (r"\boxed{1} \boxed{2}", "1, 2"),
        (r"$\boxed{x=1}$, $\boxed{y=2}$", "x=1, y=2"),
        (r"\boxed{1}. Alternatively it is \boxed{2}.", "1, 2"),
        (r"\boxed{1}. Wait, that is wrong: \boxed{2}.", "2"),
        (r"\boxed{1} is the first step. Then we add one and get, at last, \boxed{2}.", "2"),
        (r"\boxed{2}, that is \boxed{2}", "2"),
        (r"\boxed{1/2} = \boxed{0.5}", "1/2, 0.5"),
        (r"\boxed{1} … so the final \boxed{2}", "2"),
        (r"\boxed{1} atau \boxed{2}", "1, 2"),
        (r"It is \boxed{1}. It is also \boxed{2}.", "1, 2"),
        (r"\boxed{1} or $2$", "1, $2$"),
    ],
)
def test_boxes_offered_together_are_one_answer(response: str, answer: str):
    extracted = extract(response)
    assert extracted is not None
    assert extracted.text == answer


def test_final_text_is_none_while_thinking():
    assert final_text("<think>a</think> b") == " b"
    assert final_text("b") == "b"
    assert final_text("<think>a") is None


@pytest.mark.parametrize(
    "hostile",
    [
        "\\boxed{" * 30_000,
        "\\" * 100_000,
        "{" * 100_000,
        "\\boxed{" + " " * 100_000,
        "\\boxed" + " " * 100_000,
        "<think>" * 20_000,
        "####" * 25_000,
        "\\phantom{\\boxed{" * 10_000,
        "answer to " * 10_000,
        "<!--" * 25_000,
        "**a" * 30_000,
    ],
)
def test_hostile_texts_have_no_answer(hostile: str):
    # A quadratic reader would sit here for minutes.
    assert extract(hostile, "stated") is None


def test_a_thousand_nested_boxes_are_one():
    assert last_box("\\boxed{" * 1_000 + "7" + "}" * 1_000) == "7"


# Built from known parts, so the right answer is known without reading the text back.
letters = st.text(alphabet="ab 1=,.\n", max_size=4)
marks = st.sampled_from([r"\{", r"\}", r"\\\\", r"\frac", r"\,", "$"])
balanced = st.recursive(
    letters | marks,
    lambda inner: st.lists(inner, max_size=4).map("".join) | inner.map(lambda text: "{" + text + "}"),
)


@given(balanced, balanced, balanced, balanced, st.sampled_from([r"\boxed{", r"\fbox{", r"\boxed {"]))
def test_the_last_of_two_boxes_is_found_among_balanced_text(first, second, before, after, command):
    assert last_box(rf"{before}\boxed{{{first}}}{before}{command}{second}}}{after}") == second.strip()


@given(balanced, balanced, st.sampled_from([r"\boxed{", "{", "} {", r"\boxed{{"]))
def test_groups_that_never_close_hide_no_later_box(content, before, stray):
    assert last_box(rf"{before}{stray}\boxed{{{content}}}") == content.strip()
