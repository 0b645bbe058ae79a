"""Tasks whose texts are lists: line retrieval, and RULER's common and frequent words.

The answer is a line's number, by its label, or the words that occur most often; a longer text has more lines or
words.
"""

from __future__ import annotations

import math
from random import Random

from foresail.data.long_context.fit import Encode, FittedText, fit
from foresail.data.long_context.item import Item, join
from foresail.data.long_context.words import MAX_KEYS, draw_codes, draw_keys, draw_letters

# Line retrieval.


def line_retrieval(rng: Random, length: int, depth: float, encode: Encode) -> Item:
    """Lines with a label and a number each; the question is the number of the line at `depth`."""
    num_keys = min(MAX_KEYS, max(8, length // 4))  # no line is as short as four tokens
    keys, codes = draw_keys(rng, num_keys), draw_codes(rng, num_keys)
    intro = "This is a register. Every line has a label and a number.\n"
    question = f"\nWhat is the number of line {keys[0]}?\nThe number of line {keys[0]} is"

    def write(others: int, padding: str) -> str:
        check_supply("line_retrieval", others + 1, num_keys)
        lines = [f"line {key}: {code}\n" for key, code in zip(keys, codes, strict=True)][: others + 1]
        place = round(depth * others)
        return intro + "".join([*lines[1 : place + 1], lines[0], *lines[place + 1 :]]) + padding + question

    fitted = fit(write, encode, length, what="line_retrieval", each=20)
    return finish("line_retrieval", fitted, (codes[0],), depth)


# Common words.

NUM_COMMON, COMMON_TIMES, OTHER_TIMES = 10, 30, 3
SHORT_LIST = 2 * NUM_COMMON * COMMON_TIMES


def common_words(rng: Random, length: int, encode: Encode) -> Item:
    """A numbered list in which ten words occur 30 times each and all others 3 times: which are the ten?

    A short text has fewer of both, see `word_counts`.
    """
    num_entries = max(16, length // 4)  # entries: none is as short as four tokens
    supply = min(
        MAX_KEYS, NUM_COMMON + max(min(num_entries, SHORT_LIST) // 2, num_entries // OTHER_TIMES) + 1
    )
    words, shuffling, fewest = draw_keys(rng, supply), rng.random(), 8

    def entries(count: int) -> list[str]:
        common, times, other_times = word_counts(count)
        others = count - common * times
        check_supply("cwe", common + math.ceil(others / other_times), supply)
        listed = [word for word in words[:common] for _ in range(times)]
        listed += [words[common + number // other_times] for number in range(others)]
        Random(shuffling).shuffle(listed)
        return listed

    def question(count: int) -> str:
        common = word_counts(count)[0]
        which = f"{common} words occur" if common > 1 else "word occurs"
        return f"\n\nWhich {which} most often in the list?\nMost often:"

    def write(more: int, padding: str) -> str:
        count = fewest + more
        listed = " ".join(f"{number}. {word}" for number, word in enumerate(entries(count), start=1))
        return f"This is a list of words.\n\n{listed}{padding}{question(count)}"

    fitted = fit(write, encode, length, what="cwe", each=10)
    return finish("cwe", fitted, tuple(words[: word_counts(fewest + fitted.units)[0]]), None)


def word_counts(entries: int) -> tuple[int, int, int]:
    """Of a list of so many entries: how many words are common, how often each occurs, and how often any other.

    RULER's ten words 30 times, others 3 times, where the common ones are at most half of the list; in shorter lists
    they are half of it, and others occur once: word_counts(64) -> (4, 8, 1).
    """
    if entries >= SHORT_LIST:
        return NUM_COMMON, COMMON_TIMES, OTHER_TIMES
    common = max(1, min(NUM_COMMON, entries // 16))
    return common, entries // 2 // common, 1


# Frequent words.

ALPHA, NUM_FREQUENT, CODED_LENGTH, NOISE = 2.0, 3, 6, "..."
SMALLEST_TEXT = 40  # entries from which the third word is more frequent than the fourth
CONSONANTS = "bcdfghjklmnpqrstvwxz"  # no word of the question is made of them
ZETA = math.fsum(rank**-ALPHA for rank in range(1, 100_000))


def frequent_words(rng: Random, length: int, encode: Encode) -> Item:
    """Coded words whose frequencies fall as rank**-2; the first rank is noise, and the next three are asked for."""
    words = draw_letters(rng, length, length=CODED_LENGTH, alphabet=CONSONANTS)
    shuffling = rng.random()

    def write(more: int, padding: str) -> str:
        listed = rank_words(words, SMALLEST_TEXT + more)
        Random(shuffling).shuffle(listed)
        question = f"\n\nWhich {NUM_FREQUENT} words occur most often in the text?\nMost often:"
        return f"This is a coded text. The dots mean nothing.\n\n{' '.join(listed)}{padding}{question}"

    fitted = fit(write, encode, length, what="fwe", each=5)
    return finish("fwe", fitted, tuple(words[:NUM_FREQUENT]), None)


def rank_words(words: list[str], entries: int) -> list[str]:
    """So many entries, by rank: noise, then words, each as often as zeta's law says and at least once."""
    listed: list[str] = []
    for number, word in enumerate([NOISE, *words], start=1):
        exact = entries * number**-ALPHA / ZETA
        # rounded down after the answers, so that no other word is as frequent as the last answer
        times = round(exact) if number <= NUM_FREQUENT + 1 else max(1, math.floor(exact))
        listed += [word] * min(times, entries - len(listed))
        if len(listed) == entries:
            break
    return listed


def finish(task: str, fitted: FittedText, answers: tuple[str, ...], depth: float | None) -> Item:
    return Item(
        task=task, prompt=fitted.text, ids=fitted.ids, answers=answers, solution=join(answers), depth=depth
    )


def check_supply(task: str, required: int, available: int) -> None:
    if required > available:
        raise ValueError(
            f"{task} wants {required} different labels and has {available}; ask for a shorter text"
        )
