"""A quick look whether a text may hold a word that matters, so that most texts need no closer one.

A pattern of `words` begins with letters of its own; a text none of whose words begins like that holds no match.
"""

from __future__ import annotations

import re
from functools import lru_cache

from foresail.rewards.finding import words

LONGEST = 40  # characters of a word whose kind is remembered

_VARIABLE = re.compile(r"\\[wbsWZA]|\[[^\]]*\]|\(\?[^:)]*[:)]|[^\W\d_][?*]")
_LETTERS = re.compile(r"[^\W\d_]+")
_PARTS = re.compile(r"[^\W\d_]+(?:[’'][^\W\d_]+)?")
_UNSPACED = re.compile(
    r"[\u0400-\u1dff\u1f00-\u1fff\u2e80-\ud7ff\uf900-\ufaff]"
)  # scripts in which words are not told apart here
# Words that only continue a pattern.
_LATER = set(
    "of to that the have been be and on way but from than believe think follow ed ei en ra lẽ es re do a e n t y one".split()
)
_MISNAMED = (
    r"wrong\w*|incorrect\w*|false\w*|mistaken\w*|erroneous\w*|bad|common|frequent|typical|mistake|error|maling|mauvaise|fausse"
    r"|falsche|salah|keliru|sai|errada|incorreta|equivocada"
)
_UNCLAIMED = (
    r"example|instance|such|form|format|put|write|place|give|enclose|present|express|provide|enter|box|if|suppose|assume|assuming"
    r"|whether|unless"
)
_BEHIND = (
    r"scratch|strike|never|taken?|took|taking|kidding|joking|disregard|ignor\w*|forget|discard|retract\w*|withdraw\w*|delete"
    r"|cancel|erase|revoke|drop|reject|start|redo|retry|try|reconsider|rethink|recompute|recalculate|correct|fix|thoughts?"
    r"|changed|counted|abaikan|lupakan|batalkan|bỏ|quên|desconsider\w|esqueça|olvid\w|descart\w|oubliez|vergiss|huwag"
    r"|kalimutan|guess|unsure|uncertain|know|idea|give|probabl\w*|possibly|barangkali|entah|siguro|marahil|provavelmente"
    r"|wahrscheinlich|möglicherweise|should|puede|stimmt|answers?|ans|option|choice|result|hasil|đáp|câu|kết|sagot|kasagot\w*"
    r"|jawab\w*|jawapan\w*|resposta|respuesta|resultado|réponse|résultat|antwort|endantwort|endergebnis|risposta|cevap"
)


def _telling(words_of_patterns: tuple[str, ...], whole_words: str) -> re.Pattern[str]:
    runs = {
        run.lower() for source in words_of_patterns for run in _LETTERS.findall(_VARIABLE.sub("|", source))
    }
    runs -= _LATER
    long, short = sorted(run for run in runs if len(run) > 2), sorted(run for run in runs if len(run) < 3)
    beginnings = "|".join(long) or r"(?!)"
    return re.compile(rf"(?:{beginnings})|(?:{'|'.join([*short, whole_words])})(?!\w)|\w*n[’']t(?!\w)")


_BEHIND_AN_ANSWER = _telling((words.NOT, words.NO, words.OR, words.WRONG, words.CORRECTION), _BEHIND)
# What the words before an answer may do: rule it out, name it as wrong, claim nothing of it, offer another value.
DENY, MISNAME, UNCLAIM, OFFER = 1, 2, 4, 8
_BEFORE_AN_ANSWER = {
    DENY: _telling((words.NOT,), "not"),
    MISNAME: _telling((), _MISNAMED),
    UNCLAIM: _telling((words.DISBELIEF,), _UNCLAIMED),
    OFFER: _telling((words.OR,), "or"),
}


def what_before(text: str) -> int:
    """Which closer looks at the words before an answer are worth it: what_before("Therefore, the area is") -> 0."""
    found = 0
    for word in text[max(text.rfind(". "), text.rfind("\n")) + 1 :].lower().split():
        found |= _known_before(word) if len(word) <= LONGEST else _known_before.__wrapped__(word)
    return found


def may_tell_behind(text: str) -> bool:
    """Whether what follows an answer is worth one: "square feet." is not, "Wait, that is wrong." is."""
    return any(map(_tells_behind, text.lower().split()))


@lru_cache(maxsize=1 << 15)
def _known_before(word: str) -> int:
    if _UNSPACED.search(word):
        return DENY | MISNAME | UNCLAIM | OFFER
    parts = _PARTS.findall(word)
    return sum(kind for kind, telling in _BEFORE_AN_ANSWER.items() if any(map(telling.match, parts)))


def _tells_behind(word: str) -> bool:
    return _known_behind(word) if len(word) <= LONGEST else _known_behind.__wrapped__(word)


@lru_cache(maxsize=1 << 15)
def _known_behind(word: str) -> bool:
    return _UNSPACED.search(word) is not None or any(map(_BEHIND_AN_ANSWER.match, _PARTS.findall(word)))
