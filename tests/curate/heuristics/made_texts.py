"""Texts for the tests of the step: prose of made words, and documents for each reason."""

from __future__ import annotations

import random

STOPS = ("the", "of", "and", "to", "in", "a", "is", "that", "it", "for", "on", "with", "as", "was")
SCRIPTS = {
    "latin": "abcdefghijklmnopqrstuvwxyzäéñß",
    "greek": "αβγδεζηθικλμνξοπρστυφχψω",
    "cyrillic": "абвгдежзийклмнопрстуфхцчшщъыьэюя",
    "arabic": "ابتثجحخدذرزسشصضطظعغفقكلمنهوي",
    "hebrew": "אבגדהוזחטיכלמנסעפצקרשת",
    "devanagari": "अआइईउऊएऐओऔकखगघचछजझटठडढतथदधनपफबभमयरलवशषसहािीुूेैोौं",
    "thai": "กขคงจชซดตถทนบปผพมยรลวสหอะาิีึืุูเแโใไ่้๊์",
    "khmer": "កខគឃងចឆជឈញដឋឌឍណតថទធនបផពភមយរលវសហឡអាិីឹឺុូើេែៃោៅំះ",
    "myanmar": "ကခဂဃငစဆဇဈညဋဌဍဎဏတထဒဓနပဖဗဘမယရလဝသဟဠအာိီုူေဲံ့း်",
    "han": "的一是不了人我在有他这中大来上国个到说们为子和你地出道也时年",
    "kana": "あいうえおかきくけこさしすせそたちつてとなにぬねのアイウエオ",
    "hangul": "가나다라마바사아자차카타파하거너더러",
    "ethiopic": "ሀለሐመሠረሰሸቀበተቸኀነኘአከኸወዐዘዠየደጀገጠ",
    "emoji": "😀🎉👍🏽❤️",
    "signs": ".,;:!?()[]{}<>=+-*/\\|#$%^&_~`\"'…。",
    "controls": "\x00\x07\x1b\x85\u200b\u200d\ufeff\ufffd\ue000\ud800\udfff\u2028\t\n\r\n \u00a0",
}
BETWEEN = ("", " ", " ", "\n", "\n\n", "```", "\n```\n", "$$", "\n\\[\n", " | ", "\n- ", "\n# ")


def made_word(dice: random.Random) -> str:
    return "".join(dice.choice("bcdfglmnprst") + dice.choice("aeiou") for _ in range(dice.randrange(2, 5)))


def sentence(dice: random.Random) -> str:
    words = [
        dice.choice(STOPS) if number % 3 == 0 else made_word(dice) for number in range(dice.randrange(6, 16))
    ]
    return " ".join(words).capitalize() + "."


def prose(dice: random.Random, sentences: int = 20) -> str:
    return "\n".join(" ".join(sentence(dice) for _ in range(3)) for _ in range(max(1, sentences // 3)))


def random_text(dice: random.Random) -> str:
    """Runs of characters of several scripts, some very long, with lines, fences and formulas between."""
    parts = []
    for _ in range(dice.randrange(12)):
        letters = SCRIPTS[dice.choice([*SCRIPTS])]
        run = "".join(dice.choice(letters) for _ in range(dice.choice([1, 2, 5, 9, 40, 200])))
        parts.append(run)
        parts.append(
            dice.choice(
                ["", " ", " ", "\n", "\n\n", "```", "\n```\n", "$$", "\n\\[\n", " | ", "\n- ", "\n# "]
            )
        )
    return "".join(parts)


def made_code(dice: random.Random, lines: int = 30) -> str:
    """Functions of few words, deeply indented."""
    text = []
    for _ in range(lines // 6):
        name, argument = made_word(dice), made_word(dice)
        text += [
            f"def {name}({argument}, limit={dice.randrange(9)}):",
            f"    for item in range(len({argument})):",
            f"        if {argument}[item] > limit:",
            f"            while {made_word(dice)} < {dice.randrange(99)}:",
            f"                {made_word(dice)}.append({argument}[item] * {dice.randrange(9)})",
            f"    return {argument}",
            "",
        ]
    return "\n".join(text)


def drop_samples(dice: random.Random) -> dict[str, str]:
    """For each reason of the shipped rules, a text that has it."""
    good = prose(dice, 30)
    words = [made_word(dice) for _ in range(12)]
    lines = good.split("\n")
    return {
        "empty": "",
        "too_short": "One short line of the text.",
        "too_long": "a the\n" * 500_001,
        "broken_characters": good.replace("e", "\ufffd"),
        "word_length": " ".join(f"{made_word(dice) * 5} the" for _ in range(100)),
        "long_words": f"{good}\n{''.join(dice.choices('abcdef', k=len(good)))}",
        "signs": "\n".join(line.replace(" ", " #") for line in lines),
        "no_letters": " ".join(f"{dice.randrange(9999)} 12.{dice.randrange(999)} the" for _ in range(200)),
        "few_stop_words": " ".join(f"{made_word(dice)} {made_word(dice)}." for _ in range(200)),
        "capitals": good.upper(),
        "keyword_stuffing": "\n".join(
            " ".join(dice.choices([*words, "the", "of"], k=9)) + "." for _ in range(40)
        ),
        "scrambled": " ".join(dice.sample(good.split() + ["the", "of", "a"] * 20, len(good.split()))),
        "ellipses": "\n".join(line[:-1] + "…" for line in lines),
        "menu": "\n".join(
            [*(f"{made_word(dice)} {made_word(dice)} {made_word(dice)}" for _ in range(60)), *lines[:6]]
        ),
        "repeated_lines": "\n".join(lines * 2),
        "repeated_paragraphs": "\n\n".join([good, *[sentence(dice)] * 3]),
        "repeated_phrase": " ".join(f"{sentence(dice)} Visit the grand hotel." for _ in range(40)),
        "repeated_phrases": "\n".join(f"{made_word(dice)} {dice.choice(lines[:4])}" for _ in range(12)),
        "curly_brackets": "\n".join(
            line.replace(" the ", " {the} ").replace(" of ", " {of} ") for line in lines
        ),
        "placeholder_text": f"{good}\nLorem ipsum dolor sit amet.",
    }
