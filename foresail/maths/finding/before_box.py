r"""What may stand before a box without changing it: a short list, learned from real responses.

`x = \boxed{7}`, `x = (\boxed{7})`, "the sum is \boxed{7}" say 7. Whatever is not on the list makes the box a part
of something else: `x > \boxed{7}`, `0.\boxed{7}`, "minus \boxed{7}", `\cancel{\boxed{7}}`.

In a formula that is a relation, an arrow, a line's beginning or words; in a sentence a word or the end of a clause.
"""

from __future__ import annotations

import re

from foresail.maths.finding.formula import formula_around, is_laid_out
from foresail.maths.finding.plain_signs import plain_signs
from foresail.maths.finding.tags import FORMATTING, LAYOUT, is_hidden
from foresail.maths.finding.values import DENIED
from foresail.maths.finding.word_operators import changed_by_words_before, changed_by_words_inside
from foresail.maths.lexicon.table import words_for

REACH_CHARS = 200  # characters that are looked at
ENVIRONMENT_CHARS = 2_000  # in which an environment may have begun
MAX_MARKS = 24  # marks that are read, from the box outwards
LONGEST_SIGN = 60  # characters of `\\begin{array}{…}`
LONGEST_RELATION = 16  # `\\Longrightarrow`
LONGEST_WORD = 30
LONGEST_PLAIN = 16

