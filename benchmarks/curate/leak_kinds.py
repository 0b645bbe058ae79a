"""Ways in which rows of benchmarks come to stand in training data, by kind: `decontamination.py` plants them."""

from __future__ import annotations

import base64
import html
import html.entities
import json
import random
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

HOMOGLYPHS = str.maketrans("aeopcyxABEKMHOPCTX", "аеорсухАВЕКМНОРСТХ")
SMART = str.maketrans({"'": "’", '"': "”", "-": "‑"})
NAMES = (
    "Aisyah Bruno Chai Dewi Emeka Farid Giang Hana Ines Joko Kirana Linh Mateus Nok Olga Putri Rafael Somchai"
).split()
SWAPPED = {"he": "she", "she": "he", "his": "her", "her": "his", "him": "her"}
PRONOUNS = SWAPPED | {one.title(): other.title() for one, other in SWAPPED.items()}
NAMES_OF_SIGNS = {chr(code): name for code, name in html.entities.codepoint2name.items() if code > 0x7F}
WORD = re.compile(r"[^\W\d_]+")
UNSPACED = re.compile("[\u0e00-\u0eff\u3041-\u9fff]")
Change = Callable[[random.Random, str], str]


def as_it_is(dice: random.Random, text: str) -> str:
    return text


def other_case(dice: random.Random, text: str) -> str:
    return dice.choice([str.upper, str.lower, str.title])(text)


def wide(dice: random.Random, text: str) -> str:
    return "".join(chr(ord(sign) + 0xFEE0) if "!" <= sign <= "~" else sign for sign in text)


def decomposed(dice: random.Random, text: str) -> str:
    return unicodedata.normalize("NFKD", text)


def homoglyphs(dice: random.Random, text: str) -> str:
    return "".join(sign.translate(HOMOGLYPHS) if dice.random() < 0.2 else sign for sign in text)


def zero_width(dice: random.Random, text: str) -> str:
    return "".join(sign + ("\u200b" if dice.random() < 0.1 else "") for sign in text)


def bold_letters(dice: random.Random, text: str) -> str:
    start = dice.choice([0x1D41A, 0x1D482, 0x1D5BA])  # bold, bold italic, sans-serif
    return "".join(chr(start + ord(sign) - 97) if "a" <= sign <= "z" else sign for sign in text)


def smart(dice: random.Random, text: str) -> str:
    return text.translate(SMART)


def broken_lines(dice: random.Random, text: str) -> str:
    """Lines of 30 to 60 characters, as of a PDF or a mail: with hyphens, or with signs of a quotation."""
    start, lines, width = 0, [], dice.randrange(30, 60)
    quote = dice.choice(["", "", "> ", "    ", "| "])
    while start < len(text):
        line = text[start : start + width]
        start += width
        ending = re.match(r"\w[\w\u0300-\u036f\u200b]*", text[start:]) if line[-1:].isalpha() else None
        breaks = quote == "" and line[-1:].islower() and text[start : start + 1].islower()
        if ending and not breaks and not UNSPACED.search(text):  # scripts with spaces: a word stays whole
            line += ending[0]
            start += len(ending[0])
        lines.append(quote + line.strip(" ") + ("-" if ending and breaks else ""))
    return "\n".join(lines)


def marked_up(dice: random.Random, text: str) -> str:
    """Bold and italic words, code, links, tags."""
    marks = [("**", "**"), ("*", "*"), ("`", "`"), ("<b>", "</b>"), ('<span class="w">', "</span>"),
             ("[", "](https://example.org/w?x=1)")]  # fmt: skip

    def mark(word: re.Match[str]) -> str:
        before, after = dice.choice(marks) if dice.random() < 0.15 else ("", "")
        return f"{before}{word[0]}{after}"

    return "<p>" + re.sub(r"(?<!\S)[^\W\d_]+(?!\S)", mark, text).replace("\n", "<br />\n") + "</p>"


def other_formulas(dice: random.Random, text: str) -> str:
    """Numbers as formulas and back, other commands and other spaces: $1{,}000$, \\dfrac, \\left( and \\;."""
    if "$" in text.replace("\\$", ""):
        text = text.replace("\\frac", "\\dfrac").replace("(", "\\left( ").replace(")", " \\right)")
        text = text.replace("+", "\\,+\\;").replace("\\le ", "\\leq ").replace("$", dice.choice(["$", "$$"]))
        return text.replace("\\cdot", "\\times").replace("\\pi", "π")
    text = re.sub(r"(?<=\d),(?=\d{3})", "{,}", text)
    return re.sub(r"(?<![\w.])\d+(\{,\}\d{3})*(?![\w.])", lambda number: f"${number[0]}$", text).replace(
        "%", "\\%"
    )


def renamed(dice: random.Random, text: str, names: Iterable[str] = ()) -> str:
    """Other names for those of people, and in half of the cases other pronouns."""
    others = dict(zip(sorted({*names} & {*WORD.findall(text)}), dice.sample(NAMES, len(NAMES)), strict=False))
    if dice.random() < 0.5:
        others |= PRONOUNS
    return WORD.sub(lambda word: others.get(word[0], word[0]), text)


