r"""Patterns of what is said of a value, made of the words of all languages (`maths/lexicon/`).

A new word of a hedge belongs in the lexicon; a new English construction here.
"""

from __future__ import annotations

from foresail.maths.lexicon.table import pattern, spaced, unspaced

# Denials: what rules the next value out. `FILLING` may stand between the denial and the value.
NOT, NOT_UNSPACED = spaced("denial"), unspaced("denial")
FILLING, FILLING_UNSPACED = spaced("filler"), unspaced("filler")
NOT_AFTER = rf"[ \t]*+(?:(?:{spaced('denial after')})\b|{unspaced('denial after')})"

# Withdrawals.
WRONG_UNSPACED = f"(?:{unspaced('wrong')})"
WRONG = pattern("wrong")
NOT_RIGHT = (
    rf"\b(?:{NOT})(?!\w)(?:[ \t]+[^\s.,;:]+){{0,4}}?[ \t]+(?:{spaced('right')})(?!\w)|{pattern('not right')}"
)
NO = pattern("no")
TAKEN_BACK = pattern("taken back")
DOUBT = pattern("doubt")
# In a response without a box these leave a doubt, too.
UNDECIDED = pattern("doubt", "undecided")
DISBELIEF, DISBELIEF_UNSPACED = rf"\b(?:{spaced('disbelief')})(?!\w)", unspaced("disbelief")

# Offers: what puts another value beside the one before.
OR = pattern("or")
MODAL = pattern("modal")

NUMBER_AFTER = pattern("number after")  # "7 million" is not 7
NUMBER_BEFORE = pattern("number before")
AND_OR = pattern("list or")  # joins the last items of a list of solutions: "x = 1 or x = 2"
AND = rf"(?:{pattern('and')}|[,;&、，；])"
CORRECTION = pattern("correction")
STEP = pattern("therefore")
BECAUSE = pattern("because")
ANSWER = rf"\b(?:{spaced('answer')})|{unspaced('answer')}"  # more letters may follow: "Antworten"