TYPEFACE = (
    r"(?:text(?:bf|it|rm|sf|tt|normal)?|math(?:rm|bf|it|sf|op|bin|ord|rel)|boldsymbol|bm|mbox|hbox|emph|underline"
    r"|boxed|fbox|framebox|displaystyle|textstyle|ensuremath|bf|rm|it|[lL]arge|LARGE|[hH]uge"
    r"|(?:(?:text)?color|colorbox)\s*\{(?:red|blue|green|black|orange|purple|magenta|teal|brown|cyan|yellow)\})(?![a-zA-Z])"
)
SPACING = (
    r"\\[,;:! ]|\\q?quad(?![a-zA-Z])|\\[hv]space\*?\{[^{}]*\}|\\renewcommand\{\\arraystretch\}\{[\d.]*\}"
    r"|\\(?:thinspace|enspace|relax|null|strut|mathstrut|nobreak|allowbreak|hfill?|noindent|par)(?![a-zA-Z])"
)
_BOTH = (
    rf"{SPACING}|\\{TYPEFACE}\s*\{{?|\\begin\{{[a-z]+\*?\}}(?:\{{[^{{}}]*\}}|\[[^\[\]]*\])?|\{{|\\\$|[€£¥₹]|~"
    r"|(?<!\\)\\"
)
_MARK_IN_FORMULA = re.compile(rf"(?:{_BOTH})\Z")
_MARK_IN_PROSE = re.compile(rf"(?:{_BOTH}|{FORMATTING}|['\"“”‘’`«_*✅✔✓])\Z", re.IGNORECASE)
# What most boxes follow: "x = $\\boxed{7}$", "the answer is $\\boxed{7}$".
# It begins with the signs that are looked for first, which is twice as fast.
_PLAIN = re.compile(
    r"[=:\s](?:(?<=[\w)\]}]=)(?<!\\no.=)|(?<=[\w)\]}] =)(?<!\\no. =)|(?<=\s)(?:is|are|be|get|equals|has):?"
    r"|(?<=[a-z]{2}:))\s{0,3}(\$\$?|\\\(|\\\[)?\s{0,4}\Z",
    re.IGNORECASE,
)
_RELATION = re.compile(
    r"(?:(?:(?<![<>!≠≤≥\\])|\d!)=|[-=]>|\{=\}|(?<!\\not)(?<!\\not )\\(?:equiv|approx|simeq|cong|in|leq?|geq?"
    r"|leqslant|geqslant|implies|iff|(?:long)?rightarrow|Rightarrow|Longrightarrow|therefore|because|colon|item)"
    r"|(?<=[\w)\]} ])\\(?:sim|to)|[≈⇒→∴≡∈≤≥⟹≃])\Z"
)
_NOT_EQUAL = re.compile(r"\\not\s*=\Z")
_LINE_BREAK = re.compile(r"(?:\\\\(?:\[[^\[\]]*\])?|(?<!\\)&)\Z")
_BRACKET = re.compile(r"(?:\\left\s*|\\[bB]igg?l?\s*)?[(\[]\Z")
# "(\\boxed{7} cm)", and not "(\\boxed{7}, 8)"
_BRACKET_CLOSES = re.compile(r"(?:[^\d()\[\],;+*/^=<>\\-]|\\[,;!. )\]])*(?:\\right\s*|\\[bB]igg?r?\s*)?[)\]]")
_OPERATOR = re.compile(
    r"[-+/^<>√!=_%]\Z|(?<!\*)\*\Z|\\(?:cdot|times|div|pm|mp|ast|star|bullet|circ|sqrt|surd|neg|lnot|not|neq?|gt|lt|frac"
    r"|[dt]frac|binom|log|ln|sin|cos|tan|exp|mod|setminus|cup|cap|kern|text(?:minus|plus))\Z"
)
_WORDS_IN_FORMULA = re.compile(r"\\(?:text(?:bf|it|rm|normal)?|math(?:rm|bf)|mbox|hbox)\s*\{([^{}]*)\}\Z")
_NAMED = re.compile(r"(?:[a-zA-Z]{2}|\})\s*:\Z")  # `\mathrm{OH}: \boxed{46.08}`
_IN_TUPLE = re.compile(r"[(\[{](?:[^()\[\]{}a-zA-Z\\]|\\[a-zA-Z]+)*[,;]\Z")
_NUMBER_GOES_ON = re.compile(r"\d[.,]\Z")  # `5.$\\boxed{7}$`
_AFTER_FORMULA = re.compile(r"(\$\$?|\\[)\]])\Z")
_PART_OF_RATIO = re.compile(r"(?:\d|(?<![a-zA-Z])[a-zA-Z])\s*:\Z")
_BETWEEN_BOXES = (",", ";", "、", "}", "},", "y", "e")
_OPEN_TEXT = re.compile(r"\\(?:text(?:bf|it|rm|normal)?|mbox|hbox)\s*\{([^{}]*)\Z")
_REFERENCE = re.compile(r"(?:\A|\n)\s*\[[^\[\]\n]*\]:\Z")  # `[^1]:` and `[//]:`, which Markdown does not show
# The end of a sentence or of a clause before the box.
_CLAUSE_END = re.compile(
    r"(?:[^\W\d_]{2}|[\d)\]}\"'”’%])[.!?…](?=\s)|[^\W\d_]{2}\)?[,;.!?…]|[\d)\]$][,;.](?=\s)|[^\W\d_]{2}[)\]]"
    r"|\(\w{1,3}\)|\.\.\.|[。、，；！？）」』】》”]"
)
_WORD = re.compile(r"(?<![\\\w^])(?:[^\W\d_]{2,}|[aA])\Z|[a-zA-Z]['’]s\Z")
_GLUED_WORD = re.compile(r"(?<![\\\w])(?:is|are|be|get|[a-z]{5,})\Z", re.IGNORECASE)
# Others of two letters are variables: `dx \\boxed{7}`, `AB \\boxed{7}`.
_SHORT_WORDS = frozenset(words_for("short"))
_LINE_OPENING = re.compile(
    r"(?:\A|\n)[ \t]*(?:[-+•#>|\s]|(?:\d{1,2}|[a-zA-Z])[.)])+\Z|(?:\A|\n)[ \t]*\|[^\n]*\|\Z"
)
_DASH = re.compile(
    r"(?<!\bis)(?<!\bare)(?<!\bbe)(?<!\bget)(?<!\bequals)(?<!\bto)(?<!\bwas)(?<!\bgives)(?<!\bhave)"
    r"(?:(?<=[^\W\d_]{2})[).\]]?\s+-{1,3}|(?<=[^\W\d_]{2})--)\Z",
    re.IGNORECASE,
)
_LAYOUT_TAG = re.compile(rf"{LAYOUT}\Z", re.IGNORECASE)
_COMMAND = re.compile(rf"\\(?!{TYPEFACE})[a-zA-Z]+\*?\s*\Z")
_TYPEFACE_AT_END = re.compile(rf"\\{TYPEFACE}\s*\Z")
_CELL = re.compile(r"\\multicolumn\{\d+\}\{[^{}]*\}\Z")
_BRACES = re.compile(r"\\[{}]|[{}]")
_NO_BRACES = bytes(set(range(256)) - set(b"{}"))


