"""Counts, heaviest continuations and drafts against a trie that writes every substring down."""

from __future__ import annotations

import gzip
import json
import random
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path

import pytest
from small_rollouts import tiny_engine

from foresail.engine.noise import noise_key
from foresail.engine.request import Draft, Request
from foresail.recipe.parts import Sampling
from foresail.rollout.drafts.drafting import GroupDrafts
from foresail.rollout.drafts.rows import TOKENS
from foresail.rollout.drafts.suffixes import (
    BUCKETS,
    COUNT,
    EDGES,
    HEAVIEST,
    NEXT,
    NONE,
    ROOM_PER_TOKEN,
    ROOT,
    STATE_SIZE,
    TARGET,
    TOKEN,
    USED,
    find,
)

Text = tuple[int, ...]
LEAST = 0.1
TRACE = Path(__file__).parents[3] / "shared/data/traces/qwen_math_100x8.jsonl.gz"


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
        return max(paths, key=lambda found: sum(chance for _, chance in found[1]), default=((), []))


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


def state_of(m: Sequence[int], string: Text) -> int | None:
    state = ROOT
    for token in string:
        edge = find(m, state, token)
        if edge == NONE:
            return None
        state = m[edge + TARGET]
    return state


def edges_of(m: Sequence[int], state: int) -> dict[int, int]:
    found = {}
    edge = m[state + EDGES]
    while edge != NONE:
        child = m[edge + TARGET]
        found[int(m[child + TOKEN])] = int(m[child + COUNT])
        edge = m[edge + NEXT]
    return found


@pytest.mark.parametrize(("seed", "alphabet", "window"), CASES)
def test_a_path_is_the_one_brute_force_finds(seed: int, alphabet: int, window: int) -> None:
    drafts, tries = grown(seed, alphabet, window)
    numbers, found = random.Random(seed), 0
    for _ in range(30):
        feed(numbers, drafts, tries, alphabet)
        for group, trie in tries.items():
            for name in trie.texts:
                most = numbers.randrange(1, 9)
                guesses = drafts.draft_rows([drafts.join(group, name)], most)
                size = guesses.sizes_R[0]
                _, path = trie.draft(name, most)
                assert guesses.tokens_RK[0, :size].tolist() == [token for token, _ in path]
                assert guesses.chances_RK[0, :size].tolist() == pytest.approx([chance for _, chance in path])
                found += size
    assert found > 100


@pytest.mark.parametrize(("seed", "alphabet", "window"), CASES)
def test_a_tree_without_a_limit_of_paths_holds_the_likeliest_continuations(
    seed: int, alphabet: int, window: int
) -> None:
    drafts, tries = grown(seed, alphabet, window)
    for group, trie in tries.items():
        for name in trie.texts:
            start, path = trie.draft(name, 12)
            guesses = drafts.draft_rows([drafts.join(group, name)], 12, paths=16)
            size = guesses.sizes_R[0]
            chances = sorted(guesses.chances_RK[0, :size].tolist(), reverse=True)
            expected = sorted(all_chances(trie, start, min(12, len(start))), reverse=True) if path else []
            assert chances == pytest.approx(expected[:12])


def all_chances(trie: Trie, string: Text, limit: int, chance: float = 1.0) -> list[float]:
    """Of every continuation that is likely enough and no longer than the limit."""
    if limit == 0:
        return []
    likely = [(token, chance * share) for token, share in trie.children(string).items()]
    likely = [(token, chance) for token, chance in likely if chance >= LEAST]
    deeper = [all_chances(trie, (*string, token), limit - 1, chance) for token, chance in likely]
    return [chance for _, chance in likely] + [chance for chances in deeper for chance in chances]


@pytest.mark.parametrize("paths", [2, 3])
def test_a_tree_has_no_more_leaves_than_paths_and_a_second_path_is_used(paths: int) -> None:
    drafts, tries = grown(3, 5, 8, chunks=80)
    most_leaves = 0
    for group, trie in tries.items():
        for name in trie.texts:
            draft = drafts.draft(group, name, max_tokens=12, paths=paths)
            if draft is not None:
                parents = draft.parents or tuple(range(-1, len(draft.tokens) - 1))
                leaves = len(draft.tokens) - len({parent for parent in parents if parent >= 0})
                assert leaves <= paths
                most_leaves = max(leaves, most_leaves)
    assert most_leaves == paths


def test_a_sibling_is_quoted_from_the_first_token_on() -> None:
    drafts = GroupDrafts()
    drafts.register(17, prompt=[1, 2, 3])
    drafts.append(17, "17.0", 0, [10, 11, 12, 13, 14])
    assert drafts.draft(17, "17.1", max_tokens=3) == Draft(tokens=(10, 11, 12))
    drafts.append(17, "17.1", 0, [10, 11])
    assert drafts.draft(17, "17.1", max_tokens=8) == Draft(tokens=(12, 13, 14))
    assert drafts.draft(17, "17.1", [12, 13]) == Draft(tokens=(14,))
    assert drafts.draft(17, "17.1", [99]) is None


