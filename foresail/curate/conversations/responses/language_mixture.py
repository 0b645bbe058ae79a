"""Whether sentences of a response, or all of it, are in a language that nobody asked for.

    mixture.sentence(response, languages)   -> "zh, and the response is en: 雨是从云中落下的水。"
    mixture.other(response, languages)      -> "en, and the question is id: Rain is water that …"

The languages that a response may have: those of the conversation's questions, of its own larger part, and those
that a question names; any, where a question asks for a translation. Code, formulas, addresses, quotations, what
stands in brackets and short sentences are not looked at. Languages that share most words, such as Indonesian and
Malay, count as one for a sentence.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

from foresail.curate.conversations.responses.parts import (
    HAN,
    THAI,
    UNSPACED,
    Response,
    excerpt,
    read_response,
    words_in,
)
from foresail.curate.conversations.responses.words import compiled, words_of
from foresail.curate.heuristics.rules import read_rules
from foresail.curate.language.guess import NONE, OTHER, Guess
from foresail.curate.language.sentences import split_sentences
from foresail.curate.language.step import Model

SURE = 0.9  # of a sentence
SURE_OF_ALL = 0.8  # of a response or a question
SURE_OF_CLOSE = 0.995  # between languages that share most words
SHORTEST = 30  # letters of a sentence; of Han and Thai see letters_of
SHORTEST_ANSWER = 40
LONG = 300  # letters, from which close languages are told apart
WORDS = 6
QUESTION = 4000  # letters that are looked at
SHORTEST_QUESTION = 20
SCRIPT_LETTERS = 8  # of Thai or Han, that make a text Thai or Chinese in part
UNMISTAKABLE = (("th", THAI), ("zh", HAN))
WHOLE = 0.8  # share of a response that is in one language
SENTENCES = 400  # that are looked at
CLOSE = (
    frozenset(["id", "ms"]),
    frozenset(["es", "pt"]),
    frozenset(["cs", "pl"]),
    frozenset(["de", "nl"]),
    frozenset(["es", "it"]),
    frozenset(["it", "pt"]),
    frozenset(["it", "ro"]),
    frozenset(["id", "tl"]),
    frozenset(["ms", "tl"]),
)
QUOTED = re.compile(
    r"\"[^\"\n]{1,1000}\"|“[^”\n]{1,1000}”|«[^»\n]{1,1000}»|「[^」\n]{1,1000}」|『[^』\n]{1,1000}』|《[^》\n]{1,1000}》"
    r"|‘[^’\n]{1,1000}’|(?<!\w)'[^'\n]{1,1000}'(?!\w)|\([^()\n]{1,600}\)|（[^（）\n]{1,600}）|\[[^\[\]\n]{1,600}\]"
    r"|【[^【】\n]{1,600}】|(?<![*\w])[*_]{1,3}[^*_\n]{1,300}[*_]{1,3}"
)
NAME_WORDS = 0.6  # share of words with a capital: a title or names


@dataclass(frozen=True)
class Languages:
    """`spoken` in the questions, for sure, and `maybe`; `named` by them. `is_any`: all are allowed.

    `letters`: of the questions.
    """

    spoken: frozenset[str]
    maybe: frozenset[str]
    named: frozenset[str]
    is_any: bool
    letters: int = 0


@dataclass(frozen=True)
class Mixture:
    model: Model

    def asked(self, questions: Sequence[str]) -> Languages:
        spoken: set[str] = set()
        maybe: set[str] = set()
        named: set[str] = set()
        for question in questions:
            prose = read_response(question[:QUESTION]).prose
            others = UNSPACED.sub(" ", prose)  # the model reads one script of a text
            whole = [prose] if others == prose else [prose, others]
            for place, part in enumerate([*whole, *split_sentences(prose)[:20]]):
                if weight_of(part) >= SHORTEST_QUESTION:
                    guess = self.model.guess(part)
                    maybe |= {guess.best, guess.second} if guess.second_confidence >= 0.02 else {guess.best}
                    is_sure = sureness(guess) >= SURE_OF_ALL and in_its_script(part, guess.best)
                    if place < len(whole) and is_sure:
                        spoken.add(guess.best)
            spoken |= {
                name
                for name, letter in (("th", THAI), ("zh", HAN))
                if len(letter.findall(prose)) >= SCRIPT_LETTERS
            }
            named |= named_in(question)
        return Languages(
            spoken=frozenset(spoken - {NONE}),
            maybe=frozenset(maybe - {NONE, OTHER}),
            named=frozenset(named),
            is_any=any(map(asks_for_any, questions)),
            letters=sum(map(weight_of, questions)),
        )

    def sentence(self, response: Response, languages: Languages) -> str:
        """The first sentence in a language that is none of these, with its code; or ""."""
        if languages.is_any:
            return ""
        prose = bare_prose(response)
        if weight_of(prose) < 2 * SHORTEST:
            return ""
        guesses = []
        for sentence in split_sentences(prose)[:SENTENCES]:
            weight = weight_of(sentence)
            if weight >= SHORTEST // 2:
                guess = self.model.guess(sentence)
                guesses.append((sentence, weight, guess))
        weights: dict[str, int] = {}
        for _, weight, guess in guesses:
            if sureness(guess) >= SURE:
                weights[guess.best] = weights.get(guess.best, 0) + weight
        if not weights:
            return ""
        home = languages.spoken | languages.maybe | languages.named
        main = max(weights, key=lambda name: (weights[name], name))
        total = sum(weight for _, weight, _ in guesses)
        if languages.spoken and main not in home and weights[main] < WHOLE * total:
            # One long sentence may outweigh a short response.
            main = max(languages.spoken, key=lambda name: (weights.get(name, 0), name))
        allowed = home | {main, NONE}
        for sentence, weight, guess in guesses:
            if sureness(guess) < SURE or guess.best in allowed or weight < SHORTEST:
                continue
            if any(is_close(guess.best, name) for name in allowed):
                continue
            if guess.best == OTHER and not is_other_script(sentence, main):
                continue
            if words_in(sentence) >= WORDS and speaks(sentence, guess.best, main) and not is_names(sentence):
                return f"{guess.best}, and the response is {main}: {excerpt(sentence)}"
        return ""

    def other(self, response: Response, languages: Languages) -> str:
        """The response's language, where it is none of these; or ""."""
        if languages.is_any or not languages.spoken:
            return ""
        prose = bare_prose(response)
        weight = weight_of(prose)
        if weight < SHORTEST_ANSWER or words_in(prose) < WORDS or is_names(prose):
            return ""
        guess = self.model.guess(prose)
        allowed = languages.spoken | languages.maybe | languages.named
        if guess.best in (NONE, OTHER) or guess.best in allowed:
            return ""
        if any(
            name in allowed and len(letter.findall(prose)) >= SCRIPT_LETTERS for name, letter in UNMISTAKABLE
        ):
            return ""
        if OTHER in allowed or not any(speaks(prose, guess.best, name) for name in languages.spoken):
            return ""
        needed = SURE_OF_ALL
        if any(is_close(guess.best, name) for name in allowed):
            needed = SURE_OF_CLOSE
            if weight < LONG or languages.letters < LONG // 2:
                return ""
        if (guess.confidence if needed == SURE_OF_CLOSE else sureness(guess)) < needed:
            return ""
        asked = ", ".join(sorted(languages.spoken))
        return f"{guess.best}, and the question is {asked}: {excerpt(prose, 60)}"


