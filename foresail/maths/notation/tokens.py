r"""From text to tokens, in one pass: `tokenize(r"2\sqrt{3} \text{ cm}")` -> 2, \sqrt, {, 3, }, cm.

Spacing and typeface are gone afterwards; what a letter run means (a function, a product of variables, a
word) is decided here.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from foresail.maths.notation import numeral
from foresail.maths.notation.characters import plain
from foresail.maths.notation.spelling import spelled_out
from foresail.maths.notation.tree import Unreadable
from foresail.maths.notation.units import CURRENCIES, CURRENCY_WORDS, UNITS
from foresail.maths.notation.vocabulary import (
    BARE_COMMANDS,
    COMMANDS,
    DECORATION,
    FUNCTIONS,
    SEPARATORS,
    TEXT,
    split_command,
    word_set,
)

MAX_TOKENS = 3_000
MAX_WORD_AS_PRODUCT = 3  # `xyz` is a product, `even` a word


class Token(NamedTuple):
    """`kind` is number, letter, word, command, row, or the character itself for everything else."""

    kind: str
    text: str
    spaced: bool = False  # white space stood before it


END = Token("end", "")

_SPACING = re.compile(
    r"\\!\s*|(?<!\\)\\[,;:> ]|~|\\q?quad|\\color\s*\{[^{}]*\}|\\textcolor\s*\{[^{}]*\}|\\[hv]space\*?\s*\{[^{}]*\}"
    r"|\\(?:h|v)?phantom\s*\{[^{}]*\}|\\hline|\\(?:displaystyle|textstyle|limits|nolimits)(?![a-zA-Z])"
)
_CLOCK = re.compile(r"(\d\s*+(?:\\text\s*+\{\s*+)?)([ap])\.?\s?m\b\.?", re.IGNORECASE)  # 4:40 a.m., 5 PM
# A braced comma belongs to the number: it groups in 14{,}916 and is the decimal sign in 2{,}5.
_COMMA_GROUP = re.compile(r"(?<=\d)(?:\s?\{\s*,\s*\}\s?|,\\!\s*)(?:(?=(\d{3}(?!\d)))|(?=\d))")
_EMPTY_GROUP = re.compile(r"\{(?<![a-zA-Z^_]\{)([+=:-]?|or|and)\}")
# 1\text{A}_{16}
_SPLIT_NUMERAL = re.compile(r"(?<![0-9A-F])([0-9A-F]{0,20})\\(?:text|mathrm)\{([0-9A-F]{1,20})\}_")
_NUMBERS = f"{numeral.RECURRING}|{numeral.ENDLESS}|{numeral.SPACED}|{numeral.ZERO_LED}"
UNSPACED = "[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"  # scripts that put no spaces between words and letters
_REST = (
    r"|(?P<command>\\{1,2}[A-Za-z]+\*?)|(?P<row>\\\\(?:\[-?[\d.]+\s*[a-z]{2}\])?)|(?P<escaped>\\.)"
    rf"|(?P<word>(?:(?!{UNSPACED})[^\W\d_])+|{UNSPACED}+)|(?P<space>\s+)|(?P<relation><=|>=|!=|=<|=>|==|\*\*|\+/-|\+-)|(?P<other>.)"
)
_TOKEN_SPLIT = re.compile(rf"(?P<number>{_NUMBERS}|{numeral.POINTED}|{numeral.PLAIN}){_REST}", re.DOTALL)
_TOKEN_GROUPED = re.compile(
    rf"(?P<number>{_NUMBERS}|{numeral.GROUPED}|{numeral.POINTED}|{numeral.PLAIN}){_REST}", re.DOTALL
)
_TOKEN_IN_SCRIPT = re.compile(rf"(?P<number>{numeral.PLAIN}){_REST}", re.DOTALL)  # no groups in \log_2 128
_IN_BASE = re.compile(  # of bounded length, for 1A1A1A… holds a numeral at every second place
    r"([0-9][0-9A-F]{0,300}+)_(?!\d{3})(?=\{?(?:\d|\\text|two|three|five|eight))"
    r"|([0-9][0-9a-f]{0,300}+)_(?=\{?16\}?(?!\d))"
)

_OPENING = tuple("({_\\")  # after a function's name
_NEGATED = re.compile(r"\s*(?:=|\\in(?![a-zA-Z]))")
_CODE_NUMERAL = re.compile(r"(?<![\w.])0[xXbBoO][\da-fA-F]")  # 0x10 is no product
_TEXT_GROUP = re.compile(r"\s*\{([^{}]*)\}")
_PIECES = re.compile(r"(\d[\d,]*\.?\d*)|([^\W\d_]+(?:['-][^\W\d_]+)*)|(\s+)|(.)", re.DOTALL)
_BLACKBOARD = re.compile(r"\s*+(?:\{\s*+)?([A-Z])\s*+\}?")
_RELATIONS = {"<=": "le", ">=": "ge", "!=": "ne", "=<": "le", "=>": "Rightarrow", "==": "=", "**": "^", "+/-": "pm",
              "+-": "pm"}  # fmt: skip
_ESCAPED = {"|": ("command", "Vert"), "%": ("%", "%"), "$": ("currency", "dollars")}
_BOLD = word_set("mathbf boldsymbol bm mathit mathnormal")
_SHORT_WORDS = word_set("per the is are was not for all any yes no Yes No odd Odd one two six ten its has")


def tokenize(text: str, *, commas: str = "top") -> list[Token]:
    """`commas` says where `1,234` is one number: at the "top" level only, "everywhere" or "nowhere"."""
    text = spelled_out(plain(text))
    if "," in text:
        text = _COMMA_GROUP.sub(lambda comma: "" if comma[1] else ".", text)
    if "\\" in text or "~" in text:
        text = _SPACING.sub(lambda gap: "" if gap[0].startswith(r"\!") else " ", text)
    if "{" in text:
        text = _EMPTY_GROUP.sub(r"\1", text)
    if "}_" in text:
        text = _SPLIT_NUMERAL.sub(r"\1\2_", text)
    if "m" in text or "M" in text:
        text = _CLOCK.sub(_clock, text)
    return _Lexer(commas).run(text)


class _Lexer:
    def __init__(self, commas: str) -> None:
        self.commas = commas
        self.tokens: list[Token] = []
        self.depth = 0
        self.spaced = False

    def run(self, text: str) -> list[Token]:
        if _CODE_NUMERAL.search(text):
            raise Unreadable("a numeral of a programming language")
        may_have_base = "_" in text
        position = 0
        while position < len(text):
            if may_have_base and self.last_kind != "^" and (based := _IN_BASE.match(text, position)):
                self.add("number", based[1] or based[2])
                position = based.end() - 1
                continue
            match = self.pattern().match(text, position)
            assert match is not None
            position = self.take(match, text)
            if len(self.tokens) > MAX_TOKENS:
                raise Unreadable("too long")
        return self.tokens

    @property
    def last_kind(self) -> str:
        return self.tokens[-1].kind if self.tokens else ""

    def pattern(self) -> re.Pattern[str]:
        if self.last_kind in ("_", "^"):
            return _TOKEN_IN_SCRIPT
        groups = self.commas == "everywhere" or (self.commas == "top" and self.depth == 0)
        return _TOKEN_GROUPED if groups else _TOKEN_SPLIT

    def take(self, match: re.Match[str], text: str) -> int:
        """Adds what was matched; returns where to go on."""
        kind, sign, end = match.lastgroup, match[0], match.end()
        if kind == "command":
            return self.take_command(match, text)
        if kind == "escaped":
            return self.take_escaped(sign, end)
        if kind == "space":
            self.spaced = True
        elif kind in ("number", "row"):
            self.add(kind, sign)
        elif kind == "word":
            if sign == "min" and self.last_kind == "number" and text[end : end + 1] not in _OPENING:
                self.add("word", sign)
            else:
                self.add_letters(sign)
        elif kind == "relation":
            name = _RELATIONS[sign]
            self.add(name if name in "=^" else "command", name)
        else:
            self.add_character(sign)
        return end

    def take_command(self, match: re.Match[str], text: str) -> int:
        slashes = len(match[0]) - len(match[0].lstrip("\\"))
        name = match[0].lstrip("\\").rstrip("*")
        if slashes > 1 and not (slashes == 2 and split_command(name)[0] in COMMANDS):
            # `\\x` ends a row before x; `\\\frac` ends one before \frac; `\\frac` is \frac escaped twice.
            self.add("row", "\\\\")
            return match.start() + 2
        name, rest = split_command(name)
        end = match.end() - len(rest)
        if name in TEXT and text.startswith(r"{\$}", end):
            self.add("currency", "dollars")
            return end + 4
        if name in TEXT and (group := _TEXT_GROUP.match(text, end)) and not _is_formula(name, group[1]):
            self.add_text(group[1])
            return group.end()
        if name == "not":
            return self.take_negation(text, end)
        if name == "mathbb" and (group := _BLACKBOARD.match(text, end)):
            self.add("command", f"mathbb{group[1]}")
            return group.end()
        if name in ("left", "right") and text[end : end + 1] == ".":
            return end + 1  # an invisible bracket
        if name in ("cr", "newline"):
            self.add("row", name)
        elif name == "slash":
            self.add("/", "/")
        elif name not in DECORATION and name not in TEXT:
            self.add("command", name)
            self.depth += (name == "langle") - (name == "rangle")
        return end

    def take_negation(self, text: str, end: int) -> int:
        r"""`\not=` and `\not\in`; any other negation is not understood."""
        negated = _NEGATED.match(text, end)
        if negated is None:
            raise Unreadable("a negation")
        self.add("command", "notin" if negated[0].endswith("in") else "ne")
        return negated.end()

    def take_escaped(self, text: str, end: int) -> int:
        char = text[1]
        if char in "{}":
            self.depth += 1 if char == "{" else -1
            self.add(text, text)
        elif char.isdigit() or char == "-":  # a row break that lost its second backslash: `1\2`
            self.add("row", "\\")
            return end - 1
        elif char in _ESCAPED:
            self.add(*_ESCAPED[char])
        elif char in ",;:!>":
            self.spaced = True
        elif char not in "()[]&_'\"` \n":
            self.add("other", char)
        return end

    def add_character(self, char: str) -> None:
        if char == "$" or char.isspace():
            return
        if char in CURRENCIES:
            self.add("currency", CURRENCIES[char])
            return
        self.depth += (char in "([") - (char in ")]")
        self.add(char, char)

    def add_letters(self, run: str) -> None:
        """A run of letters outside any text command."""
        if run in BARE_COMMANDS:
            self.add_name(BARE_COMMANDS[run])
        elif run.isascii() and (glued := _separator_ahead(run)):
            self.add("word", glued)
            self.add_letters(run.removeprefix(glued))
        elif (len(run) == 1 and run.isascii()) or (not self.is_word(run) and _is_product(run)):
            for letter in run:
                self.add("letter", letter)
        else:
            self.add("word", run)

    def is_word(self, run: str) -> bool:
        after_value = self.last_kind in ("number", "}", ")", "word", "/") or (
            self.last_kind == "command" and self.tokens[-1].text == "pi"
        )
        if run in UNITS and (after_value or run in CURRENCY_WORDS):
            return True
        return run.lower() in SEPARATORS or run in _SHORT_WORDS or not run.isascii()

    def add_text(self, content: str) -> None:
        r"""What stood in \text{…}: words stay words, but `\text{13}` and `\text{C}` say what they say."""
        bare = content.strip()
        letter = bare.strip("().:")
        if len(letter) == 1 and letter.isalpha() and letter.isascii() and content == bare:
            self.add("letter", letter)
            return
        if content in FUNCTIONS:
            self.add("command", bare)
            return
        for piece in _PIECES.finditer(content):
            number, word, space, other = piece.groups()
            if space:
                self.spaced = True
            elif number:
                self.add("number", number.rstrip(","))
                if number.endswith(","):
                    self.add(",", ",")
            elif word:
                if word.isupper() and self.tokens[-1:] in ([], [Token(",", ",")]):  # options: \text{A, C}
                    self.add_letters(word)
                elif word in ("percent", "percentage", "pct", "degrees", "degree", "pi"):
                    self.add_name(BARE_COMMANDS[word])
                else:
                    self.add("word", word)
            elif other not in "$\\" and not (other == "." and piece.end() == len(content)):
                self.add_character(other)
        self.spaced = True

    def add_name(self, name: str) -> None:
        self.add(name if name == "%" else "command", name)

    def add(self, kind: str, text: str) -> None:
        self.tokens.append(Token(kind, text, self.spaced))
        self.spaced = False


def _is_formula(name: str, content: str) -> bool:
    r"""`\mathbf{2x+1}`: mathematics that is only set in bold."""
    return "\\" in content or (name in _BOLD and not content.replace(" ", "").isalpha())


def _clock(time: re.Match[str]) -> str:
    r"""`2:30 p.m.` and `2:30 \text{ p.m.}` both get the word pm."""
    half = f"{time[2].lower()}m"
    return time[1] + half if "text" in time[1] else rf"{time[1]} \text{{{half}}}"


def _is_product(run: str) -> bool:
    """Letters side by side are factors in `xyz`, `ABCD` and `xxxx`, and a word in `even` and `Amy`."""
    if run.isupper() or len(set(run)) <= 2:
        return True
    return len(run) <= MAX_WORD_AS_PRODUCT and not (len(run) == 3 and run.istitle())


def _separator_ahead(run: str) -> str:
    """The separator that is glued to the next name: _separator_ahead("orW") -> "or"; empty for "order"."""
    return next((word for word in ("and", "or") if run.startswith(word) and not run.islower()), "")
