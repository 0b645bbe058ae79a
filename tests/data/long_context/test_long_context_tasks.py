"""Long-context tasks: exact lengths, needles where they should be, and one answer to each question."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import islice, pairwise
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foresail.data.long_context.filler import TextFiller, made_filler, split_sentences
from foresail.data.long_context.fit import fit
from foresail.data.long_context.item import Item, recall
from foresail.data.long_context.lists import rank_words, word_counts
from foresail.data.long_context.tasks import TASKS, WITHOUT_DEPTH, make_item, spread_depths
from foresail.data.long_context.words import ADJECTIVES, NOUNS
from foresail.tokenizer.train import train_bpe

TEXT = [f"{' '.join(islice(made_filler(Random(0)), 400))} access codes of 0123456789 VAR line register"]
BPE = train_bpe(TEXT, vocab_size=420)


def by_pairs(text: str) -> list[str]:
    """A tokenizer whose tokens depend on where a word begins: two letters each."""
    return [piece for word in re.findall(r" ?\S+|\s", text) for piece in re.findall("..?", word, re.DOTALL)]


TOKENIZERS: dict[str, Callable[[str], Sequence]] = {
    "bpe": BPE.encode,
    "bytes": str.encode,
    "words": lambda text: re.findall(r"\w+|[^\w]", text),
    "pairs": by_pairs,
}
CORPUS = TextFiller(
    ["It rained in 1904327. The open-door policy of VAR ABCDE failed!", "Codes? Few of them.", "He left"]
)
EXPECTED = {"niah_multivalue": 4, "niah_multiquery": 4, "vt": 5, "fwe": 3}

tasks = st.sampled_from(TASKS)
tokenizers = st.sampled_from(sorted(TOKENIZERS))
many = settings(max_examples=60, deadline=None)


def make(task: str, tokenizer: str = "bpe", **given: object) -> Item:
    asked = {"seed": 0, "index": 0, "length": 900, "depth": 0.5} | given
    return make_item(task, encode=TOKENIZERS[tokenizer], **asked)  # type: ignore[arg-type]


@many
@given(tasks, tokenizers, st.integers(1300, 2600), st.integers(0, 10**6), st.floats(0, 1), st.booleans())
def test_an_item_has_exactly_the_asked_length_and_every_answer_once(
    task: str, tokenizer: str, length: int, index: int, depth: float, corpus: bool
) -> None:
    item = make(
        task,
        tokenizer,
        length=length,
        index=index,
        depth=depth,
        filler=CORPUS if corpus else made_filler,
    )
    assert len(item.ids) == length
    assert list(item.ids) == list(TOKENIZERS[tokenizer](item.prompt))
    assert len(set(item.answers)) == len(item.answers) == EXPECTED.get(task, len(item.answers))
    assert recall(item.solution, item.answers) == 1
    if task.startswith("niah") or task == "line_retrieval":
        assert all(item.prompt.count(code) == 1 for code in item.answers)
        assert Counter(re.findall(r"\b\d{7}\b", item.prompt))[item.answers[0]] == 1


@many
@given(st.sampled_from(("niah_single", "niah_multikey")), st.floats(0, 1), st.integers(0, 999), st.booleans())
def test_a_needle_stands_at_its_depth_up_to_half_a_sentence(
    task: str, depth: float, index: int, corpus: bool
) -> None:
    item = make(task, length=1500, depth=depth, index=index, filler=CORPUS if corpus else made_filler)
    body = item.prompt.split("\n\n")[1]
    before, after = (
        re.sub(r"The access code of \S+ is \d+\.", "", part).split() for part in body.split(item.answers[0])
    )
    hay = len(before) - 6 + len(after) - 1  # "The access code of KEY is" and the full stop
    assert abs(len(before) - 6 - depth * hay) <= 14
    assert item.depth == depth


@given(tasks, st.integers(0, 50), st.integers(0, 50))
@settings(max_examples=20, deadline=None)
def test_an_item_is_a_pure_function_of_what_is_asked(task: str, seed: int, index: int) -> None:
    assert make(task, seed=seed, index=index) == make(task, seed=seed, index=index)
    assert make(task, seed=seed, index=index).answers != make(task, seed=seed, index=index + 1).answers


@given(st.integers(0, 999))
@settings(max_examples=20, deadline=None)
def test_a_question_has_one_answer_in_the_text(index: int) -> None:
    multikey = make("niah_multikey", index=index)
    assert dict(needles(multikey.prompt))[asked_key(multikey.prompt)] == multikey.answers[0]
    assert len(needles(multikey.prompt)) == len(dict(needles(multikey.prompt))) == 4
    multivalue = make("niah_multivalue", index=index)
    assert needles(multivalue.prompt) == [(asked_key(multivalue.prompt), code) for code in multivalue.answers]
    multiquery = make("niah_multiquery", index=index)
    keys = re.findall(r"access codes of (.*)\?", multiquery.prompt)[0].split(" and ")
    assert [dict(needles(multiquery.prompt))[key] for key in keys] == [*multiquery.answers]
    lines = make("line_retrieval", index=index)
    labels = re.findall(r"^line (\S+): (\d+)$", lines.prompt, re.MULTILINE)
    assert len(dict(labels)) == len(labels) > 10
    assert dict(labels)[re.findall(r"of line (\S+)\?", lines.prompt)[0]] == lines.answers[0]


def needles(prompt: str) -> list[tuple[str, str]]:
    return re.findall(r"The access code of (\S+) is (\d+)\.", prompt)


def asked_key(prompt: str) -> str:
    return re.findall(r"access codes? of (\S+)\?", prompt)[0]


@given(st.integers(0, 999))
@settings(max_examples=20, deadline=None)
def test_variables_of_a_chain_are_assigned_in_order_and_nothing_else_is(index: int) -> None:
    item = make("vt", index=index)
    assigned = re.findall(r"VAR (\w+) = (?:VAR )?(\w+)\.", item.prompt)
    assert [name for name, _ in assigned] == [*item.answers]
    assert [source for _, source in assigned[1:]] == [*item.answers[:-1]]
    assert f"the value {assigned[0][1]}?" in item.prompt


@given(st.integers(0, 999), st.integers(900, 6000))
@settings(max_examples=20, deadline=None)
def test_the_words_asked_for_are_the_most_frequent_ones(index: int, length: int) -> None:
    common = make("cwe", index=index, length=length)
    counts = Counter(re.findall(r"\d+\. (\S+-\w+)", common.prompt))
    assert {word for word, _ in counts.most_common(len(common.answers))} == {*common.answers}
    assert len({counts[word] for word in common.answers}) == 1
    assert counts[common.answers[0]] > 2 * max(n for word, n in counts.items() if word not in common.answers)
    frequent = make("fwe", index=index, length=length)
    coded = Counter(re.findall(r"\b[b-df-hj-np-tv-z]{6}\b", frequent.prompt.split("\n\n")[1]))
    ranked = coded.most_common(4)
    assert [word for word, _ in ranked[:3]] == [*frequent.answers]
    assert all(more[1] > fewer[1] for more, fewer in pairwise(ranked))


@given(st.integers(40, 5000))
def test_the_third_frequent_word_is_more_frequent_than_the_fourth(entries: int) -> None:
    counts = Counter(rank_words([str(number) for number in range(entries)], entries))
    assert sum(counts.values()) == entries
    assert counts["0"] > counts["1"] > counts["2"] > counts["3"]


def test_a_long_list_has_the_papers_counts_and_a_short_one_fewer() -> None:
    assert word_counts(600) == word_counts(5000) == (10, 30, 3)
    assert word_counts(64) == (4, 8, 1)
    assert all(
        common * times <= entries / 2
        for entries in range(8, 600)
        for common, times, _ in [word_counts(entries)]
    )


def test_no_key_is_part_of_another() -> None:
    assert not [(a, b) for a in ADJECTIVES for b in ADJECTIVES if a != b and b.endswith(a)]
    # a noun that begins another would need an adjective that ends with its key's own
    assert len({*ADJECTIVES}) == len(ADJECTIVES) and len({*NOUNS}) == len(NOUNS)


def test_a_text_too_short_for_its_task_is_refused_with_the_shortest() -> None:
    with pytest.raises(ValueError, match=r"niah_single needs at least \d+ tokens .* and 20 were asked for"):
        make("niah_single", length=20)
    with pytest.raises(ValueError, match="cwe needs at least") as refused:
        make("cwe", length=20)
    shortest = int(str(refused.value).split()[4])
    assert len(make("cwe", length=shortest).ids) == shortest


def test_unknown_tasks_and_depths_are_refused() -> None:
    with pytest.raises(ValueError, match="there is no long-context task 'niah'; use some of niah_single"):
        make("niah")
    with pytest.raises(ValueError, match=r"depth 1.5 is not between 0"):
        make("niah_single", depth=1.5)
    with pytest.raises(ValueError, match="hold no sentence"):
        TextFiller([" "])


def test_what_a_tokenizer_cannot_pad_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot be made 101 tokens long"):
        fit(
            lambda units, pad: "ab" * units + pad,
            lambda text: [0] * (len(text) // 2 * 2),
            101,
            what="it",
            each=2,
        )


@given(st.text(alphabet="ab .!?\n", max_size=40))
def test_sentences_hold_all_words_of_their_text(text: str) -> None:
    assert " ".join(split_sentences(text)).split() == text.split()


def test_recall_is_the_share_of_answers_that_were_said() -> None:
    assert recall(" 4158302 and QKTRE", ["4158302", "9071365"]) == 0.5
    assert recall("qktre", ["QKTRE"]) == 1
    assert recall("", ["7"]) == 0


def test_depths_are_spread_from_the_first_to_the_last() -> None:
    assert spread_depths(3) == (0, 0.5, 1)
    assert spread_depths(1) == (0.5,)
    assert make("vt").depth is None and {*WITHOUT_DEPTH} < {*TASKS}
