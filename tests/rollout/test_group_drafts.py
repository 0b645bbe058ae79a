"""Drafts of whole groups: who is quoted, what is told twice, what memory is left, and what plain Python gives."""

from __future__ import annotations

import gzip
import json
import random
import re
import subprocess
import sys
from contextlib import redirect_stdout
from io import StringIO
from itertools import takewhile
from pathlib import Path

import pytest
from automaton_readers import draft, edges_of, state_of
from small_rollouts import tiny_engine

from foresail.engine.drafts import Draft
from foresail.engine.noise import noise_key
from foresail.engine.request import Request
from foresail.recipe.tables.parts import Sampling
from foresail.rollout.drafts.drafting import GroupDrafts
from foresail.rollout.drafts.rows import TOKENS
from foresail.rollout.drafts.suffixes import (
    BUCKETS,
    COUNT,
    NONE,
    ROOM_PER_TOKEN,
    ROOT,
    STATE_SIZE,
    USED,
)

Text = tuple[int, ...]
TRACE = Path(__file__).parents[3] / "shared/data/traces/qwen_math_100x8.jsonl.gz"


def test_a_sibling_is_quoted_from_the_first_token_on() -> None:
    drafts = GroupDrafts()
    drafts.register(17, prompt=[1, 2, 3])
    drafts.append(17, "17.0", 0, [10, 11, 12, 13, 14])
    assert draft(drafts, 17, "17.1", max_tokens=3) == (10, 11, 12)
    drafts.append(17, "17.1", 0, [10, 11])
    assert draft(drafts, 17, "17.1", max_tokens=8) == (12, 13, 14)
    drafts.append(17, "17.1", 2, [12, 13])
    assert draft(drafts, 17, "17.1") == (14,)
    drafts.append(17, "17.1", 4, [99])
    assert draft(drafts, 17, "17.1") == ()


def test_where_siblings_disagree_the_majority_is_quoted() -> None:
    drafts = GroupDrafts()
    drafts.register(0, prompt=[1])
    for sample, tokens in enumerate([[5, 6], [7, 8], [5, 6], [5, 6]]):
        drafts.append(0, f"0.{sample}", 0, tokens)
    assert draft(drafts, 0, "0.4", max_tokens=4) == (5,)  # as long as what it follows: the prompt


def test_groups_do_not_hear_each_other() -> None:
    drafts = GroupDrafts()
    drafts.register(0, prompt=[1, 2])
    drafts.register(1, prompt=[1, 2])
    drafts.append(0, "0.0", 0, [3, 4, 5])
    assert draft(drafts, 1, "1.0") == ()


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
        before = [known[spec] for spec in asked]
        batched.append_rows(
            rows, before, [len(chunk) for chunk in chunks], [token for chunk in chunks for token in chunk]
        )
        for spec, chunk in zip(asked, chunks, strict=True):
            known[spec] = single.append(*spec, known[spec], chunk)
        sizes, tokens = batched.draft_rows(rows, 6)
        together = [tuple(line[:size]) for size, line in zip(sizes.tolist(), tokens.tolist(), strict=True)]
        assert together == [draft(single, *spec, max_tokens=6) for spec in asked]


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
    for name, tokens in (("a", [4, 5]), ("c", [7])):
        drafts.append(0, name, 0, tokens)
    assert draft(drafts, 0, "a") == (6,)
    assert draft(drafts, 0, "c") == ()


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
                guess = draft(drafts, 0, name, max_tokens=4)
                guesses |= {name: Draft(tokens=guess)} if guess else {}
        for completion in engine.step(engine.drafts_by_slot(guesses)):
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
            guesses = draft(drafts, group, "text", max_tokens=8)
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
    sizes, tokens = drafts.draft_rows([row], 6)
    print("draft", tokens[0, : sizes[0]].tolist())
"""


def test_plain_python_gives_what_machine_code_gives() -> None:
    """For machines without numba; where this one has none either, both are plain."""
    here = StringIO()
    with redirect_stdout(here):
        exec(DRAFTING, {})
    said = here.getvalue()
    plain = subprocess.run(
        [sys.executable, "-c", WITHOUT_NUMBA + DRAFTING], check=True, capture_output=True, text=True
    )
    assert said == plain.stdout and said.count("draft [") - said.count("draft []") > 30
