"""Whether a translation says what its original says: the reason and the evidence if it does not.

    check_translation("He has 2 cats.", "Dia punya 3 kucing.", "He has 3 cats.", Limits(language="id"), guess)
        -> Drop("lost_number", "2")

`back` is the translation, translated back by a model that did not see the original. Code, LaTeX and addresses are
marks here (`placeholders.py`), and their count is checked before.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from foresail.curate.document import Drop, one_line
from foresail.curate.rewriting.chrf import chrf
from foresail.curate.rewriting.fidelity import SHOWN, GuessLanguage, is_odd, is_unspaced, languages_of
from foresail.curate.rewriting.placeholders import MARK
from foresail.curate.rewriting.quantities import find_quantities, lost_quantities, new_quantities
from foresail.curate.rewriting.wording import meta_talk, repeated

# characters of a language for one of English, roughly
DENSITY = {"zh": 0.35, "ja": 0.45, "ko": 0.5, "th": 0.9}
SAME_SCRIPT_COPY = 0.75  # chrF with the original, above which a text is untranslated
LEAST_LETTERS = 25  # of a text that has to differ from its original: names and numbers may stay
CLOSE = ({"id", "ms"},)  # languages that a text of fewer than so many letters may be either of
CLOSE_LETTERS = 150
RUN = 6  # words in a row
LEAST_BACK_LETTERS = 60
BACK_LENGTH = 0.3  # by so much a back-translation may be shorter
WORDS_READ = ("en", "zh", "id", "ms", "tl", "vi", "pt")  # languages of which numbers in words are known


@dataclass(frozen=True, kw_only=True)
class Limits:
    language: str
    source: str = "en"
    least_back: float = 0.45  # chrF of the back-translation
    longest: float = 2.5  # times the length that is usual


def check_translation(
    source: str, target: str, back: str, limits: Limits, guess: GuessLanguage
) -> Drop | None:
    return next(faults(source, target, back, limits, guess), None)


def faults(source: str, target: str, back: str, limits: Limits, guess: GuessLanguage) -> Iterator[Drop]:
    yield from faults_of_form(source, target, limits)
    prose, ours, theirs = (MARK.sub(" ", text) for text in (source, target, back))
    letters = sum(map(str.isalpha, prose))
    if letters >= LEAST_LETTERS and limits.source != limits.language:
        if (alike := chrf(ours, prose)) > SAME_SCRIPT_COPY:
            yield Drop("untranslated", f"chrF {alike:.3f} with the original")
        if run := common_run(prose, ours):
            yield Drop("untranslated", f"in both: {one_line(run, SHOWN)}")
        guessed = languages_of(ours, guess)
        close = letters < CLOSE_LETTERS
        if guessed and not any(is_language(one, limits.language, close) for one in guessed):
            yield Drop(
                "language", f"{guessed[0]}, and {limits.language} was asked for: {one_line(ours, SHOWN)}"
            )
    yield from faults_of_numbers(prose, ours, limits)
    if (alike := chrf(theirs, prose)) < limits.least_back:
        yield Drop("back_translation", f"chrF {alike:.3f}: {one_line(theirs, SHOWN)}")
    ratio = sum(map(str.isalpha, theirs)) / max(1, letters)
    if letters >= LEAST_BACK_LETTERS and not 1 - BACK_LENGTH <= ratio <= 1 / (1 - BACK_LENGTH):
        yield Drop("back_translation", f"{ratio:.2f} of the original's letters: {one_line(theirs, SHOWN)}")
    old, new = find_quantities(prose, limits.source), find_quantities(theirs, limits.source)
    if missing := lost_quantities(old, new):
        yield Drop("lost_number", f"{missing[0].text}, translated back: {one_line(theirs, SHOWN)}")
    if added := new_quantities(old, new):
        yield Drop("new_number", f"{added[0].text}, translated back: {one_line(theirs, SHOWN)}")


def faults_of_form(source: str, target: str, limits: Limits) -> Iterator[Drop]:
    if not target.strip():
        yield Drop("empty")
    if odd := [character for character in target if is_odd(character)]:
        yield Drop("odd_characters", ascii(odd[0]))
    ratio = DENSITY.get(limits.language, 1.0) / DENSITY.get(limits.source, 1.0)
    length = len("".join(target.split())) / max(1.0, ratio * len("".join(source.split())))
    if (length > limits.longest and len(target) > 60) or (length < 1 / limits.longest and len(source) > 60):
        yield Drop("length", f"{length:.2f} of what is usual")
    if (again := repeated(target)) > repeated(source):
        yield Drop("said_twice", f"{again} sentences")
    if said := meta_talk(target, source):
        yield Drop("meta_talk", one_line(said, SHOWN))


def faults_of_numbers(source: str, target: str, limits: Limits) -> Iterator[Drop]:
    """Numbers in digits stay digits, or become words; no other number comes in digits."""
    loose = True  # 1,200.5 is written 1.200,5 elsewhere
    digits = find_quantities(source, "", loose=loose)
    said = find_quantities(target, limits.language, loose=loose)
    if missing := lost_quantities(digits, said):
        yield Drop("lost_number", f"{missing[0].text}, in: {one_line(target, SHOWN)}")
    known = find_quantities(source, limits.source, loose=loose)
    added = lost_quantities(find_quantities(target, "", loose=loose), known)  # each as often as it was
    if added and limits.source in WORDS_READ:
        yield Drop("new_number", f"{added[0].text}, in: {one_line(target, SHOWN)}")


def common_run(source: str, target: str) -> str:
    """Words in a row that both texts have, and that are more than a name; in scripts without spaces characters."""
    words, there = source.split(), f" {' '.join(target.split())} "
    for place in range(len(words) - RUN + 1):
        run = words[place : place + RUN]
        if f" {' '.join(run)} " in there and sum(word[:1].islower() for word in run) >= RUN - 2:
            return " ".join(run)
    if 2 * sum(map(is_unspaced, source)) > sum(map(str.isalpha, source)):
        for place in range(len(source) - 2 * RUN + 1):
            if (piece := source[place : place + 2 * RUN]) in target and sum(map(str.isalpha, piece)) > RUN:
                return piece
    return ""


def is_language(guessed: str, expected: str, close: bool) -> bool:
    """`close`: a short text, which may be in either language of a pair that is alike."""
    return guessed == expected or (close and any({guessed, expected} <= pair for pair in CLOSE))
