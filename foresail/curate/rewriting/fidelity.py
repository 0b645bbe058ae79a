"""Whether a rewritten question still asks the same: the reason and the evidence if it does not.

    check_rewriting("Tom has 5 apples …?", "Tom owns apples …?", Rules()) -> Drop("lost_quantity", "5")

What is checked in every language: numbers, fixed parts (code, LaTeX, addresses), quoted texts, options, names, the
language itself. In English also number words, units, constraints, and which number belongs to whom.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from foresail.curate.document import Drop, one_line
from foresail.curate.language.guess import NONE, OTHER, Guess
from foresail.curate.rewriting.chrf import chrf
from foresail.curate.rewriting.names import lost_names, swapped
from foresail.curate.rewriting.quantities import find_quantities, lost_quantities, new_quantities
from foresail.curate.rewriting.question import changed_option, is_letter, options_of
from foresail.curate.rewriting.spans import fixed_spans, lost_spans, without_spans
from foresail.curate.rewriting.wording import lost_constraint, lost_unit, meta_talk, repeated, stops_asking

QUOTED = re.compile(
    r"\"([^\"\n]{1,200})\"|\u201c([^\u201d\n]{1,200})\u201d|\u300c([^\u300d\n]{1,200})\u300d|\u00ab([^\u00bb\n]{1,200})\u00bb"
)
SHOWN = 100  # characters of a text in a detail
SHORT = 250  # characters that any rewriting may have
SURE = 0.9  # confidence from which on the language of a text is the best guess alone
LEAST_LETTERS = 30  # of a text whose language is asked for
GuessLanguage = Callable[[str], Guess]


@dataclass(frozen=True, kw_only=True)
class Rules:
    """`language`: the one that a style asks for; empty: as it was."""

    answer: str = ""  # may not stand in the rewriting
    language: str = ""
    names: bool = True
    more_quantities: bool = False
    most_alike: float = 0.9
    longest: float = 4.0  # times the original
    shortest: float = 0.25


def check_rewriting(before: str, after: str, rules: Rules, guess: GuessLanguage) -> Drop | None:
    """The first thing that is wrong, and where: cheap checks first."""
    return next(faults(before, after, rules, guess), None)


def faults(before: str, after: str, rules: Rules, guess: GuessLanguage) -> Iterator[Drop]:
    yield from faults_of_form(before, after, rules)
    old_spans, new_spans = fixed_spans(before), fixed_spans(after)
    if missing := lost_spans(old_spans, new_spans, after):
        yield Drop("lost_part", one_line(missing[0], SHOWN))
    if added := lost_spans(new_spans, old_spans, before):
        yield Drop("new_part", one_line(added[0], SHOWN))
    if missing := [quote for quote in quotes(before) if plain(quote) not in plain(after)]:
        yield Drop("lost_quote", one_line(missing[0], SHOWN))
    if changed := changed_option(before, after):
        yield Drop("changed_option", changed)
    old_languages, new_languages = languages_of(before, guess), languages_of(after, guess)
    expected = [rules.language] if rules.language else old_languages
    if expected and new_languages and not {*expected} & {*new_languages}:
        yield Drop("language", f"{expected[0]} became {new_languages[0]}")
    same_language = not rules.language or rules.language in old_languages
    yield from faults_of_numbers(
        without_spans(before, old_spans),
        without_spans(after, new_spans),
        rules,
        "en" if not old_languages or "en" in old_languages else old_languages[0],
        same_language,
    )
    if gives_answer(before, after, rules.answer):
        yield Drop("gives_answer", one_line(rules.answer, SHOWN))


def faults_of_form(before: str, after: str, rules: Rules) -> Iterator[Drop]:
    if not after.strip():
        yield Drop("empty")
    if odd := [character for character in after if is_odd(character)]:
        yield Drop("odd_characters", ascii(odd[0]))
    letters = len("".join(after.split())) / max(1, len("".join(before.split())))
    if not rules.shortest <= letters or (letters > rules.longest and len(after) > SHORT):
        yield Drop("length", f"{letters:.2f} times the original")
    if (again := repeated(after)) > repeated(before):
        yield Drop("said_twice", f"{again} sentences")
    if said := meta_talk(after, before):
        yield Drop("meta_talk", one_line(said, SHOWN))
    if (alike := chrf(after, before)) > rules.most_alike:
        yield Drop("copy", f"chrF {alike:.3f}")
    if stops_asking(before, after):
        yield Drop("no_question", one_line(after, SHOWN))


def faults_of_numbers(
    before: str, after: str, rules: Rules, language: str, same_language: bool
) -> Iterator[Drop]:
    """Of prose; `language` is the original's."""
    english = language == "en" and same_language
    words = language if same_language else ""
    old = find_quantities(before, words, loose=not english)
    new = find_quantities(after, words, loose=not english)
    if missing := lost_quantities(old, new):
        yield Drop("lost_quantity", f"{missing[0].text}, in: {one_line(after, SHOWN)}")
    if not rules.more_quantities and (added := new_quantities(old, new)):
        yield Drop("new_quantity", f"{added[0].text}, in: {one_line(after, SHOWN)}")
    if rules.names and same_language and (gone := lost_names(before, after, initial=english)):
        yield Drop("lost_name", gone[0])
    if english:
        if unit := lost_unit(before, old, after, new):
            yield Drop("lost_unit", unit)
        if constraint := lost_constraint(before, after):
            yield Drop("constraint", constraint)
        if exchanged := swapped(before, old, after, new):
            yield Drop("swapped", exchanged)


def gives_answer(before: str, after: str, answer: str) -> bool:
    """Whether the answer stands in the rewriting and not in the original; an option's letter says nothing."""
    bare = plain(answer)
    if not bare or is_letter(answer) or options_of(before):
        return False
    numbers = find_quantities(answer)
    if len(numbers) == 1 and numbers[0].text == answer.strip():
        old, new = find_quantities(before), find_quantities(after)
        return any(map(numbers[0].same, new)) and not any(map(numbers[0].same, old))
    pattern = re.compile(rf"(?<!\w){re.escape(bare)}(?!\w)" if bare.isascii() else re.escape(bare))
    return pattern.search(plain(after)) is not None and pattern.search(plain(before)) is None


def languages_of(text: str, guess: GuessLanguage) -> list[str]:
    """What the prose may be written in, the likeliest first; empty if it is too short to tell."""
    prose = without_spans(text, fixed_spans(text)).replace("\x00", " ")
    letters = sum(map(str.isalpha, prose))
    wide = sum(map(is_unspaced, prose))
    if letters + 2 * wide < LEAST_LETTERS:
        return []
    guessed = guess(prose)
    if guessed.best in (NONE, OTHER) and guessed.confidence < SURE:
        return []
    return [guessed.best] if guessed.confidence >= SURE else [guessed.best, guessed.second]


def quotes(text: str) -> list[str]:
    return [next(part for part in match.groups() if part) for match in QUOTED.finditer(text)]


def is_unspaced(character: str) -> bool:
    """Of Thai, Japanese or Chinese, which have no spaces between words."""
    return "\u0e00" <= character <= "\u0e7f" or "\u3040" <= character <= "\u9fff"


def is_odd(character: str) -> bool:
    """Control characters, surrogates, private ones."""
    return unicodedata.category(character) in ("Cc", "Cs", "Co") and character not in "\n\t\r"


def plain(text: str) -> str:
    """Case, spaces and a last full stop do not matter."""
    return " ".join(text.casefold().split()).strip(" .,!?")
