"""The step `heuristics`: no text makes it fail, its verdicts depend on the text, each reason can be reached."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from heuristics.made_texts import drop_samples, made_code, prose, random_text, sentence

from foresail.curate.document import Document, Drop
from foresail.curate.heuristics.measure import Measured, measure
from foresail.curate.heuristics.measures import MEASURES
from foresail.curate.heuristics.rules import read_rules
from foresail.curate.heuristics.step import Heuristics
from foresail.curate.heuristics.stop_words import StopWords

RULES = read_rules("")
STOP_WORDS = StopWords(RULES.stop_words, RULES.odd_pairs)
STEP = Heuristics().open()


def judged(text: str, **metadata: Any) -> str:
    """The reason, or the kind of text in capitals."""
    outcome = STEP(Document(id="a", text=text, metadata=metadata))
    assert isinstance(outcome, Document | Drop)
    return outcome.reason if isinstance(outcome, Drop) else str(outcome.metadata["text_kind"]).upper()


def measured(text: str, **metadata: Any) -> Measured:
    return measure(text, metadata, STOP_WORDS)


def test_any_text_has_all_measures_and_the_same_ones_twice() -> None:
    dice = random.Random(1)
    for _ in range(600):
        text = random_text(dice)
        first = measured(text)
        assert {*first.values} == {*MEASURES}
        assert repr(first) == repr(measured(text))
        for name, value in first.values.items():
            assert not value < 0, (name, value, text)
            if "share" in name or "lines" in name or "gram" in name:
                assert not value > 1, (name, value, text)


def test_a_verdict_depends_on_the_text_alone() -> None:
    """Not on the documents before it, nor on id and address."""
    dice = random.Random(2)
    texts = [random_text(dice) for _ in range(50)] + [
        prose(dice),
        made_code(dice),
        *drop_samples(dice).values(),
    ]
    first = [judged(text) for text in texts]
    order = [*range(len(texts))]
    dice.shuffle(order)
    again = {number: judged(texts[number], source="other") for number in order}
    assert [again[number] for number in range(len(texts))] == first


def test_every_reason_can_be_reached() -> None:
    samples = drop_samples(random.Random(3))
    assert {*samples} == RULES.reasons
    assert {reason: judged(text) for reason, text in samples.items()} == {
        reason: reason for reason in samples
    }


def test_prose_of_made_words_stays() -> None:
    dice = random.Random(4)
    assert {judged(prose(dice, sentences)) for sentences in (9, 20, 60, 300)} == {"PROSE"}


def test_indented_code_stays() -> None:
    dice = random.Random(5)
    for lines in (12, 60, 300):
        code = made_code(dice, lines)
        assert judged(code) == "CODE"
        assert judged(code.replace("    ", "\t")) == "CODE"
        assert judged(f"{prose(dice, 3)}\n```python\n{code}\n```") == "CODE"


def test_a_block_of_code_does_not_change_the_measures_of_prose() -> None:
    dice = random.Random(6)
    text, code = prose(dice, 60), made_code(dice, 12)
    with_code = f"{text}\n\n```\n{code}\n```"
    assert measured(with_code).kind == "prose"
    plain, mixed = measured(text).values, measured(with_code).values
    assert mixed == pytest.approx(plain, nan_ok=True)


def test_a_fence_that_never_closes_hides_nothing() -> None:
    lines = "\n".join([sentence(random.Random(7))] * 40)
    assert judged(f"```\n{lines}") == "repeated_lines"


def test_formulas_make_it_maths() -> None:
    dice = random.Random(8)
    steps = [
        f"{sentence(dice)} Then $x_{n}^2 = \\frac{{{n}}}{{y}}$ holds.\n\\[ x = {n} \\]" for n in range(12)
    ]
    assert judged("\n".join(steps)) == "MATHS"


@pytest.mark.parametrize(
    ("noise", "measure_name"),
    [
        ("The same line stands here again.", "repeated_lines"),
        ("The same line stands here again.", "repeated_line_characters"),
        ("kasino bonus", "loose_words"),
        ("and so it goes on…", "ellipsis_lines"),
        ("- and an item", "bullet_lines"),
        ("CLICK HERE NOW", "capitals"),
        ("\ufffd\ufffd\ufffd\ufffd", "broken"),
        ("ÃƒÂ© Ã© Ã¼", "misread"),
        ("lorem ipsum", "placeholders"),
        ("#a #b #c", "signs"),
        ("aβcδe", "mixed_words"),
        ("the of a the", "odd_pairs"),
        ("one, two, three,", "listed_words"),
    ],
)
def test_more_noise_never_measures_less(noise: str, measure_name: str) -> None:
    text = (
        prose(random.Random(9), 30) + "\nIt is in the house of the man and it was on the table for a day." * 3
    )
    values = [measured(text + f"\n{noise}" * count).values[measure_name] for count in range(1, 30)]
    assert values == sorted(values)
    assert values[-1] > values[0]


def test_scripts_without_spaces_have_words() -> None:
    assert measured("你好世界" * 8).values["words"] == pytest.approx(20)
    assert measured("กขคงจช" * 10).values["words"] == pytest.approx(20)
    assert judged("ภาษาไทย") == "too_short"


def test_shuffled_thai_is_broken() -> None:
    letters = list("เมื่อวานนี้ผมไปตลาดกับเพื่อน ๆ และซื้อผลไม้หลายอย่างมาให้ที่บ้าน" * 8)
    random.Random(10).shuffle(letters)
    assert judged("".join(letters)) == "broken_characters"


def test_the_language_of_the_metadata_counts() -> None:
    dice = random.Random(11)
    text = prose(dice, 30)
    assert measured(text).language == "en"
    assert measured(text, language="de").language == "de"
    assert judged(text, language="de") == "few_stop_words"
    # nothing is known of its stop words
    assert judged(text, language="sw") == "PROSE"


def test_a_file_of_rules_goes_over_the_shipped_ones(tmp_path: Path) -> None:
    (tmp_path / "rules.toml").write_text(
        "[all.too_short]\nwords = {least = 5}\n[prose]\nscrambled = false\n"
        '[domain."example.org".all.too_short]\nwords = {least = 1000}\n'
        '[language.xx]\nstop_words = ["ba", "bo"]\n[language.xx.prose.few_stop_words]\nstop_words = {least = 1}\n'
    )
    step = Heuristics(rules=str(tmp_path / "rules.toml"), measures=("words",)).open()
    text = " ".join(sentence(random.Random(n)) for n in range(3))
    kept = step(Document(id="a", text=text))
    assert isinstance(kept, Document) and kept.metadata["words"] >= 18
    dropped = step(Document(id="a", text=text, url="https://www.example.org/x"))
    assert isinstance(dropped, Drop) and dropped.reason == "too_short" and "at least 1000" in dropped.detail
    assert isinstance(step(Document(id="a", text=text, url="http://[broken")), Document)
    xx = step(Document(id="a", text=f"ba tiru nasi bo. {text}", metadata={"language": "xx"}))
    assert isinstance(xx, Document)


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ("[all.too_short]\nwordz = {least = 1}", "no measure wordz"),
        ("[al.too_short]\nwords = {least = 1}", "al is none of all"),
        ("[all.too_short]\nwords = {min = 1}", "must be like"),
        ("[all.too_short]\nwords = {least = true}", "limits are numbers"),
        ("[all]\ntoo_short = 3", "false or a table"),
        ('[all."Too short"]\nwords = {least = 1}', "one word"),
        ("[language.en]\nstop_words = 3", "list of words"),
        ('[language.en]\nstop_words = ["of the"]', "words without spaces"),
        ("all = ", "not TOML"),
    ],
)
def test_mistakes_in_rules(tmp_path: Path, rules: str, message: str) -> None:
    (tmp_path / "rules.toml").write_text(rules)
    with pytest.raises(ValueError, match=message):
        Heuristics(rules=str(tmp_path / "rules.toml"))


def test_other_mistakes() -> None:
    with pytest.raises(ValueError, match="there is no file"):
        Heuristics(rules="missing.toml")
    with pytest.raises(ValueError, match="no rule has the reason too_shrt"):
        Heuristics(without=("too_shrt",))
    with pytest.raises(ValueError, match="none called wordz"):
        Heuristics(measures=("wordz",))


def test_the_end_of_a_huge_text_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    text = prose(random.Random(12), 30)
    monkeypatch.setattr("foresail.curate.heuristics.measure.LONGEST", len(text))
    assert measured(text + "lorem ipsum" * 9).values == pytest.approx(measured(text).values, nan_ok=True)
