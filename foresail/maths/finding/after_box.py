r"""What may stand after a box without changing it: a short list, learned from real responses.

`\boxed{7}\text{ cm}`, `\boxed{7}^\circ`, "\boxed{7} apples", `\boxed{7} = x` say 7. Whatever is not on the list
makes the box a part of something else: `\boxed{7}^2`, `\boxed{7} < 8`, "\boxed{7} million".
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

from foresail.maths.finding.before_box import SPACING, TYPEFACE, opens_bracket
from foresail.maths.finding.formula import NOWHERE, formula_around
from foresail.maths.finding.plain_signs import FOREIGN, plain_signs
from foresail.maths.finding.tags import FORMATTING, MOVED
from foresail.maths.finding.word_operators import changed_by_next_words, is_worked_on
from foresail.maths.notation.answer import read
from foresail.maths.notation.nouns import changes_value, names_things
from foresail.maths.notation.tree import symbols
from foresail.maths.notation.units import is_unit

REACH_CHARS = 200  # characters that are looked at
FACTOR_CHARS = 40  # characters before a box in which the left side's last factor stands
MAX_MARKS = 24  # marks that are read, from the box outwards
_BLANKS = " \t\r"
BARE = ""  # what closes no formula: there is none
_ENDS = "\\end{"

_CLOSER = {"$": "$", "$$": "$$", "\\(": "\\)", "\\[": "\\]", "\\begin": _ENDS}
_SENTENCE_END = re.compile(  # after most boxes
    r"(?:\}*\.\$\$?|\}*\$\$?\.|\.\s*\\\]|\\[)\]]\.|\.)(?=\s|\Z)|\s*\\\](?=\s*\Z|\s*\n\s*\n)"
)
_GLUED_CLOSER = re.compile(r"[.,;}]*(\$\$?|\\[)\]])")
_ENDS_ENVIRONMENT = re.compile(r"\\end\{[a-zA-Z]+\*?\}")
_CLOSERS = re.compile(r"\$|\\[)\]]")
_MARK = re.compile(
    rf"[ \t\r]+|{SPACING}|\\{TYPEFACE}|[{{}}]|\\\}}|[~\"”’`»]|_+(?![\w{{])|_+(?=[a-zA-Z]{{3}})|{FORMATTING}"
    r"|\*\*(?![\d\\({])|\*(?![\d\\({]|[a-zA-Z]{1,2}(?![a-zA-Z]))|/(?=\s*\$?\s*[a-zA-Z]{2})"
    r"|\^\s*\{?\s*\\(?:circ|degree)\s*\}?|\^\s*\{\s*(?:\\text\s*\{\s*)?(?:st|nd|rd|th|o)\s*\}(?:\s*\})?"
    r"|\^\s*\\text\s*\{\s*(?:st|nd|rd|th|o)\s*\}|\\[dt]?frac\s*\{\s*\\(?:text|mathrm)\{[^{}]*\}\s*\}\s*\{\s*\\(?:text|mathrm)\{[^{}]*\}\s*\}"
    r"|\^\{\\prime(?:\s*\\prime)?\}|\\?%(?!\s*(?:\\?%|\d))|\[\s*(?=\\mathrm)"
    r"|\\(?:degree|celsius|AA|mu|Omega|ohm|Box|square|blacksquare|checkmark|qed|bullet|star|ldots|dots)"
    r"(?![a-zA-Z]|\s*\d)"
)
_BRACKET = re.compile(r"(?:\\right\s*|\\[bB]igg?r?\s*)?[)\]]")
_SHARE_OF = re.compile(
    r"(?:\\?%|per ?cent)\s*\$?\s*of\s+(?:\$?\\?\$?\d|that|it|this|the (?:answer|result))", re.IGNORECASE
)
_UNIT = re.compile(
    r"(?:(?:/|\\cdot(?![a-zA-Z])|\\times(?=\s*\\(?:text|mathrm)))\s*)?"
    r"(?:\\(?:text(?:bf|it|rm|normal)?|mathrm|mathbf|mbox|hbox|operatorname|rm)\s*\{([^{}]*)\}|\{~?([a-zA-Z/]+)\})"
    r"(?:\s*[\^_]\s*(?:\d|\{[-\d]*\}))*"
)
_WORDED = re.compile(r"(?:\\[ ,]|[\s~])*(?:[^\W\d_]|°|\(|\Z|[,.;:])")
_SCALE_LETTERS = frozenset("k M B T bn mn mln".split())
_MEASURES = ("more", "of a ", "constant", "values of")
_CONNECTIVES = ("or", "and", "where", "for", "if", "so", "when", "with", "since", "i.e.", "that is")
_PLAIN_UNIT = re.compile(
    r"(?:/\s*)?([a-zA-Zμ°Å]{1,3}(?:/[a-zA-Z]{1,3})?)(?:\s*\^\s*(?:-?\d|\{[-\d]*\}))?(?![a-zA-Z])"
)
_ORDINAL_ENDS = ("th", "st", "nd", "rd")
_ROOT_OR_POWER = re.compile(r"(?:th|st|nd|rd)\s*-?\s*(?:roots?|powers?)\b")
_CLOCK = re.compile(r"o['’]clock|[ap]\.\s?m\b")
_FIRST_WORD = re.compile(r"[^\W\d_]+(?![\d_])")
_VARIABLES = re.compile(r"(?:d[xyztru]|[xyz]{2,3}|[abc]{2,3}|[A-D]{2,3})(?![a-zA-Z])")
# Another formula beside the box's own: `$\boxed{7}$ $\text{cm}$`, not `$\boxed{7}$ $+1$`.
_OPENING = re.compile(r"(\$\$?|\\[(\[])\s*")
_MAY_STAND_BESIDE = re.compile(
    r"\\(?:text|mathrm|mbox|[pb]?mod|square|blacksquare|Box|checkmark|qed|approx|implies|Rightarrow)(?![a-zA-Z])"
    r"|[=≈]|\(\s*\\?(?:mod|text)|\^\s*\{?\s*\\circ|\\?%\s*\$"
)
_NAMED = re.compile(r"[a-zA-Z](?:\$|\\\))(?:-[a-z]| [a-z]{4})")  # `$\boxed{1}$ $x$-intercept`
_BASE = re.compile(r"_\s*(?:\{([^{}]*)\}|(\w))|\(?(?:in )?base[- ](\d+)")
_MODULUS = re.compile(
    r"\(?\s*+(?:\\[pb]?mod(?![a-zA-Z])|\bmod(?:ulo)?\b)[\s~${(\\]*+(\d+|[a-zA-Z](?![a-zA-Z]))",
    re.IGNORECASE,
)
_GOES_ON = re.compile(rf"(?:\.{{2,}}|…|\\[lcd]?dots)\s*\$?\s*\d|\d?:\d|\s:\s?\d|\{{,\}}\s*\d|{MOVED}")
_END = re.compile(
    r"[.,](?!\d)|[;:?…。，、；！？|#&]|\n\s*\n|\\(?:begin|approx|simeq|sim|implies|therefore|because|tag|label|newline)"
    r"(?![a-zA-Z])|\\(?:[rR]ightarrow|[lL]ongrightarrow|to)(?![a-zA-Z])|[≈⇒→∴∎■□✓✔✅]|-+>|=>"
    r"|</?[a-zA-Z_]+[^<>]*>|<\||\[(?:asy|/)|\\\[|\\\(|\\includegraphics|\\(?:[bB]oxed|fbox|framebox)"
)
_CITATION = re.compile(r"\[\d+\]")
_DASH = re.compile(
    r"-{1,3}\s*(?!(?:fold|th|times)\b)(?:\\?[a-zA-Z]{2}|~|[aAI]\s|[^\x00-\x7f])|-{2,3}(?!\s*\d)"
)
_SIGN_IN_NEXT_LINE = re.compile(
    rf"[+!/{re.escape(FOREIGN)}]|\*\s?[\d\\(]|[<>=]\s*\d|-[\d\\({{]|[.,]\d|\\(?:cdot|times|div|pm|mp)(?![a-zA-Z])"
)
_OPERATION_IN_NEXT_LINE = re.compile(
    r"(?:choose|over|atop|neq?|geq?|leq?|gt|lt|cup|cap|setminus|backslash|l?and|l?or|wedge|vee|otimes|oplus|circ|text\s*\{\s*"
    r"(?:million|billion|thousand|hundred|dozen|squared|cubed|percent of))(?![a-zA-Z])|[百千万萬亿億兆]"
)
_ASIDE = re.compile(r"[(]\s*(?:[=≈~$\\]|[^()\n]{0,60}?(?<![\\a-zA-Z])[^\W\d_]{2})")
_OPTION = re.compile(r"(?:\\text(?:bf)?\s*\{)?\s*\(?[A-Ja-j]\)?\s*[.,]?\}?,?")
_EQUALS = re.compile(r"(?:&\s*)?(?:=|\\equiv(?![a-zA-Z]))")
_SET_EQUAL = re.compile(
    r"(?P<about>\\approx|≈|\\simeq)|=|\\equiv(?![a-zA-Z])|\\to(?![a-zA-Z])|\\(?:long)?rightarrow|→|->"
)
# `2^9 i = \\boxed{512}\\,i`: a factor of both sides, which the box leaves out.
_LAST_FACTOR = re.compile(r"(?<=[\d})])\s*(?:\\,\s*)?(i|\\pi)\s*&?=\s*&?\s*\Z")
_FACTOR = re.compile(r"(i|\\pi)(?![a-zA-Z])\s*(?=[.,]?\s*(?:\Z|\$|\\[)\]]|\\end|\\\\))")
_RIGHT_SIDE = re.compile(r"\s*([^=$&\n≈]*?)(?=[=$&\n≈]|\\\)|\\\]|\\\\|\\end|\\approx|[.,;]?\s*\Z|[.,;]\s)")


def equal_after(text: str, start: int, end: int, content: str) -> tuple[str, ...] | None:
    r"""The values that what stands after a box sets equal to it; None where it makes another value of it.

    `\boxed{7} cm` -> (); `\boxed{7} = 8` -> ("8",); `\boxed{7}^2` -> None.
    """
    if ending := _SENTENCE_END.match(text, end):
        return None if is_worked_on(text, ending.end()) else ()
    rest = plain_signs(text[end : end + REACH_CHARS])
    glued = _GLUED_CLOSER.match(rest)
    formula = NOWHERE if glued else formula_around(text, start)
    closer = glued[1] if glued else _CLOSER.get(formula.opener, BARE)
    depth = len(formula.environments)
    # outside: the box's formula has ended
    place, outside, spaced, has_unit, may_close = 0, False, False, False, False
    for _ in range(MAX_MARKS):
        if place >= len(rest):
            return ()
        sign = rest[place]
        if sign in _BLANKS:
            place, spaced, may_close = _end_of_blanks(rest, place), True, False
        elif sign.isalpha() and sign not in "pP":  # a word, no mark; `percent of` is one
            break
        elif outside and (opening := _OPENING.match(rest, place)):
            if not spaced or not _may_stand_beside(rest, opening.end()):
                return () if spaced and _NAMED.match(rest, opening.end()) else None
            closer, outside, place = _CLOSER[opening[1]], False, opening.end()
        elif closer and rest.startswith(closer, place) and (closer != _ENDS or depth == 1):
            ended = _ENDS_ENVIRONMENT.match(rest, place) if closer == _ENDS else None
            spaced = spaced or closer in ("$$", "\\]", _ENDS)
            place, closer, outside = ended.end() if ended else place + len(closer), BARE, True
        elif sign == "\\" and (ended := _ENDS_ENVIRONMENT.match(rest, place)):
            place, spaced, depth = ended.end(), True, depth - 1
        elif not closer and (closing := _CLOSERS.match(rest, place)):
            place, outside = closing.end(), True
        elif bracket := _BRACKET.match(rest, place):
            if closer and not (may_close or opens_bracket(text, start)):
                return None
            place, may_close = bracket.end(), False
        elif _SHARE_OF.match(rest, place):
            return None
        elif outside and spaced and sign == "~":  # who signs it
            return ()
        elif unit := _UNIT.match(rest, place):
            if (unit[1] or "").strip().lower() in _CONNECTIVES:
                return ()
            if not _is_unit(unit, rest[unit.end() :], has_unit):
                return None
            if (unit[1] or "").endswith(" of "):
                return ()
            place, spaced, has_unit = unit.end(), True, True
        elif mark := _MARK.match(rest, place):
            place, spaced, may_close = mark.end(), spaced or mark[0][0] in " \t\r\\~*_<", mark[0][0] == "["
        elif closer and sign == "\n":
            place, spaced = place + 1, True  # a blank, in a formula
        else:
            break
    else:
        return None
    if _goes_on_freely(rest, place, content, bool(closer), outside, spaced):
        return _set_equal(rest[place:], content)
    return () if closer and _is_shared_factor(text, start, rest, place) else None


def _end_of_blanks(rest: str, place: int) -> int:
    return len(rest) - len(rest[place:].lstrip(_BLANKS))


def _is_shared_factor(text: str, start: int, rest: str, place: int) -> bool:
    r"""Whether it is the other factor of an equation whose sides both end in this one: `2^9i = \boxed{512}i`."""
    factor, other = _FACTOR.match(rest, place), _LAST_FACTOR.search(text, max(0, start - FACTOR_CHARS), start)
    return factor is not None and other is not None and factor[1] == other[1]


def _may_stand_beside(rest: str, place: int) -> bool:
    """Whether a formula that begins there says nothing of the box before it: a unit, a relation."""
    unit = _PLAIN_UNIT.match(rest, place)
    return _MAY_STAND_BESIDE.match(rest, place) is not None or (
        unit is not None and len(unit[1]) > 1 and is_unit(unit[1])
    )


def _set_equal(rest: str, content: str) -> tuple[str, ...]:
    r"""`= 8` -> 8; `\approx 3.2` -> `\pi \approx 3.2`, which is to be true; nothing for variables."""
    relation = _SET_EQUAL.match(rest.lstrip("\\\n &") if rest.startswith("\\\\") else rest)
    if relation is None or "mod" in rest:
        return ()
    side = _RIGHT_SIDE.match(relation.string, relation.end())
    right = side[1].strip(" ").rstrip(" .,;$\\*") if side else ""
    right = right.rstrip("}") if right.count("}") > right.count("{") else right
    readings = read(right) if right else ()
    if not readings or readings[0].head == "word" or symbols(readings[0]):
        return ()
    return (f"{content} \\approx {right}",) if relation["about"] else (right,)


def _is_unit(unit: re.Match[str], rest: str, has_unit: bool) -> bool:
    r"""Whether words of a formula only say what the box counts: `\text{ square units}`, not `\text{ squared}`."""
    content = unit[1] or unit[2] or ""
    if not _WORDED.match(content):
        return False
    text = content.replace("~", " ").replace("\\ ", " ").strip(" .,;:")
    words = text.split()
    if not words or text.startswith(_MEASURES):
        return True
    if unit[2] or "\\mathrm" in unit[0]:  # the typeface of units: kcal, photons, Bi
        if len(text) == 1 and not (
            has_unit or is_unit(text) or text in "MB" or rest.lstrip().startswith("/")
        ):
            return False
        return text == "M" or not (any(map(changes_value, words)) or _VARIABLES.fullmatch(text))
    return text not in _SCALE_LETTERS and names_things(words) and not changed_by_next_words(f"{text} {rest}")


def _goes_on_freely(
    rest: str, place: int, content: str, in_formula: bool, outside: bool, spaced: bool
) -> bool:
    """Whether what follows the marks and units after a box, at `place`, leaves it as it is.

    `spaced`: there was a blank.
    """
    is_word = rest[place].isalpha()
    goes_on = not is_word and (
        _GOES_ON.match(rest, place) or _GOES_ON.match(rest, max(0, place - 1), place + 4)
    )
    rest = rest[place:]
    if is_word and rest[0] not in _CONTINUING and not _OPTION.fullmatch(content):
        return _is_free_word(rest, in_formula, outside, spaced)
    if goes_on or (not in_formula and is_worked_on(rest, 0)):
        return False
    if rest[0] == "\n" or rest.startswith("\\\\"):
        return _opens_line_freely(rest)
    for pattern, rule in _CONTINUATIONS:
        if match := pattern.match(rest):
            return rule(match, content)
    if rest[0] == "~" or _OPTION.fullmatch(content):
        return True
    if is_word:
        return _is_free_word(rest, in_formula, outside, spaced)
    if outside and (rest[0] == "!" or rest[0].isdecimal()):  # a value beside it is looked at elsewhere
        return True
    if _CITATION.match(rest):
        return not in_formula and (outside or spaced)
    if _DASH.match(rest) or _ASIDE.match(rest):
        return not in_formula and (spaced or outside)
    return not rest[0].isascii() and unicodedata.category(rest[0])[0] in ("P", "S")


def _opens_line_freely(rest: str) -> bool:
    """Whether the next line does not go on with the value: no sign there, no "million"."""
    line = rest.lstrip("\\&\n ")
    if _SIGN_IN_NEXT_LINE.match(line) or (rest[0] == "\n" and _OPERATION_IN_NEXT_LINE.match(line)):
        return False
    return not line[:1].islower() or "\n\n" in rest[:3] or not changed_by_next_words(line)


def _is_free_word(rest: str, in_formula: bool, outside: bool, spaced: bool) -> bool:
    """Whether letters after a box are a unit or a word that leaves it as it is: "cm", "apples", not "x"."""
    word = _FIRST_WORD.match(rest)
    letters = word[0] if word else ""
    is_short = len(letters) < 4 or not letters.isascii()
    if is_short and _CLOCK.match(rest):
        return True
    if not letters or letters in _SCALE_LETTERS or (is_short and _VARIABLES.match(rest)):
        return False
    if letters.startswith(_ORDINAL_ENDS) and _ROOT_OR_POWER.match(rest):
        return False
    if letters.isascii():
        if not spaced:  # glued to the formula or to the box
            if not (outside and (len(letters) > 3 or letters in _ORDINAL_ENDS or _begins_with_unit(rest))):
                return False
        elif len(letters) <= 1 + in_formula and not (
            (outside and letters in "aI") or _begins_with_unit(rest)
        ):
            return False
    return not changed_by_next_words(rest)


def _begins_with_unit(rest: str) -> bool:
    """_begins_with_unit("cm^2.") -> True."""
    unit = _PLAIN_UNIT.match(rest)
    return unit is not None and is_unit(unit[1])


def _fits_base(match: re.Match[str], content: str) -> bool:
    r"""Whether the digits are those of the base: `\boxed{101}_2`, but not `\boxed{7}_2`."""
    base = (match[1] or match[2] or match[3] or "").strip()
    if not base.isdecimal() or not content.isdecimal():
        return True
    return all(int(digit) < int(base[:4]) for digit in content)


def _is_remainder(match: re.Match[str], content: str) -> bool:
    r"""Whether the number is reduced already: `\boxed{3} \pmod 5`, but not `\boxed{7} \pmod 5`."""
    digits = content.replace(",", "").removeprefix("-")
    if not match[1].isdecimal() or not digits.isdecimal() or len(digits) > 100:
        return True
    return int(digits) < int(match[1][:100])


def _always(match: re.Match[str], content: str) -> bool:
    return True


_CONTINUATIONS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], str], bool]], ...] = (
    (_MODULUS, _is_remainder),
    (_BASE, _fits_base),
    (_END, _always),
    (_EQUALS, _always),
)
_CONTINUING = "mMib"  # letters that those begin with: `mod`, `in base`
