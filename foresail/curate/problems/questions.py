r"""Several questions in one problem: parts that each ask something, or two questions of which one is answered.

parts_that_ask("(1) Find $a$. (2) Find $b$.") -> ["(1) Find $a$.", "(2) Find $b$."]
"""

from __future__ import annotations

import re

COMMAND = re.compile(
    r"(?:^|[.;:!?,]\s+|\n\s{0,20}|\b(?:and|then|also)\s+)(?:\*+)?"
    r"(?:please |also |then |next,? )?(?:find|determine|compute|calculate|evaluate|solve|prove|"
    r"show that|show how|explain|sketch|"
    r"draw|write (?:down|out)|list|describe|what|how (?:many|much|long|far|old)|(?<!, )which)\b",
    re.IGNORECASE,
)
LABELS = (
    ("round", re.compile(r"(?<![\w\\^_}\])])\$?\((?:(\d)|([a-h])|(i{1,3}|iv|v)|([ⅠⅡⅢⅣ]))\)\$?[.:]?\s")),
    ("half", re.compile(r"(?:(?<=\s)|\A)\$?(?:(\d)|([a-h])|(I{1,3}|IV))\)\$?\s")),
    ("p", re.compile(r"\*\*p(\d)\.?\*\*|\bp(\d)\.\s")),
    ("dot", re.compile(r"(?:^|\n)[ \t]{0,20}(?:(\d)|([a-h]))\.\s")),
    ("circled", re.compile(r"([①②③④⑤])")),
    ("word", re.compile(r"\b(?:part|question|problem)\s+(?:\(?(\d|[a-d])\)?)\s*[:.)]", re.IGNORECASE)),
)
RANKS = {
    **{str(number): number for number in range(1, 10)},
    **{letter: number for number, letter in enumerate("abcdefgh", start=1)},
    **{name: number for number, name in enumerate(("i", "ii", "iii", "iv", "v"), start=1)},
    **{name: number for number, name in enumerate("ⅠⅡⅢⅣ", start=1)},
    **{name: number for number, name in enumerate("①②③④⑤", start=1)},
}


def parts_that_ask(text: str) -> list[str]:
    """Labelled parts, if two or more of them ask something."""
    for _, label in LABELS:
        matches = [*label.finditer(text)]
        ranks = [RANKS.get(next(filter(None, match.groups())).lower(), 0) for match in matches]
        run: list[re.Match[str]] = []
        for match, rank in zip(matches, ranks, strict=True):
            if rank == len(run) + 1:
                run.append(match)
            elif rank == 1:
                run = [match]
        if len(run) < 2:
            continue
        ends = [match.start() for match in run[1:]] + [len(text)]
        parts = [text[match.start() : end].strip() for match, end in zip(run, ends, strict=True)]
        bodies = [text[match.end() : end].strip() for match, end in zip(run, ends, strict=True)]
        # the last part runs on into what is asked of all of them together
        first = sum(asks(body) for body in bodies[:-1])
        last = asks(bodies[-1].partition("\n\n")[0])
        if first + last >= 2 and first:
            return parts
    return []


def asks(part: str) -> bool:
    return "?" in part or COMMAND.search(part) is not None


QUESTION = re.compile(
    r"^(?:and |also,? |then,? )?(?:what|how|which|when|where|who|in how many)\b.*\?\W*$", re.IGNORECASE
)
RESTATES = re.compile(
    r"^(?:that is|in other words|specifically|formally|equivalently|i\.?e\b|or,|namely|can you)",
    re.IGNORECASE,
)


def questions_of(sentences: list[str]) -> list[str]:
    """Sentences that are questions of their own: ["What is $a$?", "How many are there?"]."""
    return [one for one in sentences if QUESTION.match(one) and not RESTATES.match(one)]
