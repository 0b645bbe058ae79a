"""Numbers of a text: those that a text was made of are found again, in every way to write them."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from foresail.curate.rewriting.chrf import chrf
from foresail.curate.rewriting.quantities import find_quantities, lost_quantities, new_quantities
from foresail.curate.rewriting.spans import fixed_spans, lost_spans, without_spans

ONES = ("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
        "seventeen eighteen nineteen").split()  # fmt: skip
TENS = ("", "", *"twenty thirty forty fifty sixty seventy eighty ninety".split())


def in_english(number: int) -> str:
    """Written independently of the reader."""
    if number < 20:
        return ONES[number]
    if number < 100:
        return TENS[number // 10] + (f"-{ONES[number % 10]}" if number % 10 else "")
    if number < 1000:
        rest = f" and {in_english(number % 100)}" if number % 100 else ""
        return f"{ONES[number // 100]} hundred{rest}"
    rest = f" {in_english(number % 1000)}" if number % 1000 else ""
    return f"{in_english(number // 1000)} thousand{rest}"


def in_thai_digits(number: int) -> str:
    return "".join(chr(0x0E50 + int(digit)) for digit in str(number))


@settings(max_examples=150)
@given(st.integers(2, 999_999))
def test_a_number_is_the_same_in_digits_and_in_words(number: int) -> None:
    for written in (
        str(number),
        f"{number:,}",
        in_english(number),
        in_english(number).upper(),
        in_thai_digits(number),
    ):
        found = find_quantities(f"There are {written} apples, and no others.")
        assert [quantity.values for quantity in found] == [{Fraction(number)}], written


@settings(max_examples=100)
@given(st.lists(st.integers(2, 10**6), min_size=1, max_size=6), st.data())
def test_what_is_left_out_or_added_is_named(numbers: list[int], data: st.DataObject) -> None:
    def text(numbers: list[int]) -> str:
        return ". ".join(f"box {chr(98 + place)} holds {number} pens" for place, number in enumerate(numbers))

    before = find_quantities(text(numbers))
    shuffled = find_quantities(text(data.draw(st.permutations(numbers))))
    assert not lost_quantities(before, shuffled) and not new_quantities(before, shuffled)
    gone = data.draw(st.integers(0, len(numbers) - 1))
    fewer = find_quantities(text(numbers[:gone] + numbers[gone + 1 :]))
    assert [one.text for one in lost_quantities(before, fewer)] == [str(numbers[gone])]
    assert bool(new_quantities(fewer, before)) == (numbers[gone] not in numbers[:gone] + numbers[gone + 1 :])


def test_ways_to_write_a_number() -> None:
    def values(text: str, language: str = "en", loose: bool = False) -> list[set[str]]:
        return [{*map(str, one.values)} for one in find_quantities(text, language, loose=loose)]

    assert values("5% of 2.5 million, ½ and two dozen") == [{"1/20"}, {"2500000"}, {"1/2"}, {"24"}]
    assert values("from -5 to 3-5") == [{"-5"}, {"3"}, {"5"}]
    assert values("1.234", "id", True) == [{"1234", "617/500"}]
    assert values("三百零五个苹果和两个梨", "zh") == [{"305"}, {"2"}]
    assert values("dua puluh lima", "id") == [{"2"}, {"10"}, {"5"}]


def test_fixed_parts_are_named_as_what_they_are() -> None:
    text = (
        "Let $x^2$ cost $5 or $10; run `f(2)` of read_csv, see https://a.org/b?c=1. {name} <b>A4</b>\n"
        "```py\n1\n```\n"
    )
    spans = fixed_spans(text)
    assert [(span.text, span.kind) for span in spans] == [
        ("$x^2$", "latex"), ("`f(2)`", "code"), ("read_csv", "name"), ("https://a.org/b?c=1", "address"),
        ("{name}", "placeholder"), ("<b>", "tag"), ("A4", "name"), ("</b>", "tag"), ("```py\n1\n```", "fence"),
    ]  # fmt: skip
    assert "x^2" not in without_spans(text, spans) and "$5 or $10" in without_spans(text, spans)
    assert lost_spans(spans, spans[1:], text.replace("$x^2$", "$x^3$")) == ["$x^2$"]


@given(st.text(max_size=300))
def test_any_text_is_read(text: str) -> None:
    spans = fixed_spans(text)
    assert all(text[span.start : span.end] == span.text for span in spans)
    for language, loose in (("en", False), ("vi", True), ("zh", True)):
        found = find_quantities(text, language, loose=loose)
        assert not lost_quantities(found, found) or any(not one.values for one in found)
    assert 0 <= chrf(text, text[::-1]) <= 1 and chrf(text, text) == 1


def test_chrf_of_known_texts() -> None:
    assert chrf("", "abc") == chrf("abc", "") == chrf("abc", "xyz") == 0
    # n-grams of abcd in abce: 3 of 4, 2 of 3, 1 of 2, 0 of 1; precision and recall are the same
    assert abs(chrf("abcd", "abce") - (3 / 4 + 2 / 3 + 1 / 2 + 0) / 4) < 1e-12