def test_where_siblings_disagree_the_majority_comes_first_and_the_others_as_further_paths() -> None:
    drafts = GroupDrafts()
    drafts.register(0, prompt=[1])
    for sample, tokens in enumerate([[5, 6], [7, 8], [5, 6], [5, 6]]):
        drafts.append(0, f"0.{sample}", 0, tokens)
    assert drafts.draft(0, "0.4", max_tokens=4) == Draft(
        tokens=(5,)
    )  # as long as what it follows: the prompt
    assert drafts.draft(0, "0.4", max_tokens=4, paths=2) == Draft(tokens=(5, 7), parents=(-1, -1))


def test_groups_do_not_hear_each_other() -> None:
    drafts = GroupDrafts()
    drafts.register(0, prompt=[1, 2])
    drafts.register(1, prompt=[1, 2])
    drafts.append(0, "0.0", 0, [3, 4, 5])
    assert drafts.draft(1, "1.0") is None


def test_telling_twice_changes_nothing_and_a_gap_is_reported() -> None:
    numbers = random.Random(5)
    text = numbers.choices(range(4), k=200)
    once, often = GroupDrafts(window=4), GroupDrafts(window=4)
    for drafts in (once, often):
        drafts.register(0, prompt=[1, 2])
    known = 0
    while known < len(text):
        start = numbers.randrange(known + 4)
        tokens = text[start : start + numbers.randrange(9)]
        answer = often.append(0, "0.0", start, tokens)
        known = known if start > known else max(known, start + len(tokens))
        assert answer == known
    once.append(0, "0.0", 0, text)
    counts = all_counts(once, length=5)
    assert counts == all_counts(often, length=5)
    assert sum(count for string, count in counts.items() if len(string) == 1) == 2 + len(text)


def all_counts(drafts: GroupDrafts, length: int) -> dict[Text, int]:
    """Of every string in group 0 up to a length."""
    m, counts, last = drafts._slab(0), {}, {(): 0}
    for _ in range(length):
        last = {
            (*string, token): count
            for string in last
            for token, count in edges_of(m, state_of(m, string) or ROOT).items()
        }
        counts |= last
    return counts


def test_many_rows_at_once_are_the_same_as_one_by_one() -> None:
    numbers = random.Random(2)
    single, batched = GroupDrafts(), GroupDrafts()
    for drafts in (single, batched):
        for group in range(5):
            drafts.register(group, prompt=[group, 1, 2])
    asked = [(group, f"{group}.{sample}") for group in range(5) for sample in range(4)]
    rows = [batched.join(group, name) for group, name in asked]
    for group, name in asked:
        single.join(group, name)
    known = dict.fromkeys(asked, 0)
    for _ in range(30):
        chunks = [numbers.choices(range(3), k=numbers.randrange(4)) for _ in asked]
        before = [known[ask] for ask in asked]
        batched.append_rows(
            rows, before, [len(chunk) for chunk in chunks], [token for chunk in chunks for token in chunk]
        )
        for ask, chunk in zip(asked, chunks, strict=True):
            known[ask] = single.append(*ask, known[ask], chunk)
        assert batched.draft_rows(rows, 6, paths=2).drafts() == [
            single.draft(*ask, max_tokens=6, paths=2) for ask in asked
        ]


def test_a_dropped_group_leaves_its_memory_to_the_next() -> None:
    drafts = GroupDrafts()
    sizes = []
    for group in range(20):
        drafts.register(group, prompt=[1, 2, 3])
        drafts.append(group, "a", 0, random.Random(group).choices(range(50), k=3000))
        drafts.drop(group)
        sizes.append(len(drafts.slabs.memory))
    assert sizes[-1] == sizes[0]
    with pytest.raises(ValueError, match="group 3 is not known"):
        drafts.append(3, "a", 0, [1])


@pytest.mark.parametrize("alphabet", [1, 2, 50])
def test_no_text_takes_more_than_the_room_of_its_tokens(alphabet: int) -> None:
    # Forty requests branch off behind a prompt of one repeated token: the most edges a single token can ask for.
    drafts = GroupDrafts(window=40)
    drafts.register(0, prompt=[0] * 60)
    for sample in range(40):
        drafts.append(0, str(sample), 0, [1 + sample % alphabet])
        m, tokens = drafts._slab(0), drafts.groups.numbers[0, TOKENS]
        assert m[USED] <= ROOT + STATE_SIZE + tokens * ROOM_PER_TOKEN <= m[BUCKETS]


