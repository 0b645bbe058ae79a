import pytest
from hypothesis import given
from hypothesis import strategies as st

from foresail.maths.exact import ballot, grade


@pytest.mark.parametrize(
    ("response", "answer", "status"),
    [
        ("Paris", "Paris", "correct"),
        (" Paris\n", "Paris ", "correct"),
        ("<think>London?</think>\n\nParis", "Paris", "correct"),
        ("London?</think> Paris", "Paris", "correct"),
        ("paris", "Paris", "wrong"),
        ("Paris, I think", "Paris", "wrong"),
        ("<think>Paris</think>London", "Paris", "wrong"),
        ("", "Paris", "unparsable"),
        ("<think>Paris</think> ", "Paris", "unparsable"),
        ("<think>Paris", "Paris", "unparsable"),
        ("", "", "ungradable"),
        ("Paris", " ", "ungradable"),
    ],
)
def test_hand_cases(response: str, answer: str, status: str):
    verdict = grade(response, answer)
    assert verdict.status == status
    assert verdict.score == float(status == "correct")


def test_ballot_is_the_final_text():
    assert ballot("<think>1</think> 2 ") == "2"
    assert ballot("<think>1") is None


@given(st.text(max_size=99), st.text(max_size=9))
def test_nothing_raises_and_details_are_short(response: str, answer: str):
    assert len(grade(response, answer).detail) <= 200