def is_free_before(text: str, start: int, end: int, floor: int = 0) -> bool:
    r"""Whether what stands before the box from `start` to `end` leaves it: `x = \boxed{7}`, but not `-\boxed{7}`.

    What stands before `floor`, another box, is not looked at.
    """
    floor = max(floor, start - REACH_CHARS)
    near = _PLAIN.search(text[max(floor, start - LONGEST_PLAIN) : start])
    is_tagged = text.find("<", floor, start) >= 0
    has_environment = text.find("\\begin{", max(0, start - ENVIRONMENT_CHARS), start) >= 0
    if near and near[1] and not is_tagged and not has_environment:  # a formula of its own
        return True
    before = plain_signs(text[floor:start])
    if (is_tagged and is_hidden(before)) or _is_argument(before):
        return False
    if near and not has_environment:
        return True
    if has_environment and not is_laid_out(text, start):
        return False
    if near:
        return True
    formula = formula_around(text, start)
    is_closed = _BRACKET_CLOSES.match(text, end, end + LONGEST_SIGN) is not None
    if formula.start < 0:
        return _ends_prose_freely(before, is_closed)
    inside = plain_signs(text[max(floor, formula.start) : start])
    lead, _ = _without_marks(inside, _MARK_IN_FORMULA)
    if is_closed and _BRACKET.fullmatch(lead):
        lead = ""
    if formula.start < floor or lead:
        return _ends_formula_freely(inside, is_closed)
    outside = max(floor, formula.outside)
    if _NUMBER_GOES_ON.search(text, max(floor, outside - 2), outside):
        return False
    if formula.opener == "\\begin":  # which may stand in a formula itself
        return is_free_before(text, formula.outside, end, floor)
    return _ends_prose_freely(plain_signs(text[floor:outside]) + " ", is_closed)


def opens_bracket(text: str, start: int) -> bool:
    r"""Whether a bracket opens right before the box: `(\boxed{7}`."""
    before = plain_signs(text[max(0, start - LONGEST_SIGN) : start])
    return _BRACKET.search(_without_marks(before, _MARK_IN_PROSE)[0]) is not None


# In a formula.


def _ends_formula_freely(inside: str, is_closed: bool) -> bool:
    """Whether a formula up to the box ends on a relation, an arrow, the end of a line or words."""
    if (
        "{" in inside
        and (words := _OPEN_TEXT.search(inside))
        and re.search(r"(?<!\\)\b[^\W\d_]{2}", words[1])
    ):
        return _ends_prose_freely(words[1], is_closed)
    lead, _ = _without_marks(inside, _MARK_IN_FORMULA)
    if is_closed and (bracket := _BRACKET.search(lead)):
        lead, _ = _without_marks(lead[: bracket.start()], _MARK_IN_FORMULA)
    if not lead or _is_relation(lead) or lead.strip(" $") in _BETWEEN_BOXES:
        return True
    if _LINE_BREAK.search(lead):
        return _opens_line_freely(lead)
    if worded := _WORDS_IN_FORMULA.search(lead):
        return leave_value(worded[1])
    return _NAMED.search(lead) is not None


def _is_relation(lead: str) -> bool:
    lead = lead[-LONGEST_SIGN:]
    is_named = lead[-1:].isalpha()
    if is_named and "\\" not in lead:  # a word
        return False
    begin = max(0, len(lead) - (LONGEST_RELATION if is_named else 3))  # `{=}`
    return _RELATION.search(lead, begin) is not None and not _NOT_EQUAL.search(lead)


def _opens_line_freely(lead: str) -> bool:
    r"""Whether the line before a `\\` or `&` is complete: `x = 3 \\`, but not `- \\`."""
    while line := _LINE_BREAK.search(lead):
        lead, _ = _without_marks(lead[: line.start()], _MARK_IN_FORMULA)
    return not lead or _is_relation(lead) or not _OPERATOR.search(lead)


def leave_value(words: str) -> bool:
    r"""Whether the words of a formula, `\text{ so }`, are words and say nothing of the value beside them."""
    return changed_by_words_inside(words) is False and DENIED.search(words) is None


# In a sentence.