def test_a_text_that_repeats_itself_is_counted_no_further_than_the_window() -> None:
    # Else every token of it would walk over as many states as there were tokens before.
    drafts = GroupDrafts(window=4)
    drafts.register(0)
    drafts.append(0, "a", 0, [7] * 100)
    m = drafts._slab(0)
    counts = [m[(state_of(m, (7,) * length) or NONE) + COUNT] for length in range(1, 101)]
    assert counts == [100, 99, 98, 97, 96] + [0] * 95


def test_a_gap_in_one_row_does_not_touch_the_next() -> None:
    drafts = GroupDrafts()
    drafts.register(0, prompt=[1])
    rows = [drafts.join(0, name) for name in "ab"]
    assert drafts.append_rows(rows, [5, 0], [2, 3], [7, 8, 4, 5, 6]).tolist() == [0, 3]
    assert drafts.draft(0, "a", [4, 5]) == Draft(tokens=(6,))
    assert drafts.draft(0, "a", [7]) is None


def test_drafts_change_no_token_and_save_steps() -> None:
    requests = [
        Request(
            id=f"0.{sample}",
            prompt=(3, 1, 4),
            key=noise_key(0, 0, "problem", sample),
            sampling=Sampling(max_new_tokens=40, temperature=0.5),
        )
        for sample in range(4)
    ]
    plain = {completion.request.id: completion.ids for completion in tiny_engine().generate(requests)}
    engine, drafts = tiny_engine(), GroupDrafts(window=8)
    drafts.register(0, prompt=(3, 1, 4))
    for request in requests:
        engine.add(request)
    drawn, steps, known = {}, 0, dict.fromkeys(plain, 0)
    while engine.busy:
        guesses = {}
        for name in plain:
            tokens = engine.tokens(name)
            if tokens is not None:
                known[name] = drafts.append(0, name, known[name], tokens[3 + known[name] :])
                draft = drafts.draft(0, name, max_tokens=4, paths=2)
                guesses |= {name: draft} if draft else {}
        for completion in engine.step(engine.guess(guesses)):
            drawn[completion.request.id] = completion.ids
        steps += 1
    assert drawn == plain
    assert steps < 35  # one token a step would be 40


def test_on_real_text_drafts_get_longer_with_every_sibling_that_is_known() -> None:
    if not TRACE.exists():
        pytest.skip(f"{TRACE.name}, real groups of responses, is not here")
    rows = [json.loads(line) for line in gzip.decompress(TRACE.read_bytes()).splitlines()[:10]]
    numbers: dict[str, int] = {}
    groups = [
        [[numbers.setdefault(word, len(numbers)) for word in re.findall(r"\w+|\W", text)] for text in texts]
        for texts in (row["responses"] for row in rows)
    ]
    means = [tokens_per_step(groups, references) for references in (0, 1, 3, 7)]
    assert 1 < means[0] < means[1] < means[2] < means[3]


def tokens_per_step(groups: list[list[list[int]]], references: int) -> float:
    """With drafts of up to 8 that are accepted as far as the response says the same."""
    steps = tokens = 0
    for group, (text, *siblings) in enumerate(groups):
        drafts = GroupDrafts()
        drafts.register(group)
        for number, sibling in enumerate(siblings[:references]):
            drafts.append(group, f"sibling {number}", 0, sibling)
        drawn = 0
        while drawn < len(text):
            draft = drafts.draft(group, "text", max_tokens=8)
            guesses = draft.tokens if draft else ()
            right = takewhile(lambda pair: pair[0] == pair[1], zip(guesses, text[drawn:], strict=False))
            count = min(sum(1 for _ in right) + 1, len(text) - drawn)
            drawn = drafts.append(group, "text", drawn, text[drawn : drawn + count])
            steps += 1
        tokens += len(text)
    return tokens / steps


WITHOUT_NUMBA = """
import sys
sys.modules["numba"] = None
from foresail.rollout.drafts.compiled import numba
from foresail.rollout.drafts.drafting import GroupDrafts
assert numba is None
"""
DRAFTING = """
import random
from foresail.rollout.drafts.drafting import GroupDrafts
numbers, drafts = random.Random(0), GroupDrafts(window=6)
drafts.register(0, [numbers.randrange(4) for _ in range(9)])
for turn in range(60):
    name = f"0.{numbers.randrange(5)}"
    row = drafts.join(0, name)
    drafts.append(0, name, int(drafts.known([row])[0]), [numbers.randrange(4) for _ in range(3)])
    print(drafts.draft(0, name, max_tokens=6, paths=1 + turn % 3))
"""


def test_plain_python_gives_what_machine_code_gives() -> None:
    """For machines without numba; where this one has none either, both are plain."""
    said = [
        subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout
        for program in (DRAFTING, WITHOUT_NUMBA + DRAFTING)
    ]
    assert said[0] == said[1] and said[0].count("Draft(") > 30
