r"""What makes a problem unfit for a reward by rule: each rule looks at its wording and gives evidence, or nothing.

find_faults(Wording.of("Prove that $1 = 1$.", "1")) -> [("proof", "Prove that")]
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from foresail.curate.problems.evidence import matched, shorten
from foresail.curate.problems.figures import drawing, figure
from foresail.curate.problems.options import find_options
from foresail.curate.problems.questions import parts_that_ask, questions_of
from foresail.curate.problems.wording import Wording
from foresail.maths.extract import last_box
from foresail.maths.notation.answer import read
from foresail.maths.verdict import grade

Rule = Callable[[Wording], str]

SHORTEST = 12  # characters
LONGEST_ANSWER = 300

LINK = re.compile(r"https?://\S+|\bwww\.\w\S*|\bclick here\b", re.IGNORECASE)
PICTURE = re.compile(
    r"!\[[^\]]*\]\([^)]*\)|<img\b|\\includegraphics|\b[\w/-]+\.(?:png|jpe?g|gif|svg|bmp|webp)\b|"
    r"\[(?:image|img|figure|diagram)\]",
    re.IGNORECASE,
)
FORMULA_SIGNS = re.compile(r"[$]|\\[()\[\]]")
PROOF = re.compile(
    r"(?:^|[.;:,)\]_]\s*|\n\s{0,20}|\b(?:and|then|to|also|or|must) )(?:prove|disprove|show that|"
    r"show (?:how|why|the)|demonstrate that|verify that|"
    r"give a (?:formal )?proof|provide a (?:formal )?proof|write a proof)\b",
    re.IGNORECASE,
)
FINDS = re.compile(
    r"\b(?:find|determine|compute|calculate|evaluate|what|how many|how much|which|solve|estimate|"
    r"express|state|value of)\b|\?",
    re.IGNORECASE,
)
CHOOSES = re.compile(
    r"\bwhich (?:one )?of (?:the|these)\b|\b(?:choose|select|pick) (?:the|one|an|your|from|all|a|any|which)\b|"
    r"\bfrom the (?:options|choices|following)|\b(?:the )?(?:correct|following) (?:answer|option|"
    r"choice|statement)s?\b|"
    r"\b(?:options?|choices?) (?:below|are|is)\b|multiple[- ]choice|\bEnter the letter",
    re.IGNORECASE,
)
LETTER = re.compile(r"[({\s]*[A-H](?:\s*,\s*[A-H])*[)}\s.]*")
GUESSABLE = frozenset(["yes", "no", "true", "false", "correct", "incorrect", "possible", "impossible"])
ALTERNATIVE = re.compile(r"[\w-]+")
NO_ANSWER = re.compile(
    r"\W*|(?:see|refer to|check|look at|consult)\b.*|.*\bsee (?:the )?(?:solution|proof|explanation|"
    r"figure|above|below)\b.*|"
    r"(?:proof|proved|proven|q\.?e\.?d\.?|n/?a|none given|unknown|omitted|tbd|todo|null|nan|"
    r"answers? (?:may |will )?var\w*|"
    r"(?:answer )?not (?:given|provided|available|found|specified)|no answer|left to the reader|"
    r"varies|as shown|.*\bis proved)\W*",
    re.IGNORECASE | re.DOTALL,
)
SOLVED = re.compile(
    r"(?:^|\n)[^\w\n]{0,8}(?:solution|answer|ans)[^\w\n]{0,4}:[ \t]{0,8}(\S[^\n]*)", re.IGNORECASE
)
MANGLED = re.compile(
    "\ufffd|[\x00-\x08\x0b\x0c\x0e-\x1f]|(?:â€|Ã[©¨¢§¡³º]|Â[°²³½])|\t(?:ext|imes|heta|riangle|frac|an\\b)"
)
PAIRS = ((r"\begin{", r"\end{"), (r"\(", r"\)"), (r"\[", r"\]"))
ASKED_FOR = re.compile(
    r"\?|_{2,}|\\_|\bblank\b|\b(?:find|determine|compute|calculate|evaluate|what|how|which|solve|"
    r"simplify|factor|expand|prove|show|write|"
    r"express|give|name|convert|round|estimate|graph|plot|let|list|state|identify|rationalize|"
    r"complete|subtract|add|multiply|"
    r"divide|reduce|order|count|describe|explain|construct|draw|provide|choose|select|answer|report|"
    r"obtain|derive|approximate|"
    r"prove|classify|discuss|rewrite|perform|analy[sz]e|reverse|sort|remove|merge|split|consider|"
    r"suppose|minimize|maximize|return|implement|create|check|print|output|use|assume|enter|"
    r"is|are|equals?|then|when|if|was|were|will|must|can|has|have)\b|=\W{0,12}\Z|\\boxed\{\s{0,8}\}|\(\s{0,20}\)\W{0,8}\Z",
    re.IGNORECASE,
)


def short(wording: Wording) -> str:
    bare = wording.text.strip()
    return f"{len(bare)} characters" if len(bare) < SHORTEST else ""


def link(wording: Wording) -> str:
    return matched(LINK, wording.words)


def picture(wording: Wording) -> str:
    return matched(PICTURE, wording.words)


def proof(wording: Wording) -> str:
    """Something is to be proved, and nothing is asked for."""
    for sentence in wording.sentences:
        if (match := PROOF.search(sentence)) is None:
            continue
        others = [other for other in wording.sentences if other is not sentence]
        before = sentence[: match.start()]
        if not any(FINDS.search(part) for part in (before, *others)):
            return shorten(sentence)
    return ""


def choice(wording: Wording) -> str:
    """Options stand in the text, or the answer is the letter of one."""
    options = find_options(wording.words)
    if options is not None:
        return f"{len(options.texts)} options, " + shorten(wording.words[options.start : options.end])
    if LETTER.fullmatch(wording.answer_words.upper()) and wording.answer_words.upper() == bare(
        wording.answer
    ):
        return matched(CHOOSES, wording.prose)
    return ""


def guessable(wording: Wording) -> str:
    """Yes or no, true or false, or one of a few words that the question offers."""
    word = wording.answer_words
    if word in GUESSABLE:
        return word
    if not word.replace(" ", "").replace("-", "").isalpha() or len(word) < 3:
        return ""
    offered = re.search(
        rf"\b(?:{re.escape(word)}\W+or\b|{re.escape(word)}\W+(?:\w+\W+)?or\b|"
        rf"or(?: \w+)?\W+{re.escape(word)}\b)",
        wording.prose.casefold(),
    )
    return shorten(wording.prose[max(0, offered.start() - 40) : offered.end() + 20]) if offered else ""


def several(wording: Wording) -> str:
    """Several questions and one answer."""
    parts = parts_that_ask(wording.words)
    if parts and number_of_values(wording.answer) < len(parts):
        return f"{len(parts)} parts: " + shorten(" | ".join(parts))
    questions = questions_of(wording.sentences)
    if len(questions) > 1 and number_of_values(wording.answer) < 2:
        return shorten(" | ".join(questions))
    return ""


def no_answer(wording: Wording) -> str:
    if len(wording.answer) > LONGEST_ANSWER:
        return f"{len(wording.answer)} characters"
    if PICTURE.search(wording.answer) or LINK.search(wording.answer):
        return shorten(wording.answer)
    is_none = NO_ANSWER.fullmatch(wording.answer) or NO_ANSWER.fullmatch(wording.answer_words)
    return (shorten(wording.answer) or "empty") if is_none else ""


def restated(wording: Wording) -> str:
    """The answer is the unknown itself: "Solve for x" with x."""
    letter = wording.answer.strip("$\\(){} ")
    if len(letter) != 1 or not letter.isalpha():
        return ""
    asked = re.search(
        rf"\bsolve (?:the equation )?for \W*{letter}\b", FORMULA_SIGNS.sub("", wording.words), re.IGNORECASE
    )
    return shorten(asked[0]) if asked else ""


def solved(wording: Wording) -> str:
    """The text has the answer in it, in a box or behind the word "Answer"."""
    stated = [box] if (box := last_box(wording.words)) else []
    stated += SOLVED.findall(wording.words)
    right = next(
        (text for text in stated if grade(rf"\boxed{{{text}}}", wording.answer).status == "correct"), ""
    )
    return shorten(right)


def mangled(wording: Wording) -> str:
    if match := MANGLED.search(wording.text):
        return repr(wording.text[max(0, match.start() - 20) : match.end() + 20])
    bare_text = wording.words.replace("\\\\", " ")  # the end of a line, as in \\\\[2pt]
    for opening, closing in PAIRS:
        opened, closed = bare_text.count(opening), bare_text.count(closing)
        if opened != closed:
            return f"{opened} times {opening} and {closed} times {closing}"
    return ""


def no_question(wording: Wording) -> str:
    return "" if ASKED_FOR.search(wording.text) else shorten(wording.words)


def number_of_values(answer: str) -> int:
    """number_of_values("3, 5") -> 2; of a pair "(3, 5)" 1, of "1,234" 1."""
    readings = read(answer)
    if readings and readings[0].head in ("list", "{}", "braces"):
        return len(readings[0].args)
    return 1 + len(re.findall(r";|\band\b|\\quad|\n", answer))


def bare(answer: str) -> str:
    return re.sub(r"\\text(?:bf)?|\\mathrm|\\mathbf|\\textbf|[{}()$.\s]", "", answer)


# In the order in which they are counted: a problem is dropped for the first.
EVERY_KIND: dict[str, Rule] = {"short": short, "picture": picture, "mangled": mangled}
MATHS: dict[str, Rule] = {
    "link": link,  # in tasks of programs a link is mostly an example
    "no_answer": no_answer,
    "drawing": drawing,
    "figure": figure,
    "choice": choice,
    "guessable": guessable,
    "several": several,
    "proof": proof,
    "solved": solved,
    "restated": restated,
    "no_question": no_question,
}
REASONS = (*EVERY_KIND, *MATHS)


def find_faults(
    wording: Wording, *, is_maths: bool = True, reasons: frozenset[str] = frozenset(REASONS)
) -> Iterator[tuple[str, str]]:
    rules = EVERY_KIND | MATHS if is_maths else EVERY_KIND
    for reason, rule in rules.items():
        if reason in reasons and (evidence := rule(wording)):
            yield reason, evidence