def bare_prose(response: Response) -> str:
    """Without quotations, brackets and words in italics."""
    return QUOTED.sub(" ", response.prose)


def in_its_script(text: str, language: str) -> bool:
    """The model reads one script of a text; "th" for a text without Thai letters is a slip."""
    if language == "th":
        return THAI.search(text) is not None
    return language != "zh" or HAN.search(text) is not None


def speaks(text: str, language: str, main: str) -> bool:
    """Whether words that every text of the language has stand there, and more than those of the main one."""
    if not in_its_script(text, language):
        return False
    own, others = stop_words().get(language), stop_words().get(main, frozenset())
    if own is None or language in ("th", "zh"):
        return True
    words = re.findall(r"[^\W\d_]+", text[:2000])
    count = sum(word in own for word in words)
    return count >= 2 and count > sum(word in others for word in words)


@cache
def stop_words() -> dict[str, frozenset[str]]:
    return {name: frozenset(words) for name, words in read_rules("").stop_words.items()}


def sureness(guess: Guess) -> float:
    """That it is this language or one that shares most words with it."""
    return guess.confidence + (guess.second_confidence if is_close(guess.best, guess.second) else 0)


def is_close(one: str, other: str) -> bool:
    return one != other and frozenset([one, other]) in close_pairs()


@cache
def close_pairs() -> frozenset[frozenset[str]]:
    return frozenset(CLOSE)


def weight_of(text: str) -> int:
    """Letters, of which one of Han counts as three."""
    letters = sum(map(str.isalpha, text))
    return letters + 2 * len(HAN.findall(text)) if not text.isascii() else letters


def is_other_script(sentence: str, main: str) -> bool:
    latin = len(re.findall("[A-Za-z\u00c0-\u024f\u1e00-\u1eff]", sentence))
    letters = sum(map(str.isalpha, sentence))
    return (
        latin < 0.3 * letters
        if main not in ("zh", "th")
        else latin < 0.3 * letters and not HAN.search(sentence)
    )


def is_names(text: str) -> bool:
    """A title, or a list of names: most words have a capital."""
    words = re.findall(r"[^\W\d_]+", text[:2000])
    capitals = sum(word[0].isupper() for word in words)
    return bool(words) and capitals >= NAME_WORDS * len(words)


def named_in(question: str) -> frozenset[str]:
    return frozenset(name for name, pattern in name_patterns().items() if pattern.search(question))


@cache
def name_patterns() -> dict[str, re.Pattern[str]]:
    return {name: compiled(words) for name, words in words_of("languages.toml")["names"].items()}


def asks_for_any(question: str) -> bool:
    return any_pattern().search(question) is not None


@cache
def any_pattern() -> re.Pattern[str]:
    return compiled(words_of("languages.toml")["any"]["words"])


def scripts_of(languages: Iterable[str]) -> frozenset[str]:
    return frozenset(SCRIPTS.get(language, "latin") for language in languages)


SCRIPTS = {
    "zh": "han", "ja": "han", "th": "thai", "ko": "hangul", "ru": "cyrillic", "ar": "arabic", "hi": "devanagari",
    "el": "greek",
}  # fmt: skip
