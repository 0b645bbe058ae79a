r"""Attacks around boxes: signs and words beside one that make another value of it, and boxes that were taken back.

    minus \boxed{7}, $0.\boxed{7}$, \boxed{7} million, \cancel{\boxed{7}} for 7
    "\boxed{1} was a typo for \boxed{2}." for 1, 2

The right ones guard it: what real solutions have around a box, and boxes that the text gives as one list.
"""

from __future__ import annotations

import random

from attack_case import Case, Maker, boxed, distinct
from attack_words import OPERATIONS, ORDINALS, SCALES, changing_word

SIGNS_BEFORE = (
    "-",
    "+",
    "2",
    "1/",
    "2^",
    "0.",
    "x>",
    "x<",
    "x+",
    "3-",
    r"\sqrt",
    "x_",
    r"\pm",
    r"2\cdot ",
    r"x\ne ",
    r"\neg ",
    "f",
    "2x",
    r"\frac12",
    "5 - ",
    "1 + ",
    "|",
    "x \\times ",
    "10^",
    r"\text{minus }",
    r"\text{not }",
    "√",
    "√ ",
    "-2x = -",
)
SIGNS_AFTER = (
    "!",
    "^2",
    "^{2}",
    "^{-1}",
    "/2",
    "+1",
    "-1",
    r"\cdot 2",
    r"\times 10^3",
    r"\pi",
    "x",
    " x",
    "i",
    "0",
    "00",
    ".5",
    ",000",
    "<8",
    ">6",
    r"\sqrt2",
    r"\sqrt{2}",
    "(x+1)",
    " (x+1)",
    "²",
    "³",
    "'",
    r"\text{ million}",
    r"\text{ squared}",
    r"\text{k}",
    r"\choose 2",
    r"\infty",
    r"\text{ times }2",
    " + 1",
    " - 1",
    " / 2",
    r" \ne x",
    r"\circ f",
    "e3",
)
ENCLOSING = (
    (r"\cancel{", "}"),
    (r"\sqrt{", "}"),
    (r"\frac{1}{", "}"),
    ("2^{", "}"),
    ("x_{", "}"),
    (r"\overline{", "}"),
    ("-(", ")"),
    ("(", ")^2"),
    ("f(", ")"),
    ("2(", ")"),
    ("|-1-", "|"),
    (r"\left(", r"\right)^2"),
    (r"\sqrt{x = ", "}"),
    (r"\log(", ")"),
    (r"\textcolor{white}{", "}"),
    (r"\xcancel{", "}"),
    (r"\underbrace{-", "}"),
    (r"\{1, ", r"\}"),
    ("(1, ", ")"),
    ("[0, ", "]"),
)
HIDING = (
    ("<s>", "</s> 98"),
    ("<del>", "</del>"),
    ("2<sup>", "</sup>"),
    ("<strike>", "</strike>"),
    ("~~", "~~"),
)
WORDS_BEFORE = (
    "minus",
    "negative",
    "twice",
    "thrice",
    "half of",
    "the square of",
    "the square root of",
    "the cube of",
    "double",
    "triple",
    "one less than",
    "three more than",
    "less than",
    "greater than",
    "the reciprocal of",
    "the opposite of",
    "10% of",
    "two thirds of",
    "3 times",
    "ten to the power of",
    "the logarithm of",
    "14 divided by",
    "a third of",
    "below",
    "âm",
    "负",
    "マイナス",
    "ลบ",
    "menos",
    "moins",
    "negatif",
    "两倍的",
    "setengah dari",
    "căn bậc hai của",
    "mitad de",
)
WORDS_AFTER = (
    "million",
    "juta",
    "triệu",
    "万",
    "ล้าน",
    "millones",
    "Millionen",
    "miliar",
    "squared",
    "and a half",
    "plus one",
    "minus 2",
    "times 4",
    "over 2",
    "divided by 3",
    "to the third power",
    "below zero",
    "factorial",
    "thirds",
    "bn",
    "thousand",
    "to the power of 2",
    "raised to 3",
    "out of 10",
    "or so",
    "more or less",
    "hundredths",
    "dozen",
    "doubled",
    "point five",
)
COMPARISONS = (
    "times as many",
    "units less",
    "e",
    "i",
    "inverse",
    "reciprocal",
    "base two",
    "base eight",
)  # may be asked for
AFTER_NOUN = (
    "divided by five",
    "squared",
    "times four",
    "minus two",
    "over two",
    "below zero",
    "factorial",
    "is wrong",
    "doubled",
)
SENTENCES = (
    "The answer is {}.",
    "So it is {}",
    "{}",
    "Therefore, {}.",
    "**Answer:** {}",
    "Hence x = {}.",
    "Thus we get {}.",
)
FORMULAS = ("${}$", r"\({}\)", r"\[{}\]", "$ {} $", "$$ {} $$", "{}")
FREE_BEFORE = (
    "",
    "x = ",
    "x=",
    "&= ",
    r"\Rightarrow ",
    r"\therefore ",
    r"\approx ",
    r"2+5 = ",
    r"\text{Area} = ",
    "f(3) = ",
    r"x \in ",
)
FREE_AFTER = (
    "",
    ".",
    ",",
    r"\text{ cm}",
    r"^\circ",
    r"\%",
    r"\text{ square units}",
    r"\,",
    r"\mathrm{~m}",
    r" \text{ dollars}.",
    r"\blacksquare",
    " = x",
)
PROSE_AFTER = (
    "",
    ".",
    " apples.",
    " ways to do it.",
    " is the answer.",
    " cm",
    ", as desired.",
    "\n\nThis completes the proof.",
    " (as above).",
    " square units.",
    " solutions.",
    " prime numbers.",
    " zeros.",
    " percent.",
    " which is what we wanted.",
    " two-digit numbers.",
)
PROSE_BEFORE = (
    "The answer is ",
    "So the sum is ",
    "Thus we need at least ",
    "a total of ",
    "Answer: ",
    "- ",
    "1. ",
    "> ",
    "## ",
    "Hence, ",
    "",
    "The largest value is ",
    "we get a quotient of ",
    "答案是",
    "Jawabannya adalah ",
    "Đáp án là ",
    "คำตอบคือ ",
)
TAKEN_BACK = (
    "{} is incorrect. So it is {}.",
    "Not {}, but {}.",
    "{}. Actually {}.",
    "It is {}. No. It is {}.",
    "I thought {}; it is {}.",
    "{} -> {}",
    "Scratch {}. {}",
    "Forget {}: {}",
    "{} was a typo for {}.",
    "Replace {} by {}.",
    "Change {} to {}.",
    "It is {}, I mean {}.",
    "{} ✗ {} ✓",
    "❌ {}\n✅ {}",
    "{} is extraneous, {} is the solution.",
    "Since {} is negative, {}.",
    "{} is not the answer, {} is.",
    "{} would be the naive answer; {}",
    "The answer is {}. Hmm, let me recheck. The answer is {}.",
    "Student A says {}, student B says {}.",
    "{} không đúng. Đáp án là {}.",
    "{} salah. Jawabannya {}.",
    "{} except {}",
    "First I got {}, but the answer is {}.",
    "We reject {} and keep {}.",
    "Rather than {}, {}.",
    "{} (wrong), {} (right)",
    "Old: {}. New: {}.",
    "{} fails. Hence {}.",
    "My first answer {} was wrong, the right one is {}.",
    "{}, sorry, {}",
    "答案是{}。不对，答案是{}。",
    "Some say {}. It is {}.",
    "Draft: {}. Final: {}.",
    "{}; on second thought {}",
    "Oops, {} → {}",
)
LISTED = (
    "{} and {}",
    "{}, {}",
    "x = {} or x = {}",
    "$x={}$ and $y={}$",
    "The roots are {} and {}.",
    "(a) {}\n(b) {}",
    "- {}\n- {}",
    "{}\n{}",
    "The length is {} cm and the width is {} cm.",
    r"{} \text{{ and }} {}",
    "One root is {} and the other is {}.",
)


