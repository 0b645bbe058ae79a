"""Counts, heaviest continuations and drafts against a trie that writes every substring down."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import reduce
from operator import add

import pytest
from automaton_readers import draft, edges_of, state_of

from foresail.rollout.drafts.drafting import GroupDrafts
from foresail.rollout.drafts.suffixes import (
    BUCKETS,
    COUNT,
    HEAVIEST,
    NONE,
    TOKEN,
    USED,
)

Text = tuple[int, ...]
LEAST = 0.1


class Trie:
    """Every string of up to window + 1 tokens with its count, and after each its heaviest token."""

    def __init__(self, window: int, prompt: Text) -> None:
        self.window, self.prompt = window, prompt
        self.counts: Counter[Text] = Counter()
        self.heaviest: dict[Text, int] = {}
        self.texts: dict[str, Text] = {}
        for end in range(1, len(prompt)):
            self.count(prompt[:end])

    def count(self, text: Text) -> None:
        strings = [text[-length:] for length in range(1, min(len(text), self.window + 1) + 1)]
        self.counts.update([(), *strings])
        for string in strings:
            before, token = string[:-1], string[-1]
            best = self.heaviest.get(before)
            if best is None or self.counts[string] >= self.counts[(*before, best)]:
                self.heaviest[before] = token

    def append(self, request_id: str, tokens: Sequence[int]) -> None:
        if request_id not in self.texts:
            self.texts[request_id] = self.prompt[-self.window - 1 :]
            if self.prompt:
                self.count(self.texts[request_id])
        for token in tokens:
            self.texts[request_id] += (token,)
            self.count(self.texts[request_id])

    def children(self, string: Text) -> dict[int, float]:
        """Token -> its share after a string."""
        string = string[-self.window :]
        after = {token: self.counts[(*string, token)] for token in range(12)}
        return {token: min(1.0, count / self.counts[string]) for token, count in after.items() if count}

    def path(self, string: Text, limit: int) -> list[tuple[int, float]]:
        path: list[tuple[int, float]] = []
        chance = 1.0
        while len(path) < limit and string[-self.window :] in self.heaviest:
            token = self.heaviest[string[-self.window :]]
            chance *= self.children(string)[token]
            if chance < LEAST:
                break
            path.append((token, chance))
            string += (token,)
        return path

    def draft(self, request_id: str, most: int) -> tuple[Text, list[tuple[int, float]]]:
        """The end of the text that is continued best, and how."""
        text = self.texts[request_id]
        ends = [text[-length:] for length in range(min(len(text), self.window), 0, -1)]
        paths = [(end, self.path(end, min(most, len(end)))) for end in ends]
        return max(paths, key=lambda found: plain_sum(chance for _, chance in found[1]), default=((), []))


def plain_sum(values: Iterable[float]) -> float:
    """One by one, as machine code adds: from Python 3.12 on, `sum` makes up for rounding, which decides ties."""
    return reduce(add, values, 0.0)


def random_prompt(numbers: random.Random, alphabet: int) -> Text:
    return tuple(numbers.choices(range(alphabet), k=numbers.choice([0, 1, 2, 5, 40])))


def feed(numbers: random.Random, drafts: GroupDrafts, tries: dict[int, Trie], alphabet: int) -> None:
    """One random chunk: random tokens, a repetition, or a copy from a sibling."""
    group = numbers.choice([*tries])
    trie, name = tries[group], f"{group}.{numbers.randrange(3)}"
    siblings = [*trie.texts.values()]
    kind = numbers.randrange(3)
    if kind == 0 and siblings:
        text = numbers.choice(siblings)
        start = numbers.randrange(len(text)) if text else 0
        tokens = text[start : start + numbers.randrange(1, 20)]
    elif kind == 1:
        tokens = (numbers.randrange(alphabet),) * numbers.randrange(1, 12)
    else:
        tokens = tuple(numbers.choices(range(alphabet), k=numbers.randrange(1, 6)))
    known = len(trie.texts.get(name, ())) - len(trie.prompt[-trie.window - 1 :]) if name in trie.texts else 0
    assert drafts.append(group, name, known, tokens) == known + len(tokens)
    trie.append(name, tokens)


def grown(seed: int, alphabet: int, window: int, chunks: int = 40) -> tuple[GroupDrafts, dict[int, Trie]]:
    """Three groups of three requests, fed in turns."""
    numbers = random.Random(seed)
    drafts, tries = GroupDrafts(window=window, least=LEAST), {}
    for group in range(3):
        prompt = random_prompt(numbers, alphabet)
        drafts.register(group, prompt)
        tries[group] = Trie(window, prompt)
    for _ in range(chunks):
        feed(numbers, drafts, tries, alphabet)
    return drafts, tries


CASES = [(seed, alphabet, window) for seed, alphabet in enumerate([1, 2, 2, 3, 10]) for window in (1, 3, 8)]


@pytest.mark.parametrize(("seed", "alphabet", "window"), CASES)
def test_every_substring_has_the_count_and_the_children_of_a_brute_force_trie(
    seed: int, alphabet: int, window: int
) -> None:
    drafts, tries = grown(seed, alphabet, window)
    for group, trie in tries.items():
        m = drafts._slab(drafts.siblings[group].number)
        for string in trie.counts:
            state = state_of(m, string)
            assert state is not None
            assert m[state + COUNT] == trie.counts[string]
            if len(string) <= window:
                assert edges_of(m, state) == {
                    token: trie.counts[(*string, token)] for token in trie.children(string)
                }
                assert (m[state + HEAVIEST] == NONE) == (string not in trie.heaviest)
                if string in trie.heaviest:
                    assert m[m[state + HEAVIEST] + TOKEN] == trie.heaviest[string]
        assert m[USED] <= m[BUCKETS]


@pytest.mark.parametrize(("seed", "alphabet", "window"), CASES)
def test_a_path_is_the_one_brute_force_finds(seed: int, alphabet: int, window: int) -> None:
    drafts, tries = grown(seed, alphabet, window)
    numbers, found = random.Random(seed), 0
    for _ in range(30):
        feed(numbers, drafts, tries, alphabet)
        for group, trie in tries.items():
            for name in trie.texts:
                most = numbers.randrange(1, 9)
                guess = draft(drafts, group, name, most)
                _, path = trie.draft(name, most)
                assert guess == tuple(token for token, _ in path)
                found += len(guess)
    assert found > 100