def renumbered(dice: random.Random, text: str) -> str:
    return re.sub(
        r"(?<![\w.,])\d+(?![\w.,]*\d)", lambda number: str(int(number[0]) + dice.randrange(1, 9)), text
    )


def some_other_words(dice: random.Random, text: str) -> str:
    """Every twelfth word is another one."""
    place = iter(range(dice.randrange(12), 10**6))
    return WORD.sub(lambda word: word[0][::-1] + "o" if next(place) % 12 == 0 else word[0], text)


def names_of(texts: Sequence[str]) -> set[str]:
    """Words with a capital that have none nowhere in these texts, and stand in the middle of a sentence."""
    small = {word for text in texts for word in WORD.findall(text) if word.islower()}
    inner = Counter(
        word
        for text in texts
        for word in re.findall(r"(?<=[a-z,] )[A-Z][a-z]+", text)
        if word.lower() not in small
    )
    days = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
    return {*inner} - {*days}


def half(dice: random.Random, text: str) -> str:
    return dice.choice([text[: len(text) // 2], text[len(text) // 2 :]])


def in_json(dice: random.Random, text: str) -> str:
    """As the text of a JSON string, with \\n and \\u00e9; some are a string within a string."""
    text = json.dumps(text, ensure_ascii=dice.random() < 0.5)
    return json.dumps({"input": text, "id": 7}) if dice.random() < 0.5 else text


def in_html(dice: random.Random, text: str) -> str:
    """Letters beyond ASCII as entities: &eacute; or &#233;."""
    named = dice.random() < 0.5
    return "".join(
        sign
        if sign.isascii()
        else f"&{NAMES_OF_SIGNS[sign]};"
        if named and sign in NAMES_OF_SIGNS
        else f"&#{ord(sign)};"
        for sign in html.escape(text)
    )


def in_comment(dice: random.Random, text: str) -> str:
    """Lines of code that is commented out, or a docstring."""
    mark = dice.choice(["# ", "// ", " * ", "-- ", "%% ", ";; "])
    words, lines = text.split(" "), [mark]
    for word in words:
        lines[-1] += f"{word} "
        if len(lines[-1]) > 60:
            lines.append(mark)
    return "def solve():\n    pass\n" + "\n".join(f"    {line.rstrip()}" for line in lines)


def sentences_swapped(dice: random.Random, text: str) -> str:
    parts = re.split(r"(?<=[.!?。])\s*(?=\S)|\n", text)
    dice.shuffle(parts)
    return " ".join(parts)


def spaced_letters(dice: random.Random, text: str) -> str:
    return " ".join(text)


def in_base64(dice: random.Random, text: str) -> str:
    return base64.b64encode(text.encode()).decode()


SURFACE: dict[str, Change] = {  # what is the same words in the same order
    "other case": other_case,
    "full-width letters": wide,
    "homoglyphs": homoglyphs,
    "signs without width": zero_width,
    "decomposed letters": decomposed,
    "bold letters of mathematics": bold_letters,
    "broken lines": broken_lines,
    "markup": marked_up,
    "other formulas": other_formulas,
    "JSON": in_json,
    "HTML entities": in_html,
    "a comment in code": in_comment,
}
KINDS: dict[str, Change] = {
    "as it is": as_it_is,
    **SURFACE,
    "sentences in another order": sentences_swapped,
    "one half": half,
    "every twelfth word another": some_other_words,
    "a space after each letter": spaced_letters,
    "base64": in_base64,
}
# the order in which changes are composed; no letters of full width, for a tag or a link in them is none
ORDER = (
    other_formulas, marked_up, broken_lines, other_case, smart, homoglyphs, bold_letters, zero_width, decomposed,
    in_comment, in_html, in_json,
)  # fmt: skip


def composed(dice: random.Random, text: str) -> str:
    """Two to four changes, one after the other."""
    for change in sorted(dice.sample(ORDER, dice.randrange(2, 5)), key=ORDER.index):
        text = change(dice, text)
    return text


TEMPLATES = (  # question, label of a choice, between choices
    ("{}\n{}\nAnswer:", "{}. ", "\n"),
    ("Question: {}\nOptions:\n{}", "({}) ", "\n"),
    ("{} {}", "{}) ", " "),
    ("Q: {}\n\nChoices:\n{}\n\nA:", "- ", "\n"),
    ("{}\n\n{}\n", "**{}** ", "\n\n"),
)


def as_choice(dice: random.Random, question: str, choices: Sequence[str]) -> str:
    """A question with its choices in one of five templates."""
    frame, label, between = dice.choice(TEMPLATES)
    listed = (label.format("ABCDEFGHIJ"[place % 10]) + choice for place, choice in enumerate(choices))
    return frame.format(question, between.join(listed))