def _ends_prose_freely(before: str, is_closed: bool) -> bool:
    lead, glued = _without_marks(before, _MARK_IN_PROSE)
    if is_closed and (bracket := _BRACKET.search(lead)):
        lead, glued = _without_marks(lead[: bracket.start()], _MARK_IN_PROSE)
    gap = before[len(lead) :]
    if not lead or _is_relation(lead) or lead.strip(" $") in _BETWEEN_BOXES:
        return True
    if lead[-1] == ":":
        return not _REFERENCE.search(lead) and (gap != "" or not _PART_OF_RATIO.search(lead))
    if lead[-1] in "\\]&" and _LINE_BREAK.search(lead):
        return _opens_line_freely(lead)
    if lead[-1] in ",;" and _IN_TUPLE.search(lead):
        return False
    if lead[-1] == ">" and (tag := _LAYOUT_TAG.search(lead)):
        return not _OPERATOR.search(lead[: tag.start()].rstrip()) and not changed_by_words_before(
            lead[: tag.start()]
        )
    if lead[-1] == "}" and (worded := _WORDS_IN_FORMULA.search(lead)):
        return leave_value(worded[1])
    if lead[-1] in "$)]" and (closer := _AFTER_FORMULA.search(lead)):
        return _follows_formula_freely(lead[: closer.start()].rstrip(), closer[1], gap)
    if changed_by_words_before(lead):
        return False
    if lead[-1].isalpha() and lead[-1].isascii():
        return _ends_in_word(lead, glued, "\n" in gap)
    if "\n" in gap:
        return not _OPERATOR.search(lead)
    if _LINE_OPENING.search(lead) or (lead[-1] == "-" and _DASH.search(lead)):
        return gap[:1].isspace()
    if not lead[-1].isascii():
        return lead[-1].isalpha() or _is_vowel_sign(lead[-1]) or _CLAUSE_END.search(lead[-1]) is not None
    return gap != "" and _CLAUSE_END.search(lead[-3:] + gap) is not None


def _is_vowel_sign(character: str) -> bool:
    """A sign that Thai and its neighbours write over a letter."""
    return "\u0900" <= character <= "\u1cff"


def _follows_formula_freely(content: str, closer: str, gap: str) -> bool:
    """Whether a formula before the box's own is done: "$x = 3.$ ", but not "$2$ "."""
    if _is_relation(content) or content[-1:] in (".", ",", ";", ":"):
        return not _IN_TUPLE.search(content)
    is_apart = "\n" in gap or closer in ("$$", "\\]")
    return is_apart and not _OPERATOR.search(content)


def _ends_in_word(lead: str, glued: bool, is_apart: bool) -> bool:
    r"""Whether the letters before a box are a word: "is", and not the x of `x \boxed{7}`."""
    word = _WORD.search(lead, max(0, len(lead) - LONGEST_WORD))
    if word is None:
        return is_apart and not _COMMAND.search(lead)
    if glued:
        return _GLUED_WORD.search(lead, max(0, len(lead) - LONGEST_WORD)) is not None
    return len(word[0]) != 2 or word[0].lower() in _SHORT_WORDS


def _without_marks(before: str, mark: re.Pattern[str]) -> tuple[str, bool]:
    """What stands before the blanks, delimiters and typeface at the end, and whether these are no gap at all."""
    lead, glued = before, True
    for _ in range(MAX_MARKS):
        bare = lead.rstrip()
        glued = glued and len(bare) == len(lead)
        lead = bare
        if lead[-1:].isalnum() and "\\" not in lead[-20:]:
            break
        closing_mark = mark.search(lead, max(0, len(lead) - LONGEST_SIGN))
        if closing_mark is None:
            break
        glued = glued and closing_mark[0] not in ("*", "_", "`", '"') and closing_mark[0][0] != "<"
        lead = lead[: closing_mark.start()]
    return lead, glued


def _is_argument(before: str) -> bool:
    r"""Whether the box is an argument of a command that is no typeface: `\sqrt{x = \boxed{7}}`, `2^{\boxed{7}}`."""
    if not _leaves_open(before):
        return False
    opened: list[int] = []
    for brace in _BRACES.finditer(before):
        if brace[0] == "{":
            opened.append(brace.start())
        elif brace[0] == "}" and opened:
            opened.pop()
    return any(_takes_argument(before[:place]) for place in opened)


def _leaves_open(text: str) -> bool:
    r"""A quick look for a brace that is not closed: _leaves_open(r"\frac{1}{2}") -> False."""
    if "{" not in text:
        return False
    plain = text.replace("\\{", " ").replace("\\}", " ").encode(errors="replace")
    braces = plain.translate(None, _NO_BRACES)
    while b"{}" in braces:
        braces = braces.replace(b"{}", b"")
    return b"{" in braces


def _takes_argument(before: str) -> bool:
    r"""Whether a brace after this opens an argument: `\sqrt`, `2^`, `\frac{1}`; not after `\textbf`."""
    if _CELL.search(before) or _TYPEFACE_AT_END.search(before):
        return False
    if before.endswith(("^", "_", "}", "]")):
        return True
    return _COMMAND.search(before) is not None and not _is_relation(before.rstrip())
