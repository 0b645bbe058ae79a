"""Whether a Thai text stops inside a word. Thai has no sentence-final point and no spaces between words.

stops_in_word("ประเทศไทยมีภูเ")  -> True      a vowel that is written before its consonant
"""

from __future__ import annotations

import re

# A vowel before its consonant; a short a, a long ue, เ…ี and a short e without the letter that follows them.
NO_END = re.compile("(?:[เแโใไ]|ั[่-๋]?|[ก-ฮ]ื[่-๋]?|(?<!ก)็|เ[ก-ฮ]{1,2}ี[่-๋]?)$")


def stops_in_word(text: str) -> bool:
    return NO_END.search(text[-12:]) is not None
