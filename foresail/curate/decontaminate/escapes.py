r"""Signs that stand for letters in JSON, in code and in HTML, as these letters.

    unescaped(r"caf\u00e9\nthe") -> "café the"; unescaped("caf&eacute; &amp; bar") -> "café & bar"

LaTeX commands that begin with n, r or t, such as \neq, stay; the kernel reads "\nThe", where a capital follows.
"""

from __future__ import annotations

import re
from html import unescape

COMMANDS = (
    "nabla natural ne nearrow neg neq newcommand newline newpage nexists ngeq ni nleq nless nmid nobreak noindent"
    " nolimits nonumber norm normalsize not notin nparallel nsim nsubseteq nu null nwarrow raggedright raise rangle"
    " rbrace rbrack rceil ref relax renewcommand rfloor rho right rightarrow rightharpoonup rightleftharpoons rm"
    " root rtimes rule rvert tab tag tan tanh tau tbinom text textbf textcolor textdegree textit textmd textrm"
    " textsc textsf textstyle texttt textup textwidth tfrac therefore theta thickspace thinspace tilde times tiny"
    " to top triangle triangleleft triangleq triangleright tt"
).split()
LETTERS = re.compile(r"(?:\\+u[0-9a-fA-F]{4})+")
LINE_BREAK = re.compile(rf"\\+(?!(?:{'|'.join(COMMANDS)})(?![a-zA-Z]))[nrt](?=[a-z])")
ENTITY = re.compile(r"&(?:amp;)*(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,30});")


def unescaped(text: str) -> str:
    if "\\" in text:
        text = LETTERS.sub(letters_of, text)
        text = LINE_BREAK.sub(" ", text)
    if "&" in text:
        text = ENTITY.sub(lambda entity: unescape(entity[0].replace("amp;", "") or "&"), text)
    return text


def letters_of(escapes: re.Match[str]) -> str:
    r"""\ud83d\ude00 is one letter."""
    codes = bytes.fromhex(escapes[0].replace("\\", "").replace("u", ""))
    return codes.decode("utf-16-be", "surrogatepass")
