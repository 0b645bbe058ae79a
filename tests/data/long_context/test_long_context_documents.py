"""Documents to learn long contexts from: how long they are, what they hold, and files of them."""

from __future__ import annotations

import json
import re
from itertools import islice
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foresail.commands.data import make_long_context, train_tokenizer
from foresail.data.long_context.document_file import kinds_of, write_documents
from foresail.data.long_context.documents import KINDS, DocumentMaker, DocumentPlan, draw_length
from foresail.data.long_context.filler import made_filler
from foresail.data.long_context.fit import WordCounts
from foresail.data.long_context.tasks import TASKS, make_item
from foresail.data.long_context.texts import open_filler, read_texts
from foresail.tokenizer.tokenizer import Tokenizer
from foresail.tokenizer.train import train_bpe

TOKENIZER = train_bpe([f"{' '.join(islice(made_filler(Random(0)), 400))} 0123456789"], vocab_size=420)
ENCODE = TOKENIZER.encode


def maker(*kinds: str, lengths: tuple[int, int] = (500, 1500), seed: int = 0) -> DocumentMaker:
    return DocumentMaker(plan=DocumentPlan(lengths=lengths, kinds=kinds, seed=seed), encode=ENCODE)


@given(st.sampled_from(KINDS), st.integers(0, 10**6), st.integers(900, 2000))
@settings(max_examples=40)
def test_a_document_and_its_end_fit_the_longest_length(kind: str, index: int, most: int) -> None:
    tokens = len(ENCODE(maker(kind, lengths=(most, most)).make(index)))
    assert most - 40 < tokens < most


@given(st.integers(0, 10**6))
@settings(max_examples=20)
def test_a_drill_asks_for_every_needle_and_answers_right(index: int) -> None:
    text, *asked = re.split(r"\n\n(?=What)", maker("drill").make(index))
    needles = dict(re.findall(r"The access code of (\S+) is (\d+)\.", text))
    answers = re.findall(r"of (\S+)\?\nThe access code of (\S+) is (\d+)\.", "\n".join(asked))
    assert {(key, code) for key, _, code in answers} == {*needles.items()} and len(needles) >= 2
    assert all(key == again for key, again, _ in answers)


def test_a_task_is_written_out_with_its_solution_and_never_one_of_an_evaluation() -> None:
    document = maker("niah_single").make(4)
    needle, asked = re.findall(r"The access code of (\S+) is (\d+)\.", document)
    assert needle == asked
    evaluated = (
        make_item("niah_single", seed=seed, index=4, length=length, encode=ENCODE)
        for seed in range(2)
        for length in (500, 900)
    )
    assert needle[1] not in {item.answers[0] for item in evaluated}


def test_a_length_too_short_for_a_task_is_drawn_again() -> None:
    plan = DocumentPlan(lengths=(20, 1200), kinds=("fwe",))
    made = [DocumentMaker(plan=plan, encode=ENCODE).make(index) for index in range(6)]
    assert all(250 < len(ENCODE(text)) < 1200 for text in made)
    with pytest.raises(ValueError, match="fwe needs at least"):
        maker("fwe", lengths=(20, 60)).make(0)


@given(st.integers(0, 99), st.integers(1, 5000), st.integers(0, 5000))
def test_lengths_are_drawn_between_the_two(seed: int, fewest: int, more: int) -> None:
    assert fewest <= draw_length(Random(seed), fewest, fewest + more) <= fewest + more


@given(st.text(alphabet="ab .\n7", max_size=60))
def test_words_counted_alone_are_at_least_all_characters_that_tokens_need(text: str) -> None:
    assert len(WordCounts(str.encode)(text)) == len(text)


def test_a_file_is_the_same_with_any_number_of_workers(tmp_path: Path) -> None:
    TOKENIZER.save(tmp_path / "tokenizer")
    plan = DocumentPlan(lengths=(300, 400), kinds=("drill", "niah_single"))
    for workers in (1, 2):
        out = tmp_path / f"{workers}/needles.jsonl"
        write_documents(out, plan, tokenizer=str(tmp_path / "tokenizer"), count=4, workers=workers)
    assert (tmp_path / "1/needles.jsonl").read_bytes() == (tmp_path / "2/needles.jsonl").read_bytes()
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [row["kind"] for row in rows] == ["drill", "niah_single"] * 2
    assert [row["text"] for row in rows] == [
        DocumentMaker(plan=plan, encode=ENCODE).make(index) for index in range(4)
    ]
    assert [*read_texts(out)] == [row["text"] for row in rows]
    assert next(open_filler(str(out))(Random(0))).endswith((".", "?", ":"))


def test_the_command_writes_documents(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    TOKENIZER.save(tmp_path / "tokenizer")
    out = tmp_path / "needles.jsonl"
    make_long_context(str(tmp_path / "tokenizer"), out, count=2, lengths="300-400", kinds="drill", workers=1)
    assert len(out.read_text().splitlines()) == 2
    assert "2 documents of 300-400 tokens" in capsys.readouterr().out


def test_the_command_trains_a_tokenizer_on_texts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = tmp_path / "texts.jsonl"
    texts.write_text(
        "".join(json.dumps({"text": text}) + "\n" for text in islice(made_filler(Random(0)), 50))
    )
    train_tokenizer([str(texts)], tmp_path / "made", vocab_size=300, documents=40, whole=["<think>"])
    tokenizer = Tokenizer.load(tmp_path / "made")
    assert tokenizer.vocab_size == 300 and len(tokenizer.encode("<think>")) == 1
    assert "300 tokens" in capsys.readouterr().out


def test_plans_that_cannot_be_are_refused() -> None:
    assert kinds_of("all") == KINDS == (*TASKS, "drill")
    assert kinds_of("vt, drill") == ("vt", "drill")
    with pytest.raises(ValueError, match="there is no long-context task 'dril'"):
        DocumentPlan(lengths=(1, 2), kinds=("dril",)).check()
    with pytest.raises(ValueError, match="lengths 9-3 are no range"):
        DocumentPlan(lengths=(9, 3)).check()
