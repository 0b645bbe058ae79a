"""A quick look whether a text may hold a word that matters, so that most texts need no closer one.

A pattern of `words` begins with letters of its own; a text none of whose words begins like that holds no match.
"""

from __future__ import annotations

import re

from foresail.rewards.finding import words
from foresail.rewards.finding.wording import Hint, kinds_in, kinds_in_sentence

_UNSPACED = re.compile(
    r"[\u0400-\u1dff\u1f00-\u1fff\u2e80-\ud7ff\uf900-\ufaff]"
)  # where words are not told apart here
_MISNAMED = (
    r"wrong\w*|incorrect\w*|false\w*|mistaken\w*|erroneous\w*|bad|common|frequent|typical|mistake|error"
    r"|maling|mauvaise|fausse"
    r"|falsche|salah|keliru|sai|errada|incorreta|equivocada"
)
_UNCLAIMED = (
    r"example|instance|such|form|format|put|write|place|give|enclose|present|express|provide|enter|box|if"
    r"|suppose|assume|assuming"
    r"|whether|unless"
)
_FOLLOWING = (
    r"scratch|strike|never|taken?|took|taking|kidding|joking|disregard|ignor\w*|forget|discard|retract\w*"
    r"|withdraw\w*|delete"
    r"|cancel|erase|revoke|drop|reject|start|redo|retry|try|reconsider|rethink|recompute|recalculate"
    r"|correct|fix|thoughts?"
    r"|changed|counted|abaikan|lupakan|batalkan|bỏ|quên|desconsider\w|esqueça|olvid\w|descart\w|oubliez"
    r"|vergiss|huwag"
    r"|kalimutan|guess|unsure|uncertain|know|idea|give|probabl\w*|possibly|barangkali|entah|siguro|marahil"
    r"|provavelmente"
    r"|wahrscheinlich|möglicherweise|should|puede|stimmt|answers?|ans|option|choice|result|hasil|đáp|câu"
    r"|kết|sagot|kasagot\w*"
    r"|jawab\w*|jawapan\w*|resposta|respuesta|resultado|réponse|résultat|antwort|endantwort|endergebnis"
    r"|risposta|cevap"
)


_NOT, _MISNAME = Hint(words.NOT), Hint(_MISNAMED)
_UNCLAIM, _OFFER = Hint(f"{words.DISBELIEF}|{_UNCLAIMED}"), Hint(words.OR)
# What the words before an answer may do: rule it out, name it as wrong, claim nothing of it, offer another value.
DENY, MISNAME, UNCLAIM, OFFER = _NOT.bit, _MISNAME.bit, _UNCLAIM.bit, _OFFER.bit
_BEFORE = DENY | MISNAME | UNCLAIM | OFFER
_BEHIND = Hint("|".join([words.NOT, words.NO, words.OR, words.WRONG, words.CORRECTION, _FOLLOWING]))


def what_before(text: str) -> int:
    """Which closer looks at the words before an answer are worth it: what_before("Therefore, the area is") -> 0."""
    text = text[max(text.rfind(". "), text.rfind("\n")) + 1 :]
    if not text.isascii() and _UNSPACED.search(text):
        return _BEFORE
    return kinds_in(text) & _BEFORE


def may_tell_behind(text: str) -> bool:
    """Whether what follows an answer is worth one: "square feet." is not, "Wait, that is wrong." is."""
    if kinds_in_sentence(text) & _BEHIND.bit:
        return True
    return not text.isascii() and _UNSPACED.search(text) is not None