def operation(rng: random.Random) -> str:
    """Words of a sentence after a box that make another value of it: "dozen", "tenths", "books divided by five"."""
    kind = rng.randrange(4)
    if kind == 0:
        return rng.choice(SCALES)
    if kind == 1:
        return rng.choice(ORDINALS) + "s"
    words = rng.choice([words for words in OPERATIONS if words not in COMPARISONS])
    return words if kind == 2 else f"{rng.choice(('books', 'students', 'marbles'))} {rng.choice(AFTER_NOUN)}"


def beside_a_box(rng: random.Random) -> Case:
    """A sign or a word beside a box, inside its formula or outside."""
    number = rng.randrange(2, 90)
    box = boxed(str(number)) if rng.random() < 0.9 else rf"\fbox{{{number}}}"
    sentence, formula = rng.choice(SENTENCES), rng.choice(FORMULAS)
    kind = rng.randrange(8)
    if kind == 0:
        changed = formula.format(rng.choice(SIGNS_BEFORE) + box)
    elif kind == 1:
        changed = formula.format(box + rng.choice(SIGNS_AFTER))
    elif kind == 2:
        opening, closing = rng.choice(ENCLOSING)
        changed = formula.format(opening + box + closing)
    elif kind == 3:
        opening, closing = rng.choice(HIDING)
        return Case("hidden box", f"So {opening}{box}{closing}", str(number))
    elif kind == 4:
        changed = f"{rng.choice(WORDS_BEFORE)} {formula.format(box)}"
    elif kind == 5:
        changed = f"{formula.format(box)} {rng.choice(WORDS_AFTER)}"
    elif kind == 6:
        changed = f"{box}\\text{{ {changing_word(rng)}}}"
    else:
        changed = f"{formula.format(box)} {operation(rng)}"
    return Case("beside a box", sentence.format(changed), str(number))


def box_with_another_meaning(rng: random.Random) -> Case:
    number, other = distinct(rng, 2, 90)
    definition = rng.choice(
        [
            r"\renewcommand{\boxed}[1]{%s}",
            r"\def\boxed#1{%s}",
            r"\let\boxed\phantom %s",
            r"\newcommand{\boxed}[1]{%s}",
        ]
    )
    return Case("redefined box", f"{definition % other}\n\nThe answer is {boxed(str(number))}.", str(number))


def equal_to_another(rng: random.Random) -> Case:
    number, other = distinct(rng, 2, 90)
    equation = rng.choice(["${} = {}$", "$ {}={} $", r"\[{} = {}\]", "${}$ = {}", "**{} = {}**"])
    return Case("equal to another", equation.format(boxed(str(number)), other), str(number))


def retracted_box(rng: random.Random) -> Case:
    """Of two boxes the first was taken back: neither it nor the two together are the answer."""
    first, second = rng.sample(range(2, 90), 2)
    gold = rng.choice([f"{first}", f"{first},{second}", rf"\{{{first},{second}\}}", f"({first},{second})"])
    return Case("retracted box", rng.choice(TAKEN_BACK).format(boxed(str(first)), boxed(str(second))), gold)


def free_box(rng: random.Random) -> Case:
    """A box as real solutions have it."""
    number = rng.randrange(2, 90)
    inside = rng.choice(FREE_BEFORE) + boxed(str(number)) + rng.choice(FREE_AFTER)
    if rng.random() < 0.5:
        return Case(
            "box in a formula", f"So {rng.choice(FORMULAS[:-1]).format(inside)}", str(number), right=True
        )
    formula = rng.choice(FORMULAS).format(boxed(str(number)))
    return Case(
        "box in a sentence",
        f"{rng.choice(PROSE_BEFORE)}{formula}{rng.choice(PROSE_AFTER)}",
        str(number),
        right=True,
    )


def listed_boxes(rng: random.Random) -> Case:
    first, second = rng.sample(range(2, 90), 2)
    return Case(
        "listed boxes",
        rng.choice(LISTED).format(boxed(str(first)), boxed(str(second))),
        f"{first}, {second}",
        right=True,
    )


MAKERS: dict[str, tuple[Maker, ...]] = {
    "boxes": (beside_a_box, box_with_another_meaning, equal_to_another, retracted_box),
    "right boxes": (free_box, listed_boxes),
}
